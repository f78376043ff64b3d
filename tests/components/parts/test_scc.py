"""Security context constraints on OpenShift (operator.md 8.4, 11.2)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.catalog import _data
from gpustack.checks.objects.references import Needed, needed
from gpustack.compiler.validate import validate
from gpustack.components.parts import scc as module
from gpustack.components.parts.common_inputs import Inputs
from gpustack.components.parts.scc import scc
from tests.fidelity import coverage

ACCESS = _data.read(module.ACCESS)
HOST = {
    "nvidia-driver": "PID",
    "nvidia-gpu-feature-discovery": "PID",
    "nvidia-operator-validator": "PID",
    "nvidia-vgpu-manager": "PID",
    "nvidia-mig-manager": "PID IPC",
    "nvidia-dcgm": "Network Ports",
    "nvidia-dcgm-exporter": "Ports",
    "nvidia-node-status-exporter": "",
    "nvidia-sandbox-validator": "",
    "nvidia-vgpu-device-manager": "",
    "nvidia-sandbox-device-plugin": "",
    "nvidia-kata-sandbox-device-plugin": "",
    "nvidia-vfio-manager": "",
    "nvidia-dra-driver": "Network Ports",
    "nvidia-dcgm-dra": "Network Ports",
    "nvidia-dcgm-exporter-dra": "Network PID Ports",
    "nvidia-dra-validator": "",
}
"""Source: the table of 8.4, and 11.2."""


@pytest.mark.parametrize("name", HOST)
def test_host_access(name: str) -> None:
    """Each constraint opens those parts of the node that the operator's does, and no other."""
    body = scc(name, "gpus")
    opened = {key.removeprefix("allowHost") for key, on in body.items() if key.startswith("allowHost") and on}
    assert opened == {"DirVolumePlugin", *HOST[name].split()}


@pytest.mark.parametrize("name", ACCESS)
def test_what_all_have_in_common(name: str) -> None:
    """Privileged containers of any user may run, for one account; the API server's schema takes the object (8.4)."""
    body = scc(name, "gpus")
    assert body["users"] == [f"system:serviceaccount:gpus:{name}"]
    assert body["allowPrivilegedContainer"] is body["allowPrivilegeEscalation"] is True
    assert body["readOnlyRootFilesystem"] is False
    assert {body[key]["type"] for key in ("runAsUser", "seLinuxContext", "fsGroup", "supplementalGroups")} == {
        "RunAsAny"
    }
    assert body["volumes"] == body["seccompProfiles"] == ["*"]
    assert validate(body, "1.33") == []


def test_capabilities() -> None:
    """The device plugins for virtual machines may ask for no capabilities and sysctls, all others for any (8.4)."""
    without = {name for name in ACCESS if "allowedCapabilities" not in scc(name, "gpus")}
    assert without == {"nvidia-sandbox-device-plugin", "nvidia-kata-sandbox-device-plugin"}
    for name in ACCESS:
        body = scc(name, "gpus")
        assert (
            body.get("allowedCapabilities") == body.get("allowedUnsafeSysctls") == (None if name in without else ["*"])
        )


def test_groups() -> None:
    """Administrators may use the constraints of the device-plugin stack, nobody else those of the DRA stack (11.2)."""
    assert scc("nvidia-driver", "gpus")["groups"] == ["system:cluster-admins", "system:nodes", "system:masters"]
    dra = {name for name in ACCESS if "groups" not in scc(name, "gpus")}
    assert dra == {"nvidia-dra-driver", "nvidia-dra-validator", "nvidia-dcgm-dra", "nvidia-dcgm-exporter-dra"}


def test_every_manager_has_its_own() -> None:
    """vfio-manager, kata-manager and cc-manager share a name in the operator, and lose it; here none do (1.4)."""
    names = ("nvidia-vfio-manager", "nvidia-kata-manager", "nvidia-cc-manager")
    bodies = [scc(name, "gpus") for name in names]
    assert [body["metadata"]["name"] for body in bodies] == list(names)
    assert [body["users"][0].rpartition(":")[2] for body in bodies] == list(names)


