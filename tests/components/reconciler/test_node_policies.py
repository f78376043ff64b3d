"""NodePolicies: which nodes, which labels, what budget, which version of the driver (reconciler.md 1.4, 6.8)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import Driver, NvidiaDrivers
from gpustack.components.driver import driver_inputs
from gpustack.components.driver import nvidia_drivers_inputs as drivers_inputs
from gpustack.components.reconciler.node_policies_inputs import from_cluster
from tests.components.common import render
from tests.components.common import spec as spec_of
from tests.components.reconciler.common import POOL, policy, specs

OS = "feature.node.kubernetes.io/system-os_release."
A100 = {"gpuProduct": "NVIDIA-A100-SXM4-80GB", "gpusPerNode": 8}
SANDBOX = {"enabled": True}
VGPU = {"enabled": True, "repository": "r.example", "image": "vgpu", "version": "1"}


def one(reconciler: dict[str, Any] | None = None, **sections: Any) -> Any:
    """The spec of the only NodePolicy."""
    (found,) = specs(reconciler, **sections).values()
    return found


def test_nothing_without_the_program() -> None:
    """No reconciler, or labels by node feature discovery: no NodePolicy."""
    assert from_cluster(resolve(spec_of(nodePools=[POOL]))) is None
    assert from_cluster(resolve(spec_of(nodePools=[POOL], reconciler={"labelling": "nodeFeatureRule"}))) is None


def test_selection() -> None:
    """The pool's own labels, and NFD's for system, kernel and RHCOS version; images of RHEL are made for the major
    version, so all of it is selected (A3)."""
    pool = {**POOL, "nodeSelector": {"pool": "x"}, "kernel": "5.15.0-105-generic"}
    assert one(nodePools=[pool])["nodeSelector"] == {
        "pool": "x",
        f"{OS}ID": "ubuntu",
        f"{OS}VERSION_ID": "22.04",
        "feature.node.kubernetes.io/kernel-version.full": "5.15.0-105-generic",
    }
    assert one(nodePools=[{**POOL, "os": "rhel9.4"}])["nodeSelector"] == {
        f"{OS}ID": "rhel",
        f"{OS}VERSION_ID.major": "9",
    }
    rhcos = {**POOL, "os": "rhcos4.18", "ostreeVersion": "418.94"}
    assert one(nodePools=[rhcos], driver={"enabled": False})["nodeSelector"][f"{OS}OSTREE_VERSION"] == "418.94"


def test_health() -> None:
    """The policy's own conditions come before those of detectors, and the last day of only reporting is over at its
    end. With another owner everything is reported. Without the section there is none.
    """
    own = {"type": "example.com/Lost", "then": "drain", "request": "reboot", "messages": ["*bus*"]}
    section = {"detectors": ["aks"], "conditions": [own], "reportOnlyUntil": "2027-12-31", "maxNodes": 1}
    found = one({"health": section})["health"]
    rest = {"status": "True", "reasons": [], "heartbeatSeconds": 0}
    assert found["rules"][0] == {**rest, **own}
    assert found["rules"][1] == {**rest, "type": "GPUMissing", "then": "drain", "request": "reboot", "messages": []}
    assert (found["reportOnlyUntil"], found["maxNodes"]) == ("2028-01-01T00:00:00Z", 1)
    theirs = one({"health": {"detectors": ["aks"], "owner": "platform"}})["health"]
    assert {(each["then"], each["request"]) for each in theirs["rules"]} == {("report", "")}
    assert "reportOnlyUntil" not in theirs
    assert "health" not in one()


def test_a_cluster_without_pools() -> None:
    """One NodePolicy for all nodes with a GPU, which no driver DaemonSet covers."""
    found = specs(nodePools=[])
    assert list(found) == ["all-gpu-nodes"]
    assert found["all-gpu-nodes"]["nodeSelector"] == {}
    assert found["all-gpu-nodes"]["driver"]["daemonSets"] == []
    assert "driver" not in one(nodePools=[], driver={"enabled": False})


def test_equal_pools_become_one() -> None:
    """Pools that select the same nodes and want the same share a NodePolicy, called like the first; what they expect of
    the GPUs differently isn't known then."""
    pools = [{"name": "b", **A100}, {"name": "a"}, {"name": "c", "nodeSelector": {"x": "y"}}]
    found = specs(nodePools=pools, driver={"enabled": False})
    assert {name: spec["pools"] for name, spec in found.items()} == {"b": ["b", "a"], "c": ["c"]}
    assert (found["b"]["gpu"]["product"], found["b"]["gpu"]["resources"]) == ("", {"nvidia.com/gpu": 0})
    same = specs(nodePools=[{"name": "a", **A100}, {"name": "b", **A100}], driver={"enabled": False})
    assert same["a"]["gpu"]["resources"] == {"nvidia.com/gpu": 8}


