"""What a pass needs to know, read in a bounded number of requests.

What changes often or is small is watched: nodes, policies, driver DaemonSets and their revisions, the operands' pods,
Deployments of our namespace. Pods of nodes are listed when a pass asks for a node, consistently, since no cache of
30,000 pods is worth its memory (reconciler.md 6.8). What could not be read is missing in the snapshot, and nothing else
is: a node that can't be asked delays no other.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from ...api import keys
from ...api.objects import Deployment, Object
from ...api.pods import ControllerRevision, DaemonSet, Pod
from ..core import engine, evictions
from ..core.engine import Wanted
from ..core.layouts import read_layouts
from ..core.others import PREFIX
from ..core.pods import to_evict
from ..core.record import Entry
from ..core.snapshot import Announced, DriverSet, Kept, Precheck, Seen, Snapshot
from ..core.view import operations, uses_of, view
from . import cluster
from .clock import Clock
from .cluster import ApiError, Cluster, Kind, NotFound, Selection
from .lean import Interest, free_claims, interest
from .log import Log
from .refusals import UNTRIED, Refusals, by_budget, evict, unheard, why
from .watch import Sleep, Watch

DRIVER = "app.kubernetes.io/component=nvidia-driver"
VALIDATOR, OTHER_VALIDATOR = "nvidia-operator-validator", "nvidia-sandbox-validator"
VALIDATORS = f"app in ({VALIDATOR},{OTHER_VALIDATOR})"
"""Of nodes for containers, those with DRA included, and of nodes for virtual machines."""
MIG_MANAGER = "app=nvidia-mig-manager"
OPERATOR = "gpu-operator"
"""Name of the operator's Deployment, and its label app.kubernetes.io/component."""

COUNTED_FOR = timedelta(minutes=3)
"""How long it is remembered how many pods use a node's GPUs: for the order of a roll-out alone. Longer than the minute
after which a pass looks again where nothing happens, as a node is counted in one and begun in the next."""

A = TypeVar("A")
T = TypeVar("T", bound=Object)


@dataclass(frozen=True)
class Bounds:
    """Limits of a pass."""

    parallel: int = 8
    """Requests at a time."""
    trials: int = 100
    """Dry-run evictions in all."""
    blockers: int = 3
    """Refusals after which a node's trial is over."""


