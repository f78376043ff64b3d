"""Tests by which the lists of tiers bound amounts: how long, how much, how many; how early alerts fire, and when nodes
may be taken.

Solves: a field that is harmless at 30s stops what it paces at 8760h, and a limit of 4Mi stops its pod, on every node.
So an amount is held against what stood there before (or the default), and against floors and ceilings where nothing
did. Half of it, or four times, is what people do in a week; what is beyond is told as an outage.

Whether a changed alert tells people no later, and of no less, than before is asked of all that stands above what an
alert or a pool says, at last of the catalogue, which also knows with which thresholds it fires earlier when they are
higher. Whether maintenance windows are within others is asked minute by minute of the week: a window that begins an
hour later and is half as long is tighter, and its fields alone don't say so. Windows of different time zones aren't
compared: how far they are apart changes twice a year.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from ...catalog import _data
from ...catalog import alerts as known
from ...cluster.autoscaling import WEEK, minutes
from ...policy.language.node_pools import Window
from ...text import quantities
from .leaves import Leaf, Leaves

LEAST, MOST = Fraction(1, 2), 4
"""How much less and more than before is a usual step."""
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:ms|[wdhms]))+")
SLOWEST = 300
"""Seconds between two measurements above which what is measured is no longer what happens."""
SCRAPED = {"interval": 30.0, "scrapeTimeout": 10.0}
"""Seconds that Prometheus and its operator take where nothing is said."""
INSTALLS = {"driver", "drivers", "vgpuManager"}
"""Sections whose containers build modules of the kernel, for which a low limit is too low."""
SHARES = 32
"""Pods on one GPU: more is possible, and nobody's first step."""
FIRST = 300
"""Seconds before the first probe that leave a program time enough to start: until then nobody knows whether it did."""
PROBE = {"initialDelaySeconds": 0, "periodSeconds": 10, "failureThreshold": 3, "timeoutSeconds": 1}
"""What Kubernetes takes for what a probe doesn't say."""


def seconds(value: Any) -> float | None:
    """How long VALUE, a duration such as 1m30s, is; None where it isn't one."""
    text = str(value)
    if not _DURATION.fullmatch(text) or len(text) > quantities.LONGEST:
        return None
    return quantities.milliseconds(text) / 1000


def whole(leaf: Leaf, least: int, most: int) -> bool:
    """Whether a number is whole, LEAST or more, and MOST or less."""
    return leaf.new is None or (type(leaf.new) is int and least <= leaf.new <= most)


def pace(leaf: Leaf) -> bool:
    """Whether something is scraped often enough to be seen, near what was, and answers before it is scraped again.
    Where nothing is said any more, it is as often as Prometheus has it, which isn't known here."""
    if leaf.new is None:
        return False
    between, answer = (seconds(leaf.news.get((*leaf.path[:-1], key))) for key in SCRAPED)
    seen = 1 <= (seconds(leaf.new) or 0) <= SLOWEST
    timely = between is None or answer is None or answer <= between
    return seen and timely and _stepped(leaf, SCRAPED.get(leaf.path[-1], 30.0))


def _stepped(leaf: Leaf, default: float) -> bool:
    """Whether a duration is a usual step from what it was, or DEFAULT, which holds where nothing is said."""
    old, new = (seconds(value) if value is not None else default for value in (leaf.old, leaf.new))
    return new is not None and (not old or old * LEAST <= new <= max(old * MOST, default))


def evaluated(leaf: Leaf) -> bool:
    """Whether rules are evaluated often enough to alert, and not so often that they are a load."""
    every = seconds(leaf.new)
    return leaf.new is None or (every is not None and 5 <= every <= SLOWEST and _stepped(leaf, SCRAPED["interval"]))


def reconciled(leaf: Leaf) -> bool:
    """Whether an engine looks often enough for what is merged and for drift, from 10 seconds to an hour."""
    every = seconds(leaf.new)
    return leaf.new is None or (every is not None and 10 <= every <= 3600)


def synced(leaf: Leaf) -> bool:
    """Whether an engine looks often enough: where one did before, between a quarter as often and twice as often."""
    old, new = seconds(leaf.old), seconds(leaf.new)
    first = ("gitops", "engine") not in leaf.olds
    return reconciled(leaf) and new is not None and (first or old is None or old * LEAST <= new <= old * MOST)


def variable_paced(leaf: Leaf) -> bool:
    """Whether a variable that says how often, says a second to five minutes; the exporter counts milliseconds."""
    *_, name, key = leaf.path
    if key != "value" or "INTERVAL" not in name or leaf.new is None:
        return True
    old, new = (_waits(name, value) for value in (leaf.old, leaf.new))
    was = old or (30 if name.startswith("DCGM_") else 60)
    return new is not None and max(1, was * LEAST) <= new <= SLOWEST


def _waits(name: str, value: Any) -> float | None:
    unit = 1000 if name.startswith("DCGM_") else 1
    return int(value) / unit if re.fullmatch(r"[0-9]{1,9}", str(value)) else seconds(value)