def test_labels() -> None:
    """Configuration of the device plugin, workload and vGPU types, driver's owner: what a pool adds."""
    assert one()["labels"] == {}
    shared = {**POOL, "sharing": {"timeSlicing": {"replicas": 2}}}
    assert one(nodePools=[shared])["labels"] == {"nvidia.com/device-plugin.config": "a"}
    assert one(nodePools=[shared], devicePlugin={"enabled": False})["labels"] == {}
    own = {**POOL, "driver": {"kernelModuleType": "open"}}
    assert one(nodePools=[own])["labels"] == {"nvidia.com/gpu-operator.driver.owner": "a"}
    vgpu = {**POOL, "workload": "vm-vgpu", "vgpu": {"config": "A10-24Q"}}
    assert one(nodePools=[vgpu], sandboxWorkloads=SANDBOX, vgpuManager=VGPU)["labels"] == {
        "nvidia.com/gpu.workload.config": "vm-vgpu",
        "nvidia.com/vgpu.config": "A10-24Q",
    }
    assert one(nodePools=[vgpu])["labels"] == {}


def test_several_drivers() -> None:
    """With `drivers` the label names the driver that selects the pool; older operators know no such label."""
    drivers = [{"name": "stable", "default": True}, {"name": "next", "nodeSelector": {"ring": "early"}}]
    pools = [{**POOL, "nodeSelector": {"ring": "late"}}, {**POOL, "name": "b", "nodeSelector": {"ring": "early"}}]
    found = specs(nodePools=pools, driver={"useNvidiaDriverCRD": True}, drivers=drivers)
    owner = "nvidia.com/gpu-operator.driver.owner"
    assert {name: each["labels"][owner] for name, each in found.items()} == {"a": "stable", "b": "next"}
    daemonsets = {name: [each["name"] for each in spec["driver"]["daemonSets"]] for name, spec in found.items()}
    assert [["stable" in name for name in names] for names in daemonsets.values()] == [[True], [False]]


def test_the_vgpu_host_manager_is_no_driver_for_containers() -> None:
    """It drives the GPUs of virtual machines: where there is no other, nodes for containers bring their driver, and
    where there is, only that one is named."""
    host = {"name": "host", "driverType": "vgpu-host-manager", "repository": "r.example", "image": "m", "version": "1"}
    pools = [{**POOL, "workload": "container"}, {"name": "b", "os": "ubuntu24.04", "workload": "vm-vgpu"}]
    sections: dict[str, Any] = {"nodePools": pools, "sandboxWorkloads": SANDBOX, "driver": {"useNvidiaDriverCRD": True}}
    found = specs(**sections, drivers=[{**host, "default": True}])
    assert {"driver" in each for each in found.values()} == {False}
    container = {"name": "c", "nodeSelector": {"nvidia.com/gpu.workload.config": "container"}}
    found = specs(**sections, drivers=[{**host, "default": True}, container])
    named = {
        name: [each["name"] for each in spec["driver"]["daemonSets"]]
        for name, spec in found.items()
        if "driver" in spec
    }
    assert {name: [of.split("-")[1] for of in daemons] for name, daemons in named.items()} == {"a": ["gpu"]}