@dataclass
class Sources:
    """The watches, and the snapshots made of them."""

    cluster: Cluster
    namespace: str
    clock: Clock
    log: Log
    changed: Callable[[], None] = lambda: None
    sleep: Sleep = asyncio.sleep
    maintenance: str = ""
    """The namespace of the Leases by which maintenance is shared; "" where none are kept."""
    kured: str = ""
    """Namespace and name of kured's DaemonSet, whose lock counts; "" where it doesn't."""
    bounds: Bounds = Bounds()
    refusals: Refusals = field(default_factory=Refusals)
    seen: Seen = field(default_factory=Seen)
    watches: list[Watch[Any]] = field(default_factory=list, init=False)
    """All of them."""
    _claims: str = "v1"
    _used: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    _read: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        inside = self.namespace
        self.nodes = self._watch(cluster.NODES, Selection())
        self.policies = self._watch(cluster.POLICIES, Selection())
        self.daemon_sets = self._watch(cluster.DAEMONSETS, Selection(inside, DRIVER))
        self.revisions = self._watch(cluster.REVISIONS, Selection(inside, DRIVER))
        self.deployments = self._watch(cluster.DEPLOYMENTS, Selection(inside))
        self.drivers = self._watch(cluster.PODS, Selection(inside, DRIVER))
        self.validators = self._watch(cluster.PODS, Selection(inside, VALIDATORS))
        self.mig_managers = self._watch(cluster.PODS, Selection(inside, MIG_MANAGER))
        layouts = Selection(inside, fields=f"metadata.name={keys.LAYOUTS}")
        self.layouts = self._watch(cluster.CONFIG_MAPS, layouts)
        self.pullers = self._watch(cluster.PODS, Selection(inside, keys.IMAGES))

        shared = Selection(self.maintenance)
        self.shared = self._watch(cluster.LEASES, shared) if self.maintenance else None
        where, _, name = self.kured.partition("/")
        locks = Selection(where, fields=f"metadata.name={name}")
        self.locks = self._watch(cluster.DAEMONSETS, locks) if self.kured else None

    def _watch(self, kind: Kind[T], which: Selection) -> Watch[T]:
        made = Watch(self.cluster, kind, which, self.clock, self.log, self.changed, self.sleep)
        self.watches.append(made)
        return made

    @property
    def synced(self) -> bool:
        """Whether each has been listed."""
        return all(watch.synced for watch in self.watches)

    async def refresh(self) -> None:
        """List everything now: for a single pass, without a watch."""
        for watch in self.watches:
            await watch.refresh()

    def base(
        self,
        *,
        admitting: Mapping[str, Announced] | None = None,
        ledger: Mapping[str, Entry] | None = None,
        paused: str = "",
    ) -> Snapshot:
        """What is known without a request. The prechecks are those that are not to be repeated yet."""
        now, nodes, validators = self.clock.now(), self.nodes.all(), self.validators.all()
        shared = [each for each in self.shared.all() if each.name.startswith(PREFIX)] if self.shared else []
        self.refusals.forget(now)
        pods = self.refusals.pods
        remembered = ((node.name, self.refusals.blocked(node.uid, now)) for node in nodes if self.refusals.nodes)
        return Snapshot(
            now=now,
            namespace=self.namespace,
            nodes=nodes,
            policies=self.policies.all(),
            driver_sets=driver_sets(self.daemon_sets.all(), self.revisions.all()),
            driver_pods=by_node(self.drivers.all()),
            pullers=by_node(self.pullers.all()),
            validators=by_node(pod for pod in validators if pod.labels.get("app") == VALIDATOR),
            sandbox_validators=by_node(pod for pod in validators if pod.labels.get("app") == OTHER_VALIDATOR),
            mig_managers=by_node(self.mig_managers.all()),
            prechecks={name: precheck for name, precheck in remembered if precheck is not None},
            admitting=dict(admitting or {}),
            ledger=ledger,
            read=self._read,
            used=self._fresh(now),
            refused=self.refusals.refused(now),
            setbacks=self.refusals.setbacks(),
            layouts=next((read_layouts(each) for each in self.layouts.all()), None),
            maintenance={each.name.removeprefix(PREFIX): each for each in shared} if self.shared else None,
            kured=next(iter(self.locks.all()), None) if self.locks else None,
            paused=paused,
            foreign=foreign(self.deployments.all()),
            seen=self.seen,
            backoff={uid: each.until for uid, each in pods.items()},
            came_again=self.refusals.came_again(),
            refusals={uid: each.text for uid, each in pods.items()},
            by_budgets=frozenset(uid for uid, each in pods.items() if each.budget),
            kept=self.kept,
        )

    async def closer(self, known: Snapshot, wanted: Wanted) -> Snapshot:
        """KNOWN with what is WANTED besides."""
        nodes = tuple(dict.fromkeys((*wanted.pods, *wanted.candidates)))
        of = looked_at(known).pods()
        lists = await self._each(nodes, lambda node: self._pods(of, node))
        listed = dict(zip(nodes, lists, strict=True))
        pods = {node: each for node, each in listed.items() if not isinstance(each, str)}
        unread = {node: each for node, each in listed.items() if isinstance(each, str)}
        held = await self._held(pods.values())
        known = replace(known, pods=pods, unread=unread, claims=held, kept=wanted.kept)
        read = self._read | {node.uid: known.now for node in known.nodes if node.name in listed}
        self._read = {node.uid: read[node.uid] for node in known.nodes if node.uid in read}
        self._count(known)
        prechecks = {**known.prechecks, **await self._try(known, wanted.candidates)}
        return replace(known, used=self._fresh(known.now), prechecks=prechecks)

    def _count(self, known: Snapshot) -> None:
        """Remember for a while how many pods use a GPU of the nodes whose pods KNOWN has."""
        for node in known.nodes:
            if (listed := known.pods.get(node.name)) is not None:
                using = to_evict(listed, uses_of(known, view(known, node)))
                self._used[node.uid] = len(using), known.now
            elif node.name in known.unread:  # whose pods nobody can count goes last, and takes no other's place
                self._used[node.uid] = sys.maxsize, known.now

    def _fresh(self, now: datetime) -> Mapping[str, int]:
        self._used = {uid: each for uid, each in self._used.items() if now - each[1] < COUNTED_FOR}
        return {uid: count for uid, (count, _) in self._used.items()}

    async def _pods(self, kind: Kind[Pod], node: str) -> tuple[Pod, ...] | str:
        """The pods of NODE, or why they could not be read."""
        try:
            listing = await self.cluster.list(kind, Selection(fields=f"spec.nodeName={node}"))
        except ApiError as error:
            self.log.warning("pods of a node could not be read", node=node, error=str(error))
            return str(error)
        self.clock.observe(listing.date)
        return listing.items

    async def _held(self, pods: Iterable[Sequence[Pod]]) -> frozenset[str]:
        """Of the claims that PODS have, those that hold a GPU, and those that can't be read."""
        names: dict[str, set[str]] = {}
        for pod in (pod for of in pods for pod in of):
            names.setdefault(pod.metadata.namespace, set()).update(pod.claims)
        spaces = sorted(namespace for namespace, of in names.items() if of)
        held: set[str] = set()
        lists = await self._each(spaces, lambda space: self._free_claims(space, names[space]))
        for namespace, free in zip(spaces, lists, strict=True):
            held |= {f"{namespace}/{name}" for name in names[namespace] - free}
        return frozenset(held)

    async def _free_claims(self, namespace: str, names: Collection[str]) -> set[str]:
        """Which claims of NAMESPACE, of these NAMES, hold no GPU: in the newest version of their API that is served."""
        for version in dict.fromkeys((self._claims, "v1", "v1beta2", "v1beta1")):
            try:
                listing = await self.cluster.list(free_claims(names, version), Selection(namespace))
            except NotFound:
                continue
            except ApiError as error:
                self.log.warning("claims could not be read", namespace=namespace, error=str(error))
                return set()
            self._claims = version
            return {claim.name for claim in listing.items}
        return set()

    async def _try(self, known: Snapshot, candidates: Sequence[str]) -> dict[str, Precheck]:
        """Try the evictions of CANDIDATES, without evicting. A node that had no turn is not in it."""
        checks: dict[str, Precheck] = {}
        names, left = set(candidates) - known.prechecks.keys(), self.bounds.trials
        nodes = {node.name: node for node in known.nodes if node.name in names}
        todo: list[tuple[str, Sequence[Pod]]] = []
        for name in (name for name in dict.fromkeys(candidates) if name in nodes):
            if name not in known.pods:
                unknown = f"its pods could not be read: {known.unread.get(name, 'nobody has asked')}"
                checks[name] = self.refusals.block(nodes[name].uid, Precheck(unknown=unknown), known.now)
                continue
            seen = view(known, nodes[name])
            pods, obstacles = engine.trial(known, seen)
            if obstacles:
                check = Precheck(tuple(obstacles), budgets=evictions.budgets_alone(seen, obstacles))
                checks[name] = self.refusals.block(nodes[name].uid, check, known.now)
            elif not todo or len(pods) <= left:
                left -= len(pods)
                todo.append((name, pods))
        for (name, _), check in zip(todo, await self._each(todo, self._blockers), strict=True):
            if check.blockers or check.unknown:
                checks[name] = self.refusals.block(nodes[name].uid, check, known.now)
            else:
                self.refusals.clear(nodes[name].uid)
                checks[name] = check
        return checks

    async def _blockers(self, of: tuple[str, Sequence[Pod]]) -> Precheck:
        blockers: list[str] = []
        budgets = True
        for pod in of[1]:
            if len(blockers) >= self.bounds.blockers:
                break
            try:
                await evict(self.cluster, pod, dry_run=True)
            except NotFound:
                continue
            except ApiError as error:
                if UNTRIED in str(error):
                    continue  # whether it lets the pod go is known once the pod is told to
                if unheard(error):
                    return Precheck(unknown=f"whether {pod.key} can be evicted is not known: {error}")
                blockers.append(f"{pod.key}: {why(error)}")
                budgets = budgets and by_budget(error)
        return Precheck(tuple(blockers), budgets=budgets and bool(blockers))

    async def _each(self, of: Sequence[Any], call: Callable[[Any], Awaitable[A]]) -> list[A]:
        """CALL for each, several at a time."""
        slots = asyncio.Semaphore(self.bounds.parallel)

        async def one(item: Any) -> A:
            async with slots:
                return await call(item)

        return list(await asyncio.gather(*(one(item) for item in of)))


