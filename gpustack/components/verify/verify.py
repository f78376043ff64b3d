"""`gpustack verify` in the cluster, as a CronJob: what it holds the cluster against is rendered with everything else.

It may list, and nothing else: in each namespace what is rendered there, and of the whole cluster what is in none.
`namespace` is where pods run, so nobody else's are seen. Findings make its Job fail; alerts are the catalogue's.
"""

from collections.abc import Iterable, Iterator

from ...api.expectations import Kind
from ...model import Body
from ..component import Component
from ..parts.kube import access, config_map, grant, rule
from ..parts.template import template
from ..reconciler.reconciler import run_in
from .verify_inputs import NAME, VerifyInputs

LABELS = {"app": NAME}


class Verify(Component[VerifyInputs]):
    """The CronJob, its rights, and what it expects."""

    stage = "monitoring"

    def manifests(self, inputs: VerifyInputs) -> Iterator[Body]:
        spaces: dict[str, list[Kind]] = {}
        for kind in map(Kind._make, inputs.kinds):
            spaces.setdefault(kind.namespace, []).append(kind)
        yield from access(NAME, inputs.namespace, cluster=rights(spaces.pop("", ())), labels=LABELS)
        for space, kinds in spaces.items():
            yield from grant(NAME, NAME, space, home=inputs.namespace, labels=LABELS, role=rights(kinds))
        yield config_map(NAME, inputs.namespace, inputs.data, labels=LABELS)
        yield template(__file__, "cron_job", name=NAME, **run_in(inputs))


def rights(kinds: Iterable[Kind]) -> list[Body]:
    """To list KINDS, by API group."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind.plural)
    return [rule(group, " ".join(sorted(set(plurals))), "list") for group, plurals in sorted(groups.items())]
