"""Inputs of the NetworkPolicies: which pods listen, where, and to whom."""

from collections.abc import Iterator
from typing import Any

from ...cluster.resolve import Cluster
from ...policy.language import reconciler
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs
from .guards_inputs import running

RECONCILER = "gpustack-reconciler"
EXPORTERS = {
    "dcgm_exporter": ("nvidia-dcgm-exporter", 9400),
    "dra_dcgm_exporter": ("nvidia-dcgm-exporter-dra", 9400),
    "node_status_exporter": ("nvidia-node-status-exporter", 8000),
}
"""Component -> the label `app` of its pods, and the port of its metrics."""
ENGINES = {"dcgm": ("nvidia-dcgm", 5555), "dra_dcgm": ("nvidia-dcgm-dra", 5555)}
"""Component -> the label `app` of its pods, and the port to which exporters come."""


class Listener(Inputs):
    """Pods with `labels`, called `name`, which listen on `port`: to the namespaces `open_to`, to `inside`, the stack's
    own, or with `anywhere` to all. Where none is said nobody reaches them but the kubelet, which no NetworkPolicy
    stops.
    """

    name: str
    labels: dict[str, str]
    port: int = 0
    open_to: tuple[str, ...] = ()
    inside: bool = False
    anywhere: bool = False


class NetworkPoliciesInputs(Inputs):
    """The pods that listen."""

    namespace: str
    listeners: tuple[Listener, ...]


def from_cluster(cluster: Cluster) -> NetworkPoliciesInputs | None:
    """None where the policy wants none, or nothing listens in the cluster's network."""
    spec = cluster.spec
    reach = spec.guards.networkPolicies
    listeners = [] if reach == "none" else list(own(spec))
    if reach == "all":
        listeners += operands(spec)
    return NetworkPoliciesInputs(namespace=spec.cluster.namespace, listeners=tuple(listeners)) if listeners else None


def own(spec: ClusterPolicySpec) -> Iterator[Listener]:
    """The reconciler's pods: open where something that the policy knows of reads their metrics."""
    if reconciler.runs(spec):
        scrapers = tuple(spec.guards.scrapers)
        anywhere = not scrapers and bool(spec.cluster.monitoring)
        yield Listener(name=RECONCILER, labels={"app": RECONCILER}, port=8080, open_to=scrapers, anywhere=anywhere)


def operands(spec: ClusterPolicySpec) -> Iterator[Listener]:
    """All other pods of the stack that listen in the cluster's network, and not in that of their node."""
    scrapers = tuple(spec.guards.scrapers)
    for module, inputs in running(spec, [*EXPORTERS, *ENGINES, "nfd", "dra_driver"]).items():
        if inputs is None or getattr(inputs, "host_network", False):
            continue
        if module in EXPORTERS:
            app, port = EXPORTERS[module]
            yield Listener(
                name=app, labels={"app": app}, port=listens(inputs, port), open_to=scrapers, anywhere=not scrapers
            )
        elif module in ENGINES:
            app, port = ENGINES[module]
            yield Listener(name=app, labels={"app": app}, port=port, inside=True)
        elif module == "dra_driver":
            yield Listener(name="nvidia-dra-driver", labels={"app.kubernetes.io/name": "nvidia-dra-driver"})
        elif inputs.installation:
            labels = {"app.kubernetes.io/instance": inputs.installation.helm_release}
            labels["app.kubernetes.io/name"] = "node-feature-discovery"
            name = inputs.installation.name
            yield Listener(name=name, labels=labels, port=8080, open_to=scrapers, anywhere=not scrapers)


def listens(inputs: Any, port: int) -> int:
    """The port of an exporter's metrics; the policy's environment may move it from PORT."""
    for name, value in inputs.env:
        if name in {"DCGM_EXPORTER_LISTEN", "METRICS_PORT"} and value.rpartition(":")[2].isdigit():
            port = int(value.rpartition(":")[2])
    return port
