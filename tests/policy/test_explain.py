"""Explaining: every value of the effective spec with who wrote it, by the paths that people write."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.model import InputError, Location
from gpustack.policy.help.explain import explain
from gpustack.policy.loading.load import Loaded, load, policy_files
from gpustack.review.impact.leaves import Leaf
from gpustack.review.impact.origin import said
from tests.policy.fleet import Fleet
from tests.project import ROOT

POOLS = """\
  extends: [base]
  mig: {strategy: mixed}
  nodePools:
  - name: training
    os: ubuntu22.04
    nodeSelector: {node.kubernetes.io/instance-type: p5}
  - name: inference
"""


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    """A cluster with values from everywhere."""
    fleet = Fleet(tmp_path)
    fleet.layer("base", "  driver: {rdma: {enabled: true}}\n")
    pins = '  release: v26.7.0\n  cluster: {kubernetesVersion: "1.34", platform: eks-al2023}\n'
    return load(fleet.policy(POOLS, pins=pins), root=tmp_path)


@pytest.mark.parametrize("policy", policy_files(ROOT / "policies", "policies"), ids=lambda path: path.stem)
def test_whatever_diff_prints(policy: Path) -> None:
    """Every field of a policy can be asked for as diff writes it: lists by name, keys with dots and slashes."""
    loaded = load(policy, root=ROOT)
    for path, value in said(loaded.spec).items():
        name = Leaf(path, None, value, {}, {}).name
        assert explain(loaded, f"spec.{name}"), name


@pytest.mark.parametrize("path", ["spec.nodePools.a.count.max", "nodePools[a].count.min", "nodePools.a.count"])
def test_a_value_in_its_short_form(tmp_path: Path, path: str) -> None:
    """What is said in one number and compared as two is told as it is said."""
    loaded = load(Fleet(tmp_path).policy("  nodePools: [{name: a, count: 3}]\n"), root=tmp_path)
    assert [(row.path, row.value) for row in explain(loaded, path)] == [(("nodePools", 0, "count"), 3)]


@pytest.mark.parametrize(
    ("path", "value", "kind", "location"),
    [
        (
            "driver.rdma.enabled",
            True,
            "layer",
            Location("layers/base.yaml", 5, 28, "  driver: {rdma: {enabled: true}}"),
        ),
        ("spec.mig.strategy", "mixed", "policy", Location("prod.yaml", 8, 19, "  mig: {strategy: mixed}")),
        ("driver.version", "595.91.07", "release", Location("release v26.7.0")),
        ("toolkit.enabled", False, "platform", Location("platform eks-al2023")),
        ("devicePlugin.hostNetwork", False, "gpustack", Location("own default")),
        ("guards.mode", "Deny", "derived", Location("derived from spec.cluster.kubernetesVersion")),
        ("nodePools[0].os", "ubuntu22.04", "policy", Location("prod.yaml", 11, 9, "    os: ubuntu22.04")),
        ("nodePools[training].os", "ubuntu22.04", "policy", Location("prod.yaml", 11, 9, "    os: ubuntu22.04")),
        ("spec.nodePools.inference.name", "inference", "policy", Location("prod.yaml", 13, 11, "  - name: inference")),
    ],
)
def test_a_value_is_explained(path: str, value: object, kind: str, location: Location, loaded: Loaded) -> None:
    """One value, its writer and the line, with or without spec, by index or by name."""
    (row,) = explain(loaded, path)
    assert (row.value, row.origin.kind, row.location) == (value, kind, location)


def test_keys_with_dots_stand_in_quotes(loaded: Loaded) -> None:
    """A label is a key like any other."""
    for quote in "\"'":
        (row,) = explain(loaded, f"nodePools[training].nodeSelector[{quote}node.kubernetes.io/instance-type{quote}]")
        assert row.value == "p5"


def test_a_section_is_explained_value_by_value(loaded: Loaded) -> None:
    """A section lists all values below it, and no path at all lists the whole spec."""
    rows = {row.path: row.value for row in explain(loaded, "driver.rdma")}
    assert rows == {("driver", "rdma", "enabled"): True, ("driver", "rdma", "useHostMofed"): False}
    everything = explain(loaded, "")
    assert [row.path for row in everything] == [row.path for row in explain(loaded, "spec")]
    assert {row.origin.kind for row in everything} == {"gpustack", "derived", "release", "platform", "layer", "policy"}
    assert len({row.path for row in everything}) == len(everything) > 100


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("driver.verison", "driver.version"),
        ("drivr.version", "driver.version"),
        ("rdma.enabled", "driver.rdma.enabled"),
        ("Driver.Version", "driver.version"),
        ("nodePools[0].oss", "nodePools[].os"),
        ("driver.nvidiaDriverCRD.enabled", "driver.useNvidiaDriverCRD"),
        ("nodePools[trainin].os", "training"),
        ("nodePools[7]", "2 items"),
        ("driver.version.x", "driver.version"),
        ("qqqq", "section"),
        ("driver.upgradePolicy.windows", "driver.upgradePolicy"),
    ],
)
def test_unknown_paths_name_the_nearest(path: str, word: str, loaded: Loaded) -> None:
    """A path that the language does not have is answered with one that it has."""
    with pytest.raises(InputError) as caught:
        explain(loaded, path)
    (found,) = caught.value.findings
    assert found.rule == "GPU019"
    assert word in found.remedy


def test_a_path_that_is_not_set_is_told_apart_from_one_that_is_none(loaded: Loaded) -> None:
    """A field that exists and that nobody set is no typing error."""
    for path in ("driver.livenessProbe", "nodePools[training].kernel", "gpuCluster"):
        with pytest.raises(InputError) as caught:
            explain(loaded, path)
        (found,) = caught.value.findings
        assert "is not set" in found.what
        assert found.remedy


@pytest.mark.parametrize("path", ["driver..version", "driver.", ".driver", "nodePools[", "nodePools[]", "a[0]b", "]"])
def test_paths_that_cant_be_read_show_the_form(path: str, loaded: Loaded) -> None:
    """Nonsense is answered with how paths are written."""
    with pytest.raises(InputError) as caught:
        explain(loaded, path)
    (found,) = caught.value.findings
    assert found.rule == "GPU019"
    assert "nodePools[training].os" in found.remedy
