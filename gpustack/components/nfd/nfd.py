"""Node feature discovery: finds the nodes that have GPUs and labels their kernel and operating system.

The operator's chart brings it as a sub-chart. Names and selectors are those of that sub-chart, so that an installation
is taken over in place: selectors can't be changed, and a new worker DaemonSet would own none of the NodeFeature objects
that the labels come from. What differs is meant:

- Each part has an account of its own. The chart gives all three the master's, so that a worker on any node may write
  to every node. The chart's account `node-feature-discovery` stays behind without rights.
- The master drops labels in namespaces that nobody named; node feature discovery itself lets a rule set labels anywhere
  outside kubernetes.io. A denied "*" also denies the default namespaces, so these are in the list of the allowed.
- One master at a time because a new one starts when the old one has gone: no lease, no right on leases, no restart
  whenever the API server is slow. Labels stay while there is no master. (The strategy Recreate would say it better, but
  server-side apply can't set it on a Deployment that has been rolling.)
- Master and gc keep off nodes with GPUs, as their tokens count on every node.
- Rights that need a feature gate (NodeFeatureGroup) or a setting that we don't make are left out.

The worker mounts folders of the node. Pod Security's `baseline` refuses that: where a cluster enforces a level, the
namespace needs `psa.enabled` (namespace.py).
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from ...api.keys import GPU_FEATURES, PRESENT
from ...model import Body
from ...text.emit import emit_value
from ..component import Component
from ..crds import crd
from ..parts import admission
from ..parts.kube import access, config_map, rights
from ..parts.pod import RESTRICTED, Volume, references, sparse
from ..parts.template import template
from ..plugin.gfd import FEATURES
from .nfd_inputs import CHART, Finders, Installation, NfdInputs, Part

CONFIG_DIR = "/etc/kubernetes/node-feature-discovery"
CONTROL_PLANE: Body = {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class NodeFeatureDiscovery(Component[NfdInputs]):
    """Node feature discovery with its CRDs, where the cluster doesn't have it, and the rule for kernel modules.

    On OpenShift it is an instance for the operator that OpenShift's catalogue has for it."""

    stage = "discovery"

    def manifests(self, inputs: NfdInputs) -> Iterator[Body]:
        if inputs.installation:
            yield from installed(inputs.installation)
        if inputs.finders:
            yield from own_node_only(inputs.finders)
        if asked := inputs.instance:
            config = emit_value(worker_config(asked.pci_classes))
            yield template(__file__, "instance", config=config, namespaces=asked.label_namespaces, **dict(asked))
        if inputs.rule:
            yield template(__file__, "kernel_modules")


def installed(nfd: Installation) -> Iterator[Body]:
    """An installation: one pod turns NodeFeature objects and rules into labels, one on every node writes the node's
    NodeFeature object, and one takes objects of gone nodes away."""
    yield from (crd(name) for name in nfd.crds)
    for role in ("master", "worker", "gc"):  # an account each, with what its program does and no more
        yield from access(account(nfd, role), nfd.namespace, **rights(f"nfd-{role}"), labels=selector(nfd))
    config = {"denyLabelNs": ["*"], "extraLabelNs": list(nfd.label_namespaces)}
    off, near = off_gpus(nfd.master), {"weight": 1, "preference": CONTROL_PLANE}
    yield from workload(nfd, "master", nfd.master, {**off, PREFERRED: [near, *off.get(PREFERRED, [])]}, config)
    yield from workload(nfd, "worker", nfd.worker, {}, worker_config(nfd.pci_classes))
    yield from workload(nfd, "gc", nfd.gc, off_gpus(nfd.gc))


def off_gpus(part: Part) -> Body:
    """The node affinity that keeps PART off nodes with GPUs; those of the control plane it may use even so, or a
    cluster of one node would have none."""
    keys = [*GPU_FEATURES, PRESENT]
    without = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["true"]} for key in keys]}
    if part.off_gpus == "never":
        return {REQUIRED: {"nodeSelectorTerms": [without, CONTROL_PLANE]}}
    return {PREFERRED: [{"weight": 100, "preference": without}]} if part.off_gpus else {}


def worker_config(pci_classes: Sequence[str]) -> dict[str, Any]:
    """The worker's configuration: PCI devices of these classes are labelled by vendor."""
    return {"sources": {"pci": {"deviceClassWhitelist": list(pci_classes), "deviceLabelFields": ["vendor"]}}}


def workload(
    nfd: Installation, role: str, part: Part, nodes: Body, config: dict[str, Any] | None = None
) -> Iterator[Body]:
    """The Deployment or DaemonSet of ROLE, on NODES, behind the ConfigMap with its CONFIG.

    That is read when the program starts, and only then: a change of it must replace the pods."""
    own = template(__file__, role, features=FEATURES)
    notes, labels = {}, selector(nfd)
    if config:
        name, key, text = f"nfd-{role}-conf", f"nfd-{role}.conf", emit_value(config)
        notes["gpustack.dev/config"] = hashlib.sha256(text.encode()).hexdigest()[:16]
        own["mounts"].append({"name": name, "mountPath": CONFIG_DIR, "readOnly": True})
        own["volumes"].append(Volume.config_map(name, f"{nfd.name}-{role}-conf", items={key: key}).body())
        yield config_map(f"{nfd.name}-{role}-conf", nfd.namespace, {key: text}, labels=labels)
    words = {**dict(nfd), **dict(part), "pull_secrets": references(nfd.pull_secrets)}
    yield template(
        __file__,
        "workload",
        **{**words, **own, "restricted": RESTRICTED, "affinity": sparse(nodeAffinity=nodes), "notes": notes},
        name=nfd.name,
        role=role,
        account=account(nfd, role),
        labels={**labels, "role": role},
    )


def selector(nfd: Installation) -> dict[str, str]:
    """The labels of every object; with the role, those that the chart's selectors ask for."""
    return {"app.kubernetes.io/instance": nfd.helm_release, "app.kubernetes.io/name": CHART}


def account(nfd: Installation, role: str) -> str:
    """The ServiceAccount of ROLE, and its roles and bindings; the master's carry the bare name, as in the chart."""
    return nfd.name if role == "master" else f"{nfd.name}-{role}"


def own_node_only(finders: Finders) -> Iterator[Body]:
    """An admission policy: a NodeFeature object is written by a pod of the node that it is about.

    RBAC can't say it: the worker and GFD may write all NodeFeature objects of the namespace, and the master takes each
    at its word. So one taken-over node could label, or strip of labels, all others."""
    who = {**admission.callers(finders.namespace, finders.accounts), "name": "finder"}
    return admission.policy("nodefeatures", finders.mode, who)
