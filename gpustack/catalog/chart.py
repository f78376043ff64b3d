"""What the values of the operator's chart are called in the spec of its custom resources.

People move from a values file to a policy by copying, and most names are the same. The data file has those that are
not.
"""

from __future__ import annotations

import functools

from gpustack.catalog import _data

DATA = "chart_names"


@functools.cache
def renamed(section: str = "") -> dict[str, str]:
    """Value path -> spec path, dotted, where they differ; with SECTION "drivers", in the spec of an NVIDIADriver."""
    entries = _data.load(DATA)["renamed_in_drivers" if section == "drivers" else "renamed"]
    return {entry["values"]: entry["spec"] for entry in entries}


@functools.cache
def dropped() -> dict[str, str]:
    """Value path -> why no custom resource and no policy has a field for it; completes "it ..."."""
    return {entry["values"]: entry["why"] for entry in _data.load(DATA)["dropped"]}


@functools.cache
def wrappers() -> frozenset[str]:
    """Keys below which a bundling chart has the values of the operator's chart."""
    return frozenset(_data.load(DATA)["wrappers"])
