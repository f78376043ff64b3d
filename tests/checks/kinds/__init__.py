"""The kinds of mistakes B01 to B60: for each an input that must be found, and a neighbour that must not.

A module per family of rules, each with a list ROWS. What a row says stands in the spec FRAME, as the snippets of rules'
pages do (gpustack/checks/pages.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.checks.frame import FRAME, framed

__all__ = ["FRAME", "Row", "framed"]


@dataclass(frozen=True, slots=True)
class Row:
    """KIND is found by RULE in the part BAD of a policy's spec and not in GOOD, both YAML. NOTE: what is particular."""

    kind: str
    rule: str
    bad: str
    good: str
    note: str = ""
