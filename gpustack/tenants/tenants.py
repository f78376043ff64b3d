"""Workloads of tenants, as rules look at them: what a pod asks for, beside what the cluster offers.

A workload is anything that has a pod in it: a Deployment, a Job, or a custom resource whose controller makes pods.
Where pods stand is found by what they look like, because nobody knows all kinds of custom resources.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..api import keys
from ..catalog import object_kinds
from ..checks.objects.pods import amount_of
from ..checks.rule import rules_over
from ..cluster.offer import Offer, PoolOffer
from ..cluster.scheduling import excluded, kept_away, tolerations_of
from ..model import Body, Finding, Path, children, dotted, mapping, mappings
from ..policy.loading.place import node

NVIDIA = "nvidia"
"""What is in the names of resources that this stack may offer."""
GPU, SHARED, MIG = keys.GPU, ".shared", "nvidia.com/mig-"


KINDS: dict[tuple[str, str], Path] = {kind: path for kind, (path,) in object_kinds.grouped("pods").items()}
"""API groups and kinds of Kubernetes itself that have pods, and where the PodSpec stands."""

QUOTAS: dict[tuple[str, str], Path] = {kind: path for kind, (path,) in object_kinds.grouped("quotas").items()}
"""API groups and kinds that share out resources by their names, and where those stand."""
BUDGET, SCRIPTS = ("policy", "PodDisruptionBudget"), ("", "ConfigMap")
GROUPS = ("kueue.x-k8s.io", "kubevirt.io")
"""API groups, with those below them, of which rules over manifests know kinds."""


@dataclass(frozen=True)
class Given:
    """An object of a tenant."""

    body: Body

    @property
    def who(self) -> str:
        """What messages call it."""
        return f"{self.body['kind']} {node(self.body, ('metadata', 'name')) or '(without a name)'}"

    @property
    def namespace(self) -> str:
        """Its namespace, which is that of its pods, as far as the manifest says."""
        return namespace_of(self.body)


@dataclass(frozen=True)
class Tenant(Given):
    """A workload and the cluster that it is for. `pod` is a PodSpec, `path` its place in the manifest.

    `whole` is false where only containers or resources were found in a custom resource: where pods run isn't known."""

    path: Path
    pod: Mapping[str, Any]
    offer: Offer
    whole: bool = True

    def at(self, *steps: str | int) -> str:
        """The place at STEPS below the pod."""
        return dotted((*self.path, *steps))

    def inside(self, container: tuple[str, int], *steps: str | int) -> str:
        """The place at STEPS below CONTAINER, which is all that there is of a pod that isn't whole."""
        return self.at(*(container if self.whole else ()), *steps)

    @property
    def labels(self) -> Mapping[str, Any]:
        """The labels of its pods: they stand beside the PodSpec."""
        return labels_of(self.body, self.path)

    @cached_property
    def containers(self) -> tuple[tuple[tuple[str, int], dict[str, Any]], ...]:
        """The containers and where they stand below the pod, initial ones first."""
        parts = ("initContainers", "containers")
        return tuple(((key, index), one) for key in parts for index, one in mappings(self.pod.get(key)))

    @cached_property
    def wanted(self) -> dict[str, int]:
        """The resources of NVIDIA that the pod asks for, and how many: what its containers and sidecars need together,
        or an initial one beside the sidecars above it."""
        together: dict[str, int] = {}
        alone: dict[str, int] = {}
        for (key, _), container in self.containers:
            for name, (number, _) in asked(container).items():
                if key == "containers" or container.get("restartPolicy") == "Always":
                    together[name] = together.get(name, 0) + number
                else:  # beside the sidecars that were started before it
                    alone[name] = max(alone.get(name, 0), number + together.get(name, 0))
        most = {name: max(together.get(name, 0), alone.get(name, 0)) for name in together | alone}
        return {name: number for name, number in most.items() if number > 0}

    @cached_property
    def known(self) -> dict[str, int]:
        """Those of `wanted` that nodes are known to have."""
        return {name: number for name, number in self.wanted.items() if name in self.offer.resources}

    @cached_property
    def selected(self) -> tuple[PoolOffer, ...]:
        """The pools whose nodes the pod selects, as far as labels are known."""
        if not self.whole:
            return self.offer.pools
        every = self.offer.pools
        sure = [{key: min(one) for key, one in each.labels.items() if one and len(one) == 1} for each in every]
        return tuple(pool for pool, labels in zip(every, sure, strict=True) if not excluded(self.pod, labels))

    def keeps_away(self, pool: PoolOffer) -> list[Any]:
        """The taints of POOL that the pod doesn't tolerate."""
        by_name = self.wanted if self.offer.tolerated_by_name else {}
        repelling = kept_away(pool.taints, tolerations_of(self.pod))
        return [taint for taint in repelling if taint.key not in by_name]


Beside = tuple[Body, Path, dict[str, Any], bool]
"""An object and one of its pods (`pods_in`)."""


def labels_of(body: Body, path: Path) -> Mapping[str, Any]:
    """The labels of the pods that have their PodSpec at PATH of BODY."""
    return mapping(node(body, (*path[:-1], "metadata", "labels")))


