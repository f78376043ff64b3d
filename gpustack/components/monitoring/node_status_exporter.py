"""The node status exporter: what validation found on each node, as metrics (operator.md 7.10, 14).

It waits for nothing, because a node whose driver never comes up is what it is there to report.
"""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.daemonset import RUN_NVIDIA, daemonset, host_root
from ..parts.kube import service
from ..parts.monitoring import operators_rule, service_monitor
from ..parts.operand import main_container, operand_access
from ..parts.pod import PRIVILEGED_ROOT, Env, Pod
from .monitoring_inputs import NodeStatusExporterInputs

NAME = "nvidia-node-status-exporter"
PORT = 8000


class NodeStatusExporter(Component[NodeStatusExporterInputs]):
    """The exporter's DaemonSet, Service and ServiceMonitor, and its rights."""

    def manifests(self, inputs: NodeStatusExporterInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME, labels={"app": NAME})
        scraped = {"prometheus.io/scrape": "true"}
        yield service(NAME, common.namespace, port_name="node-status", port=PORT, annotations=scraped)
        if inputs.monitoring:
            name, labels, reader = "node-status", inputs.monitoring_labels, inputs.monitoring
            yield service_monitor(
                NAME, common.namespace, port=name, number=PORT, job_label=name, labels=labels, reader=reader
            )
        if inputs.rules:
            yield operators_rule("node_alerts", f"{NAME}-alerts", common.namespace, inputs.monitoring_labels)
        annotations = {keys.SCC: NAME}
        yield daemonset(common, NAME, pod(inputs), deploy="node-status-exporter", annotations=annotations)


def pod(inputs: NodeStatusExporterInputs) -> Pod:
    """The exporter, with the files that validation leaves on the node, and the node's root to look for a driver."""
    ports = [{"name": "node-status", "containerPort": PORT}]
    main = main_container(inputs, NAME, environment(inputs), PRIVILEGED_ROOT, command=["nvidia-validator"], ports=ports)
    main.mount(RUN_NVIDIA, "/run/nvidia", propagation="HostToContainer")
    main.mount(host_root(inputs.common), "/host", read_only=True, propagation="HostToContainer")
    own = inputs.common.traits.no_foreign_pull_secrets
    secrets = inputs.pull_secrets if own else [*inputs.common.validation.pull_secrets, *inputs.pull_secrets]
    declared = [RUN_NVIDIA, host_root(inputs.common)]
    return Pod(NAME, {}, [main], declared=declared, host_network=inputs.host_network, pull_secrets=secrets)


def environment(inputs: NodeStatusExporterInputs) -> Env:
    """The exporter's settings; the policy's `nodeStatusExporter.env` wins over all of them."""
    env = Env({"NVIDIA_VISIBLE_DEVICES": "void", "COMPONENT": "metrics", "METRICS_PORT": str(PORT)})
    env.field("NODE_NAME", "spec.nodeName").field("OPERATOR_NAMESPACE", "metadata.namespace")
    return env.policy(inputs.env)
