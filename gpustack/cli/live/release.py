"""gpustack reconciler uninstall: what stands before it, and what it comes to."""

import asyncio
import io
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...api import keys
from ...model import InputError
from ...reconciler.core.view import views
from ...reconciler.shell.clock import Clock
from ...reconciler.shell.cluster import DEPLOYMENTS, POLICIES, Cluster, Selection
from ...reconciler.shell.gather import Sources
from ...reconciler.shell.lease import NAME, Elector
from ...reconciler.shell.log import Log
from ...reconciler.shell.uninstall import Uninstalled, uninstall
from ..common import counted
from . import connect, reading

WAIT = 2.0
"""Seconds between two looks at a Lease that somebody still holds."""


@dataclass
class Released:
    """What came of it."""

    namespace: str
    made: Uninstalled
    policies: list[str]

    @property
    def remains(self) -> list[str]:
        """What a person still has to do."""
        unread = "gpustack rollout retry NODE --discard-record gives up a record that can't be read; run it again then"
        labels = "run it again once those pods are gone, to remove the labels, or keep them for what labels next"
        policies = f"NodePolicies are still there, and do nothing on their own: {', '.join(self.policies)}"
        left = {unread: self.made.left, labels: self.made.labelled, policies: self.policies}
        return [text for text, there in left.items() if there]

    @property
    def data(self) -> dict[str, Any]:
        """For --format json."""
        done, kept = {"namespace": self.namespace, "released": sorted(self.made.released)}, self.made.labelled
        return {**done, "labelsKept": kept, "left": self.made.left, "nodePolicies": self.policies}


@dataclass
class Prepared:
    """An uninstallation that nothing stands against."""

    cluster: Cluster
    namespace: str
    sources: Sources
    elector: Elector
    nodes: int
    working: int
    keep_labels: bool

    @property
    def question(self) -> str:
        """What a person is asked."""
        labels = "keep" if self.keep_labels else "remove"
        work = f", {self.working} of them in the middle of an operation" if self.working else ""
        given = f"Give back {counted(self.nodes, 'node')}{work}"
        return f"{given}, and {labels} the labels by which the GPU stack runs there?"

    async def carry_out(self, tell: Callable[[str], None]) -> Released:
        """Take the Lease and release every node. TELL is told what is waited for."""
        try:
            if holder := await lead(self.elector, tell):
                raise _still(self.namespace, holder)
        except BaseException:
            await self.elector.give_up()
            raise
        made = await uninstall(self.cluster, self.sources, self.elector, self.sources.log, keep_labels=self.keep_labels)
        policies = sorted(each.name for each in (await reading.Reader(self.cluster).list(POLICIES)).items)
        return Released(self.namespace, made, policies)


async def lead(elector: Elector, tell: Callable[[str], None]) -> str:
    """Take the Lease of ELECTOR as soon as it is free: who was killed holds it for a while. Who holds it then; "" for
    us. TELL is told what is waited for."""
    for count in range(20):
        await elector.step()
        if elector.leading:
            return ""
        if count == 0 and (seen := elector.seen):
            tell(f"{seen.spec.holderIdentity} holds the Lease; it is seen whether it still runs, for up to 40 s")
        await asyncio.sleep(WAIT)
    return (elector.seen and elector.seen.spec.holderIdentity) or "somebody"


async def prepare(cluster: Cluster, asked: str, *, keep_labels: bool) -> Prepared:
    """See that no reconciler runs, and count what there is to do."""
    await reading.Reader(cluster).list(POLICIES)
    space = await connect.namespace(cluster, asked)
    for each in (await cluster.list(DEPLOYMENTS, Selection(space))).items:
        if each.name == NAME and (each.spec.replicas != 0 or each.status.get("replicas")):
            raise _still(space, f"Deployment {space}/{NAME}")
    clock, log = Clock(), Log("error", io.StringIO())
    sources = Sources(cluster, space, clock, log)
    await sources.refresh()
    ours = [
        view
        for view in views(sources.base())
        if view.labels.get(keys.PRESENT) or any(key.startswith(keys.DOMAIN) for key in view.annotations)
    ]
    elector = Elector(cluster, space, f"uninstall_{secrets.token_hex(4)}", clock, log)
    working = sum(view.operation is not None for view in ours)
    return Prepared(cluster, space, sources, elector, len(ours), working, keep_labels)


def _still(space: str, who: str) -> InputError:
    """The error for a reconciler that still runs."""
    what = f"the reconciler is still there ({who}), and would label the nodes again"
    command = f"kubectl -n {space} scale deployment {NAME} --replicas=0"
    remedy = f"stop it first, and wait until its pods are gone: spec.reconciler.replicas: 0 in the policy, or {command}"
    return InputError.of("GPU938", what, remedy=remedy)
