"""gpustack bootstrap: the root object that a person applies once, so that a GitOps engine syncs the rest.

Prints it and applies nothing. Flux has a root for each cluster: in the cluster itself or, where one Flux serves many
(`kubeConfig`), side by side. One Argo CD may serve many clusters too: without a name, the root is that of all of them,
where they agree on what it needs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..compiler import fleet
from ..model import InputError, docs, printable
from ..text.emit import emit
from . import common
from .refusals import said

if TYPE_CHECKING:
    from ..gitops.plan import Plan


def run(options: argparse.Namespace) -> int:
    paths = [common.select_one(options.cluster)] if options.cluster else common.select([])
    options.own_version = True  # roots are applied once, by hand
    with common.project(options) as project:
        sources = fleet.compiled(project, paths)
        known = {source.name: fleet.stack_of(project, source).plan for source in sources}
    from ..gitops.plan import Plan

    plans = {name: Plan.model_validate(plan) for name, plan in known.items() if plan is not None}
    if not plans:
        whose = f"the policy of {options.cluster} names no" if options.cluster else "no policy names an"
        raise InputError(said("GPU038", whose=whose, page=docs("gitops.md")))
    printed = plans if options.cluster else to_print(plans)
    sys.stdout.write("---\n".join(document(plan, cluster) for cluster, plan in printed.items()))
    return 0


def to_print(plans: Mapping[str, Plan]) -> Mapping[str, Plan]:
    """The roots of PLANS by cluster; "" is all of them in one, also where there is one cluster so far: the root is
    applied once, and others come. Raises InputError where they have none in common."""
    roots = {plan.engine.rooted(plan) for plan in plans.values()}
    if roots == {"beside"} or (len(plans) == 1 and roots != {"shared"}):
        return plans
    needed = {
        (plan.engine.name, plan.engine.namespace(plan.settings), plan.settings.repository.model_dump_json())
        for plan in plans.values()
    }
    if len(needed) > 1 or roots != {"shared"}:
        raise InputError(said("GPU039", count=len(plans), names=common.some(plans)))
    return {"": next(iter(plans.values()))}


def document(plan: Plan, cluster: str) -> str:
    """The root of PLAN for CLUSTER, or for all of them, as text to apply."""
    from ..gitops.plan import roots

    inside = cluster and plan.engine.runs_inside(plan)
    where = f"the cluster {cluster}" if inside else f"the cluster in which {plan.engine.title} runs"
    what = printable(plan.of(cluster).url if plan.oci else plan.path(plan.folder(cluster)))
    pushed = "is pushed" if plan.oci else "is committed and pushed"
    often = "once, and again when it changes" if plan.oci else "once"
    head = (
        f"# Syncs {what}, once that {pushed}. To be applied {often}, to {where}:\n"
        f"#   gpustack bootstrap{f' {cluster}' if cluster else ''} | kubectl apply --server-side -f -\n"
    )
    return head + "---\n".join(
        f"# {plan.engine.kinds[body['kind']].says}\n{emit(body)}" for body in roots(plan, cluster)
    )
