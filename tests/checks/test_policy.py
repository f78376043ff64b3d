"""Rules over the effective spec."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.catalog import _data, releases
from gpustack.checks.dra import dra
from gpustack.checks.language import policy as rules
from gpustack.checks.rule import all_rules
from gpustack.model import Finding
from gpustack.policy.language.spec import ClusterPolicySpec
from tests.components.common import spec

POOL = {"name": "p", "os": "ubuntu22.04"}
ASKED: dict[str, dict[str, Any]] = {
    "tenancy": {"tenancy": {}, "gpuCluster": {}},
    "kubevirt": {"kubevirt": {}},
    "gpuCluster": {"gpuCluster": {}},
    "drivers": {"drivers": [{"name": "d"}]},
    "driver.useNvidiaDriverCRD": {"driver": {"useNvidiaDriverCRD": True}},
    "sandboxWorkloads.enabled": {"sandboxWorkloads": {"enabled": True}},
    "cluster.crds": {"cluster": {"crds": {"x.example.com": "own"}}},
    "cluster.platform": {"cluster": {"platform": "openshift"}},
    "nodePools[0].driver": {"nodePools": [{**POOL, "driver": {"kernelModuleType": "open"}}]},
    "nodePools[0].workload": {"nodePools": [{**POOL, "workload": "vm-vgpu"}]},
}
"""What asks for each field that is not rendered, as long as it isn't. A line too many does no harm."""


def found(rule: str, policy: ClusterPolicySpec) -> list[Finding]:
    """What RULE says about POLICY."""
    (chosen,) = (each for each in all_rules() if each.id == rule)
    return list(chosen.findings(policy))


UNRENDERED = [path for path, _, _ in rules.unrendered(spec(nodePools=[POOL]))]


@pytest.mark.parametrize("path", UNRENDERED)
def test_what_is_not_rendered_is_refused(path: str) -> None:
    """A field that has an effect and isn't rendered is an error at its own path, in words, with what to do; alone it is
    the only one."""
    (finding,) = found("GPU101", spec(**{"nodePools": [POOL], **ASKED[path]}))
    assert (finding.path, finding.severity) == (f"spec.{path}", "error")
    assert finding.what.endswith("not rendered by this version of gpustack")
    assert f"leave out spec.{path}" in finding.remedy


OF_RELEASE = {"GPU410", "GPU411", "GPU412", "GPU413", "GPU415"}
"""Rules about the release and its versions, which every policy says: end of support, known faults."""


@pytest.mark.parametrize("release", releases.names())
def test_defaults_are_accepted(release: str) -> None:
    """What a release's chart switches on under parents that are off has no effect, and passes without a word: a policy
    that says nothing gets neither errors nor notes about what it has not said."""
    policy = spec(release, nodePools=[POOL])
    said = [finding for rule in all_rules() if rule.over == "spec" for finding in rule.findings(policy)]
    assert {finding.rule for finding in said} <= {"GPU105", "GPU106", *OF_RELEASE}


@pytest.mark.parametrize(
    ("cdi", "toolkit", "needs"),
    [
        (True, True, []),
        (False, True, ["cdi.enabled"]),
        (True, False, ["toolkit.enabled"]),
        (False, False, ["cdi.enabled", "toolkit.enabled"]),
    ],
)
def test_nri(cdi: bool, toolkit: bool, needs: list[str]) -> None:
    """The NRI plugin needs CDI and the container toolkit (operator.md 15); each that is off is an error."""
    policy = spec(cdi={"enabled": cdi, "nriPluginEnabled": True}, toolkit={"enabled": toolkit})
    assert [finding.what for finding in found("GPU102", policy)] == [f"the NRI plugin needs {path}" for path in needs]
    assert found("GPU102", spec(cdi={"enabled": cdi}, toolkit={"enabled": toolkit})) == []


def test_driver_without_pools() -> None:
    """A driver that no pool says an operating system for is an error: nothing would be rendered for it."""
    assert [finding.severity for finding in found("GPU103", spec())] == ["error"]
    assert found("GPU103", spec(nodePools=[POOL])) == []
    assert found("GPU103", spec(driver={"enabled": False})) == []
    listed: dict[str, Any] = {"driver": {"useNvidiaDriverCRD": True}, "drivers": [{"name": "default", "default": True}]}
    assert [finding.path for finding in found("GPU103", spec(**listed))] == ["spec.drivers"]
    assert found("GPU103", spec(gpuCluster={})) == []
    (undescribed,) = found("GPU103", spec(driver=listed["driver"]))
    assert undescribed.path == "spec.driver.useNvidiaDriverCRD"
    host: dict[str, Any] = {"driver": {"enabled": False}, "vgpuManager": {"enabled": True}}
    sandbox: dict[str, Any] = {"sandboxWorkloads": {"enabled": True}}
    assert [finding.path for finding in found("GPU103", spec(**host, **sandbox))] == ["spec.vgpuManager.enabled"]
    assert found("GPU103", spec(**host)) == []
    assert found("GPU103", spec(**host, **sandbox, nodePools=[POOL])) == []


