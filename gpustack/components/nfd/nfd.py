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
from ..parts.kube import access, config_map, metadata, rights
from ..parts.pod import RESTRICTED, Container, Env, Pod, Volume, http_probe, sparse
from ..plugin.gfd import FEATURES
from . import nfd_rules
from .nfd_inputs import CHART, Installation, Instance, NfdInputs, Part

GROUP = nfd_rules.GROUP
PORT, HEALTH = 8080, "/healthz"
CONFIG_DIR = "/etc/kubernetes/node-feature-discovery"
OPENSHIFT_NAMESPACE = "openshift-nfd"
"""Where OpenShift's operator of node feature discovery is installed, and looks for instances."""

CONTROL_PLANE: Body = {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

HOST_PATHS = {
    "host-boot": "/boot",
    "host-os-release": "/etc/os-release",
    "host-sys": "/sys",
    "host-usr-lib": "/usr/lib",
    "host-lib": "/lib",
    "host-proc-swaps": "/proc/swaps",
}
"""What the worker reads of its node, by volume; it looks for each below /host-, such as /host-etc/os-release.

Server-side apply merges volumes by name and mounts by path: other names than the chart's would stay beside its own.
"""


class NodeFeatureDiscovery(Component[NfdInputs]):
    """Node feature discovery with its CRDs, where the cluster doesn't have it, and the rule for kernel modules.

    On OpenShift it is an instance for the operator that OpenShift's catalogue has for it.
    """

    stage = "discovery"

    def manifests(self, inputs: NfdInputs) -> Iterator[Body]:
        nfd = inputs.installation
        if nfd:
            yield from (crd(name) for name in nfd.crds)
            for role in ("master", "worker", "gc"):  # an account each, with what its program does and no more
                yield from access(account(nfd, role), nfd.namespace, **rights(f"nfd-{role}"), labels=selector(nfd))
            yield from master(nfd)
            yield from worker(nfd)
            gc = workload(nfd, "Deployment", main(nfd, "gc", nfd.gc, initial=(10, 5)), nfd.gc)
            gc["spec"]["template"]["spec"] |= sparse(affinity=sparse(nodeAffinity=off_gpus(nfd.gc)))
            yield gc
        if inputs.finders:
            yield from nfd_rules.own_node_only(inputs.finders)
        if inputs.instance:
            yield instance(inputs.instance)
        if inputs.rule:
            yield nfd_rules.kernel_modules()


def master(nfd: Installation) -> Iterator[Body]:
    """The one pod that turns NodeFeature objects and rules into labels."""
    config = {"denyLabelNs": ["*"], "extraLabelNs": list(nfd.label_namespaces)}
    container = main(nfd, "master", nfd.master)
    container.startup = http_probe(PORT, HEALTH, failureThreshold=30)
    yield configured(nfd, container, config)
    body = workload(nfd, "Deployment", container, nfd.master, config)
    body["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    affinity = off_gpus(nfd.master)
    affinity[PREFERRED] = [{"weight": 1, "preference": CONTROL_PLANE}, *affinity.get(PREFERRED, [])]
    body["spec"]["template"]["spec"] |= {"affinity": {"nodeAffinity": affinity}, "enableServiceLinks": False}
    yield body


def off_gpus(part: Part) -> Body:
    """The node affinity that keeps PART off nodes with GPUs; those of the control plane it may use even so, or a
    cluster of one node would have none.
    """
    keys = [*GPU_FEATURES, PRESENT]
    without = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["true"]} for key in keys]}
    if part.off_gpus == "never":
        return {REQUIRED: {"nodeSelectorTerms": [without, CONTROL_PLANE]}}
    return {PREFERRED: [{"weight": 100, "preference": without}]} if part.off_gpus else {}


