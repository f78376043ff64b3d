"""DRIVER_CONFIG_DIGEST: what makes a node's driver be installed anew, and what only its pod (operator.md 12)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.components.driver.driver_digest_inputs import fnv1a
from gpustack.components.driver.driver_files_inputs import Files, HostFile
from gpustack.components.driver.driver_pod import pod
from gpustack.components.driver.driver_settings_inputs import DriverCommon, DriverPod, Manager, Module
from gpustack.components.parts.pod import Pod
from tests.components.common import common

PATHS = {"a.list": "/etc/apt/sources.list.d/a.list"}
CONFIG = Files(use="repositories", volume="repo", kind="ConfigMap", name="repo", paths=PATHS)
NODE = HostFile(volume="subscription-config-0", path="/etc/rhsm", kind="Directory", target="/run/secrets/rhsm")
MANAGER = Manager(image="manager:1")


def made(changes: dict[str, Any] | None = None, **fields: Any) -> Pod:
    """A driver's pod with FIELDS of its settings or pod; CHANGES are those of `common`."""
    of_pod = {name: value for name, value in fields.items() if name in DriverPod.model_fields}
    of_driver = {name: value for name, value in fields.items() if name not in of_pod}
    settings = DriverCommon(**{"manager": MANAGER, **of_driver})
    return pod(common(**(changes or {})), settings, DriverPod(**{"image": "driver:595-ubuntu22.04", **of_pod}))


def digest(changes: dict[str, Any] | None = None, **fields: Any) -> str:
    """The digest that the driver's container of such a pod carries."""
    return made(changes, **fields).containers[0].env.get("DRIVER_CONFIG_DIGEST") or ""


PLAIN = digest()


def test_manager_and_driver_carry_the_same_digest() -> None:
    """The manager compares it with what the driver has stored on the node (reconciler.md D8, D12)."""
    found = made(rdma=True, gds=Module(image="fs:1"))
    having = {each.name: each.env.get("DRIVER_CONFIG_DIGEST") for each in found.every_container()}
    assert having["k8s-driver-manager"] == having["nvidia-driver-ctr"] != None  # noqa: E711 - both, and set
    assert having["nvidia-peermem-ctr"] is having["nvidia-fs-ctr"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {"resources": {"limits": {"memory": "1Gi"}}},
        {"startup": {"failureThreshold": 8}},
        {"pull_policy": "Always"},
        {"pull_secrets": ("a",)},
        {"node_selector": {"feature.node.kubernetes.io/system-os_release.ID": "ubuntu"}},
        {"name": "nvidia-driver-daemonset-rhel9"},
        {"changes": {"labels": {"team": "ml"}}},
        {"changes": {"tolerations": ({"operator": "Exists"},)}},
        {"changes": {"priority_class": "other"}},
    ],
    ids=str,
)
def test_a_restart_is_enough(fields: dict[str, Any]) -> None:
    """Labels, tolerations, resources, probes and where the pod runs do not touch what is installed (12)."""
    assert digest(**fields) == PLAIN


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "driver:596-ubuntu22.04"},
        {"manager": Manager(image="manager:2")},
        {"manager": Manager(image="manager:1", env=(("A", "1"),))},
        {"env": (("A", "1"),)},
        {"args": ("init", "--x")},
        {"secret_env": "login"},
        {"module_type": "open"},
        {"rdma": True},
        {"gds": Module(image="fs:1")},
        {"gdrcopy": Module(image="gdr:1")},
        {"files": (CONFIG,)},
        {"files": (NODE,)},
        {"changes": {"root_fs": "/sysroot"}},
    ],
    ids=str,
)
def test_the_driver_must_be_installed_anew(fields: dict[str, Any]) -> None:
    """Images, commands, environment, features, mounts and the host root enter (12)."""
    assert digest(**fields) != PLAIN


def test_what_is_mounted_enters_too() -> None:
    """Another ConfigMap, another of its keys, another image or env of a feature: each is another installation."""
    module = Module(image="fs:1")
    found = [
        digest(files=(CONFIG,)),
        digest(files=(CONFIG.model_copy(update={"name": "other"}),)),
        digest(files=(CONFIG.model_copy(update={"paths": {"b.list": "/etc/apt/sources.list.d/b.list"}}),)),
        digest(gds=module),
        digest(gds=module.model_copy(update={"image": "fs:2"})),
        digest(gds=module.model_copy(update={"env": (("A", "1"),)})),
        digest(rdma=True),
        digest(rdma=True, host_mofed=True),
    ]
    assert len(set(found)) == len(found)


def test_order_does_not_count() -> None:
    """Sorting the policy's env re-installs nothing (moving.md M3)."""
    assert digest(env=(("A", "1"), ("B", "2"))) == digest(env=(("B", "2"), ("A", "1")))


def test_the_digest_is_a_decimal_number() -> None:
    """32 bits, and the same for equal pods."""
    assert digest() == PLAIN
    assert 0 <= int(PLAIN) < 2**32


@pytest.mark.parametrize(("text", "value"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_the_hash_is_fnv(text: str, value: int) -> None:
    """Test vectors of FNV-1a's authors."""
    assert fnv1a(text.encode()) == value