def test_mig() -> None:
    """A layout of the pool's own is called like the pool, and its content has a name that changes with it; what the
    manager makes of its GPUs is known to the node alone."""

    def mig(**cut: Any) -> Any:
        return one(nodePools=[{**POOL, **A100, "sharing": {"mig": cut}}]).get("mig")

    first, second = mig(layout={"3g.40gb": 2}), mig(layout={"2g.20gb": 3})
    assert (first["config"], second["config"]) == ("a", "a")
    assert first["digest"] != second["digest"]
    assert mig(config="all-1g.10gb") == {"config": "all-1g.10gb", "digest": ""}
    assert "mig" not in one()
    off = one(nodePools=[{**POOL, "sharing": {"mig": {"layout": {"3g.40gb": 2}}}}], migManager={"enabled": False})
    assert ("mig" in off, off["migManager"], off["migDefault"]) == (False, False, "")


def test_a_text_of_layouts_names_its_content() -> None:
    """The same entry in the policy's own text has one digest, a changed one another."""

    def digest(profile: str) -> str:
        entry = f"{{devices: all, mig-enabled: true, mig-devices: {{{profile}}}}}"
        text = f"version: v1\nmig-configs:\n  mine: [{entry}]\n"
        config = {"name": "layouts", "create": True, "data": {"config.yaml": text}}
        pool = {**POOL, **A100, "sharing": {"mig": {"config": "mine"}}}
        found: str = one(nodePools=[pool], migManager={"config": config})["mig"]["digest"]
        return found

    assert digest("1g.10gb: 7") == digest("1g.10gb: 7") != digest("2g.20gb: 3")
    assert digest("1g.10gb: 7")


@pytest.mark.parametrize(("default", "wanted"), [("all-disabled", "all-disabled"), ("", "")])
def test_mig_default(default: str, wanted: str) -> None:
    """Nodes that can have MIG begin with the policy's default (L30)."""
    assert one(migManager={"config": {"default": default}})["migDefault"] == wanted


def test_mig_reboot() -> None:
    """The MIG manager may reboot nodes where its environment says so."""
    assert one()["migReboot"] is False
    assert one(migManager={"env": [{"name": "WITH_REBOOT", "value": "true"}]})["migReboot"] is True


def test_gpus() -> None:
    """What a node must offer is computed; a number that isn't known is 0, and with DRA nothing is offered."""
    found = one(nodePools=[{**POOL, **A100, "sharing": {"timeSlicing": {"replicas": 4}}}])["gpu"]
    assert (found["product"], found["resources"]) == (A100["gpuProduct"], {"nvidia.com/gpu": 32})
    assert found["runtimeClasses"] == ["nvidia", "nvidia-cdi", "nvidia-legacy"]
    assert found["migCapable"] is True
    assert one(nodePools=[{**POOL, "gpuProduct": "NVIDIA-L4"}])["gpu"]["migCapable"] is False
    assert "migCapable" not in one()["gpu"]
    assert one()["gpu"]["resources"] == {"nvidia.com/gpu": 0}
    dra = one(gpuCluster={}, drivers=[{"name": "d", "default": True}])
    assert (dra["gpu"]["resources"], dra["gpu"]["runtimeClasses"]) == ({}, [])
    assert "dra-driver" in dra["components"]


def test_precompiled_drivers_are_never_only_restarted() -> None:
    """Their images don't compare the digest of what is installed (U35); neither do drivers before v26.3."""
    kernel = {**POOL, "kernel": "5.15.0-105-generic"}
    precompiled = one(nodePools=[kernel], driver={"usePrecompiled": True, "version": "595"})["driver"]
    assert (len(precompiled["daemonSets"]), precompiled["digestRestart"]) == (1, False)
    assert one()["driver"]["digestRestart"] is True
    assert one(release="v25.10.1")["driver"]["digestRestart"] is False


