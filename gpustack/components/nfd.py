"""Node feature discovery: finds the nodes that have GPUs and labels their kernel and operating system.

The operator's chart brings it as a sub-chart. Names and selectors are those of that sub-chart, so that an installation
is taken over in place: selectors can't be changed, and a new worker DaemonSet would own none of the NodeFeature objects
that the labels come from. What differs is meant:

- Each part has an account of its own. The chart gives all three the master's, so that a worker on any node may write
  to every node. The chart's account `node-feature-discovery` stays behind without rights.
- The master drops labels in namespaces that nobody named; node feature discovery itself lets a rule set labels anywhere
  outside kubernetes.io. A denied "*" also denies the default namespaces, so these are in the list of the allowed.
- One master at a time by replacing (Recreate) instead of a lease: no rights on leases, and no restart whenever the API
  server is slow. Labels stay while there is no master.
- Rights that need a feature gate (NodeFeatureGroup) or a setting that we don't make are left out.

The worker mounts folders of the node. Pod Security's `baseline` refuses that: the namespace needs `psa.enabled` wherever
a cluster enforces a level (namespace.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ..compiler.emit import emit_value
from ..model import Body, Stage
from . import nfd_rules
from .component import Component
from .gfd import FEATURES
from .inputs.nfd import CHART, Installation, NfdInputs, Part
from .kube import PRIVILEGED_SCC, access, config_map, metadata, rule
from .pod import Container, Env, Pod, SecurityContext, Volume, http_probe, sparse

GROUP = nfd_rules.GROUP
PORT, HEALTH = 8080, "/healthz"
CONFIG_DIR = "/etc/kubernetes/node-feature-discovery"
RESTRICTED: SecurityContext = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
HOST_PATHS = ("/boot", "/etc/os-release", "/lib", "/proc/swaps", "/sys", "/usr/lib")
"""What the worker reads of its node; it looks for each below /host-..., such as /host-etc/os-release."""


class NodeFeatureDiscovery(Component[NfdInputs]):
    """Node feature discovery with its CRDs, where the cluster doesn't have it, and the rule for kernel modules."""

    stage: ClassVar[Stage] = "discovery"

    def manifests(self, inputs: NfdInputs) -> Iterator[Body]:
        found = inputs.installation
        if found:
            yield from (crd(name) for name in found.crds)
            yield from rights(found)
            yield from master(found)
            yield from worker(found)
            yield workload(found, "Deployment", "gc", main(found, "gc", found.gc, initial=(10, 5)), found.gc)
            if found.own_node_only:
                yield from nfd_rules.own_node_only(found)
        if inputs.rule:
            yield nfd_rules.kernel_modules()


def crd(name: str) -> Body:
    """The CustomResourceDefinition NAME, from its data file."""
    import yaml

    with (Path(__file__).parent / "crds" / f"{name}.yaml").open("rb") as file:
        body: Body = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return body


def rights(found: Installation) -> Iterator[Body]:
    """The account of each part, with what its program does and no more."""
    labels = selector(found)
    yield from access(
        found.name,
        found.namespace,
        cluster=[
            rule("", "nodes", "get list patch"),
            rule("", "nodes/status", "patch"),
            rule(GROUP, "nodefeatures nodefeaturerules", "list watch"),
        ],
        labels=labels,
    )
    yield from access(
        f"{found.name}-worker",
        found.namespace,
        role=[
            *([PRIVILEGED_SCC] if found.openshift else []),
            rule(GROUP, "nodefeatures", "get create update"),
            rule("", "pods", "get"),
        ],
        labels=labels,
    )
    yield from access(
        f"{found.name}-gc",
        found.namespace,
        cluster=[
            rule("", "nodes", "list watch"),
            rule(GROUP, "nodefeatures", "list delete"),
            # Without it the program logs an error every hour. The objects are another installation's, of gone nodes.
            rule("topology.node.k8s.io", "noderesourcetopologies", "list delete"),
        ],
        labels=labels,
    )


