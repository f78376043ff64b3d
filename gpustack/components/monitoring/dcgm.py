"""The stand-alone DCGM host engine, for exporters and tools that share one engine per node (operator.md 7.7)."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.daemonset import RUN_NVIDIA, daemonset
from ..parts.kube import access, service
from ..parts.operand import PRIVILEGED_SCC
from ..parts.pod import PRIVILEGED, Container, Env, Pod, tcp_probe, unique
from ..parts.scc import scc
from ..parts.validation import toolkit_wait
from .dcgm_inputs import DcgmInputs

NAME = "nvidia-dcgm"
PORT = 5555


class Dcgm(Component[DcgmInputs]):
    """The host engine's DaemonSet and a Service that leads to the engine of the caller's own node."""

    def manifests(self, inputs: DcgmInputs) -> Iterator[Body]:
        common = inputs.common
        yield from access(NAME, common.namespace, role=[PRIVILEGED_SCC] if common.openshift else [], token=False)
        if common.openshift:
            yield scc(NAME, common.namespace)
        yield service(NAME, common.namespace, port_name="dcgm", port=PORT, traffic="Local")
        yield daemonset(
            common,
            NAME,
            pod(inputs),
            deploy="dcgm",
            annotations={"openshift.io/scc": "hostmount-anyuid"},
            gpu_container="nvidia-dcgm-ctr",
        )


def pod(inputs: DcgmInputs) -> Pod:
    """The host engine, once the toolkit works; command and arguments are the image's own unless the policy has some."""
    main = Container(
        "nvidia-dcgm-ctr",
        inputs.image,
        inputs.pull_policy,
        args=inputs.args,
        env=Env().policy(inputs.env),
        security=PRIVILEGED,
        resources=inputs.resources,
        ports=[{"name": "dcgm", "containerPort": PORT}],
    )
    if inputs.common.traits.dcgm_probes:
        main.liveness = main.readiness = tcp_probe(PORT, initialDelaySeconds=15)
    return Pod(
        NAME,
        {},
        [main],
        init=[toolkit_wait(inputs.common, RUN_NVIDIA)],
        declared=[RUN_NVIDIA],
        host_network=inputs.host_network,
        pull_secrets=unique([*inputs.common.validation.pull_secrets, *inputs.pull_secrets]),
    )
