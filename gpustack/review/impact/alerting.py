"""Whether a changed alert tells people no later, and of no less, than before.

Solves: a number says by itself neither whether it is looser nor for whom. What an alert or a pool doesn't say is what
stands above it, at last in the catalogue, which also knows with which thresholds it fires earlier when they are higher.
"""

from __future__ import annotations

from typing import Any

from ...catalog import alerts as known
from ...text.quantities import milliseconds
from .leaves import Leaf, Leaves


def alert_no_later(leaf: Leaf) -> bool:
    """Whether an alert fires as early as it did and for as much, or is new."""
    _, _, name, *rest = leaf.path
    alert = known.alerts().get(name)
    if _no_alerts(leaf) or alert is None or not rest:
        return _no_alerts(leaf)
    key, pool = rest[-1], rest[1] if len(rest) > 1 else ""
    if not _on(leaf.olds, alert, pool):
        return True
    old, new = (_value(side, alert, pool, key) for side in (leaf.olds, leaf.news))
    return _earlier(alert, key, old, new) and _counted_as_much(leaf, alert, pool)


def silence_no_longer(leaf: Leaf) -> bool:
    """Whether a silence ends no later than it did; its reason is for whoever reads it."""
    if _no_alerts(leaf) or leaf.new is None or leaf.path[-1] != "until":
        return len(leaf.path) > len(("alerts", "silence", "NAME"))
    return leaf.old is not None and str(leaf.new) <= str(leaf.old)


def _no_alerts(leaf: Leaf) -> bool:
    """Whether no alert was there before."""
    return leaf.olds.get(("alerts", "enabled")) is not True


def _value(side: Leaves, alert: known.Alert, pool: str, key: str) -> Any:
    """What holds for KEY of ALERT, for nodes of POOL or of those of which nothing is said."""
    rule = ("alerts", "rules", alert.name)
    said = [side.get((*rule, "perPool", pool, key)) if pool else None, side.get((*rule, key))]
    usual = {"enabled": not alert.why_off, "severity": alert.severity, "lasts": alert.lasts, **alert.set}
    return next((value for value in said if value not in {None, ""}), usual.get(key))


def _on(side: Leaves, alert: known.Alert, pool: str) -> bool:
    """Whether it fires for nodes of POOL, or for any."""
    for_a_pool = (
        value for path, value in side.items() if path[2:4] == (alert.name, "perPool") and path[-1] == "enabled"
    )
    return bool(_value(side, alert, pool, "enabled")) or (not pool and any(for_a_pool))


def _earlier(alert: known.Alert, key: str, old: Any, new: Any) -> bool:
    """Whether ALERT fires as early with NEW as with OLD."""
    if key == "enabled":
        return bool(new)
    if key == "severity":
        return new in ("page", old)
    if key == "lasts":
        return milliseconds(str(new)) <= milliseconds(str(old))
    if type(old) is not int or type(new) is not int:
        return False
    return new >= old if alert.limits.get(key, {}).get("earlier") == "higher" else new <= old


def _counted_as_much(leaf: Leaf, alert: known.Alert, pool: str) -> bool:
    """Whether nodes of POOL are counted with as many as before. One of which something is said is counted by itself:
    then one node here and one there are no longer two, and 5 percent of all may be fewer of each.
    """
    there, here = (any(path[2:5] == (alert.name, "perPool", pool) for path in side) for side in (leaf.olds, leaf.news))
    if alert.over != "cluster" or not pool or there == here:
        return True
    percent = any(_value(side, alert, pool, "percent") for side in (leaf.olds, leaf.news))
    return not percent and (there or _value(leaf.news, alert, pool, "nodes") == 1)


ALERTING = (alert_no_later, silence_no_longer)
