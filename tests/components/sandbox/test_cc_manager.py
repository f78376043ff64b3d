"""The manager of confidential computing (operator.md 7.17; earlier releases: operator-releases.md 6.13)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import CcManager
from gpustack.components.sandbox.sandbox_inputs import CcManagerInputs, cc_manager
from gpustack.model import Body
from tests.components.common import container, env, pod_of, render, spec
from tests.components.sandbox.common import machines

NAME = "nvidia-cc-manager"
V25_10: dict[str, Any] = {"release": "v25.10.1", "ccManager": {"enabled": True}}


def inputs(**sections: Any) -> CcManagerInputs:
    """The inputs for a policy with Kata containers and SECTIONS."""
    found = cc_manager(resolve(machines(**{"sandboxWorkloads": {"mode": "kata"}, **sections})))
    assert found is not None
    return found


def pod(**sections: Any) -> Body:
    """The manager's pod for a policy with SECTIONS."""
    return pod_of(render(CcManager, inputs(**sections)), NAME)


def test_mode_kata_alone() -> None:
    """In mode kubevirt there is none, though its switch is on by default (1.3)."""
    assert cc_manager(resolve(spec())) is None
    assert cc_manager(resolve(machines())) is None
    assert cc_manager(resolve(machines(sandboxWorkloads={"mode": "kata"}, ccManager={"enabled": False}))) is None
    assert inputs().mode == "on"


def test_any_mode_in_v25_10() -> None:
    """It runs for all virtual machines there, once it is switched on (row 27)."""
    assert cc_manager(resolve(machines(release="v25.10.1"))) is None
    assert cc_manager(resolve(machines(**V25_10))) is not None


@pytest.mark.parametrize(("mode", "found"), [("devtools", "devtools"), ("off", "off")])
def test_default_mode(mode: str, found: str) -> None:
    """defaultMode becomes DEFAULT_CC_MODE, under the policy's env (5.2)."""
    section: dict[str, Any] = {"defaultMode": mode}
    assert env(container(pod(ccManager=section), NAME))["DEFAULT_CC_MODE"] == found
    section["env"] = [{"name": "DEFAULT_CC_MODE", "value": "x"}]
    assert env(container(pod(ccManager=section), NAME))["DEFAULT_CC_MODE"] == "x"


def test_pod() -> None:
    """No init container; selected by name; the ready file goes at its end (7.17)."""
    body = pod()
    assert "initContainers" not in body
    assert container(body, NAME)["lifecycle"]["preStop"]["exec"]["command"][:2] == ["/bin/rm", "-f"]
    assert body["nodeSelector"] == {"nvidia.com/gpu.deploy.cc-manager": "true"}
    assert "command" not in container(body, NAME)


def test_v25_10_form() -> None:
    """Nodes must be capable by label, and it is told which GPUs are, unless the policy says (6.13)."""
    body = pod(**V25_10)
    assert body["nodeSelector"]["nvidia.com/cc.capable"] == "true"
    assert container(body, NAME)["command"] == ["k8s-cc-manager"]
    told = "0x2339,0x2331,0x2330,0x2324,0x2322,0x233d"
    assert env(container(body, NAME))["CC_CAPABLE_DEVICE_IDS"] == told, "the chart's env of that release"
    assert container(body, NAME)["lifecycle"]["preStop"]["exec"]["command"][:2] == ["/bin/sh", "-c"]
