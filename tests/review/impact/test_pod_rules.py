"""A review says of each rule about pods what becomes of them, and that budgets are overridden."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.review.impact.effects import impact
from gpustack.review.impact.tiers import PLANNED, POWER
from tests.review.impact.requests import Values, loaded

DELETED = "deletes, whatever PodDisruptionBudgets say, pods in"
AWAITED = "waits, before anybody is evicted, for pods in"


def rule(then: str, app: str, **more: str) -> Values:
    """A rule about the pods of APP."""
    return {"labels": {"app": app}, "then": then, **more}


def told(before: Values, after: Values, *, new: bool = False, tier: int = POWER) -> list[str]:
    """What is told, all of one TIER, where a reconciler that says BEFORE comes to say AFTER; NEW: in a new cluster."""
    said = loaded("lab-a100", {}).spec.model_dump(mode="json", exclude_none=True)
    one, two = (
        ClusterPolicySpec.model_validate({**said, "reconciler": {**said["reconciler"], **each}})
        for each in (before, after)
    )
    found = impact({"c": ()}, {"c": (None if new else one, two)}, new={"c"} if new else set())
    effects = [each for each in found.effects if each.where.endswith((".podRules", ".ignoreBudgetsAfterSeconds"))]
    assert {each.tier for each in effects} <= {tier}
    return [each.what for each in effects]


@pytest.mark.parametrize("new", [False, True])
def test_no_rule_hides_behind_others(new: bool) -> None:
    """Each rule is told by itself, whole, that which deletes first, however many stand before it; what it does stands
    before its labels, since a comment that is too long cuts lines."""
    long = {f"example.com/{number}": "x" * 63 for number in range(4)}
    many = [*(rule("wait", f"job-{number}") for number in range(20)), {"labels": long, "then": "delete"}]
    first, *others = told({}, {"podRules": many}, new=new)
    labels = ", ".join(f"{key}={value}" for key, value in long.items())
    assert first == f"rule 21 of 21, new: {DELETED} any namespace with {labels}"
    assert others == [f"rule {n + 1} of 21, new: {AWAITED} any namespace with app=job-{n}" for n in range(20)]


A, B, C = rule("wait", "a"), rule("delete", "b", namespace="ml"), rule("leave", "c")
SAYS_B = f"{DELETED} namespace ml with app=b"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([A], [A, B], [f"rule 2 of 2, new: {SAYS_B}"]),
        ([A, B], [A], [f"a rule that goes: {SAYS_B}"]),
        (
            [A],
            [{**A, "then": "delete"}],
            [
                f"rule 1 of 1, new: {DELETED} any namespace with app=a",
                f"a rule that goes: {AWAITED} any namespace with app=a",
            ],
        ),
        (
            [A, B],
            [B, A],
            [
                f"rule 1 of 2, which came later: {SAYS_B}",
                f"rule 2 of 2, which came earlier: {AWAITED} any namespace with app=a",
            ],
        ),
        ([B], [C, B], ["rule 1 of 2, new: counts as using no GPU pods in any namespace with app=c"]),
        ([A, A, B], [A, B], ["only rules that stand twice come or go"]),
    ],
)
def test_what_becomes_of_pods(before: list[Any], after: list[Any], words: list[str]) -> None:
    """A rule that comes, goes or has its turn before another is told; the others aren't."""
    assert told({"podRules": before}, {"podRules": after}) == words


@pytest.mark.parametrize(
    ("before", "after", "new", "words"),
    [
        ({}, 600, False, "not set -> 600: "),
        ({}, 600, True, "not set -> 600: "),
        ({"ignoreBudgetsAfterSeconds": 900}, 600, False, "900 -> 600: "),
    ],
)
def test_budgets_that_are_overridden(before: Values, after: int, new: bool, words: str) -> None:
    """It is told that budgets stop to count, when, and what becomes of the pods; in a new cluster, too."""
    (what,) = told(before, {"ignoreBudgetsAfterSeconds": after}, new=new)
    assert what == (
        f"{words}PodDisruptionBudgets that have held up a node for 600 seconds are overridden, and pods that use its "
        "GPUs deleted"
    )


@pytest.mark.parametrize(("after", "words"), [({}, "not set"), ({"ignoreBudgetsAfterSeconds": 900}, "900")])
def test_budgets_that_count_again(after: Values, words: str) -> None:
    """Without the time nothing is overridden any more, and with a longer one later: nobody has to accept that."""
    assert told({"ignoreBudgetsAfterSeconds": 600}, after, tier=PLANNED) == [f"600 -> {words}"]
