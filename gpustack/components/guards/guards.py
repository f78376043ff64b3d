"""What the API server refuses to the stack's own accounts: admission policies over nodes, pods and ConfigMaps.

Solves: whoever is root on one GPU node has the tokens of all pods there. Access rights can't say "its own node", so
with the operator's rights one taken-over node cordons, relabels and strips all others, and starts a privileged pod
wherever it likes. A pod's token names its node, and these policies compare. Who serves every node, the master of node
feature discovery and the controller of compute domains, is held to the labels that it is there for.

What can't be compared is not granted: an Eviction names no node, so no account has the right where the reconciler
evicts (rights.yaml). The reconciler's own policy, that over NodeFeature objects and that over ResourceSlices are beside
the rights that they bound (reconciler/guards.py, nfd.py, dra_driver.yaml).
"""

from collections.abc import Iterable, Iterator

from ...api import keys
from ...model import Body
from ...policy.language.nfd import OPEN_NAMESPACES
from ..component import Component
from ..parts import admission
from ..parts.admission import callers, listed, named, quoted, user
from ..parts.common_inputs import GUARDED
from .guards_inputs import DRA_CONTROLLER, DRA_PLUGIN, RECONCILER, Discovery, GuardsInputs

DELETERS = ("namespace-controller", "generic-garbage-collector")
"""Accounts of Kubernetes that delete what is in a namespace that goes, or whose owner has gone."""
STEERING_PREFIXES = (keys.DEPLOY, "nvidia.com/gpu-driver-upgrade", "nvidia.com/cc.mode", f"{keys.DOMAIN}/")
"""How other labels begin that do what `keys.STEERING` do."""


class Guards(Component[GuardsInputs]):
    """The policies and their bindings: there before what they bound."""

    stage = "base"

    def manifests(self, inputs: GuardsInputs) -> Iterator[Body]:
        here = inputs.namespace
        if inputs.nodes:
            begin = ", ".join(f"{quoted(user(here, each.account))}: {listed(each.labels)}" for each in inputs.nodes)
            yield from admission.policy(
                "nodes",
                inputs.mode,
                callers(here, (each.account for each in inputs.nodes)),
                own=f"{{{begin}}}[request.userInfo.username]",  # what labels of the caller begin with
                anywhere=unless(user(here, each.account) for each in inputs.nodes if each.anywhere),
                cordoning=unless(user(here, each.account) for each in inputs.nodes if each.cordons),
            )
        if inputs.pods:
            known = sorted({name for each in inputs.pods for name in each.pull_secrets})
            allowed = named("secret.name", known, [f"{each.account}-dockercfg-" for each in inputs.pods])
            who = callers(here, (each.account for each in inputs.pods))
            yield from admission.policy("pods", inputs.mode, who, home=quoted(here), allowed=allowed)
        if inputs.layouts:
            yield from admission.policy("layouts", inputs.mode, callers(here, [inputs.layouts]), namespace=here)
        if inputs.discovery:
            yield from discovery(inputs, inputs.discovery)
        if inputs.domains or inputs.mps:
            plugin, controller = (quoted(user(here, each)) for each in (DRA_PLUGIN, DRA_CONTROLLER))
            who = callers(here, [DRA_PLUGIN, DRA_CONTROLLER])
            yield from admission.policy(
                "workloads", inputs.mode, who, namespace=here, plugin=plugin, controller=controller
            )
        yield from config_maps(inputs)


def unless(users: Iterable[str]) -> str:
    """The end of an expression that need not hold for USERS."""
    names = list(users)
    return f" || request.userInfo.username in {listed(names)}" if names else ""


def discovery(inputs: GuardsInputs, master: Discovery) -> Iterator[Body]:
    """What the master of node feature discovery may change: it serves all nodes, so its token is worth most.

    It labels nodes by what workers and rules say. Held to the namespaces of labels that the policy opens, less the
    labels that steer the stack unless a rule of the policy sets them, a stolen token moves no driver, no pool and no
    workload. The lists by which it knows its own labels are annotations that it writes itself: they may lose entries,
    and gain only what it may set, so that an old label outside those namespaces can still be cleaned up."""
    parts = [f"key.startsWith({quoted(f'{namespace}/')})" for namespace in master.namespaces]
    parts += [f"key.contains('.{namespace}/')" for namespace in OPEN_NAMESPACES]
    return admission.policy(
        "discovery",
        inputs.mode,
        callers(inputs.namespace, [master.account]),
        namespaces=f"({' || '.join(parts)})",
        asked=f"key in {listed(master.steering)} || " if master.steering else "",
        steers=named("key", keys.STEERING, STEERING_PREFIXES),
    )


def config_maps(inputs: GuardsInputs) -> Iterator[Body]:
    """Who writes ConfigMaps that the render brings: who applies it, where the policy tells who that is."""
    account = quoted(user(inputs.namespace, RECONCILER))
    writes = (
        f" || request.operation == 'UPDATE' && request.userInfo.username == {account}"
        f" && object.metadata.name == {quoted(keys.LAYOUTS)}"
        " && object.metadata.?labels == oldObject.metadata.?labels"
    )
    refused = [f"system:serviceaccounts:{inputs.namespace}", "system:nodes"]
    return admission.policy(
        "config_maps_of_writers" if inputs.known else "config_maps",
        inputs.mode,
        {"name": "any", "expression": "true"},
        namespace=inputs.namespace,
        marked=GUARDED,
        users=f"request.userInfo.username in {listed(inputs.users)} || " if inputs.users else "",
        within=listed(["system:masters", *inputs.groups] if inputs.known else refused),
        gone=listed(user("kube-system", each) for each in DELETERS),
        writes=writes if inputs.kept else "",
    )
