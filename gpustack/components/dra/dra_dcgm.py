"""The DCGM host engine where GPUs are allocated by DRA (operator.md 11.2): the same engine, with a claim on all GPUs.

The claim is one of an administrator: it takes no GPU away from a workload. The operator gives the engine a right to
read claims as well, for which it has no use; it stays, as a Role of its own namespace, and no pod has a token for it.
"""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..monitoring import dcgm
from ..parts.common_inputs import OperandInputs
from ..parts.daemonset import daemonset
from ..parts.kube import access, rights, service
from ..parts.pod import Pod
from ..parts.scc import scc
from .dra import admin_claim, of_state

NAME = "nvidia-dcgm-dra"
CLAIM, TEMPLATE = "admin-gpus", "nvidia-dcgm-admin"


class DraDcgm(Component[OperandInputs]):
    """The host engine's DaemonSet, its claim, and a Service that leads to the engine of the caller's own node."""

    def manifests(self, inputs: OperandInputs) -> Iterator[Body]:
        yield from of_state("state-dcgm", objects(inputs))


def objects(inputs: OperandInputs) -> Iterator[Body]:
    """The objects without the label of their state."""
    common = inputs.common
    yield from access(NAME, common.namespace, **rights(NAME), token=False)
    yield admin_claim(TEMPLATE, common.namespace, CLAIM)
    if common.openshift:
        yield scc(NAME, common.namespace)
    yield service(NAME, common.namespace, port_name="dcgm", port=dcgm.PORT, traffic="Local")
    body = daemonset(common, NAME, pod(inputs), deploy="dcgm-dra")
    body["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    yield body


def pod(inputs: OperandInputs) -> Pod:
    """The pod of the engine without DRA, with the claim in the place of RuntimeClass and wait for the toolkit."""
    template = dcgm.pod(inputs)
    claimed(template, CLAIM, TEMPLATE)
    template.service_account, template.pull_secrets = NAME, inputs.pull_secrets
    return template


def claimed(pod: Pod, claim: str, template: str) -> None:
    """Let the first container of POD use CLAIM, made from TEMPLATE; nothing then waits for the container toolkit."""
    main = pod.containers[0]
    main.resources = {**(main.resources or {}), "claims": [{"name": claim}]}
    pod.claims, pod.init, pod.declared = {claim: template}, [], ()
