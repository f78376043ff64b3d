"""Workloads of tenants, as rules look at them: what a pod asks for, beside what the cluster offers.

A workload is anything that has a pod in it: a Deployment, a Job, or a custom resource whose controller makes pods.
Where pods stand is found by what they look like, because nobody knows all kinds of custom resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..model import Body, Path, dotted
from ..policy.offer import Offer, PoolOffer
from ..policy.scheduling import excluded, kept_away, tolerations_of
from .pods import amount_of

NVIDIA = "nvidia"
"""What is in the names of resources that this stack may offer."""
GPU, SHARED, MIG = "nvidia.com/gpu", ".shared", "nvidia.com/mig-"
KINDS = frozenset(
    (
        "Pod",
        "Deployment",
        "DaemonSet",
        "StatefulSet",
        "ReplicaSet",
        "ReplicationController",
        "Job",
        "CronJob",
        "PodTemplate",
    )
)
"""Kinds of Kubernetes itself that have pods."""


@dataclass(frozen=True)
class Tenant:
    """A workload and the cluster that it is for. `pod` is a PodSpec, `path` its place in the manifest.

    `whole` is false where only containers or resources were found in a custom resource: where the pods may run then
    isn't known.
    """

    body: Body
    path: Path
    pod: Mapping[str, Any]
    offer: Offer
    whole: bool = True

    @property
    def who(self) -> str:
        """What messages call it."""
        name = self.body.get("metadata", {}).get("name") if isinstance(self.body.get("metadata"), dict) else None
        return f"{self.body['kind']} {name or '(without a name)'}"

    def at(self, *steps: str | int) -> str:
        """The place at STEPS below the pod."""
        return dotted((*self.path, *steps))

    @cached_property
    def containers(self) -> tuple[tuple[tuple[str, int], dict[str, Any]], ...]:
        """The containers and where they stand below the pod, initial ones first."""
        found = ((key, self.pod.get(key)) for key in ("initContainers", "containers"))
        lists = ((key, items) for key, items in found if isinstance(items, list))
        return tuple(
            ((key, index), container)
            for key, items in lists
            for index, container in enumerate(items)
            if isinstance(container, dict)
        )

    @cached_property
    def wanted(self) -> dict[str, int]:
        """The resources of NVIDIA that the pod asks for, and how many: what its containers need together, or an initial
        one alone.
        """
        together: dict[str, int] = {}
        alone: dict[str, int] = {}
        for (key, _), container in self.containers:
            for name, (number, _) in asked(container).items():
                if key == "containers" or container.get("restartPolicy") == "Always":
                    together[name] = together.get(name, 0) + number
                else:
                    alone[name] = max(alone.get(name, 0), number)
        return {name: max(together.get(name, 0), alone.get(name, 0)) for name in together | alone}

    @cached_property
    def known(self) -> dict[str, int]:
        """Those of `wanted` that nodes are known to have."""
        return {name: number for name, number in self.wanted.items() if name in self.offer.resources}

    @cached_property
    def selected(self) -> tuple[PoolOffer, ...]:
        """The pools whose nodes the pod selects, as far as labels are known."""
        if not self.whole:
            return self.offer.pools
        return tuple(
            pool
            for pool in self.offer.pools
            if not excluded(
                self.pod, {key: next(iter(one)) for key, one in pool.labels.items() if one and len(one) == 1}
            )
        )

    def keeps_away(self, pool: PoolOffer) -> list[Any]:
        """The taints of POOL that the pod doesn't tolerate."""
        by_name = self.wanted if self.offer.tolerated_by_name else {}
        found = kept_away(pool.taints, tolerations_of(self.pod))
        return [taint for taint in found if taint.key not in by_name]


def asked(container: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """The resources of NVIDIA that CONTAINER asks for: how many, and whether under limits or requests."""
    resources = container.get("resources")
    found: dict[str, tuple[int, str]] = {}
    for part in ("requests", "limits"):
        amounts = resources.get(part) if isinstance(resources, dict) else None
        for name, amount in amounts.items() if isinstance(amounts, dict) else ():
            if NVIDIA in str(name).lower():
                found[str(name)] = amount_of(amount), part
    return found


def place_of(tenant: Tenant, name: str) -> str:
    """Where TENANT asks for the resource NAME first."""
    for (key, index), container in tenant.containers:
        if name in asked(container):
            steps = (key, index) if tenant.whole else ()
            return tenant.at(*steps, "resources", asked(container)[name][1], name)
    return tenant.at()


def pods_in(body: Body) -> list[tuple[Path, dict[str, Any], bool]]:
    """Where pods stand in BODY, what stands there, and whether it is a whole PodSpec. See `Tenant.whole`."""
    whole = list(_pods(body, ()))
    found = [(path, pod, True) for path, pod in whole]
    if body.get("kind") not in KINDS and "spec" in body:
        loose = _loose(body["spec"], ("spec",), {path for path, _ in whole})
        found += [(path, {"containers": [part]}, False) for path, part in loose]
    return found


def tenants_of(body: Body, pods: Iterable[tuple[Path, dict[str, Any], bool]], offer: Offer) -> Iterator[Tenant]:
    """The PODS of BODY (`pods_in`) beside what a cluster offers."""
    return (Tenant(body, path, pod, offer, whole) for path, pod, whole in pods)


def _pods(value: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The PodSpecs below VALUE: mappings with a list of containers that have names."""
    if isinstance(value, dict):
        containers = value.get("containers")
        if isinstance(containers, list) and containers and all(_container(item) for item in containers):
            yield path, value
            return
        for key, item in value.items():
            if key not in {"metadata", "status"} or not path:
                yield from _pods(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _pods(item, (*path, index))


def _container(item: Any) -> bool:
    return isinstance(item, dict) and ("image" in item or "resources" in item or "name" in item)


def _loose(value: Any, path: Path, pods: set[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Mappings below VALUE, outside of PODS, that ask for resources of NVIDIA as a container does."""
    if path in pods:
        return
    if isinstance(value, dict):
        if asked(value):
            yield path, value
        for key, item in value.items():
            yield from _loose(item, (*path, key), pods)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _loose(item, (*path, index), pods)