IDLE: dict[str, dict[str, Any]] = {
    "operator.annotations": {"operator": {"annotations": {"a": "b"}}},
    "operator.labels": {"operator": {"labels": {"a": "b"}}},
    "operator.defaultRuntime": {"operator": {"defaultRuntime": "docker"}},
    "operator.initContainer": {"operator": {"initContainer": {"image": "x"}}},
    "operator.metrics": {"operator": {"metrics": {"serviceMonitor": {"interval": "7s"}}}},
    "psp.enabled": {"psp": {"enabled": True}},
    "cdi.default": {"cdi": {"default": True}},
    "driver.useOpenKernelModules": {"driver": {"useOpenKernelModules": True}},
    "dcgm.hostPort": {"dcgm": {"hostPort": 5555}},
    "toolkit.args": {"toolkit": {"args": ["-x"]}},
    "gds.args": {"gds": {"args": ["-x"]}},
    "gdrcopy.args": {"gdrcopy": {"args": ["-x"]}},
}
"""Fields that nothing acts on (operator.md 5.2 and 15)."""


@pytest.mark.parametrize("path", IDLE)
def test_fields_without_effect(path: str) -> None:
    """What the policy says in vain is a note, not silence and not an error; what it doesn't say is none."""
    policy = spec(nodePools=[POOL], **IDLE[path])
    assert [(finding.path, finding.severity) for finding in found("GPU104", policy)] == [(f"spec.{path}", "note")]
    assert found("GPU104", spec(nodePools=[POOL])) == []


@pytest.mark.parametrize(
    ("product", "told"),
    [
        ("NVIDIA-L4", False),
        ("NVIDIA-L40S-24Q", False),
        ("GRID-A100-20C", False),
        ("NVIDIA-A100-40GB", True),
        ("somebody-elses", False),
    ],
)
def test_gpus_that_are_spelt_differently(product: str, told: bool) -> None:
    """A name like that of a known GPU is a likely mistake; GPUs inside virtual machines have names of their own."""
    assert bool(found("GPU109", spec(nodePools=[{**POOL, "gpuProduct": product}]))) is told


def test_every_field_without_effect_has_its_reason() -> None:
    """Each of the fields that may be said in vain has a line in the data that says why, and there is no other line."""
    fields = [*rules.idle(spec()), *dra.idle(spec(gpuCluster={}))]
    assert sorted(_data.load("idle-fields")) == sorted(fields)


def test_upgrade_policy() -> None:
    """That nobody carries out the driver's upgrade policy is a note where there is a driver and a policy."""
    on = {"upgradePolicy": {"autoUpgrade": True}}
    assert len(found("GPU105", spec(driver=on))) == 1
    assert found("GPU105", spec(driver=on, reconciler={"image": "r.example/r:1"})) == []
    by_discovery = spec(driver=on, reconciler={"labelling": "nodeFeatureRule"})
    assert len(found("GPU105", by_discovery)) == 1
    (finding,) = found(
        "GPU105", spec(driver=on, reconciler={"image": "r.example/r:1"}, sandboxWorkloads={"enabled": True})
    )
    assert "sandboxWorkloads" in finding.what
    assert found("GPU105", spec(driver={**on, "enabled": False})) == []
    assert found("GPU105", spec(driver={"upgradePolicy": {"autoUpgrade": False}})) == []


@pytest.mark.parametrize(("policies", "paths"), [([True, None], ["spec.drivers"]), ([False], []), ([], [])])
def test_upgrade_policies_of_drivers(policies: list[bool | None], paths: list[str]) -> None:
    """Where `drivers` describe the drivers, theirs count, which are on unless they say otherwise (operator.md 10)."""
    drivers = [{"name": f"d{i}", "upgradePolicy": {"autoUpgrade": on}} for i, on in enumerate(policies)]
    policy = spec(driver={"useNvidiaDriverCRD": True}, drivers=drivers)
    assert [finding.path for finding in found("GPU105", policy)] == paths


def test_every_rule_has_a_remedy_and_a_docstring() -> None:
    """Rules tell what to do, and their functions say what they are for."""
    for rule in all_rules():
        assert rule.check.__doc__
        assert rule.id.startswith("GPU")


def test_a_licence_that_is_named_twice() -> None:
    """Wherever a licence may be named, the ConfigMap beside a Secret is told."""
    both, listed = {"secretName": "s", "configMapName": "c"}, {"secretName": "s", "name": "c"}
    pools = [{**POOL, "driver": {"licensingConfig": both}}]
    hits = found(
        "GPU142",
        spec(driver={"licensingConfig": both}, nodePools=pools, drivers=[{"name": "d", "licensingConfig": listed}]),
    )
    assert [hit.path for hit in hits] == [
        "spec.driver.licensingConfig.configMapName",
        "spec.nodePools[0].driver.licensingConfig.configMapName",
        "spec.drivers[0].licensingConfig.name",
    ]
    assert found("GPU142", spec(driver={"licensingConfig": {"configMapName": "c"}})) == []
