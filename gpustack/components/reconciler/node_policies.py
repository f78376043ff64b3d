"""NodePolicy objects, which the reconciler's program carries out, and their CRD."""

from collections.abc import Iterator, Mapping

from ...model import Body
from ..component import Component
from ..crds import crd
from ..parts.daemonset import revision
from ..parts.kube import object_of
from .node_policies_inputs import NodePoliciesInputs, PolicyInputs
from .prepull import drivers, images


class NodePolicies(Component[NodePoliciesInputs]):
    """One NodePolicy for each pool of nodes. Each says which version of the driver's DaemonSets it was made with."""

    stage = "reconciler"

    def manifests(self, inputs: NodePoliciesInputs) -> Iterator[Body]:
        yield from (crd(name) for name in inputs.crds)
        known = named(inputs)
        for each in inputs.policies:
            yield node_policy(each, known)


def named(inputs: NodePoliciesInputs) -> dict[str, dict[str, str]]:
    """What names the pod template of each driver DaemonSet, and its images, by the DaemonSet's name."""
    bodies = drivers(inputs.driver, inputs.drivers)
    return {body["metadata"]["name"]: {"revision": revision(body), "images": images(body)} for body in bodies}


def node_policy(inputs: PolicyInputs, known: Mapping[str, Mapping[str, str]]) -> Body:
    """The object, with the names KNOWN; those of images where nodes wait for them."""
    spec = dict(inputs.spec)
    if "driver" in spec:
        what = ("revision", "images") if "prepull" in spec["upgrade"] else ("revision",)
        sets = [{**each, **{key: known[each["name"]][key] for key in what}} for each in spec["driver"]["daemonSets"]]
        spec["driver"] = {**spec["driver"], "daemonSets": sets}
    return object_of("gpustack.dev/v1alpha1", "NodePolicy", inputs.name, spec)
