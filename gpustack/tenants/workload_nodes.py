"""Rules about the nodes that tenants' pods select, and about GPUs that they take without asking."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..catalog import node_labels
from ..catalog._lookup import nearest
from ..checks.rule import Hit, hit, rule
from ..cluster.autoscaling import DISCOVERED
from ..cluster.offer import Offer
from ..cluster.scheduling import expressions_of, required_terms
from ..model import Path, dotted, mapping, mappings
from ..policy.loading.place import node
from .tenants import Tenant

AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NOTHING = ("", "none", "void")
WELL_KNOWN = ("kubernetes.io", "k8s.io", "amazonaws.com", "google.com", "azure.com", "oraclecloud.com", "karpenter.sh")
"""Domains of labels that Kubernetes, clouds and autoscalers set, by which pods may select what no policy says."""


@rule("GPU706", "warning", over="workload")
def no_such_label(tenant: Tenant) -> Iterator[Hit]:
    """A pod selects nodes by a label that no node of a pool gets, or by several that no pool's nodes have together."""
    if not tenant.offer.pools:
        return
    told = False
    for path, key, values in selections(tenant.pod) if tenant.whole else _beside(tenant):
        asked = tenant.whole and tenant.wanted  # what asks for no GPU may have nodes that no pool here is about
        reason = never(tenant.offer, key, values) if asked or key.startswith(node_labels.PREFIX) else None
        if reason is not None:
            told, (what, why, remedy) = True, reason
            place = tenant.at(*path) if tenant.whole else dotted(path)
            yield hit(place, remedy=remedy, who=tenant.who, what=what, because=why)
    for path, key, values in selections(tenant.pod, ("NotIn",)) if tenant.whole and tenant.wanted else ():
        had = [pool.labels.get(key) for pool in tenant.offer.pools]
        if all(one and one <= set(values) for one in had):
            told, what, why = True, f"{key}: none of {', '.join(values)}", "all node pools have one of these"
            yield hit(tenant.at(*path), remedy="leave it out", who=tenant.who, what=what, because=why)
    if tenant.wanted and not tenant.selected and not told:
        keys = [*map(str, mapping(tenant.pod.get("nodeSelector")))]
        keys += [str(one.get("key")) for term in required_terms(tenant.pod) for one in expressions_of(term)]
        have = (
            f"{pool.name} has {', '.join(f'{key}: {min(pool.labels[key] or ())}' for key in known)}"
            for pool in tenant.offer.pools
            if (known := [key for key in dict.fromkeys(keys) if pool.labels.get(key)])
        )
        what, why = "labels that no node pool has together", "; ".join(have)
        yield hit(tenant.at(), remedy="select the nodes of one pool", who=tenant.who, what=what, because=why)


def _beside(tenant: Tenant) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    """What the nodeSelector says that stands nearest to containers that are in no PodSpec, as in a NIMService."""
    for depth in range(len(tenant.path), 0, -1):
        path = (*tenant.path[:depth], "nodeSelector")
        if isinstance(selector := node(tenant.body, path), dict):
            return (((*path, key), str(key), (str(value),)) for key, value in selector.items())
    return iter(())


def selections(
    pod: Mapping[str, Any], operators: tuple[str, ...] = ("In", "Exists")
) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    """Where POD selects nodes by a label: the place, the key, and the values of which one must be had; none for any.
    With other OPERATORS of an affinity, what those name. Of alternatives (several terms), none: one of them may do."""
    for key, value in mapping(pod.get("nodeSelector")).items() if "In" in operators else ():
        yield ("nodeSelector", key), str(key), (str(value),)
    terms = required_terms(pod)
    for index, term in enumerate(terms if len(terms) == 1 else ()):
        for position, one in mappings(term.get("matchExpressions")):
            if one.get("operator") in operators:
                listed = one.get("values") if one["operator"] != "Exists" else ()
                values = tuple(map(str, listed)) if isinstance(listed, list) else ()
                yield (*AFFINITY, index, "matchExpressions", position), str(one.get("key")), values


def never(offer: Offer, key: str, values: tuple[str, ...]) -> tuple[str, str, str] | None:
    """What, why and remedy where no pool's nodes have the label KEY with one of VALUES; None where one may."""
    if key.startswith((node_labels.PREFIX, "resource.nvidia.com/")) and not _own(offer, key):
        if not node_labels.known(key):
            near = nearest(key, node_labels.all_known(), 1)
            remedy = f"did you mean {near[0]}?" if near else "see the labels of a node: kubectl get nodes --show-labels"
            return key, "no program sets this label", remedy
        if node_labels.by_discovery(key) and not offer.discovery:
            return key, "GPU feature discovery sets it, and is off here", "select by a label of your own"
    had = [pool.labels.get(key) for pool in offer.pools]
    if not values or None in had:
        return None
    everything = sorted({value for one in had for value in one or ()})
    if any(value in everything for value in values):
        return None
    near = nearest(values[0], everything, 1)
    remedy = f"write {near[0]}" if near else f"write {' or '.join(everything)}"
    return f"{key}: {' or '.join(values)}", f"nodes have {key}: {', '.join(everything)}", remedy


def _own(offer: Offer, key: str) -> bool:
    """Whether a pool says itself that its nodes have the label KEY."""
    return any(key in pool.own_labels for pool in offer.pools)


@rule("GPU707", "note", over="workload")
def unknown_label(tenant: Tenant) -> Iterator[Hit]:
    """A pod with GPUs selects nodes by a label that the policy doesn't mention."""
    for path, key, _ in selections(tenant.pod) if tenant.whole and tenant.wanted and tenant.offer.pools else ():
        known = "/" in key and key.partition("/")[0].endswith(("nvidia.com", *WELL_KNOWN))
        if not known and not any(key in pool.labels for pool in tenant.offer.pools):
            yield hit(tenant.at(*path), who=tenant.who, key=key)


@rule("GPU712", "warning", over="workload")
def label_of_no_node_yet(tenant: Tenant) -> Iterator[Hit]:
    """A pod selects nodes by a label of discovery, and all that may have it may be gone."""
    for path, key, values in selections(tenant.pod) if tenant.whole and tenant.wanted else ():
        if key.startswith(DISCOVERED) and not _own(tenant.offer, key):
            had = [(pool, pool.labels.get(key)) for pool in tenant.offer.pools if pool.has(tenant.known)]
            fitting = [pool for pool, one in had if not values or one is None or one & set(values)]
            if fitting and all(pool.unseen for pool in fitting):
                names = ", ".join(pool.name for pool in fitting)
                yield hit(tenant.at(*path), who=tenant.who, key=key, where=names)


@rule("GPU711", "warning", over="workload")
def gpus_without_asking(tenant: Tenant) -> Iterator[Hit]:
    """A container that takes GPUs past the scheduler."""
    for place, container in tenant.containers if not tenant.wanted else ():
        for position, entry in mappings(container.get("env")):
            value = entry.get("value") if entry.get("name") == VISIBLE else None
            if isinstance(value, str) and value not in NOTHING:
                yield hit(tenant.at(*place, "env", position), who=tenant.who, variable=VISIBLE, value=value)