def test_other_names_and_accounts() -> None:
    """A pool's driver is named after the pool and is a driver all the same; the DRA driver has two accounts (10.2)."""
    pool = scc("nvidia-gpu-driver-a-rhcos4.18", "gpus", like="nvidia-driver", labels={"a": "b"})
    assert (pool["allowHostPID"], pool["users"]) == (True, ["system:serviceaccount:gpus:nvidia-gpu-driver-a-rhcos4.18"])
    assert pool["metadata"]["labels"] == {"a": "b"}
    assert scc("nvidia-dra-driver", "gpus", accounts=["a", "b"])["users"] == [
        "system:serviceaccount:gpus:a",
        "system:serviceaccount:gpus:b",
    ]


def constraints(component: str, inputs: Inputs) -> dict[str, list[str]]:
    """The accounts of each constraint that COMPONENT renders; every one of them is an account that it renders too."""
    bodies = coverage.bodies(component, inputs)
    accounts = {body["metadata"]["name"] for body in bodies if body["kind"] == "ServiceAccount"}
    found = {}
    for body in bodies:
        if body["kind"] == "SecurityContextConstraints":
            found[body["metadata"]["name"]] = [user.rpartition(":")[2] for user in body["users"]]
            assert accounts.issuperset(found[body["metadata"]["name"]])
    return found


@pytest.mark.parametrize("kind", coverage.PREFIX)
def test_components_yield_theirs_on_openshift_only(kind: str) -> None:
    """Every component that has a constraint renders it on OpenShift, for its own accounts, and nowhere else."""
    for policy in coverage.policies(kind):
        elsewhere, openshift = ({**policy.spec, "cluster": cluster} for cluster in clusters(policy.spec["cluster"]))
        for component, inputs in coverage.Policy.of(policy.name, elsewhere).inputs.items():
            assert constraints(component, inputs) == {}, component
        found: dict[str, list[str]] = {}
        for component, inputs in coverage.Policy.of(policy.name, openshift).inputs.items():
            found |= constraints(component, inputs)
        assert {name for name in found if "-driver-" not in name} >= EXPECTED[kind], policy.name


def clusters(cluster: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same cluster, as one that is no OpenShift and as one that is."""
    plain = {key: value for key, value in cluster.items() if key != "openshift"}
    return plain, {**plain, "openshift": {"version": "4.21.1"}}


EXPECTED = {
    "ClusterPolicy": {
        f"nvidia-{name}"
        for name in "driver operator-validator gpu-feature-discovery dcgm dcgm-exporter mig-manager "
        "node-status-exporter".split()
    },
    "NVIDIADriver": {"nvidia-operator-validator"},
    "GPUCluster": {"nvidia-dra-driver", "nvidia-dra-validator", "nvidia-dcgm-dra", "nvidia-dcgm-exporter-dra"},
}
"""What is there at least. Device plugin and toolkit have none (1.4)."""


def test_machines_have_theirs() -> None:
    """With virtual machines, and with Kata containers, each further component has its own (1.4)."""
    found = {}
    for policy in coverage.policies("ClusterPolicy"):
        openshift = {**policy.spec, "cluster": clusters(policy.spec["cluster"])[1]}
        names: dict[str, list[str]] = {}
        for component, inputs in coverage.Policy.of(policy.name, openshift).inputs.items():
            names |= constraints(component, inputs)
        found[policy.name] = {name.removeprefix("nvidia-") for name in names}
    shared = {"vgpu-manager", "vgpu-device-manager", "sandbox-validator", "vfio-manager"}
    assert found["virtual machines"] >= shared | {"sandbox-device-plugin"}
    assert found["kata"] >= shared | {"kata-sandbox-device-plugin", "cc-manager"}
    assert not found["containers"] & (shared | {"cc-manager"})


def test_the_account_must_exist() -> None:
    """A constraint for a misspelt account helps nobody, and the API server takes it: so it is a cross-reference."""
    by = "SecurityContextConstraints/nvidia-dcgm: users"
    assert list(needed(scc("nvidia-dcgm", "gpus"))) == [Needed("ServiceAccount", "gpus", "nvidia-dcgm", by)]
