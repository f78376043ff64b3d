"""The fleets of the benchmark are what it says they are: a figure about something else would be worse than none."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.policy.loading.load import Memo, load, policy_files, spec_key
from tests.bench import fleet, helm

CLUSTERS, SHAPES = 40, 20


def keys(root: Path) -> list[str]:
    """The key of the effective spec of each policy below ROOT; all of them can be loaded."""
    memo = Memo()
    paths = policy_files(root / "policies", "policies")
    return [spec_key(load(path, root=root, memo=memo).merged) for path in paths]


@pytest.mark.parametrize(("sort", "distinct"), [("shapes", SHAPES), ("distinct", CLUSTERS), ("unshared", CLUSTERS)])
def test_fleets(tmp_path: Path, sort: str, distinct: int) -> None:
    """As many clusters as asked for, with as many different effective specs as the sort promises, and the same bytes
    each time."""
    for name in ("a", "b"):
        fleet.write(tmp_path / name, CLUSTERS, sort, shapes=SHAPES)
    files = {path.relative_to(tmp_path / "a"): path.read_bytes() for path in (tmp_path / "a").rglob("*.yaml")}
    assert files == {path.relative_to(tmp_path / "b"): path.read_bytes() for path in (tmp_path / "b").rglob("*.yaml")}
    found = keys(tmp_path / "a")
    assert (len(found), len(set(found))) == (CLUSTERS, distinct)


def test_changes(tmp_path: Path) -> None:
    """A changed spec changes that cluster's effective spec alone, a changed layer everybody's."""
    fleet.write(tmp_path, CLUSTERS, "shapes", shapes=SHAPES)
    before = keys(tmp_path)
    fleet.rewrite(tmp_path, 3, fleet.changed(fleet.specs(4, "shapes", shapes=SHAPES)[3]))
    after = keys(tmp_path)
    assert [index for index in range(CLUSTERS) if before[index] != after[index]] == [3]
    fleet.rewrite_layer(tmp_path, "base", fleet.LAYERS["base"] | {"daemonsets": {"labels": {"a": "b"}}})
    assert not set(keys(tmp_path)) & {*before, *after}


def test_chart(tmp_path: Path) -> None:
    """The chart for Helm has a template for each object, with images and namespace taken out and braces kept."""
    (tmp_path / "c/base").mkdir(parents=True)
    (tmp_path / "c/base/pod-a.yaml").write_text("metadata:\n  namespace: x\nspec:\n- image: r/i:1\n  args: ['{{x}}']\n")
    assert helm.write_chart(tmp_path / "chart", tmp_path / "c") == 1
    (template,) = (tmp_path / "chart/templates").iterdir()
    assert template.read_text() == (
        "metadata:\n  namespace: {{ .Release.Namespace }}\n"
        "spec:\n- image: {{ .Values.images.image0 }}\n  args: ['{{ `{{` }}x}}']\n"
    )
    assert '{"images": {"image0": "r/i:1"}}' in (tmp_path / "chart/values.yaml").read_text()
