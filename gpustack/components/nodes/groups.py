"""What cluster-autoscaler is told of the nodes of a node group, as text for whoever makes the group.

Solves: at zero nodes cluster-autoscaler simulates one from tags, annotations or the cloud's own settings, each with
names and escapes of its own, and only the cloud can set them. They are printed as they are to be written.
"""

from collections.abc import Iterable, Iterator
from string import Template
from typing import Any

from ...api.keys import GPU
from ...cluster.autoscaling import facts, given_labels, group_kind, known_before, startup_taints
from ...cluster.pool import Pool
from ...policy.language.autoscaling import NodeGroup
from ...policy.language.node_pools import Taint
from ...text.emit import emit_value

CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
SIZE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
CLOUDS = ("cloud.google.com", "kubernetes.azure.com", "eks.amazonaws.com", "k8s.amazonaws.com")
"""Domains of labels that clouds set by themselves."""


def text(pool: Pool) -> str:
    """What the node group of POOL is told, with a head that says so; "" where it isn't a node group of known kind."""
    kind, said = group_kind(pool), pool.said.autoscaling.nodeGroup
    if not kind or said is None:
        return ""
    known = facts()["groups"][kind]
    head = f"# Nodes of the pool {pool.name}: {known['title']}, for cluster-autoscaler.\n"
    for key in (each.key for each in startup_taints(pool)):
        if not key.startswith(facts()["startup"]):
            head += f"# Nodes come up with the taint {key}: cluster-autoscaler needs --startup-taint={key}.\n"
    if "arguments" in known:
        return head + "".join(f"{line}\n" for line in arguments(pool, known["arguments"]))
    return head + emit_value(capacities(pool, said) if kind == "clusterApi" else tags(pool, said, known))


def _taints(taints: Iterable[Taint]) -> list[tuple[str, str]]:
    """TAINTS as keys and texts. Those that go by themselves are no part of what is simulated."""
    return [(each.key, f"{each.value or ''}:{each.effect}") for each in taints]


def _labels(pool: Pool) -> dict[str, str]:
    """The labels that nodes of POOL have once all runs there, as far as the policy tells, those of discovery too, less
    what the simulation knows of an instance type."""
    told = {key: next(iter(values)) for key, values in pool.offer.labels.items() if values and len(values) == 1}
    return {key: value for key, value in sorted((told | pool.said.nodeSelector).items()) if not known_before(key)}


def _offered(pool: Pool) -> dict[str, str]:
    """What a node offers; no whole GPUs, where the instance type has some and they are called otherwise."""
    counts = {} if pool.cluster.dra else {GPU: 0, **pool.capacity.per_node}
    return {name: str(count) for name, count in counts.items() if count is not None}


def tags(pool: Pool, said: NodeGroup, known: dict[str, Any]) -> dict[str, str]:
    """The tags by name."""
    escaped = str.maketrans(known.get("escaped", {}))
    sizes = {name: str(amount) for name, amount in said.resources.items()}
    parts = {"label": _labels(pool), "taint": dict(_taints(pool.said.taints)), "resource": sizes | _offered(pool)}
    return {
        Template(known[part]).substitute(key=key.translate(escaped)): value
        for part, values in parts.items()
        for key, value in values.items()
    }


def capacities(pool: Pool, said: NodeGroup) -> dict[str, str]:
    """The annotations of a MachineDeployment. GPUs of claims are told by their driver."""
    found = {name.replace("-storage", "-disk"): str(amount) for name, amount in said.resources.items()}
    kinds = [name for name, amount in _offered(pool).items() if amount != "0"]
    if pool.cluster.dra:
        found |= {"dra-driver": "gpu.nvidia.com", "gpu-count": str(pool.said.gpusPerNode or "")}
    elif kinds:
        found |= {"gpu-type": kinds[0], "gpu-count": _offered(pool)[kinds[0]]}
    found["maxPods"] = str(said.maxPods or "")
    found["labels"] = ",".join(f"{key}={value}" for key, value in _labels(pool).items())
    found["taints"] = ",".join(f"{key}={value}" for key, value in _taints(pool.said.taints))
    count = pool.said.count
    sizes = {f"{SIZE}-min-size": str(count.min), f"{SIZE}-max-size": str(count.max)} if count else {}
    return sizes | {f"{CAPACITY}/{name}": value for name, value in found.items() if value}


def arguments(pool: Pool, known: dict[str, Any]) -> Iterator[str]:
    """The options of a cloud's command, a line each."""
    sign, between = (" ", " ") if known.get("words") else ("=", ",")
    labels = [f"{key}={value}" for key, value in given_labels(pool).items() if key.partition("/")[0] not in CLOUDS]
    taints = [f"{key}={value}" for key, value in _taints([*pool.said.taints, *startup_taints(pool)])]
    if pool.said.count:
        yield known["enable"]
        yield f"{known['least']}{sign}{pool.said.count.min}"
        yield f"{known['most']}{sign}{pool.said.count.max}"
    if labels:
        yield f"{known['labels']}{sign}{between.join(labels)}"
    if taints:
        yield f"{known['taints']}{sign}{','.join(taints)}"
