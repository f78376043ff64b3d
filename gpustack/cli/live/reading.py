"""One look at a cluster, by the reconciler's own code: what it would do, and what every node waits for.

Nothing is written, whatever that code asks for: the client here lists, and tries evictions without evicting.
"""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from ...api import keys
from ...api.node_policy import NodePolicy
from ...api.objects import Object
from ...model import grouped
from ...reconciler.core.bounds import span
from ...reconciler.core.snapshot import Snapshot
from ...reconciler.core.view import ours, selects, views
from ...reconciler.shell import cluster as api
from ...reconciler.shell.cluster import NODES, PODS, POLICIES, ApiError, Forbidden, Kind, Selection
from ..refusals import refusal
from . import connect, files

if TYPE_CHECKING:
    from ...reconciler.core.actions import Action
    from ...reconciler.core.engine import Outlook
    from ...reconciler.shell.lease import Elector

T = TypeVar("T", bound=Object)

CLOSER = 50
"""How many nodes with something due are looked at more closely: their pods, and a trial of their evictions."""
TRIALS = 500
PASSES = 3
"""Passes that only note something on nodes, past which a plan before a sync looks: whose they are, their labels."""

SHARING: Mapping[str, Kind[Any]] = {"maintenance-leases": api.LEASES, "kured": api.DAEMONSETS}
"""Options of the reconciler by which it minds who else works on nodes, and what it looks at then."""


@dataclass
class Reader:
    """A client that can't change anything. What its user may not read is missing, and noted."""

    cluster: api.Source
    notes: dict[str, None] = field(default_factory=dict)

    async def list(self, kind: Kind[T], which: Selection = api.EVERYTHING) -> api.Listing[T]:
        """As the cluster says."""
        try:
            return await self.cluster.list(kind, which)
        except api.NotFound:
            if kind.plural != POLICIES.plural:
                raise
            raise refusal("GPU933", "no policies") from None
        except Forbidden as error:
            if kind.plural == PODS.plural and which.fields:
                self.notes[f"pods of nodes can't be read, so what uses their GPUs isn't known: {error}"] = None
            raise

    async def create(self, kind: Kind[T], body: api.Body, *, dry_run: bool = False, **where: str) -> api.Answer:
        """Refused, but for the trial of an eviction. Who may not even try is told so once."""
        if not dry_run:
            raise ApiError(f"no {kind.name} is to be created here")
        try:
            return await self.cluster.create(kind, body, dry_run=True, **where)
        except Forbidden as error:
            self.notes[f"evictions can't be tried, so disruption budgets aren't known: {error}"] = None
            return api.Answer()

    def watch(self, kind: Kind[T], *_: object) -> AsyncGenerator[api.Change[T], None]:
        """Refused, as all that follows: this is one look."""
        raise ApiError(f"{kind.plural} are not to be watched here")

    async def patch(self, kind: Kind[T], name: str, *_: object, **__: object) -> api.Answer:
        """Refused."""
        raise ApiError(f"{kind.plural} {name} is not to be changed here")

    async def delete(self, kind: Kind[T], name: str, **_: object) -> None:
        """Refused."""
        raise ApiError(f"{kind.plural} {name} is not to be deleted here")


@dataclass(frozen=True)
class Look:
    """A cluster at one moment, and what the reconciler would make of it."""

    namespace: str
    known: Snapshot
    outlook: Outlook
    """Of the nodes as they are once whom they belong to has been noted on them."""
    actions: Sequence[Action]
    """What a pass would do now."""
    leader: str
    """Who leads; "" for nobody."""
    notes: tuple[str, ...]
    """What is not known, and why."""

    @property
    def head(self) -> dict[str, Any]:
        """What each report says first, for --format json: who leads, whether all is paused, what is not known."""
        paused, notes = self.known.paused or None, list(self.notes)
        return {"namespace": self.namespace, "leader": self.leader or None, "paused": paused, "notes": notes}

    @property
    def waits(self) -> Mapping[str, list[tuple[str, str]]]:
        """Why nothing happens on a node: kinds and texts, by node."""
        return grouped((wait.node, (wait.kind, wait.message)) for wait in self.outlook.decision.waits)


def look(options: argparse.Namespace, *, everybody: bool = False) -> Look:
    """What OPTIONS say to look at; EVERYBODY: with the pods of all nodes, and trials of their evictions."""
    if not connect.files_stand_in(options):
        return connect.run(options, lambda cluster: looked(cluster, options.namespace, everybody=everybody))
    dump = files.load(options.sources)
    space = options.namespace or dump.namespace or connect.DEFAULT_NAMESPACE
    return connect.waited(looked(dump.cluster, space, dump.missing, synced=bool(dump.rendered), everybody=everybody))