def test_pools_of_several_systems() -> None:
    """Each NodePolicy names the DaemonSets that its nodes may match, and no other."""
    pools = [{**POOL, "os": "ubuntu24.04"}, {"name": "b", "os": "rhel9.4"}, {"name": "c", "os": "ubuntu22.04"}]
    pools[2]["driver"] = {"kernelModuleType": "open"}
    found = specs(nodePools=pools)
    names = {name: [each["name"] for each in spec["driver"]["daemonSets"]] for name, spec in found.items()}
    assert names["a"] == ["nvidia-driver-daemonset"]
    assert names["b"] == ["nvidia-driver-daemonset-rhel9"]
    assert [name.startswith("nvidia-gpu-driver-ubuntu22.04-c-") for name in names["c"]] == [True]


@pytest.mark.parametrize("several", [False, True])
def test_revisions(several: bool) -> None:
    """NodePolicy and driver DaemonSet name the same pod template, and another after a change of the driver; the name is
    not in the template (A8)."""
    sections: dict[str, Any] = (
        {"driver": {"useNvidiaDriverCRD": True}, "drivers": [{"name": "d", "default": True, "version": "1"}]}
        if several
        else {"driver": {"version": "580.1"}}
    )
    changed = (
        {**sections, "drivers": [{**sections["drivers"][0], "version": "2"}]}
        if several
        else {"driver": {"version": "580.2"}}
    )
    seen = []
    for said in (sections, changed):
        construct, module = (NvidiaDrivers, drivers_inputs) if several else (Driver, driver_inputs)
        inputs = module.from_cluster(resolve(policy(**said)))
        assert inputs is not None
        bodies = [body for body in render(construct, inputs).values() if body["kind"] == "DaemonSet"]
        names = {body["metadata"]["name"]: body["metadata"]["annotations"]["gpustack.dev/revision"] for body in bodies}
        (found,) = specs(**said).values()
        assert {each["name"]: each["revision"] for each in found["driver"]["daemonSets"]} == names
        assert not any("gpustack.dev/revision" in str(body["spec"]["template"]) for body in bodies)
        seen.append(names)
    assert seen[0].keys() == seen[1].keys()
    assert seen[0] != seen[1]


def test_no_revision_without_the_program() -> None:
    """Who has no reconciler sees no new annotation."""
    inputs = driver_inputs.from_cluster(resolve(spec_of(nodePools=[POOL])))
    assert inputs is not None
    assert "gpustack.dev/revision" not in str(render(Driver, inputs))


@pytest.mark.parametrize(
    ("sections", "annotation", "auto"),
    [
        ({}, True, True),
        ({"driver": {"upgradePolicy": {"autoUpgrade": False}}}, False, False),
        ({"driver": {"enabled": False}}, False, True),
        ({"sandboxWorkloads": SANDBOX}, False, False),
        ({"gpuCluster": {}, "drivers": [{"name": "d", "default": True}]}, True, True),
    ],
)
def test_who_evicts(sections: dict[str, Any], annotation: bool, auto: bool) -> None:
    """Nodes are told that the driver manager need not evict where drivers roll by themselves, and nowhere else (L31);
    in clusters of sandboxes they don't."""
    found = one(**sections)
    assert (found["upgradeAnnotation"], found["upgrade"]["auto"]) == (annotation, auto)