@dataclass(frozen=True)
class Others:
    """The objects of one run, for rules over one that depend on another. Looked through when the first rule asks."""

    bodies: Sequence[Body] = ()

    @cached_property
    def pods(self) -> Mapping[str, list[Beside]]:
        """The pods (`pods_in`) of all, by their namespaces."""
        by_space: dict[str, list[Beside]] = {}
        for body in self.bodies:
            by_space.setdefault(namespace_of(body), []).extend((body, *each) for each in pods_in(body))
        return by_space

    @cached_property
    def labelled(self) -> Mapping[tuple[str, str, str], list[Beside]]:
        """The same by namespace, key and value of each label: who looks for one among thousands finds it at once."""
        by_label: dict[tuple[str, str, str], list[Beside]] = {}
        for space, pods in self.pods.items():
            for each in pods:
                for key, value in labels_of(*each[:2]).items():
                    if isinstance(value, str):
                        by_label.setdefault((space, str(key), value), []).append(each)
        return by_label

    @cached_property
    def scaled(self) -> frozenset[tuple[str, str]]:
        """Namespaces and names of what autoscalers among them scale."""
        names = ((namespace_of(body), node(body, ("spec", "scaleTargetRef", "name"))) for body in self.bodies)
        return frozenset((space, name) for space, name in names if isinstance(name, str))


ALONE = Others()
"""Nothing is known of other objects."""


@dataclass(frozen=True)
class TenantObject(Given):
    """An object of a tenant, with pods or without, the cluster that it is for, and what else is looked at."""

    offer: Offer
    others: Others = ALONE

    def beside(self, labels: Mapping[str, Any]) -> list[Tenant]:
        """The workloads of its namespace in the same run with the first text of LABELS; without one, all of them."""
        pods = self.others.pods.get(self.namespace, [])
        if first := next(((str(key), value) for key, value in labels.items() if isinstance(value, str)), None):
            pods = self.others.labelled.get((self.namespace, *first), [])
        return [Tenant(body, path, pod, self.offer, whole) for body, path, pod, whole in pods]

    @property
    def group(self) -> str:
        """Its API group, "" for the core one."""
        return str(self.body.get("apiVersion")).rpartition("/")[0]


def namespace_of(body: Body) -> str:
    """The namespace of BODY, "default" where it says none."""
    return str(node(body, ("metadata", "namespace")) or "default")


def concerned(body: Body) -> bool:
    """Whether rules have to do with BODY although it may have no pods."""
    group, kind = str(body.get("apiVersion")).rpartition("/")[0], str(body.get("kind"))
    return (group, kind) in {*QUOTAS, BUDGET, SCRIPTS} or any(f".{group}".endswith(f".{one}") for one in GROUPS)


def findings(
    body: Body, pods: Iterable[tuple[Path, dict[str, Any], bool]], offer: Offer, others: Others = ALONE
) -> Iterator[Finding]:
    """What rules over tenants' manifests say about BODY with PODS (`pods_in`), by OFFER, beside OTHERS of its run."""
    for rule in rules_over("manifest"):
        yield from rule.findings(TenantObject(body, offer, others))
    for tenant in tenants_of(body, pods, offer):
        for rule in rules_over("workload"):
            yield from rule.findings(tenant)


def asked(container: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """The resources of NVIDIA that CONTAINER asks for: how many, and whether under limits or requests."""
    numbers: dict[str, tuple[int, str]] = {}
    for part in ("requests", "limits"):
        for name, amount in mapping(mapping(container.get("resources")).get(part)).items():
            if NVIDIA in str(name).lower():
                numbers[str(name)] = amount_of(amount), part
    return numbers


def place_of(tenant: Tenant, name: str) -> str:
    """Where TENANT asks for the resource NAME first."""
    for place, container in tenant.containers:
        if name in asked(container):
            return tenant.inside(place, "resources", asked(container)[name][1], name)
    return tenant.at()


def pods_in(body: Body) -> list[tuple[Path, dict[str, Any], bool]]:
    """Where pods stand in BODY, what stands there, and whether it is a whole PodSpec. See `Tenant.whole`."""
    pods = [(path, pod, True) for path, pod in _pods(body, (), set())]
    known = KINDS.get((str(body.get("apiVersion")).rpartition("/")[0], str(body.get("kind"))))
    if known is None:
        loose = _loose(body["spec"], ("spec",), {id(pod) for _, pod, _ in pods}) if "spec" in body else ()
        pods += [(path, {"containers": [part]}, False) for path, part in loose]
    elif not pods:  # whose containers aren't a list: a rule says so
        pod = node(body, known)
        pods += [(known, pod, True)] if isinstance(pod, dict) else []
    return pods


def tenants_of(body: Body, pods: Iterable[tuple[Path, dict[str, Any], bool]], offer: Offer) -> Iterator[Tenant]:
    """The PODS of BODY (`pods_in`) beside what a cluster offers."""
    return (Tenant(body, path, pod, offer, whole) for path, pod, whole in pods)


def _pods(value: Any, path: Path, seen: set[int]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The PodSpecs below VALUE: mappings with a list of containers that have names.

    What aliases repeat is one value of which SEEN has the id, and is looked at where it stands first: a file of a few
    lines may stand for a million values."""
    if id(value) in seen or not isinstance(value, dict | list):
        return
    seen.add(id(value))
    if isinstance(value, dict):
        containers, marks = value.get("containers"), {"image", "resources", "name"}
        if isinstance(containers, list) and any(isinstance(each, dict) and marks & each.keys() for each in containers):
            yield path, value
            return
    for key, item in children(value):
        if key not in {"metadata", "status"} or not path:
            yield from _pods(item, (*path, key), seen)


def _loose(value: Any, path: Path, seen: set[int]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Mappings below VALUE that ask for NVIDIA's resources as containers do. SEEN: ids of pods, aliases (`_pods`)."""
    if id(value) in seen or not isinstance(value, dict | list):
        return
    seen.add(id(value))
    if isinstance(value, dict) and asked(value):
        yield path, value
    for key, item in children(value):
        yield from _loose(item, (*path, key), seen)
