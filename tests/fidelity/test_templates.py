"""An upgrade of gpustack restarts nothing in silence, and neither does an unrelated field of a policy."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.components.parts.carried import template_hash
from gpustack.components.registry import REGISTRY
from gpustack.policy.loading.load import load
from tests.components.common import render

from .cases import case, merge_patch
from .templates import recorded, rendered

RELEASE = "v26.7.0"


def test_the_examples_keep_their_templates() -> None:
    """Every DaemonSet of the example clusters has the template that the last release gave it."""
    before, after = recorded(), rendered()
    changed = sorted(
        f"{cluster}: {name}"
        for cluster in {*before, *after}
        for name in {*before.get(cluster, {}), *after.get(cluster, {})}
        if before.get(cluster, {}).get(name) != after.get(cluster, {}).get(name)
    )
    assert changed == [], (
        "the pods of these DaemonSets would restart when gpustack is upgraded, drivers node by node: undo that, or say "
        "it in CHANGELOG.md and run `python -m tests.fidelity.templates`"
    )


def test_a_template_is_told_by_what_it_says() -> None:
    """Two variables exchanged are another template."""
    one: dict[str, Any] = {"spec": {"containers": [{"name": "a", "env": [{"name": "A"}, {"name": "B"}]}]}}
    other = copy.deepcopy(one)
    other["spec"]["containers"][0]["env"].reverse()
    assert template_hash(one) != template_hash(other)


ENV = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["A", "B", "HTTP_PROXY"]), "value": st.text("abc1", max_size=4)}),
    max_size=3,
    unique_by=lambda entry: entry["name"],
)
SWITCH = st.booleans().map(lambda on: {"enabled": on})
OPERAND = st.fixed_dictionaries(
    {},
    optional={
        "env": ENV,
        "imagePullPolicy": st.sampled_from(["Always", "IfNotPresent"]),
        "imagePullSecrets": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
        "resources": st.just({"limits": {"memory": "1Gi"}}),
    },
)
UNRELATED = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("toolkit", "devicePlugin", "gfd", "dcgmExporter", "migManager", "validator"), OPERAND),
        "dcgm": SWITCH,
        "nodeStatusExporter": SWITCH,
        "mig": st.sampled_from([{"strategy": "single"}, {"strategy": "mixed"}]),
        "cdi": st.sampled_from([{"enabled": True}, {"nriPluginEnabled": True, "enabled": True}]),
        "psa": SWITCH,
        "daemonsets": st.sampled_from([{"updateStrategy": "OnDelete"}, {"rollingUpdate": {"maxUnavailable": "20%"}}]),
        "driver": st.fixed_dictionaries(
            {"upgradePolicy": st.fixed_dictionaries({"maxParallelUpgrades": st.integers(0, 9)})}
        ),
        "hostPaths": st.sampled_from([{"kubeletRootDir": "/data/kubelet"}, {"driverInstallDir": "/opt/nvidia"}]),
        "operator": st.just({"runtimeClass": "gpu"}),
        "cluster": st.sampled_from([{"monitoring": False}, {"containerRuntime": "cri-o"}]),
        "carried": st.just([{"name": "nvidia-mig-manager", "origin": "x", "tolerations": [{"operator": "Exists"}]}]),
    },
)
"""What a policy may say besides its drivers, the vGPU manager and what all pods have in common."""


@pytest.mark.parametrize("name", ["01-defaults-ubuntu2204", "24-sandbox-vgpu", "53-nvidiadriver-default"])
@settings(max_examples=40, deadline=None)
@given(changes=UNRELATED)
def test_unrelated_fields_leave_drivers_alone(name: str, changes: dict[str, Any]) -> None:
    """Whatever else a policy says, the templates of its drivers and of its vGPU manager stay what they are."""
    policy = case(RELEASE, name).policy
    before = drivers(policy)
    assert before
    assert drivers(merge_patch(copy.deepcopy(policy), {"spec": changes})) == before


def drivers(policy: dict[str, Any]) -> dict[str, str]:
    """The hashes of the templates of the drivers and vGPU managers of POLICY."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.yaml")
        path.write_text(yaml.safe_dump(policy), encoding="utf-8")
        spec = load(path, root=path.parent).spec
    found = {}
    for entry in REGISTRY:
        inputs = entry.inputs(spec) if entry.module in ("driver", "nvidia_drivers", "vgpu_manager") else None
        for body in render(entry.type(), inputs).values() if inputs else ():
            if body["kind"] == "DaemonSet":
                found[body["metadata"]["name"]] = template_hash(body["spec"]["template"])
    return found