def looked_at(known: Snapshot) -> Interest:
    """What decides about a pod besides what always does: the selectors and resources of policies and open records."""
    texts: set[str] = set()
    resources: set[str] = set()
    for policy in known.policies:
        texts |= {policy.spec.upgrade.drain.podSelector, policy.spec.upgrade.waitForCompletion.podSelector}
        resources |= policy.spec.gpu.resources.keys()
        texts |= {rule.podSelector for rule in policy.spec.upgrade.podRules or ()}
    for operation in operations(known).values():
        texts |= {rule.podSelector for rule in operation.finish.podRules}
        texts |= {operation.finish.drain.podSelector, operation.finish.wait.podSelector}
        resources |= operation.finish.resources.keys()
    return interest(texts, resources)


def driver_sets(sets: Iterable[DaemonSet], revisions: Iterable[ControllerRevision]) -> tuple[DriverSet, ...]:
    """Each DaemonSet with the hash of its newest revision; without, while its controller has not seen its template.

    Revisions belong to a DaemonSet by UID: another one's name may begin with its name (reconciler.md T3)."""
    owned: dict[str, list[ControllerRevision]] = {}
    for each in revisions:
        if (owner := each.metadata.controller) is not None:
            owned.setdefault(owner.uid, []).append(each)
    made = []
    for of in sets:
        newest = max(owned.get(of.uid, ()), key=lambda each: each.revision, default=None)
        mark = ""
        if newest is not None and of.status.observedGeneration >= of.metadata.generation:
            mark = newest.labels.get(keys.HASH) or newest.name.removeprefix(f"{of.name}-")
        made.append(DriverSet(of, mark))
    return tuple(made)


def by_node(pods: Iterable[Pod]) -> Mapping[str, Sequence[Pod]]:
    """PODS by the node that they are on; "" for those that no scheduler has put on any."""
    placed: dict[str, list[Pod]] = {}
    for pod in pods:
        placed.setdefault(pod.spec.nodeName, []).append(pod)
    return placed


def foreign(deployments: Iterable[Deployment]) -> str:
    """The operator that runs beside us; "" where none does."""
    for each in deployments:
        ours = each.name == OPERATOR or each.labels.get("app.kubernetes.io/component") == OPERATOR
        if ours and int(each.status.get("readyReplicas") or 0) > 0:
            return f"{each.metadata.namespace}/{each.name}"
    return ""
