"""What a rule is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..model import Finding, Severity

if TYPE_CHECKING:
    from ..policy.spec import ClusterPolicySpec

Check = Callable[["ClusterPolicySpec"], Iterator["Hit"]]


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that a rule found: WHAT is wrong at the policy PATH, WHY it matters, and the REMEDY."""

    path: str
    what: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    severity: Severity
    check: Check

    def findings(self, spec: ClusterPolicySpec) -> Iterator[Finding]:
        for hit in self.check(spec):
            yield Finding(self.id, self.severity, hit.what, path=hit.path, why=hit.why, remedy=hit.remedy)


RULES: dict[str, Rule] = {}


def rule(id: str, severity: Severity) -> Callable[[Check], Check]:  # noqa: A002 - what it is called in findings
    """Register a function as rule ID. Ids are stable: a rule that goes leaves its id unused."""

    def register(check: Check) -> Check:
        if id in RULES:
            raise ValueError(f"two rules are called {id}: {RULES[id].check.__name__} and {check.__name__}")
        RULES[id] = Rule(id, severity, check)
        return check

    return register
