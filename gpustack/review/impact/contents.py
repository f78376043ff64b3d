"""Tests by which the lists of tiers bound texts that programs read: by the fields in them, not by their name.

Solves: a text of a configuration is one field of a policy, and how GPUs are shared stands in it beside which path of
the host is mounted. So it is parsed, and only fields that say counts and layouts may change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from ...catalog import _data
from ...policy import dcgm_csv
from .leaves import Leaf, Leaves, changed, leaves

LONG = 200_000
"""Characters of a text that is taken apart."""
_FIELD = re.compile(r"DCGM_[A-Z0-9_]+")


def sharing(leaf: Leaf) -> bool:
    """Whether a device plugin's configuration changes in nothing but how GPUs are shared."""
    return _only(leaf, ("version",), ("sharing",), ("flags", "migStrategy"))


def mig_layouts(leaf: Leaf) -> bool:
    """Whether a MIG manager's configuration changes in nothing but its layouts."""
    return _only(leaf, ("version",), ("mig-configs",))


def vgpu_layouts(leaf: Leaf) -> bool:
    """Whether a vGPU device manager's configuration changes in nothing but its layouts."""
    return _only(leaf, ("version",), ("vgpu-configs",))


def metrics(leaf: Leaf) -> bool:
    """Whether it is a list of metrics that the exporter reads: fields of DCGM, their types and help."""
    if leaf.new is None:
        return True
    if not isinstance(leaf.new, str) or len(leaf.new) > LONG:
        return False
    found = dcgm_csv.read_metrics(leaf.new)
    return bool(found.rows) and not found.problems and all(_FIELD.fullmatch(row.name) for row in found.rows)


def _only(leaf: Leaf, *allowed: Sequence[str]) -> bool:
    """Whether both texts can be read, and differ in nothing but what is ALLOWED."""
    old, new = _read(leaf.old), _read(leaf.new)
    if old is None or new is None:
        return False
    return all(any(each.path[: len(path)] == tuple(path) for path in allowed) for each in changed(old, new))


def _read(text: Any) -> Leaves | None:
    """What is in TEXT, a document of YAML without aliases; None where that isn't known."""
    if text is None:
        return {}
    if not isinstance(text, str) or len(text) > LONG:
        return None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            return None
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return leaves(found) if isinstance(found, dict) else None if found is not None else {}


def alert_label(leaf: Leaf) -> bool:
    """Whether a label of an alert says how bad it is and whose, in usual words: none by which others are silenced."""
    if leaf.new is None or (*leaf.path[:5], "record") in leaf.news:
        return True  # of a series: its name says whether it is the own one
    listed = _data.load("tiers")
    name, value = leaf.path[-1], str(leaf.new)
    if name == "severity":
        return value in listed["severities"]
    return name in {*listed["whose"], *listed["alert_labels"]} and bool(re.fullmatch(r"[\w .:/@+-]{0,80}", value))


TEXTS = (sharing, mig_layouts, vgpu_layouts, metrics, alert_label)
