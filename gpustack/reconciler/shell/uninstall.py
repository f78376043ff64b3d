"""Give every node back: what the program put there goes, from whatever phase (reconciler.md I25, T23).

Cordons that are ours are lifted, marks and records removed. The labels that make operands run stay on nodes where pods
use GPUs, and go elsewhere unless they are to be kept, or others set them. Values that others wrote stay, as do people's
own keys. The Lease is held meanwhile, so that no replica works against it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...api import keys
from ...api.pods import Pod
from ..core.actions import PatchNode
from ..core.engine import Wanted
from ..core.layouts import named
from ..core.moves import release
from ..core.snapshot import Snapshot
from ..core.view import View, uses_of, views
from .cluster import LEASES, NODES, ApiError, Cluster, Conflict, NotFound, TooMany, Unreachable
from .gather import Sources
from .lease import NAME, Elector
from .log import Log

MARKS = (keys.OPERATION, keys.LAST, keys.MEMORY, keys.CORDONED, keys.FENCE, keys.REQUESTED)
"""Our annotations."""


@dataclass
class Uninstalled:
    """What was done, and what is left with the reason."""

    released: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    labelled: dict[str, str] = field(default_factory=dict)
    """Nodes that were released and keep labels of ours, and why."""


def release_node(known: Snapshot, view: View, pods: Sequence[Pod] | None, *, keep_labels: bool) -> PatchNode | None:
    """The one write that gives a node back; None where nothing of ours is there. PODS: None where they are unknown."""
    annotations: dict[str, str | None] = {}
    unschedulable: bool | None = None
    if view.operation is not None:
        made = release(known, view, view.operation, "uninstalled", failed=False)
        annotations, unschedulable = dict(made.annotations), made.unschedulable
    elif keys.CORDONED in view.annotations and view.node.spec.unschedulable:
        unschedulable = False
    annotations |= dict.fromkeys(MARKS)
    annotations = {key: value for key, value in annotations.items() if key in view.annotations}
    names = {keys.PHASE} | (set() if keep_labels or in_use(known, view, pods) else own_labels(view))
    labels: dict[str, str | None] = dict.fromkeys(sorted(names & view.labels.keys()))
    foreign = view.policy is not None and not view.policy.spec.labelling
    if keys.UPGRADES_ENABLED in view.annotations and (foreign or labels.keys() - {keys.PHASE}):
        annotations[keys.UPGRADES_ENABLED] = None
    if not labels and not annotations and unschedulable is None:
        return None
    return PatchNode(*view.seen, "uninstalled", labels, annotations, unschedulable)


def in_use(known: Snapshot, view: View, pods: Sequence[Pod] | None) -> str:
    """Why labels of ours have to stay on the node; "" where they may go."""
    if pods is None:
        return "its pods could not be read, and one may use a GPU"
    uses = uses_of(known, view)
    using = next((pod for pod in pods if uses.gpu(pod)), None)
    return f"{using.key} uses a GPU, and would lose the driver" if using else ""


def own_labels(view: View) -> set[str]:
    """Labels of the node for operands whose values are ours."""
    spec = view.policy.spec if view.policy else None
    cut = spec is not None and spec.mig is not None and view.labels.get(keys.MIG_CONFIG) == spec.mig.config
    own = {keys.MIG_CONFIG} if cut else set()
    if spec and not spec.labelling:
        return own
    own |= {key for key, value in spec.labels.items() if view.labels.get(key) == value} if spec else set()
    operands = (key for key, value in view.labels.items() if value == "true")
    return own | {key for key in operands if key == keys.PRESENT or key.startswith(keys.DEPLOY)}


async def uninstall(
    cluster: Cluster, sources: Sources, elector: Elector, log: Log, *, keep_labels: bool = False, tries: int = 5
) -> Uninstalled:
    """Release every node. Raises `ApiError` where a replica still leads: the Deployment is to be removed first."""
    await elector.step()
    if not elector.leading:
        holder = elector.seen.spec.holderIdentity if elector.seen else ""
        raise ApiError(f"{holder} still leads: remove the reconciler's Deployment, and wait until its pods are gone")
    made = Uninstalled()
    todo: Iterable[str] | None = None
    try:
        for _ in range(tries):
            await elector.step()
            await sources.refresh()
            todo = await _round(cluster, sources, made, todo, keep_labels=keep_labels)
            if not todo:
                break
        for name in todo or ():
            made.left[name] = "it changed each time that it was written"
        for name in made.released:
            log.info("released", node=name)
        if not made.left:  # nobody needs the Lease any more
            try:
                await cluster.delete(LEASES, NAME, namespace=elector.namespace)
            except NotFound:
                log.debug("the Lease is gone already")
            elector.seen = None
    finally:
        await elector.give_up()
    return made


async def _round(
    cluster: Cluster, sources: Sources, made: Uninstalled, only: Iterable[str] | None, *, keep_labels: bool
) -> list[str]:
    """Write once to each node that needs it; the names of those that were changed by somebody else meanwhile."""
    known = named(sources.base())
    ours = [view for view in views(known) if only is None or view.name in set(only)]
    known = await sources.closer(known, Wanted(tuple(view.name for view in ours)))
    again = []
    for view in ours:
        if view.unreadable:
            made.left[view.name] = f"its record can't be read, so whose its cordon is isn't known: {view.unreadable}"
            continue
        pods = known.pods.get(view.name)
        if not keep_labels and own_labels(view) and (why := in_use(known, view, pods)):
            made.labelled[view.name] = why
        action = release_node(known, view, pods, keep_labels=keep_labels)
        if action is None:
            continue
        try:
            await cluster.patch(NODES, action.node, action.body())
        except NotFound:
            continue
        except (Conflict, TooMany):
            again.append(view.name)
            continue
        except Unreachable:
            raise
        except ApiError as error:  # a policy or a webhook refuses this one
            made.left[view.name] = f"the API server refuses: {error}"
            continue
        made.released.append(view.name)
    return again
