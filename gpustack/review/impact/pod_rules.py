"""What becomes of pods when the reconciler's rules about them change, rule by rule and in words.

Solves: the rules are one value of the policy, and as a line of JSON, cut where it is long, they hide one that deletes
pods behind others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .leaves import Leaf, Path, text

THEN = {
    "delete": "deletes, whatever PodDisruptionBudgets say,",
    "leave": "counts as using no GPU",
    "wait": "waits, before anybody is evicted, for",
    "evict": "evicts",
}
"""What rules do, the gravest first. It stands before labels, which may be so many that a comment cuts them."""


def rules(leaf: Leaf) -> Iterator[str]:
    """The rules that are new or have another place among the others, those that delete first; then those that go. Of
    one that stands twice the first counts.
    """
    old, new = ({text(each): each for each in side or ()} for side in (leaf.old, leaf.new))
    before, after = [each for each in old if each in new], [each for each in new if each in old]
    turns = dict.fromkeys(new, "new")
    turns |= {each: _turn(before.index(each) - at) for at, each in enumerate(after)}
    numbered = [(number, *each) for number, each in enumerate(new.items(), 1) if turns[each[0]]]
    for number, key, each in sorted(numbered, key=lambda one: list(THEN).index(one[2]["then"])):
        yield f"rule {number} of {len(new)}, {turns[key]}: {_sentence(each)}"
    gone = [each for key, each in old.items() if key not in new]
    for each in gone:
        yield f"a rule that goes: {_sentence(each)}"
    if not numbered and not gone:
        yield "only rules that stand twice come or go"


def _turn(back: int) -> str:
    """Where a rule stood that stands BACK places before that now."""
    return "which came later" if back > 0 else "which came earlier" if back else ""


def _sentence(rule: dict[str, Any]) -> str:
    labels = ", ".join(f"{key}={value}" for key, value in sorted(rule["labels"].items()))
    where = f"namespace {rule['namespace']}" if rule.get("namespace") else "any namespace"
    return f"{THEN[rule['then']]} pods in {where} with {labels}"


def budgets(leaf: Leaf) -> Iterator[str]:
    """For how long PodDisruptionBudgets count, where that is not for longer."""
    yield (
        f"{'not set' if leaf.old is None else leaf.old} -> {leaf.new}: PodDisruptionBudgets that have held up a node "
        f"for {leaf.new} seconds are overridden, and pods that use its GPUs deleted"
    )


WORDS: dict[Path, Callable[[Leaf], Iterator[str]]] = {
    ("reconciler", "podRules"): rules,
    ("reconciler", "ignoreBudgetsAfterSeconds"): budgets,
}
"""Fields of a policy of which a review tells more than their values."""