async def looked(
    cluster: api.Source, asked: str, notes: list[str] | None = None, *, synced: bool = False, everybody: bool = False
) -> Look:
    """A look at CLUSTER. One as a sync would leave it is shown without what goes before that sync takes effect: an
    operator that still runs, nodes that nobody has taken over from it."""
    from ...reconciler.core import engine
    from ...reconciler.core.engine import Wanted
    from ...reconciler.shell.clock import Clock
    from ...reconciler.shell.gather import Bounds, Sources
    from ...reconciler.shell.lease import Elector
    from ...reconciler.shell.log import Log

    reader, clock, log = Reader(cluster), Clock(), Log("error", io.StringIO())
    await reader.list(POLICIES)  # first, since its absence has a message of its own
    space = await connect.namespace(reader, asked)
    leases, kured = await shared(reader, space, dumped=notes is not None)
    sources = Sources(reader, space, clock, log, bounds=Bounds(trials=TRIALS), maintenance=leases, kured=kured)
    await sources.refresh()
    elector = Elector(reader, space, "", clock, log)
    try:
        await elector.look()
    except Forbidden as error:
        reader.notes[f"the Lease can't be read, so it isn't known whether the fleet is paused: {error}"] = None
    base = sources.base(admitting=elector.announced, ledger=elector.ledger, paused=elector.paused)
    base = replace(base, away=elector.away)
    if synced and base.foreign:
        reader.notes[f"{base.foreign} still runs: nothing of this happens before it is scaled down"] = None
        base = replace(base, foreign="")
    first = base
    if synced:
        reader.notes.update(dict.fromkeys(unseen(base)))
    for _ in range(PASSES if synced else 1):
        base = engine.foreseen(base)
    wanted = engine.survey(base)
    due = [each.view.name for each in engine.outlook(base).order if not each.due.install][:CLOSER]
    if everybody:
        due = [view.name for view in views(base) if view.policy is not None and not view.unreadable]
    closer = Wanted(tuple(dict.fromkeys((*wanted.pods, *due))), tuple(dict.fromkeys((*wanted.candidates, *due))))
    known = await sources.closer(base, closer)
    now = engine.decide(replace(known, nodes=first.nodes, layouts=first.layouts))
    outlook = engine.outlook(known)
    holder = leader(elector, known.now)
    idle = f"no reconciler leads in namespace {space}: nothing of this happens before one does"
    said = ([] if holder else [idle]) if notes is None else notes
    return Look(space, known, outlook, now.actions, holder, (*said, *reader.notes))


async def shared(reader: Reader, space: str, *, dumped: bool) -> tuple[str, str]:
    """Where the reconciler sees who else works on nodes, by the options of its Deployment: the namespace of maintenance
    Leases, and kured's DaemonSet. What of that can't be read, or isn't in files that were DUMPED, is noted."""
    from ...reconciler.shell.lease import NAME

    found = (await reader.list(api.DEPLOYMENTS, Selection(space, fields=f"metadata.name={NAME}"))).items
    if not found:
        reader.notes[f"no Deployment {space}/{NAME} is there, so it isn't known by what others hold nodes"] = None
    containers = [each for one in found for each in (one.spec.template.get("spec") or {}).get("containers") or ()]
    words = "\n".join(str(word) for each in containers for word in each.get("args") or ())
    told = dict(re.findall(rf"^--({'|'.join(SHARING)})[=\n](.+)$", words, re.MULTILINE))
    made: dict[str, str] = {}
    for option, value in told.items():
        kind, (where, _, name) = SHARING[option], value.partition("/")
        try:
            there = (await reader.list(kind, Selection(where, fields=f"metadata.name={name}" if name else ""))).items
        except Forbidden as error:
            reader.notes[f"{value} can't be read, so it isn't known who else holds nodes: {error}"] = None
            continue
        made[option] = value
        if dumped and not there:
            how = f"kubectl get {kind.plural} -n {where} -o yaml"
            reader.notes[f"the files hold no {kind.name} of {value}, so nobody holds a node by it ({how})"] = None
    return made.get("maintenance-leases", ""), made.get("kured", "")


def unseen(known: Snapshot) -> Iterator[str]:
    """Notes of nodes that a rendered NodePolicy is for by all labels but those of node feature discovery, which has yet
    to label them: until then nobody knows what they have."""
    for policy in sorted(known.policies, key=lambda each: each.name):
        wanted = {key: text for key, text in policy.spec.nodeSelector.items() if not key.startswith(keys.FEATURES)}
        nodes = [each for each in known.nodes if wanted and selects(wanted, each.labels) and not ours(each)]
        if nodes:
            names = ", ".join(sorted(each.name for each in nodes)[:8]) + (", ..." if len(nodes) > 8 else "")
            yield f"no GPU has been discovered yet on nodes that NodePolicy {policy.name} is for: {names}"


def leader(elector: Elector, now: datetime) -> str:
    """Who holds the Lease and has lately said so; "" for nobody."""
    spec = elector.seen.spec if elector.seen else None
    if spec is None or not spec.holderIdentity or not spec.renewTime:
        return ""
    try:
        renewed = datetime.fromisoformat(spec.renewTime)
    except ValueError:
        return ""
    lately = renewed.tzinfo is not None and now - renewed < span(2 * (spec.leaseDurationSeconds or 30))
    return spec.holderIdentity if lately else ""


async def node(cluster: api.Cluster, name: str) -> Any:
    """The node NAME. Raises InputError with the nearest names."""
    plain = re.fullmatch(r"[A-Za-z0-9.-]*", name)  # anything else would be more than a name to a field selector
    nodes = (await cluster.list(NODES, Selection(fields=f"metadata.name={name}"))).items if plain else ()
    if not nodes:
        every = (await cluster.list(NODES)).items
        raise connect.unknown("node", name, [each.name for each in every])
    return nodes[0]


async def policy(cluster: api.Cluster, name: str) -> NodePolicy:
    """The NodePolicy NAME, which one of its pools may be called, too. Raises InputError with the nearest names."""
    policies = (await Reader(cluster).list(POLICIES)).items
    named = [each for each in policies if each.name == name] or [each for each in policies if name in each.spec.pools]
    if not named:
        pools = [pool for each in policies for pool in each.spec.pools]
        raise connect.unknown("NodePolicy", name, [*(each.name for each in policies), *pools])
    return named[0]
