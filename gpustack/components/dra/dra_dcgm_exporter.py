"""The DCGM exporter where GPUs are allocated by DRA (operator.md 11.2): the same exporter, with a claim on all GPUs.

The kubelet then reports devices by pool and name, so the exporter reads ResourceSlices to tell which GPU is meant.
"""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..monitoring import dcgm, dcgm_exporter
from ..monitoring.monitoring_inputs import DcgmExporterInputs
from ..parts.daemonset import daemonset
from ..parts.kube import access, grant, rights
from ..parts.pod import Pod
from ..parts.scc import scc
from . import dra_dcgm
from .dra import admin_claim, of_state
from .dra_dcgm import claimed

NAME = "nvidia-dcgm-exporter-dra"
CLAIM, TEMPLATE = "admin-gpus", "nvidia-dcgm-exporter-admin"


class DraDcgmExporter(Component[DcgmExporterInputs]):
    """The exporter's DaemonSet, claim, Service and ServiceMonitor.

    It may read all pods only where metrics carry pod metadata, as without DRA; the operator lets it always."""

    def manifests(self, inputs: DcgmExporterInputs) -> Iterator[Body]:
        yield from of_state("state-dcgm-exporter", objects(inputs))


def objects(inputs: DcgmExporterInputs) -> Iterator[Body]:
    """The objects without the label of their state."""
    namespace = inputs.common.namespace
    yield from access(NAME, namespace, **rights(NAME))
    reads = rights(f"{NAME}-read-pods", reads_pods=dcgm_exporter.reads_pods(inputs))
    yield from grant(f"{NAME}-read-pods", NAME, namespace, labels={"app": NAME}, **reads)
    yield admin_claim(TEMPLATE, namespace, CLAIM)
    if inputs.common.openshift:
        yield scc(NAME, namespace)
    yield from dcgm_exporter.reached(inputs, NAME)
    body = daemonset(inputs.common, NAME, pod(inputs), deploy="dcgm-exporter-dra", pod_annotations=inputs.annotations)
    body["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    yield body


def pod(inputs: DcgmExporterInputs) -> Pod:
    """The pod of the exporter without DRA, with the claim in the place of RuntimeClass and wait for the toolkit."""
    template = dcgm_exporter.pod(inputs, dra=True)
    declared = template.declared[:1]
    claimed(template, CLAIM, TEMPLATE)
    template.declared = declared
    template.service_account, template.pull_secrets, template.automount_token = NAME, inputs.pull_secrets, True
    main = template.containers[0]
    main.name = NAME
    if inputs.host_engine:
        main.env.set("DCGM_REMOTE_HOSTENGINE_INFO", f"{dra_dcgm.NAME}:{dcgm.PORT}")
    return template