def test_upgrade_policy() -> None:
    """Absent fields have the operator's defaults (U22), and all are spelled out."""
    assert one()["upgrade"] == {
        "auto": True,
        "maxParallel": 1,
        "maxUnavailable": "25%",
        "windows": [],
        "podDeletion": {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
        "drain": {"enable": False, "force": False, "podSelector": "", "timeoutSeconds": 300, "deleteEmptyDir": False},
        "waitForCompletion": {"podSelector": "", "timeoutSeconds": 0},
        "breakerFailures": 3,
        "firstAlone": True,
        "maxAttempts": 3,
    }
    said = {
        "maxParallelUpgrades": 4,
        "maxUnavailable": 10,
        "waitForCompletion": {"podSelector": "app=x", "timeoutSeconds": 7},
        "podDeletion": {"force": True, "timeoutSeconds": 0, "deleteEmptyDir": True},
        "drain": {"enable": True, "force": True, "podSelector": "a=b", "timeoutSeconds": 9, "deleteEmptyDir": True},
    }
    found = one(driver={"upgradePolicy": said})
    upgrade = found["upgrade"]
    assert (upgrade["maxParallel"], upgrade["maxUnavailable"]) == (4, 10)
    assert {key: upgrade[key] for key in ("waitForCompletion", "podDeletion", "drain")} == {
        key: said[key] for key in ("waitForCompletion", "podDeletion", "drain")
    }
    assert found["fleet"] == {"maxParallel": 4, "maxUnavailable": 10}


def test_a_pools_own_budget() -> None:
    """What the pool says replaces what the driver says; over all pools the driver's limits stay."""
    window = {"days": ["sat"], "start": "22:00", "hours": 6, "timeZone": "Europe/Berlin"}
    own = {"maxUnavailable": 2, "maxParallel": 1, "zoneMaxUnavailable": "50%", "windows": [window], "soakSeconds": 60}
    found = one(nodePools=[{**POOL, "upgrade": own}], driver={"upgradePolicy": {"maxParallelUpgrades": 3}})
    assert {key: found["upgrade"][key] for key in own} == own
    assert found["fleet"] == {"maxParallel": 3, "maxUnavailable": "25%"}


@pytest.mark.parametrize(
    ("cluster", "own", "seconds"), [(0, None, None), (90, None, 90), (90, 30, 30), (90, 0, None), (0, 30, 30)]
)
def test_a_pools_own_soak(cluster: int, own: int | None, seconds: int | None) -> None:
    """It replaces the cluster's, a shorter one too, and 0 is none at all; another pool keeps the cluster's."""
    other = {**POOL, "name": "b", "nodeSelector": {"x": "y"}}
    pools = [{**POOL, "upgrade": {} if own is None else {"soakSeconds": own}}, other]
    found = specs({"soakSeconds": cluster}, nodePools=pools)
    said = [found[name]["upgrade"].get("soakSeconds") for name in ("a", "b")]
    assert said == [seconds, cluster or None]


def test_windows_of_the_cluster() -> None:
    """Pools without windows have the cluster's; the zone is UTC unless said."""
    window = {"start": "01:00", "hours": 2}
    pools = [POOL, {**POOL, "name": "b", "nodeSelector": {"x": "y"}, "upgrade": {"windows": [{**window, "hours": 9}]}}]
    found = specs({"windows": [window]}, nodePools=pools)
    assert found["a"]["upgrade"]["windows"] == [{**window, "days": [], "timeZone": "UTC"}]
    assert [each["hours"] for each in found["b"]["upgrade"]["windows"]] == [9]


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ([{}, {}], {"maxParallel": 2, "maxUnavailable": "25%"}),
        ([{"maxParallelUpgrades": 0}, {"maxUnavailable": "40%"}], {"maxParallel": 0, "maxUnavailable": "40%"}),
        ([{"maxUnavailable": 1}, {"maxUnavailable": 3}], {"maxParallel": 2, "maxUnavailable": 4}),
    ],
)
def test_each_of_several_drivers_has_its_budget(limits: list[dict[str, Any]], wanted: dict[str, Any]) -> None:
    """Drivers of their own have budgets of their own (U4): together they may do what each may."""
    drivers: list[dict[str, Any]] = [{"name": "a", "default": True}, {"name": "b", "nodeSelector": {"x": "y"}}]
    pools = [{**POOL, "nodeSelector": {"x": "n"}}, {**POOL, "name": "b", "nodeSelector": {"x": "y"}}]
    said = [{**driver, "upgradePolicy": limit} for driver, limit in zip(drivers, limits, strict=True)]
    found = specs(nodePools=pools, driver={"useNvidiaDriverCRD": True}, drivers=said)
    assert [each["fleet"] for each in found.values()] == [wanted, wanted]


