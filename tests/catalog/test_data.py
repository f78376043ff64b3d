"""The data files, and the small tools that read them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog import _data, _lookup, _versions

FILES = sorted(_data.ROOT.rglob("*.yaml"))
OURS = sorted(path for path in _data.ROOT.parents[1].rglob("*.yaml") if "templates" not in path.parts)
"""Every data file of every room."""

VERSIONS = st.lists(st.integers(0, 99), min_size=1, max_size=3).map(lambda numbers: "v" + ".".join(map(str, numbers)))


class Strict(yaml.SafeLoader):
    """A loader that refuses what the fast one overlooks: a key that stands twice in a map."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build the map, after a look at its keys."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"{node.start_mark}: {keys}"
        return super().construct_mapping(node, deep=deep)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(_data.ROOT)))
def test_data_files_are_sound(path: Path) -> None:
    """A file opens with its source, and holds no key twice, no tab, no download address and no date of YAML's."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "\t" not in text
    for address in ("http:", "https:", "oci:", "ftp:"):
        assert address not in text
    content = yaml.load(text, Loader=Strict)  # noqa: S506  # a safe loader
    assert content
    assert {type(value) for value in scalars(content)} <= {str, int, float, bool, type(None)}


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(_data.ROOT.parents[1])))
def test_data_files_read_as_pyyaml_reads_them(path: Path) -> None:
    """A file is read in fewer steps than PyYAML takes, to the same values of the same types, in the same order."""
    ours, theirs = _data.read(path), yaml.safe_load(path.read_bytes())
    assert repr(ours) == repr(theirs)


def scalars(value: Any) -> list[Any]:
    """All values and keys of plain data."""
    if isinstance(value, dict):
        return [*value, *(found for item in value.values() for found in scalars(item))]
    if isinstance(value, list):
        return [found for item in value for found in scalars(item)]
    return [value]


def test_importing_the_catalogue_is_light() -> None:
    """The reconciler and a warm render pay for what they read only: no pydantic, no YAML, no file at import."""
    modules = "chart dcgm drivers fields gpus mig oses platforms plugin_config releases texts".split()
    code = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module("gpustack.catalog." + name)
print(sorted({{"pydantic", "yaml", "ruamel", "jsonschema", "difflib"}} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_data.ROOT.parents[2]
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("version", "condition", "holds"),
    [
        ("v26.3.1", ">=v26.3", True),
        ("v26.3.1", "==v26.3", True),
        ("v26.3.1", "<v26.3", False),
        ("v25.10.1", "<v26.3", True),
        ("v25.3.4", "<v25.10", True),  # 3 comes before 10
        ("1.33", ">=1.33", True),
        ("1.33.1", ">=1.33", True),
        ("v1.9.3", ">=1.33", False),
        ("v26.3.1", ">=v25.10,<v26.7", True),
        ("v26.7.0", ">=v25.10, <v26.7", False),
        ("26", "==v26.3", False),
    ],
)
def test_conditions(version: str, condition: str, holds: bool) -> None:
    """A shorter version in a condition stands for the whole line."""
    assert _versions.satisfies(version, condition) is holds


@given(VERSIONS, VERSIONS)
def test_a_version_is_on_one_side_of_another(version: str, other: str) -> None:
    """Exactly one of "at least" and "before" holds."""
    assert _versions.satisfies(version, f">={other}") != _versions.satisfies(version, f"<{other}")


@pytest.mark.parametrize(
    "condition", ["", "v26.3", "<=v26.3", ">v26.3", "=v26.3", ">=v26.3;<v26.7", ">=latest", ">=v26.3,"]
)
def test_what_is_no_condition_is_refused(condition: str) -> None:
    """A condition with a typo never counts as true or false."""
    with pytest.raises(ValueError, match="not a condition"):
        _versions.satisfies("v26.3.0", condition)


def test_what_is_no_version_is_refused() -> None:
    """A text without numbers has no place in the order of versions."""
    with pytest.raises(ValueError, match="not a version"):
        _versions.key("latest")


TREES = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=10,
)
MAPS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


@given(MAPS, MAPS)
def test_merging_twice_is_merging_once(target: dict[str, Any], changes: dict[str, Any]) -> None:
    """What has been merged in changes nothing any more, and the changes stay as they were."""
    before = _data.copy(changes)
    once = _data.merge(_data.copy(target), changes)
    assert _data.merge(_data.copy(once), changes) == once
    assert changes == before
    assert set(once) == {*target, *changes}


def test_merging_env_goes_by_name() -> None:
    """A variable is replaced where it stands, a new one follows; lists without names are replaced whole."""
    target = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["x"]}
    changes = {"env": [{"name": "C", "value": "3"}, {"name": "A", "value": "4"}], "args": ["y"]}
    assert _data.merge(target, changes) == {
        "env": [{"name": "A", "value": "4"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
        "args": ["y"],
    }


def test_nearest_names_come_best_first() -> None:
    """Spelling, case and separators matter less than letters; what looks like nothing suggests nothing."""
    names = ["aks-ubuntu", "eks-ubuntu", "gke-ubuntu", "talos"]
    assert _lookup.nearest("EKS_Ubuntu", names)[0] == "eks-ubuntu"
    assert _lookup.nearest("taloss", names) == ["talos"]
    assert _lookup.nearest("windows", names) == []
    assert _lookup.nearest("", names) == []


def test_unknown_names_read_as_sentences() -> None:
    """The error's text says what was not found and what may have been meant, without the quotes that KeyError adds."""
    assert str(_lookup.UnknownName("x", ["a", "b"])) == "unknown name 'x'; did you mean a or b?"
    assert str(_lookup.UnknownName("x")) == "unknown name 'x'"