def worker(nfd: Installation) -> Iterator[Body]:
    """The pod on every node that writes the node's NodeFeature object."""
    config = worker_config(nfd.pci_classes)
    container = main(nfd, "worker", nfd.worker, initial=(10, 5))
    container.env.field("POD_NAME", "metadata.name").field("POD_UID", "metadata.uid")
    for name, path in HOST_PATHS.items():
        container.mount(Volume.host(name, path), f"/host-{path.removeprefix('/')}", read_only=True)
    container.mount(Volume.host("features-d", f"{FEATURES}/"), f"{FEATURES}/", read_only=True)
    yield configured(nfd, container, config)
    body = workload(nfd, "DaemonSet", container, nfd.worker, config)
    body["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}
    yield body


def worker_config(pci_classes: Sequence[str]) -> dict[str, Any]:
    """The worker's configuration: PCI devices of these classes are labelled by vendor."""
    return {"sources": {"pci": {"deviceClassWhitelist": list(pci_classes), "deviceLabelFields": ["vendor"]}}}


def instance(asked: Instance) -> Body:
    """What OpenShift's operator makes an installation of.

    Ours would lack the labels of RHCOS versions (operator.md 8.1), which upstream's program doesn't set, and the rights
    to read the node under SELinux.
    """
    return {
        "apiVersion": "nfd.openshift.io/v1",
        "kind": "NodeFeatureDiscovery",
        "metadata": metadata("nfd-instance", OPENSHIFT_NAMESPACE),
        "spec": {
            "extraLabelNs": list(asked.label_namespaces),
            "operand": sparse(image=asked.image, imagePullPolicy=asked.pull_policy, servicePort=12000),
            "workerConfig": {"configData": emit_value(worker_config(asked.pci_classes))},
        },
    }


def main(nfd: Installation, role: str, part: Part, *, initial: tuple[int, int] = (0, 0)) -> Container:
    """The container of ROLE: master, worker or gc. INITIAL: seconds before the liveness and the readiness probe."""
    container = Container(role, nfd.image, nfd.pull_policy, command=[f"nfd-{role}"], args=[f"-port={PORT}"])
    container.env = Env().field("NODE_NAME", "spec.nodeName")
    container.security, container.resources = RESTRICTED, part.resources
    container.ports = [{"name": "http", "containerPort": PORT}]
    alive, ready = ({"initialDelaySeconds": seconds} if seconds else {} for seconds in initial)
    container.liveness = http_probe(PORT, HEALTH, **alive)
    container.readiness = http_probe(PORT, HEALTH, **ready, **({} if role == "gc" else {"failureThreshold": 10}))
    return container


def configured(nfd: Installation, container: Container, config: dict[str, Any]) -> Body:
    """The ConfigMap with the CONFIG of CONTAINER, which mounts it."""
    name, key = f"{nfd.name}-{container.name}-conf", f"nfd-{container.name}.conf"
    container.mount(Volume.config_map(f"nfd-{container.name}-conf", name, items={key: key}), CONFIG_DIR, read_only=True)
    return config_map(name, nfd.namespace, {key: emit_value(config)}, labels=selector(nfd))


def selector(nfd: Installation) -> dict[str, str]:
    """The labels of every object; with the role, those that the chart's selectors ask for."""
    return {"app.kubernetes.io/instance": nfd.helm_release, "app.kubernetes.io/name": CHART}


def workload(
    nfd: Installation, kind: str, container: Container, part: Part, config: dict[str, Any] | None = None
) -> Body:
    """A Deployment or DaemonSet that runs CONTAINER under its account.

    CONFIG is what the container reads when it starts, and only then: a change of it must replace the pods.
    """
    role = container.name
    labels = {**selector(nfd), "role": role}
    pod = Pod(account(nfd, role), part.node_selector, [container], pull_secrets=nfd.pull_secrets)
    tolerations = [dict(toleration) for toleration in part.tolerations]
    digest = hashlib.sha256(emit_value(config).encode()).hexdigest()[:16] if config else None
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata(f"{nfd.name}-{role}", nfd.namespace, labels=labels),
        "spec": {
            **({"replicas": 1} if kind == "Deployment" else {}),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": metadata("", labels=labels, annotations=sparse(**{"gpustack.dev/config": digest})),
                "spec": pod.body() | sparse(priorityClassName=part.priority_class, tolerations=tolerations),
            },
        },
    }


def account(nfd: Installation, role: str) -> str:
    """The ServiceAccount of ROLE, and its roles and bindings; the master's carry the bare name, as in the chart."""
    return nfd.name if role == "master" else f"{nfd.name}-{role}"
