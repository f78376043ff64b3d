"""Tests by which the lists of tiers bound a change: what has a direction, a form or a measure is allowed within it.

Each takes a value that changes and says whether the change is within bounds. What can't be compared is not.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...catalog import _data, texts
from ..diff.objects import items
from .amounts import ALERTING, AMOUNTS, tighter, whole
from .contents import TEXTS, only
from .leaves import Leaf, Leaves, Path, same
from .tags import TAGS

Bound = Callable[[Leaf], bool]
_PLAIN = re.compile(r"[\w.:+-]{0,40}")


def rolled(leaf: Leaf) -> bool:
    """Whether the reconciler rolls what it rolled: then it keeps budgets and windows, which nobody else does."""
    image = ("reconciler", "image")
    return leaf.new is not False or leaf.old is False or not (image in leaf.olds or image in leaf.news)


def _all_labels(side: Leaves, section: Path) -> bool:
    allowed, keys = side.get((*section, "podLabelAllowlistRegex")) or [""], _data.load("tiers")["apart"]
    if side.get((*section, "enablePodLabels")) is not True:
        return False
    try:
        return sum(any(re.search(str(one)[:200], key) for one in allowed) for key in keys) > len(keys) // 2
    except (re.error, OverflowError, RecursionError):
        return True


def nothing_less(leaf: Leaf) -> bool:
    """Whether a list still has what it had."""
    return all(each in items(leaf.new) for each in items(leaf.old))


def nothing_more(leaf: Leaf) -> bool:
    """Whether a list of what is left out has nothing that wasn't in it."""
    return all(each in items(leaf.old) for each in items(leaf.new))


def referenced(leaf: Leaf) -> bool:
    """Whether nothing more is mounted of an object that was there: each key is a file, of which only the name is in
    the policy. What names an object that is new is judged itself."""
    if leaf.path[-1] == "keys":
        return leaf.old is None or nothing_less(replace(leaf, old=leaf.new, new=leaf.old))
    if len(leaf.path) > 1 or not isinstance(leaf.old, list):
        return True
    keys = {(each["kind"], each["name"]): set(each.get("keys") or ()) for each in leaf.old}
    known = [(keys.get((each["kind"], each["name"])), each.get("keys") or ()) for each in leaf.new or ()]
    return all(old is None or old.issuperset(new) for old, new in known)


def stays_kata(leaf: Leaf) -> bool:
    """Whether nodes whose virtual machines are confidential are no less: they are in mode kata alone."""
    on, mode = ("sandboxWorkloads", "enabled"), ("sandboxWorkloads", "mode")
    there, here = (side.get(on) is True and side.get(mode) == "kata" for side in (leaf.olds, leaf.news))
    return here or not there


def pods_still_start(leaf: Leaf) -> bool:
    """Whether pods that ask for several shares of a GPU start as they did, or the pool is new. Of MPS none ever did,
    unless the policy said so."""
    off = leaf.old is False if "mps" in leaf.path else leaf.old is not True
    on = leaf.new is not False if "mps" in leaf.path else leaf.new is True
    return not (off and on) or not _pool_stays(leaf)


def _pool_stays(leaf: Leaf) -> bool:
    """Whether the pool that LEAF is of was there before, and still is."""
    return all(any(path[:2] == leaf.path[:2] for path in side) for side in (leaf.olds, leaf.news))


def pools_runtime(leaf: Leaf) -> bool:
    """Whether nodes of a pool keep their container runtime, said for them or for the cluster, in whatever version."""
    name = ("cluster", "containerRuntime")
    old, new = leaf.old or leaf.olds.get(name), leaf.new or leaf.news.get(name)
    return not _pool_stays(leaf) or str(old).partition(":")[0] == str(new).partition(":")[0]


def ends(leaf: Leaf) -> bool:
    """Whether a wait ends by itself: 0 is for ever. That for jobs, whose pods are told for the first time, may be."""
    selector = (*leaf.path[:-1], "podSelector")
    return not _nothing(leaf.new) or (selector in leaf.news and selector not in leaf.olds)