def test_what_the_reconcilers_section_says() -> None:
    """Startup taints, deadlines, attempts, breaker, grace and the number of installations at a time."""
    found = one(
        {
            "startupTaints": [{"key": "example.com/wait", "effect": "NoSchedule"}],
            "deadlines": {"driver": 600, "mig": 700, "verifying": 800},
            "installParallel": 5,
            "breakerFailures": 0,
            "maxAttempts": 1,
            "labelGraceSeconds": 0,
            "labelling": "none",
        }
    )
    assert found["startupTaints"] == [{"key": "example.com/wait", "effect": "NoSchedule", "value": ""}]
    assert found["deadlines"] == {"driver": 600, "mig": 700, "migReboot": 700, "verifying": 800}
    assert (found["install"], found["graceSeconds"], found["labelling"]) == ({"maxParallel": 5}, 0, False)
    assert (found["upgrade"]["breakerFailures"], found["upgrade"]["maxAttempts"]) == (0, 1)


def test_a_driver_that_cannot_be_rendered_is_said_once() -> None:
    """Its own component refuses it; here is nothing to add."""
    assert from_cluster(resolve(policy(nodePools=[{"name": "a"}]))) is None


def test_namespaces_of_clients() -> None:
    """Whose DaemonSets are left to the driver manager: sorted, each once; by default nobody's."""
    assert one()["clientNamespaces"] == []
    assert one({"clientNamespaces": ["b", "a", "b"]})["clientNamespaces"] == ["a", "b"]


def test_a_limit_of_failures_in_per_cent() -> None:
    """As the policy says it: the program knows how many nodes there are."""
    assert one({"breakerFailures": "10%"})["upgrade"]["breakerFailures"] == "10%"
    assert one({"breakerFailures": 0})["upgrade"]["breakerFailures"] == 0


def test_whether_the_first_node_goes_alone() -> None:
    """It does, unless the policy says that it need not."""
    assert one({"firstAlone": False})["upgrade"]["firstAlone"] is False


def test_how_long_a_node_soaks() -> None:
    """As long as the policy says; without a word of it no NodePolicy has the field."""
    assert one({"soakSeconds": 600})["upgrade"]["soakSeconds"] == 600
    assert "soakSeconds" not in one({})["upgrade"]


def test_who_goes_first() -> None:
    """Labels in the policy's order, with their values in its order; without a word of it by name."""
    labels = [{"key": "example.com/tier", "values": ["canary", "dev"]}, {"key": "rack", "values": ["1"]}]
    found = one({"order": {"labels": labels, "leastUsed": True}})["upgrade"]
    assert found["order"] == [{"label": each["key"], "values": each["values"]} for each in labels]
    assert found["leastUsed"] is True
    assert not {"order", "leastUsed"} & one({})["upgrade"].keys()


def test_what_becomes_of_pods() -> None:
    """Rules in the policy's order, their labels as a selector; without a word of them no NodePolicy has the fields."""
    rules = [
        {"labels": {"b": "2", "a": "1"}, "then": "delete"},
        {"labels": {"c": ""}, "namespace": "n", "then": "wait"},
    ]
    found = one({"podRules": rules, "ignoreBudgetsAfterSeconds": 0})["upgrade"]
    assert found["podRules"] == [
        {"podSelector": "a=1,b=2", "namespace": "", "then": "delete"},
        {"podSelector": "c=", "namespace": "n", "then": "wait"},
    ]
    assert found["ignoreBudgetsAfter"] == 0
    assert not {"podRules", "ignoreBudgetsAfter"} & one({})["upgrade"].keys()
