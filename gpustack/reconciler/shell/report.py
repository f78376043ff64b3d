"""What a pass means for the metrics, and a decision in words for `--plan`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from ...api import keys
from ...api.objects import Node
from ..core import record
from ..core.actions import Action, Decision, DeletePod, Evict, HoldLease, PatchNode, PatchStatus, WriteLayouts
from ..core.snapshot import Seen, Snapshot
from .metrics import Metrics


def show(metrics: Metrics, known: Snapshot, decision: Decision) -> None:
    """Set the gauges to what a pass found."""
    names = {policy.uid: policy.name for policy in known.policies}
    since: dict[tuple[str, ...], float] = {}
    operations: Counter[tuple[str, ...]] = Counter()
    for node in known.nodes:
        if (operation := _operation(node.annotations)) is None:
            continue
        labels = (names.get(operation.policy, ""), operation.kind, operation.phase)
        operations[labels] += 1
        since[node.name, *labels] = operation.since.timestamp()
    metrics.operations.replace(operations)
    metrics.since.replace(since)
    waiting: Counter[tuple[str, ...]] = Counter((wait.policy, wait.kind) for wait in decision.waits)
    metrics.waiting.replace(waiting)
    states = {policy.uid: policy.status for policy in known.policies}
    made = [each for each in decision.actions if isinstance(each, PatchStatus)]
    states |= {each.policy.uid: each.status for each in made if each.policy.uid in states}  # it may be gone by now
    nodes: dict[tuple[str, ...], float] = {}
    for uid, status in states.items():
        counts = {"all": status.nodes, "current": status.current}
        counts |= {"operating": status.operating, "quarantined": status.quarantined}
        counts["uncovered"] = waiting[names[uid], "not-covered"]
        nodes |= {(names[uid], state): float(count) for state, count in counts.items()}
    nodes["", "uncovered"] = float(waiting["", "membership"])
    metrics.nodes.replace(nodes)
    metrics.breaker.replace({(names[uid],): float(status.breaker.open) for uid, status in states.items()})


NOT_DUE = frozenset(
    "paused hold window manual skip auto-upgrade-off opt-out product unlabelled membership operator gpu-gone gpu-pods "
    "startup looking mig-busy quarantine unreadable not-covered breaker health health-limit".split()
)
"""What nodes wait for that somebody has chosen, that is nobody's work, or that has an alert of its own."""


def stand(metrics: Metrics, known: Snapshot, decision: Decision, done: Iterable[Action]) -> None:
    """Say since when something is due in a policy and no node of it has got on, in the time of KNOWN. Whoever was given
    back and begins again does not get on before it is past the point of no return, nor does who is tried in vain. That
    time stands still while no window is open."""
    due = {wait.policy for wait in decision.waits if wait.policy and wait.kind not in NOT_DUE}
    names = {policy.uid: policy.name for policy in known.policies}
    trying = {action.policy for action in decision.actions if isinstance(action, PatchNode)}
    due |= {name for uid, name in names.items() if uid in trying}
    before = {node.name: node.annotations for node in known.nodes}
    moved: set[str] = set()
    for action in done:
        if isinstance(action, PatchNode) and keys.OPERATION in action.annotations:
            old, new = _operation(before.get(action.node, {})), _operation(action.annotations)
            if operation := _gets_on(old, new, action):
                moved.add(names.get(operation.policy, ""))
    now, still, stood = known.now.timestamp(), metrics.still.values, metrics.stood.values
    closed = {wait.policy for wait in decision.waits if wait.kind == "window"} - due - moved
    lasted = {name: stood.get((name,), now - still.get((name,), now)) for name in closed | due - moved}
    metrics.stood.replace({(name,): lasted[name] for name in closed})
    metrics.still.replace({(name,): still.get((name,), now - lasted[name]) if name in lasted else now for name in due})


def _gets_on(old: record.Operation | None, new: record.Operation | None, action: PatchNode) -> record.Operation | None:
    """The operation that ACTION brings on, where the record OLD becomes NEW; None where it brings none on."""
    if new is None:
        last = record.readable(record.Last, action.annotations.get(keys.LAST))
        return old if last is not None and last.outcome == "done" else None
    first, other = new.attempt == 1 and not new.acted, old is None or old.phase != new.phase
    return new if other and (first or new.phase in {"Acting", "Verifying"}) else None


STILL = "still"
"""As what the time that `stand` says is handed on to the next leader."""


def standing(metrics: Metrics, now: datetime) -> dict[tuple[str, str], datetime]:
    """Since when each policy has stood, at the time NOW."""
    stood = {key: now.timestamp() - seconds for key, seconds in metrics.stood.values.items()}
    return {(name, STILL): datetime.fromtimestamp(at, UTC) for (name,), at in (metrics.still.values | stood).items()}


def stood(metrics: Metrics, times: Seen) -> None:
    """Policies stand since when the leader before has seen them stand."""
    metrics.still.replace({(name,): at.timestamp() for (name, what), at in times.first.items() if what == STILL})


def clear(metrics: Metrics) -> None:
    """Only the leader says how things stand: two replicas would be counted twice."""
    now = (metrics.operations, metrics.since, metrics.waiting, metrics.nodes, metrics.breaker)
    for gauge in (*now, metrics.still, metrics.stood):
        gauge.replace({})


def finished(metrics: Metrics, known: Snapshot, before: Mapping[str, Node], action: PatchNode, now: datetime) -> None:
    """Count an operation that ACTION ended: done, released, or given up for now."""
    node = before.get(action.node)
    operation = _operation(node.annotations) if node else None
    if operation is None or keys.OPERATION not in action.annotations:
        return
    after = _operation(action.annotations)
    if after is not None and (after.phase != "Quarantine" or operation.phase == "Quarantine"):
        return
    last = record.readable(record.Last, action.annotations.get(keys.LAST))
    outcome = "quarantine" if after is not None else last.outcome if last else ""
    names = {policy.uid: policy.name for policy in known.policies}
    seconds = max((now - operation.started).total_seconds(), 0.0)
    metrics.seconds.observe(seconds, names.get(operation.policy, ""), operation.kind, outcome)


def describe(decision: Decision) -> Iterable[str]:
    """What would be done, one line each, and who waits for what."""
    for action in decision.actions:
        yield _action(action)
    for tell in decision.tells:
        yield f"node {tell.node}: event {tell.reason}: {tell.message}"
    for wait in decision.waits:
        yield f"node {wait.node}: waits ({wait.kind}): {wait.message}"


def _action(action: Action) -> str:
    if isinstance(action, Evict | DeletePod):
        what = "evict" if isinstance(action, Evict) else "delete"
        return f"node {action.node}: {what} pod {action.namespace}/{action.name}: {action.why}"
    if isinstance(action, WriteLayouts):
        return f"ConfigMap {action.namespace}/{keys.LAYOUTS}: write the layouts that the MIG managers read"
    if isinstance(action, HoldLease):
        return f"node {action.node}: {'hold' if action.spec['holderIdentity'] else 'give back'} its maintenance Lease"
    if isinstance(action, PatchStatus):
        return f"NodePolicy {action.policy.name}: write its status"
    parts = [f"{key}={value}" if value is not None else f"{key}-" for key, value in sorted(action.labels.items())]
    if action.unschedulable is not None:
        parts.insert(0, "cordon" if action.unschedulable else "uncordon")
    return f"node {action.node}: {action.why}" + (f" [{', '.join(parts)}]" if parts else "")


def _operation(annotations: Mapping[str, str | None]) -> record.Operation | None:
    return record.readable(record.Operation, annotations.get(keys.OPERATION))
