"""gpustack nodes: what a pool's nodes are made with, as text for whoever makes them.

Prints what no render can bring: tags and options of node groups, and what is set up on hosts, in the form that their
system takes. Applies nothing and asks nobody.
"""

import argparse
import sys
from pathlib import Path

from ..policy.loading.load import load
from . import common
from .refusals import refusal

GROUP = "node-group"
"""What prints the node groups alone, as a form of a host prints hosts alone."""


def run(options: argparse.Namespace) -> int:
    from ..cluster.autoscaling import problems
    from ..cluster.node_host import asked, cannot, fitting
    from ..cluster.resolve import resolve
    from ..components.nodes import forms, groups

    loaded, told = load(common.select_one(options.cluster), root=Path.cwd()), list[tuple[str, str, str]]()
    known = resolve(loaded.spec).pools
    pools = [pool for pool in known if options.pool in (None, pool.name)]
    if options.pool and not pools:
        names = ", ".join(each.name for each in known) or "not in the policy"
        raise refusal("GPU095", "pool", pool=options.pool, cluster=loaded.name, pools=names)
    for pool in pools:
        if pool.said.autoscaling.nodeGroup and options.form in (None, GROUP):
            if [*problems(pool)]:
                raise refusal("GPU095", "group", pool=pool.name)
            told.append((pool.name, GROUP, groups.text(pool)))
        form = options.form or fitting(pool)[0]
        for item, why, instead in cannot(pool.said.host, form) if form != GROUP else ():
            raise refusal("GPU095", "form", form=form, pool=pool.name, item=item, because=why, instead=instead)
        if form != GROUP and [*asked(pool.said.host)]:
            told.append((pool.name, form, forms.text(pool, form)))
    alone = "# `gpustack nodes {} {} --as {}` prints this alone:\n{}" if len(told) > 1 else "{3}"
    whose = f"the pool {options.pool} of {loaded.name} has no" if options.pool else f"no pool of {loaded.name} has a"
    lacks = {None: "nodeGroup or host", GROUP: "nodeGroup"}.get(options.form, "host")
    text = "\n".join(alone.format(loaded.name, *each) for each in told)
    sys.stdout.write(text or f"# {whose} {lacks}\n")
    return 0
