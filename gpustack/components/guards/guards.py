"""What the API server refuses to the stack's own accounts: admission policies over nodes, pods and ConfigMaps.

Solves: whoever is root on one GPU node has the tokens of all pods there. Access rights can't say "its own node", so
with the operator's rights one taken-over node cordons, relabels and strips all others, and starts a privileged pod
wherever it likes. A pod's token names its node, and these policies compare. Who serves every node, the master of node
feature discovery and the controller of compute domains, is held to the labels that it is there for.

What can't be compared is not granted: an Eviction names no node, so no account has the right where the reconciler
evicts (driver.py). The reconciler's own policy, that over NodeFeature objects and that over ResourceSlices are beside
the rights that they bound (reconciler/guards.py, nfd_rules.py, dra_rights.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ...api import keys
from ...model import Body, Stage
from ..component import Component
from ..parts import admission
from ..parts.admission import HERE, listed, named, over, quoted
from ..parts.common_inputs import GUARDED
from .guards_discovery import discovery
from .guards_inputs import COMPUTE_DOMAIN_LABEL, DRA_CONTROLLER, DRA_DAEMON, DRA_PLUGIN, GuardsInputs, NodeWriter

NODES, PODS = "gpustack-nodes-of-own-pods", "gpustack-pods-of-own-node"
LAYOUTS, CONFIG_MAPS, WORKLOADS = "gpustack-layouts-of-own-node", "gpustack-configmaps", "gpustack-dra-workloads"
TARGET = {"name": "target", "expression": "request.operation == 'DELETE' ? oldObject : object"}
RECONCILER = "gpustack-reconciler"
MASTERS = "system:masters"
DELETERS = ("namespace-controller", "generic-garbage-collector")
"""Accounts of Kubernetes that delete what is in a namespace that goes, or whose owner has gone."""


class Guards(Component[GuardsInputs]):
    """The policies and their bindings: there before what they bound."""

    stage: ClassVar[Stage] = "base"

    def manifests(self, inputs: GuardsInputs) -> Iterator[Body]:
        if inputs.nodes:
            yield from nodes(inputs)
        if inputs.pods:
            yield from pods(inputs)
        if inputs.layouts:
            yield from layouts(inputs)
        if inputs.discovery:
            yield from discovery(inputs, inputs.discovery)
        if inputs.domains or inputs.mps:
            yield from workloads(inputs)
        yield from config_maps(inputs)


def nodes(inputs: GuardsInputs) -> Iterator[Body]:
    """A pod changes its own node, and of it the labels that it is there for and whether it is schedulable."""
    cordoning = [admission.user(inputs.namespace, each.account) for each in inputs.nodes if each.cordons]
    anywhere = [admission.user(inputs.namespace, each.account) for each in inputs.nodes if each.anywhere]
    return admission.policy(
        NODES,
        inputs.mode,
        rules=[over("", "nodes", "UPDATE")],
        condition=admission.callers(inputs.namespace, (each.account for each in inputs.nodes)),
        variables=[
            HERE,
            {"name": "own", "expression": prefixes(inputs.namespace, inputs.nodes)},
            *admission.node_changes(),
        ],
        validations={
            "a pod changes its own node only": f"variables.here == [object.metadata.name]{unless(anywhere)}",
            "a pod changes those labels of its node only that it is there for": admission.only(
                "labels", "variables.own.exists(prefix, key.startsWith(prefix))"
            ),
            "a pod of the stack changes no annotation of a node": (
                "size(variables.annotationsSet + variables.annotationsGone) == 0"
            ),
            "a pod changes nothing of its node's spec; one that clears the node may cordon it": (
                f"{admission.same_node()} && ({admission.SAME_CORDON}{unless(cordoning)})"
            ),
            "a pod of the stack adds and removes no taint": admission.taints(),
        },
    )


def prefixes(namespace: str, writers: tuple[NodeWriter, ...]) -> str:
    """The expression for what the labels of the caller begin with."""
    entries = [f"{quoted(admission.user(namespace, each.account))}: {listed(each.labels)}" for each in writers]
    return f"{{{', '.join(entries)}}}[request.userInfo.username]"


def unless(users: list[str]) -> str:
    """The end of an expression that need not hold for USERS."""
    return f" || request.userInfo.username in {listed(users)}" if users else ""


def pods(inputs: GuardsInputs) -> Iterator[Body]:
    """A pod makes, changes and deletes pods of its own node. One that it makes runs under its own account, and reads no
    Secret: else it would be a way to every account and Secret of the namespace.
    """
    made = "request.operation != 'CREATE' || "
    known = sorted({name for each in inputs.pods for name in each.pull_secrets})
    allowed = named("secret.name", known, [f"{each.account}-dockercfg-" for each in inputs.pods])
    return admission.policy(
        PODS,
        inputs.mode,
        rules=[over("", "pods", "CREATE UPDATE DELETE")],
        condition=admission.callers(inputs.namespace, (each.account for each in inputs.pods)),
        variables=[HERE, TARGET],
        validations={
            "a pod makes, changes and deletes pods of the stack on its own node only": (
                f"request.namespace == {quoted(inputs.namespace)} && "
                "variables.here == [variables.target.spec.?nodeName.orValue('')]"
            ),
            "a pod changes nothing that another pod runs": (
                "request.operation != 'UPDATE' || object.spec == oldObject.spec"
            ),
            "a pod makes pods under its own ServiceAccount only": (
                f"{made}'system:serviceaccount:' + request.namespace + ':' + "
                "object.spec.?serviceAccountName.orValue('default') == request.userInfo.username"
            ),
            "a pod that a pod makes reads no Secret": f"{made}({no_secrets()})",
            "a pod that a pod makes names the pull secrets of validator.imagePullSecrets only": (
                f"{made}object.spec.?imagePullSecrets.orValue([]).all(secret, {allowed})"
            ),
        },
    )


def not_by(account: str) -> str:
    """The expression that the caller is another than ACCOUNT."""
    return f"request.userInfo.username != {quoted(account)}"


def no_secrets() -> str:
    """The expression that no volume and no variable of a pod comes from a Secret."""
    volumes = "object.spec.?volumes.orValue([])"
    sources = "volume.?projected.sources.orValue([])"
    parts = [f"!{volumes}.exists(volume, has(volume.secret) || {sources}.exists(source, has(source.secret)))"]
    for kind in ("containers", "initContainers"):
        of = f"object.spec.?{kind}.orValue([]).exists(each, each.?"
        parts.append(f"!{of}env.orValue([]).exists(item, has(item.valueFrom) && has(item.valueFrom.secretKeyRef)))")
        parts.append(f"!{of}envFrom.orValue([]).exists(item, has(item.secretRef)))")
    return " && ".join(parts)


def layouts(inputs: GuardsInputs) -> Iterator[Body]:
    """The MIG manager publishes the layouts of its node in the ConfigMap of that name, and writes no other."""
    return admission.policy(
        LAYOUTS,
        inputs.mode,
        rules=[over("", "configmaps", "CREATE UPDATE DELETE")],
        condition=admission.callers(inputs.namespace, [inputs.layouts]),
        variables=[HERE, TARGET],
        validations={
            "the MIG manager writes the ConfigMap of its own node only": (
                "variables.here.exists(node, variables.target.metadata.name == node + '-mig-config')"
            )
        },
        namespace=inputs.namespace,
    )


def workloads(inputs: GuardsInputs) -> Iterator[Body]:
    """The DRA driver's accounts make what they are there for: MPS daemons of their own node, and daemons of compute
    domains, which have no power over a node. Else either could replace the driver's DaemonSet.
    """
    plugin, controller = (admission.user(inputs.namespace, each) for each in (DRA_PLUGIN, DRA_CONTROLLER))
    labelled = f"metadata.?labels[?'{COMPUTE_DOMAIN_LABEL}'].hasValue()"
    template = "variables.target.spec.template.spec"
    weak = [f"!{template}.?{share}.orValue(false)" for share in ("hostPID", "hostIPC", "hostNetwork")]
    weak.append(f"!{template}.?volumes.orValue([]).exists(volume, has(volume.hostPath) || has(volume.secret))")
    weak += [
        f"!{template}.?{kind}.orValue([]).exists(each, each.?securityContext.privileged.orValue(false))"
        for kind in ("containers", "initContainers")
    ]
    account = f"{template}.?serviceAccountName.orValue('') == '{DRA_DAEMON}'"
    daemon_of_node = " && ".join(
        (
            "request.resource.resource == 'deployments'",
            "variables.target.metadata.name.startsWith('mps-control-daemon-')",
            f"variables.here == [{template}.?nodeName.orValue('')]",
            f"{template}.?serviceAccountName.orValue('default') == 'default'",
            f"!{template}.?volumes.orValue([]).exists(volume, has(volume.secret))",
        )
    )
    return admission.policy(
        WORKLOADS,
        inputs.mode,
        rules=[over("apps", "daemonsets deployments", "CREATE UPDATE DELETE")],
        condition=admission.callers(inputs.namespace, [DRA_PLUGIN, DRA_CONTROLLER]),
        variables=[HERE, TARGET],
        validations={
            "the DRA driver's plugin makes MPS daemons of its own node only": f"{not_by(plugin)} || {daemon_of_node}",
            "the DRA driver's controller makes daemons of compute domains only": (
                f"{not_by(controller)} || request.resource.resource == 'daemonsets' && "
                f"variables.target.{labelled} && (oldObject == null || oldObject.{labelled})"
            ),
            "a compute domain's daemon runs under its own account, and shares nothing of its node": (
                f"{not_by(controller)} || request.operation == 'DELETE' || {account} && {' && '.join(weak)}"
            ),
        },
        namespace=inputs.namespace,
    )


def config_maps(inputs: GuardsInputs) -> Iterator[Body]:
    """ConfigMaps that the render brings are written by who applies the render: their scripts run as root on every node.

    Where the policy doesn't tell who that is, only those are refused of whom it is known that they don't: the stack's
    own accounts, and nodes.
    """
    groups, users = "request.userInfo.?groups.orValue([])", f"request.userInfo.username in {listed(inputs.users)} || "
    if inputs.known:
        within = f"{groups}.exists(group, group in {listed([MASTERS, *inputs.groups])})"
        allowed = f"{users if inputs.users else ''}{within}"
        message = "only the engine of spec.gitops and spec.guards.writers change what the stack's pods run"
    else:
        refused = [f"system:serviceaccounts:{inputs.namespace}", "system:nodes"]
        allowed = f"!{groups}.exists(group, group in {listed(refused)})"
        message = "neither nodes nor the stack's own accounts change what the stack's pods run"
    gone = listed(admission.user("kube-system", each) for each in DELETERS)
    # A deletion in the foreground ends when the garbage collector takes its finalizer away: an update.
    writes = f" || {by_reconciler(inputs.namespace)}" if inputs.kept else ""
    deletes = f"request.operation != 'CREATE' && request.userInfo.username in {gone}"
    return admission.policy(
        CONFIG_MAPS,
        inputs.mode,
        rules=[over("", "configmaps", "CREATE UPDATE DELETE")],
        condition={"name": "any", "expression": "true"},
        variables=[],
        validations={message: f"{allowed} || {deletes}{writes}"},
        namespace=inputs.namespace,
        marked=GUARDED,
    )


def by_reconciler(namespace: str) -> str:
    """The expression that the reconciler writes the file of the MIG managers, and changes no label of its ConfigMap."""
    return (
        f"request.operation == 'UPDATE' && request.userInfo.username == {quoted(admission.user(namespace, RECONCILER))}"
        f" && object.metadata.name == {quoted(keys.LAYOUTS)}"
        " && object.metadata.?labels == oldObject.metadata.?labels"
    )