def master(found: Installation) -> Iterator[Body]:
    """The one pod that turns NodeFeature objects and rules into labels."""
    config = {"denyLabelNs": ["*"], "extraLabelNs": list(found.label_namespaces)}
    container = main(found, "master", found.master)
    container.startup = http_probe(PORT, HEALTH, failureThreshold=30)
    yield from configured(found, "master", container, config)
    body = workload(found, "Deployment", "master", container, found.master, digest(config))
    body["spec"]["strategy"] = {"type": "Recreate"}
    term = {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}
    preferred = [{"weight": 1, "preference": term}]
    body["spec"]["template"]["spec"] |= {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        "enableServiceLinks": False,
    }
    yield body


def worker(found: Installation) -> Iterator[Body]:
    """The pod on every node that writes the node's NodeFeature object."""
    config = {"sources": {"pci": {"deviceClassWhitelist": list(found.pci_classes), "deviceLabelFields": ["vendor"]}}}
    container = main(found, "worker", found.worker, initial=(10, 5))
    container.env.field("POD_NAME", "metadata.name").field("POD_UID", "metadata.uid")
    for path in HOST_PATHS:
        name = path.strip("/").replace("/", "-")
        container.mount(Volume.host(f"host-{name}", path), f"/host-{path.lstrip('/')}", read_only=True)
    yield from configured(found, "worker", container, config)
    container.mount(Volume.host("features-d", FEATURES), FEATURES, read_only=True)
    body = workload(found, "DaemonSet", "worker", container, found.worker, digest(config))
    body["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}
    yield body


def main(found: Installation, role: str, part: Part, *, initial: tuple[int, int] = (0, 0)) -> Container:
    """The container of ROLE: master, worker or gc. INITIAL: seconds before the liveness and the readiness probe."""
    container = Container(role, found.image, found.pull_policy, command=[f"nfd-{role}"], args=[f"-port={PORT}"])
    container.env = Env().field("NODE_NAME", "spec.nodeName")
    container.security, container.resources = RESTRICTED, part.resources
    container.ports = [{"name": "http", "containerPort": PORT}]
    alive, ready = ({"initialDelaySeconds": seconds} if seconds else {} for seconds in initial)
    container.liveness = http_probe(PORT, HEALTH, **alive)
    container.readiness = http_probe(PORT, HEALTH, **ready, **({} if role == "gc" else {"failureThreshold": 10}))
    return container


def configured(found: Installation, role: str, container: Container, config: dict[str, Any]) -> Iterator[Body]:
    """The ConfigMap with the CONFIG of ROLE, mounted into its CONTAINER."""
    name, key = f"{found.name}-{role}-conf", f"nfd-{role}.conf"
    yield config_map(name, found.namespace, {key: emit_value(config)}, labels=selector(found))
    container.mount(Volume.config_map(f"nfd-{role}-conf", name, items={key: key}), CONFIG_DIR, read_only=True)


def digest(config: dict[str, Any]) -> str:
    """Names the content of CONFIG, which the programs read only when they start."""
    return hashlib.sha256(emit_value(config).encode()).hexdigest()[:16]


def selector(found: Installation) -> dict[str, str]:
    return {"app.kubernetes.io/instance": found.helm_release, "app.kubernetes.io/name": CHART}


def workload(found: Installation, kind: str, role: str, container: Container, part: Part, config: str = "") -> Body:
    """A Deployment or DaemonSet that runs CONTAINER as the account of ROLE."""
    labels = {**selector(found), "role": role}
    account = found.name if role == "master" else f"{found.name}-{role}"
    pod = Pod(account, part.node_selector, [container], pull_secrets=found.pull_secrets)
    tolerations = [dict(toleration) for toleration in part.tolerations]
    annotations = sparse(**{"gpustack.dev/config": config})
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata(f"{found.name}-{role}", found.namespace, labels=labels),
        "spec": {
            **({"replicas": 1} if kind == "Deployment" else {}),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": metadata("", labels=labels, annotations=annotations),
                "spec": pod.body() | sparse(priorityClassName=part.priority_class, tolerations=tolerations),
            },
        },
    }
