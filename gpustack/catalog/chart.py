"""What the values of the operator's chart are called in the spec of its custom resources.

People move from a values file to a policy by copying, and most names are the same. The data file has those that are
not.
"""

import functools

from gpustack.catalog import _data, releases

DATA = "chart_names"


@functools.cache
def renamed(section: str = "") -> dict[str, str]:
    """Value path -> spec path, dotted, where they differ; with SECTION "drivers", in the spec of an NVIDIADriver."""
    entries = _data.load(DATA)["renamed_in_drivers" if section == "drivers" else "renamed"]
    return {entry["values"]: entry["spec"] for entry in entries}


@functools.cache
def _why(list_name: str) -> dict[str, str]:
    return {entry["values"]: entry["why"] for entry in _data.load(DATA)[list_name]}


dropped = functools.partial(_why, "dropped")
"""Value path -> why no custom resource and no policy has a field for it; completes "it ..."."""
unread = functools.partial(_why, "unread")
"""Value path -> why the chart makes nothing of it, although a policy has such a field; completes "it ..."."""
wrappers = functools.partial(_data.words, DATA, "wrappers")
"""Keys below which a bundling chart has the values of the operator's chart."""
older = functools.partial(_data.words, "older-charts", "releases")
"""Releases from before the catalogue, oldest first, of whose charts the images are known."""
older_defaults = functools.partial(_data.table, "older-charts", "defaults")
"""Path -> what the charts of `older` releases wrote there, where it is another since."""


def image(release: str, section: str) -> str:
    """The whole name of the image that the chart of RELEASE writes into SECTION, "" where that isn't known."""
    if release in releases.names():
        default = releases.release(release).images.get(section)
        return default.reference if default and default.version else ""
    known: dict[str, str | None] = _data.load("older-charts")["images"].get(section, {})
    before = [name for name in older()[: older().index(release) + 1] if name in known] if release in older() else []
    return (known[before[-1]] or "") if before else ""
