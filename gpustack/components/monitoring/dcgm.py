"""The stand-alone DCGM host engine, for exporters and tools that share one engine per node (operator.md 7.7)."""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.common_inputs import OperandInputs
from ..parts.daemonset import RUN_NVIDIA, daemonset
from ..parts.kube import service
from ..parts.operand import main_container, operand_access, operand_pod
from ..parts.pod import Env, Pod
from ..parts.validation import toolkit_wait

NAME = "nvidia-dcgm"
PORT = 5555


class Dcgm(Component[OperandInputs]):
    """The host engine's DaemonSet and a Service that leads to the engine of the caller's own node."""

    def manifests(self, inputs: OperandInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME, token=False)
        yield service(NAME, common.namespace, port_name="dcgm", port=PORT, traffic="Local")
        yield daemonset(
            common,
            NAME,
            pod(inputs),
            deploy="dcgm",
            annotations={keys.SCC: "hostmount-anyuid"},
            gpu_container="nvidia-dcgm-ctr",
        )


def pod(inputs: OperandInputs) -> Pod:
    """The host engine, once the toolkit works; command and arguments are the image's own unless the policy has some."""
    ports = [{"name": "dcgm", "containerPort": PORT}]
    main = main_container(inputs, "nvidia-dcgm-ctr", Env().policy(inputs.env), ports=ports)
    if inputs.common.traits.dcgm_probes:
        main.liveness = main.readiness = {"tcpSocket": {"port": PORT}, "initialDelaySeconds": 15}
    return operand_pod(inputs, NAME, main, [toolkit_wait(inputs.common, RUN_NVIDIA)], [RUN_NVIDIA])
