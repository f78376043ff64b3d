"""Security context constraints on OpenShift (operator.md 8.4, 11.2)."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

from gpustack.checks.references import Provided, missing, needed
from gpustack.compiler.validate import validate
from gpustack.components import registry
from gpustack.components.scc import ACCESS, scc
from tests.components.common import render, spec

ON = {"enabled": True}
EVERYTHING_ON: dict[str, Any] = {
    "cluster": {"platform": "openshift", "openshift": {"version": "4.18.1"}, "namespace": "gpus"},
    "nodePools": [{"name": "a", "os": "rhcos4.18"}],
    "nodeStatusExporter": ON,
    "dcgm": ON,
}
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


@pytest.mark.parametrize("entry", registry.REGISTRY, ids=lambda entry: entry.id)
def test_components_yield_theirs_on_openshift_only(entry: registry.Entry) -> None:
    """Every component that has a constraint renders it on OpenShift, for its own account, and nowhere else."""
    if "scc(" not in inspect.getsource(import_module(f"gpustack.components.{entry.module}")):
        pytest.skip("has no constraint of its own (1.4)")
    elsewhere = {key: value for key, value in EVERYTHING_ON.items() if key != "cluster"}
    for sections, expected in ((EVERYTHING_ON, 1), (elsewhere, 0)):
        inputs = entry.inputs(spec(**sections))
        if inputs is None:
            pytest.skip("is off without sections of its own")
        bodies = render(entry.type(), inputs)
        found = [body for name, body in bodies.items() if name.startswith("SecurityContextConstraints/")]
        assert len(found) >= expected
        assert bool(found) is bool(expected)
        for body in found:
            for user in body["users"]:
                assert f"ServiceAccount/{user.rpartition(':')[2]}" in bodies


def test_constraints_of_the_usual_components() -> None:
    """Driver, validator, GFD, DCGM, exporters and MIG manager have one; plugin and toolkit have none (1.4)."""
    found: set[str] = set()
    for entry in registry.REGISTRY:
        inputs = entry.inputs(spec(**EVERYTHING_ON))
        if inputs is not None:
            bodies = render(entry.type(), inputs)
            found |= {name.partition("/")[2] for name in bodies if name.startswith("SecurityContextConstraints/")}
    usual = "driver operator-validator gpu-feature-discovery dcgm dcgm-exporter mig-manager node-status-exporter"
    assert found == {f"nvidia-{name}" for name in usual.split()}


def test_the_account_must_exist() -> None:
    """A constraint for a misspelt account helps nobody, and the API server takes it: so it is a cross-reference."""
    need = list(needed(scc("nvidia-dcgm", "gpus")))
    assert [finding.rule for finding in missing([], need, [], "gpus")] == ["GPU201"]
    assert list(missing([Provided("ServiceAccount", "gpus", "nvidia-dcgm")], need, [], "gpus")) == []
