"""NodePolicy objects, which the reconciler's program carries out, and their CRD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from ...model import Body, Stage
from ..component import Component
from ..crds import crd
from ..driver import driver, nvidia_drivers
from ..parts.daemonset import revision
from ..parts.kube import metadata
from .node_policies_inputs import NodePoliciesInputs, PolicyInputs

API_VERSION = "gpustack.dev/v1alpha1"


class NodePolicies(Component[NodePoliciesInputs]):
    """One NodePolicy for each pool of nodes. Each says which version of the driver's DaemonSets it was made with."""

    stage: ClassVar[Stage] = "reconciler"

    def manifests(self, inputs: NodePoliciesInputs) -> Iterator[Body]:
        yield from (crd(name) for name in inputs.crds)
        known = revisions(inputs)
        for each in inputs.policies:
            yield node_policy(each, known)


def revisions(inputs: NodePoliciesInputs) -> dict[str, str]:
    """What names the pod template of each driver DaemonSet, by the DaemonSet's name."""
    bodies = [
        *(driver.daemonsets(inputs.driver) if inputs.driver else ()),
        *(nvidia_drivers.daemonsets(inputs.drivers) if inputs.drivers else ()),
    ]
    return {body["metadata"]["name"]: revision(body) for body in bodies}


def node_policy(inputs: PolicyInputs, known: Mapping[str, str]) -> Body:
    """The object, with the revisions KNOWN."""
    spec = dict(inputs.spec)
    if "driver" in spec:
        named = [{**each, "revision": known[each["name"]]} for each in spec["driver"]["daemonSets"]]
        spec["driver"] = {**spec["driver"], "daemonSets": named}
    return {"apiVersion": API_VERSION, "kind": "NodePolicy", "metadata": metadata(inputs.name), "spec": spec}
