"""NetworkPolicies of pods that listen: from where they are reached, and on which port.

They close what is not said. The kubelet's probes come from the pod's own node, which no NetworkPolicy stops, and pods
in the network of their node are out of reach of all of them. What pods may call is left open: nothing in a policy says
where the API server is.
"""

from collections.abc import Iterator
from typing import Any

from ...model import Body
from ..component import Component
from ..parts.template import template
from .guards_inputs import Listener, NetworkPoliciesInputs


class NetworkPolicies(Component[NetworkPoliciesInputs]):
    """One NetworkPolicy for each kind of pod, there before the pods."""

    stage = "base"

    def manifests(self, inputs: NetworkPoliciesInputs) -> Iterator[Body]:
        for each in inputs.listeners:
            words = {"namespace": inputs.namespace, "labels": each.labels, "ingress": list(ingress(each))}
            yield template(__file__, "policy", name=each.name, **words)


def ingress(listener: Listener) -> Iterator[Body]:
    """The one way in to LISTENER, if there is any."""
    ports = [{"port": listener.port, "protocol": "TCP"}]
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(listener.open_to)}
    peers: list[dict[str, Any]] = []
    if listener.open_to:
        peers.append({"namespaceSelector": {"matchExpressions": [named]}})
    if listener.inside:
        peers.append({"podSelector": {}})
    if peers:
        yield {"from": peers, "ports": ports}
    elif listener.anywhere:
        yield {"ports": ports}
