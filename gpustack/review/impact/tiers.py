"""Tiers: how much a change may do, and so who has to look at it.

Solves: where everything that is worth a word is red, people learn to merge red. Every change gets exactly one tier, the
lowest number of all that is true of it, and only what is known to be harmless gets the highest.

Here they have their names. They are decided elsewhere: that of a field of a policy by table.py from the catalogue's
tiers.yaml, that of an object that no component makes by classifier.py, that of what a rule finds by the rule itself.
effects.py takes the lowest.
"""

from typing import NamedTuple


class Tier(NamedTuple):
    """A tier: what it is called, and what it means to a reviewer."""

    name: str
    what: str


TIERS: tuple[Tier, ...] = (
    Tier("refused", "what the review can't vouch for: it isn't rendered, or it is code that nobody pinned"),
    Tier("power", "somebody or something may do more than before, or nobody knows what it may do"),
    Tier("outage", "running workloads or nodes lose something, outside a budget and a window"),
    Tier("planned", "nodes, pods or numbers change as the policy means them to"),
    Tier("unclassified", "content that no rule knows, and that nothing acts on"),
    Tier("routine", "nothing but fields that are known to be harmless"),
)
REFUSED, POWER, OUTAGE, PLANNED, UNCLASSIFIED, ROUTINE = range(len(TIERS))
RED = OUTAGE
"""What is in this tier or one of a lower number waits for somebody to accept it; tier 0 for nobody."""


def named(tier: int) -> str:
    """TIER with its name, as it is told."""
    return f"tier {tier} {TIERS[tier].name}"


def number_of(text: str) -> int:
    """The tier that TEXT, a number or a name, means. Raises ValueError for another text."""
    names = [tier.name for tier in TIERS]
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and int(text) < len(TIERS):
        return int(text)
    raise ValueError(f"{text!r} is not a tier: give 0 to {len(TIERS) - 1} or one of {', '.join(names)}")
