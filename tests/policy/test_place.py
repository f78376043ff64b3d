"""From a policy path to the line that wrote the value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.model import Finding, dotted
from gpustack.policy.loading.load import Loaded, load
from gpustack.policy.loading.place import node, parse, place

POLICY = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: a}
spec:
  extends: [base]
  release: v26.7.0
  cluster: {kubernetesVersion: "1.34"}
  driver:
    env:
    - name: OWN
      value: x
    - {name: BOTH, value: policy}
  nodePools:
  - name: first
    os: ubuntu22.04
  operator: {labels: {a.b/c: d}}
"""
LAYER = """\
apiVersion: gpustack.dev/v1alpha1
kind: PolicyLayer
metadata: {name: base}
spec:
  cluster: {platform: gke-cos}
  gfd:
    args:
    - --one
  driver:
    env:
    - {name: BOTH, value: layer}
    - name: LAYER
      value: y
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A policy over a layer."""
    root = tmp_path_factory.mktemp("place")
    (root / "policies/layers").mkdir(parents=True)
    (root / "policies/layers/base.yaml").write_text(LAYER)
    (root / "policies/a.yaml").write_text(POLICY)
    return load(root / "policies/a.yaml", root=root)


def where(loaded: Loaded, path: str) -> str:
    """The place of PATH, and what stands there."""
    found = place(loaded, Finding("GPU000", "error", "x", path)).location
    assert found is not None
    text = found.text[(found.column or 1) - 1 :] if found.text is not None else ""
    return f"{Path(found.file).name}:{found.line} {text}".rstrip()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.release", "a.yaml:6 v26.7.0"),
        ("spec.cluster.kubernetesVersion", 'a.yaml:7 "1.34"}'),
        ("spec.cluster.platform", "base.yaml:5 gke-cos}"),
        ("spec.gfd.args[0]", "base.yaml:8 --one"),
        ("spec.nodePools[0].os", "a.yaml:15 ubuntu22.04"),
        ('spec.operator.labels["a.b/c"]', "a.yaml:16 d}}"),
    ],
)
def test_values(loaded: Loaded, path: str, expected: str) -> None:
    """A value that is written somewhere is shown where it stands, in the layer where the layer wrote it."""
    assert where(loaded, path) == expected


def test_keys(loaded: Loaded) -> None:
    """What is wrong with a name that the policy gives is shown at the name, and not at its value."""
    finding = Finding("GPU000", "error", "x", 'spec.operator.labels["a.b/c"]', key=True)
    found = place(loaded, finding).location
    assert found is not None
    assert found.text is not None
    assert found.text[(found.column or 1) - 1 :] == "a.b/c: d}}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.driver", "a.yaml:8 driver:"),
        ("spec.gfd", "base.yaml:6 gfd:"),
        ("spec.nodePools", "a.yaml:13 nodePools:"),
    ],
)
def test_sections(loaded: Loaded, path: str, expected: str) -> None:
    """A section is shown at its key, in the file that has the last word."""
    assert where(loaded, path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.nodePools[0].kernel", "a.yaml:14"),
        ("spec.nodePools[7].kernel", "a.yaml:13 nodePools:"),
        ("spec.references", "a.yaml:4 spec:"),
        ("spec", "a.yaml:4 spec:"),
    ],
)
def test_what_nobody_wrote(loaded: Loaded, path: str, expected: str) -> None:
    """What is missing has no place of its own: the nearest parent that is written is shown."""
    assert where(loaded, path).startswith(expected)


def test_merged_lists(loaded: Loaded) -> None:
    """Items of lists that merge by name are found in the file that each came from, whatever their place in the
    result."""
    env = loaded.merged.spec["driver"]["env"]
    places = {item["name"]: where(loaded, f"spec.driver.env[{index}].value") for index, item in enumerate(env)}
    assert places == {"OWN": "a.yaml:11 x", "BOTH": "a.yaml:12 policy}", "LAYER": "base.yaml:13 y"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.driver.version", "a.yaml:8 driver:"),
        ("spec.gfd.version", "base.yaml:6 gfd:"),
        ("spec.devicePlugin.version", "a.yaml:4 spec:"),
        ("spec.devicePlugin.nothing.here", "a.yaml:4 spec:"),
    ],
)
def test_defaults(loaded: Loaded, path: str, expected: str) -> None:
    """A default of the release is shown where it can be set: at the section that somebody wrote, else at spec."""
    assert where(loaded, path) == expected


def test_defaults_of_the_platform(loaded: Loaded) -> None:
    """A default of the platform is shown at what made it count."""
    assert where(loaded, "spec.driver.enabled") == "base.yaml:5 gke-cos}"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("spec.driver.version", "nobody set driver.version: it is a default of release v26.7.0"),
        ("spec.driver.enabled", "nobody set driver.enabled: it is a default of platform gke-cos"),
        ("spec.mig.strategy", "nobody set mig.strategy: it is derived from spec.nodePools[0].sharing.mig"),
    ],
)
def test_whose_default_it_is(tmp_path: Path, path: str, words: str) -> None:
    """About a value that nobody wrote, the message says whose it is: the line that is shown does not hold it."""
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers/base.yaml").write_text(LAYER)
    cut = "    os: ubuntu22.04\n    sharing: {mig: {layout: {3g.40gb: 1, 2g.20gb: 2}}}\n"
    (tmp_path / "a.yaml").write_text(POLICY.replace("    os: ubuntu22.04\n", cut))
    policy = load(tmp_path / "a.yaml", root=tmp_path)
    assert place(policy, Finding("GPU000", "error", "x", path, why="so it is")).why == f"so it is; {words}"
    assert place(policy, Finding("GPU000", "error", "x", path)).why == words


def test_what_somebody_wrote_is_no_default(loaded: Loaded) -> None:
    """Where the line holds the value, or nobody has one, there is nothing to add."""
    for path in ("spec.release", "spec.nodePools[0].kernel", "spec.driver.env[0].value", "spec.devicePlugin.no"):
        assert place(loaded, Finding("GPU000", "error", "x", path, why="so it is")).why == "so it is"


def test_other_paths_stay(loaded: Loaded) -> None:
    """A path that is not about the spec is left alone."""
    for path in ("", "metadata.name", "specific"):
        finding = Finding("GPU000", "error", "x", path)
        assert place(loaded, finding) is finding


STEPS = st.one_of(st.integers(0, 99), st.text(st.characters(exclude_characters='"', exclude_categories=["Cs"])))


@given(st.lists(STEPS).map(tuple))
def test_parse_reverses_dotted(path: tuple[str | int, ...]) -> None:
    """What model.dotted writes is read back, whatever the keys hold (but a quote)."""
    assert parse(dotted(path)) == path


def test_node() -> None:
    """Looking into data never fails."""
    data = {"a": [{"b": 1}]}
    assert node(data, ("a", 0, "b")) == 1
    for path in (("x",), ("a", 1), ("a", "b"), ("a", 0, "b", "c"), (0,)):
        assert node(data, path) is None
    assert node(data, ()) is data
