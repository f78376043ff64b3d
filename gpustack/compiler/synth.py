"""Components -> resources, through cdk8s.

One app with one chart holds the components that have to be synthesised. cdk8s gives the tree, refuses two objects of
one name and knows who depends on whom; bodies are taken from the Python side of the constructs (component.py says why).
"""

from collections.abc import Sequence

import cdk8s
import jsii

from ..model import Resource
from .guard import GuardedNode
from .stack import Given


def synthesise(planned: Sequence[Given]) -> dict[str, list[Resource]]:
    """Resources by component id. Each component depends on the one before it: the registry's order is that of need."""
    app = cdk8s.App()
    chart = cdk8s.Chart(app, "stack", disable_resource_name_hashes=True)
    resources: dict[str, list[Resource]] = {}
    previous = None
    for entry, inputs in planned:
        component = entry.type()(chart, entry.id, inputs)
        if previous is not None:
            component.node.add_dependency(previous)
        previous = component
        resources[entry.id] = component.resources()
    node = jsii.kernel.provider._process  # type: ignore[attr-defined]  # noqa: SLF001 - jsii has no other way to it
    if isinstance(node, GuardedNode):
        node.let_go()
    return resources