def fewer(leaf: Leaf) -> bool:
    """Whether a limit is lower than it was, or than the default; 0 and none are no limit."""
    old, new = leaf.old, leaf.new
    if new is None or _nothing(new):
        return False
    mixed = str(old).endswith("%") != str(new).endswith("%")
    if leaf.path == ("reconciler", "breakerFailures") and mixed and not _nothing(old):
        return _fewer_in_each_pool(leaf, old, new)
    return old is not None and (_nothing(old) or _compare(old, new, -1))


def _fewer_in_each_pool(leaf: Leaf, old: Any, new: Any) -> bool:
    """Whether NEW is no more nodes than OLD, one of the two a percentage, in each pool; the reconciler rounds up."""
    pools = {path[1] for path in leaf.news if path[0] == "nodePools"}
    sizes = [[leaf.news.get(("nodePools", pool, "count", end)) for end in ("min", "max")] for pool in pools]
    limits = [(_nodes(old, size), _nodes(new, size)) for both in sizes for size in both]
    return bool(limits) and all(one is not None and two is not None and two <= one for one, two in limits)


def _nodes(limit: Any, size: Any) -> int | None:
    """LIMIT in nodes of SIZE; None where one isn't known."""
    text = str(limit)
    if type(size) is not int or not text.removesuffix("%").isdigit():
        return None
    return -(-int(text[:-1]) * size // 100) if text.endswith("%") else int(text)


def fewer_or_said(leaf: Leaf) -> bool:
    """Whether a limit is lower, or a pool's own for the first time: what was the cluster's is compared where it is
    rendered. Of a new pool it is no more than the cluster's."""
    if leaf.old is not None or _pool_stays(leaf):
        return leaf.old is None or fewer(leaf)
    names = {leaf.path[-1], {"maxParallel": "maxParallelUpgrades"}.get(leaf.path[-1])}
    all_pools = [value for path, value in leaf.news.items() if path[-2:-1] == ("upgradePolicy",) and path[-1] in names]
    return all(fewer(replace(leaf, old=value)) for value in all_pools) and not _nothing(leaf.new)


def longer(leaf: Leaf) -> bool:
    """Whether a time to wait is longer; 0 is for ever."""
    old, new = leaf.old, leaf.new
    if new is None or _nothing(new):
        return new is not None
    return old is not None and not _nothing(old) and _compare(old, new, 1)


def kept_longer(leaf: Leaf) -> bool:
    """Whether something is kept for longer than it was; 0 is not at all."""
    old, new = leaf.old, leaf.new
    return old is not None and new is not None and _compare(old, new, 1)


def kept_longer_or_said(leaf: Leaf) -> bool:
    """Whether something is kept for longer, or a pool says it for the first time: what was the cluster's is compared
    where it is rendered. Of a new pool it is no less than the cluster's."""
    if leaf.old is not None or _pool_stays(leaf):
        return leaf.old is None or kept_longer(leaf)
    return kept_longer(replace(leaf, old=leaf.news.get(("reconciler", leaf.path[-1]), 0)))


def _nothing(value: Any) -> bool:
    """Whether an amount or a percentage is 0."""
    return str(value).removesuffix("%").strip("0") == "" and str(value) != ""


def _compare(old: Any, new: Any, sign: int) -> bool:
    one, two = (str(value) for value in (old, new))
    if one.endswith("%") != two.endswith("%"):
        return False
    one, two = one.removesuffix("%"), two.removesuffix("%")
    return one.isdigit() and two.isdigit() and (int(two) - int(one)) * sign >= 0


def harmless_variable(leaf: Leaf) -> bool:
    """Whether it is a variable that says how much a program tells, with a plain value."""
    *_, name, key = leaf.path
    known = name in _data.load("tiers")["variables"] and key in {"name", "value"}
    return known and (leaf.new is None or bool(_PLAIN.fullmatch(str(leaf.new))))


def says_whose(leaf: Leaf) -> bool:
    """Whether a label or annotation says whose something is, with a plain value."""
    word = leaf.path[-1].rpartition("/")[2].lower().replace("_", "-")
    domain, listed = leaf.path[-1].rpartition("/")[0].lower(), _data.load("tiers")
    known = word in listed["whose"] and not any(name in domain for name in listed["programs"])
    return known and (leaf.new is None or isinstance(leaf.new, str))


def for_a_server(leaf: Leaf) -> bool:
    """Whether a label of a ServiceMonitor is a plain one, as Prometheus selects by: a key with a domain is a program's,
    which may remove or pass over what has it."""
    plain = "/" not in leaf.path[-1] and bool(_PLAIN.fullmatch(str(leaf.new)))
    return leaf.new is None or plain or says_whose(leaf)


def tolerations_by_key(leaf: Leaf) -> bool:
    """Whether tolerations come, each for one taint, and none goes: no node is kept for somebody else by accident."""
    return nothing_less(leaf) and all(bounded(each) for each in items(leaf.new) if each not in items(leaf.old))


def bounded(toleration: Any) -> bool:
    """Whether TOLERATION is about one taint that isn't the control plane's or the kubelet's own."""
    key = str(toleration.get("key") or "") if isinstance(toleration, Mapping) else ""
    return bool(key) and not key.startswith(("node-role.kubernetes.io/", "node.kubernetes.io/", "node.cloudprovider"))


def own_series(leaf: Leaf) -> bool:
    """Whether a rule records under a name that nobody else's series has: with levels, as recorded ones are named, and
    at a level that isn't of words alone of which common sets of rules make theirs. What a series is of doesn't matter:
    whoever scales by GPUs records those of GPUs at the same levels."""
    name = str(leaf.new)
    if leaf.old is not None or not re.fullmatch(r"[a-zA-Z_]\w*:[\w:]*\w", name):
        return False
    return not {*name.partition(":")[0].lower().split("_")} <= {*_data.load("tiers")["levels"]}


def operators_text(leaf: Leaf) -> bool:
    """Whether it is a text of NVIDIA's operator for this place, or gone, so that gpustack's own takes its place."""
    if leaf.new is None:
        return True
    return isinstance(leaf.new, str) and bool(texts.releases_with(leaf.new, str(leaf.path[-2])))


def valued(leaf: Leaf, ways: Sequence[Mapping[str, Sequence[Any]]]) -> bool:
    """Whether the change is one of WAYS: lists of `old` and `new`, or, of what it isn't, `old_but` and `new_but`."""

    def listed(side: str, values: Sequence[Any]) -> bool:
        value = getattr(leaf, side.removesuffix("_but"))
        return any(same(value, each) for each in values) is not side.endswith("_but")

    return any(all(listed(*each) for each in way.items()) for way in ways)


_LISTED = _data.load("tiers")
BOUNDS: dict[str, Bound] = {
    name: partial(whole, least=low, most=high) for name, (low, high) in _LISTED["whole"].items()
}
BOUNDS |= {name: partial(only, allowed=allowed) for name, allowed in _LISTED["only"].items()}
BOUNDS |= {name: partial(valued, ways=ways) for name, ways in _LISTED["values"].items()}
BOUNDS |= {
    each.__name__: each
    for each in (
        *(fewer, fewer_or_said, longer, kept_longer, kept_longer_or_said, nothing_less, nothing_more, rolled),
        *(harmless_variable, says_whose, tolerations_by_key, own_series, operators_text, for_a_server, referenced),
        *(stays_kata, pods_still_start, pools_runtime, ends, *ALERTING, *AMOUNTS, *TEXTS, *TAGS),
    )
}
BOUNDS |= {
    # not all labels of pods become labels of series, or did before
    "labels_named": lambda leaf: not _all_labels(leaf.news, leaf.path[:-1]) or _all_labels(leaf.olds, leaf.path[:-1]),
    # what a pool's nodes are is said for the first time, or no more as the pool goes
    "pools_fact": lambda leaf: leaf.old is None or not _pool_stays(leaf),
    # what is ignored after a time counts for longer than it did, or for good
    "ignored_later": lambda leaf: leaf.new is None or kept_longer(leaf),
    # nodes may be taken at fewer times: windows where there were none, or times within what they were
    "tighter_windows": lambda leaf: tighter(leaf.old, leaf.new),
    # it is a whole number: the order in which Argo CD applies what gpustack renders, for one
    "number": lambda leaf: leaf.new is None or bool(re.fullmatch(r"-?[0-9]{1,4}", str(leaf.new))),
    # the item, five steps from the root, that the value is in is new: then it replaces nothing
    "of_what_is_new": lambda leaf: not any(path[:5] == leaf.path[:5] for path in leaf.olds),
    # the object that the value is in is new
    "of_a_new_object": lambda leaf: not leaf.olds,
}
"""The tests by name; the line above each of the last says what it asks."""
