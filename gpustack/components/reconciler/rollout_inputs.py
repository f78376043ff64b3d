"""How fast nodes may be taken out of service, as the program reads it (cluster/budgets.py says what holds)."""

from datetime import UTC, datetime, timedelta

from ...api import node_policy as policy
from ...catalog import health as known_health
from ...cluster.budgets import Budget
from ...cluster.resolve import resolve
from ...policy.language import reconciler
from ...policy.language.reconciler import PodRule, Reconciler
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import dumped


def managers_evict(spec: ClusterPolicySpec) -> bool:
    """Whether driver managers must be able to evict pods: on some node nobody else does before a new driver."""
    return not (reconciler.runs(spec) and all(pool.budget.automatic for pool in resolve(spec).nodes))


def upgrade(section: Reconciler, budget: Budget) -> policy.Upgrade:
    """BUDGET as the program reads it. Fields of the policy's and of the program's structs are called the same."""
    said = budget.policy
    return policy.Upgrade(
        auto=budget.automatic,
        maxParallel=budget.parallel,
        maxUnavailable=budget.unavailable,
        zoneMaxUnavailable=budget.zone_unavailable,
        windows=[policy.Window(**each) for each in dumped(budget.windows)],
        waitForCompletion=policy.WaitForCompletion(**said.waitForCompletion.model_dump(exclude_none=True)),
        podDeletion=policy.PodDeletion(**said.podDeletion.model_dump(exclude_none=True)),
        drain=policy.Drain(**said.drain.model_dump(exclude_none=True)),
        breakerFailures=section.breakerFailures,
        firstAlone=section.firstAlone,
        soakSeconds=budget.soak or None,
        prepull=policy.Prepull(**section.prepull.model_dump(exclude={"maxUnavailable"})) if section.prepull else None,
        podRules=[pod_rule(each) for each in section.podRules] or None,
        ignoreBudgetsAfter=section.ignoreBudgetsAfterSeconds,
        order=[policy.OrderBy(label=each.key, values=each.values) for each in section.order.labels] or None,
        leastUsed=section.order.leastUsed or None,
        maxAttempts=section.maxAttempts,
    )


SAME = {"maxNodes", "maxShare", "breakerShare", "holdSeconds", "settleSeconds", "requestSeconds"}
"""What the program calls as the policy does."""


def health(section: Reconciler) -> policy.Health | None:
    """What faults of GPUs mean, as the program reads it: the policy's own conditions before those of detectors."""
    said = section.health
    if said is None:
        return None
    own = [each.model_dump(exclude_defaults=True) for each in said.conditions]
    every = [*own, *(each for name in said.detectors for each in known_health.rules(name))]
    asks = {} if said.acts else {"then": "report", "request": ""}  # where somebody else acts
    rules = [{**each, "request": each.get("request", "").replace("none", ""), **asks} for each in every]
    until = said.reportOnlyUntil and datetime.fromisoformat(said.reportOnlyUntil).replace(tzinfo=UTC)
    return policy.Health(
        rules=[policy.HealthRule(**each) for each in rules],
        reportOnlyUntil=until + timedelta(days=1) if until else None,
        **said.model_dump(include=SAME),
    )


def pod_rule(said: PodRule) -> policy.PodRule:
    """A rule as the program reads it."""
    selector = ",".join(f"{key}={value}" for key, value in sorted(said.labels.items()))
    return policy.PodRule(podSelector=selector, namespace=said.namespace or "", then=said.then)