def amount(leaf: Leaf) -> bool:
    """Whether a request or limit of what every node has is a usual one: a pod that starts, and fits on a node."""
    *_, how, what = leaf.path
    listed = _data.load("tiers")["amounts"].get(what)
    if listed is None or how not in {"limits", "requests"}:
        return False
    if leaf.new is None:
        return how == "requests"  # without a limit there is none
    try:
        new = quantities.size(leaf.new)
        old = quantities.size(leaf.old) if leaf.old is not None else None
    except (TypeError, ValueError):
        return False
    lowest, starts, small, largest = map(quantities.size, listed)
    floor = starts * (8 if leaf.path[0] in INSTALLS else 1) if how == "limits" else lowest
    least = floor if old is None else max(old * LEAST, lowest)
    most = largest if how == "limits" and old is None else small if old is None else old * MOST
    if how == "requests":
        least, most = min(least, lowest), max(most, small)
    return least <= new <= min(max(most, small), largest)


def probe(leaf: Leaf) -> bool:
    """Whether a probe leaves its program as long as it did, by half, and finds a dead one in an hour or so."""
    if leaf.path[-2] == "readinessProbe" and leaf.path[-1] not in PROBE:
        return False
    if leaf.path[-1] not in {*PROBE, "successThreshold"} or not whole(leaf, 0, 3600):
        return False
    if leaf.path[-1] == "initialDelaySeconds" and (leaf.new or 0) > max(FIRST, (leaf.old or 0) * MOST):
        return False
    old, new = (_probe(side, leaf.path[:-1]) for side in (leaf.olds, leaf.news))
    if new is None:
        return True
    starts = leaf.path[-2] == "startupProbe"
    least, answer = (120 if starts else 20), 1
    if old is not None:
        least, answer = max(least if starts else 10, int(old[0] * LEAST)), max(1, int(old[1] * LEAST))
    most = max(3600, old[0] * MOST if old else 0)
    return least <= new[0] <= min(most, 6 * 3600) and answer <= new[1] <= max(120, old[1] * MOST if old else 0)


def _probe(side: Mapping[tuple[str, ...], Any], path: tuple[str, ...]) -> tuple[int, int] | None:
    """How long the probe at PATH waits in all, and for one answer; None where there is none."""
    said = {name: side.get((*path, name)) for name in PROBE}
    if all(value is None for value in said.values()):
        return None
    times = {name: value if type(value) is int else PROBE[name] for name, value in said.items()}
    return times["initialDelaySeconds"] + times["periodSeconds"] * times["failureThreshold"], times["timeoutSeconds"]


def deadline(leaf: Leaf) -> bool:
    """Whether a step on a node has at least half of the time that it had, and four times as much at most."""
    old, new = leaf.old, leaf.new
    return type(old) in {int, float} and type(new) in {int, float} and old * LEAST <= new <= old * MOST


def some(leaf: Leaf) -> bool:
    """Whether there are half as many copies as there were, and no more than a cluster bears: 10, or four times what
    there were, and 100 at most. One is the default."""
    old, new = leaf.old if type(leaf.old) is int else 1, 1 if leaf.new is None else leaf.new
    return type(new) is int and max(Fraction(1), old * LEAST) <= new <= min(100, max(10, old * MOST))


def grace(leaf: Leaf) -> bool:
    """Whether a program that ends has time: half of what it had (30 seconds, if nothing is said), an hour at most."""
    old = leaf.old if type(leaf.old) is int else 30
    new = 30 if leaf.new is None else leaf.new
    return type(new) is int and max(1, min(old, 3600) // 2) <= new <= 3600


def shares(leaf: Leaf) -> bool:
    """Whether a GPU, or an instance of MIG, has a usual number of shares: four times what it had at most, and SHARES at
    most where it had none. That there are fewer is told by what nodes advertise."""
    old = leaf.old if type(leaf.old) is int else SHARES // MOST
    return leaf.new is None or (type(leaf.new) is int and leaf.new <= max(old * MOST, MOST))


AMOUNTS = (shares, pace, evaluated, reconciled, synced, variable_paced, amount, probe, deadline, some, grace)


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
        return quantities.milliseconds(str(new)) <= quantities.milliseconds(str(old))
    if type(old) is not int or type(new) is not int:
        return False
    return new >= old if alert.limits.get(key, {}).get("earlier") == "higher" else new <= old


def _counted_as_much(leaf: Leaf, alert: known.Alert, pool: str) -> bool:
    """Whether nodes of POOL are counted with as many as before. One of which something is said is counted by itself:
    then one node here and one there are no longer two, and 5 percent of all may be fewer of each."""
    there, here = (any(path[2:5] == (alert.name, "perPool", pool) for path in side) for side in (leaf.olds, leaf.news))
    if alert.over != "cluster" or not pool or there == here:
        return True
    percent = any(_value(side, alert, pool, "percent") for side in (leaf.olds, leaf.news))
    return not percent and (there or _value(leaf.news, alert, pool, "nodes") == 1)


ALERTING = (alert_no_later, silence_no_longer)


def tighter(old: Any, new: Any) -> bool:
    """Whether the windows NEW are within OLD. None, or an empty list, is any time."""
    if not new:
        return not old
    if not old or not isinstance(new, list) or not isinstance(old, list):
        return not old
    was, now = _minutes(old), _minutes(new)
    if was is None or now is None:
        return old == new
    return all(minutes <= was[zone] for zone, minutes in now.items())


def _minutes(windows: Sequence[Any]) -> dict[str, set[int]] | None:
    """The minutes of the week that WINDOWS have, by time zone; None where one can't be read."""
    by_zone = defaultdict[str, set[int]](set)
    try:
        for window in map(Window.model_validate, windows):
            by_zone[window.timeZone].update(minute % WEEK for minute in minutes(window))
    except ValidationError:
        return None
    return by_zone
