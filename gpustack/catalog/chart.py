"""What the values of the operator's chart are called in the spec of its custom resources.

People move from a values file to a policy by copying, and most names are the same. The data file has those that are
not.
"""

import functools
from typing import Any

from gpustack.catalog import _data, releases

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
def unread() -> dict[str, str]:
    """Value path -> why the chart makes nothing of it, although a policy has such a field; completes "it ..."."""
    return {entry["values"]: entry["why"] for entry in _data.load(DATA)["unread"]}


@functools.cache
def wrappers() -> frozenset[str]:
    """Keys below which a bundling chart has the values of the operator's chart."""
    return frozenset(_data.load(DATA)["wrappers"])


def older() -> list[str]:
    """Releases from before the catalogue, oldest first, of whose charts the images are known."""
    return list(_data.load("older-charts")["releases"])


def image(release: str, section: str) -> str:
    """The whole name of the image that the chart of RELEASE writes into SECTION, "" where that isn't known."""
    if release in releases.names():
        default = releases.release(release).images.get(section)
        return default.reference if default and default.version else ""
    known: dict[str, str | None] = _data.load("older-charts")["images"].get(section, {})
    before = [name for name in older()[: older().index(release) + 1] if name in known] if release in older() else []
    return (known[before[-1]] or "") if before else ""


def older_defaults() -> dict[str, Any]:
    """Path -> what the charts of `older` releases wrote there, where it is another since."""
    return dict(_data.load("older-charts")["defaults"])
