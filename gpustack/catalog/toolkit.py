"""The container toolkit's images: which tags there are, and on which systems what they install can run."""

import functools
import re

from gpustack.catalog import _data, _versions

_facts = functools.partial(_data.load, "toolkit")

_TAG = re.compile(r"(v?\d+\.\d+\.\d+)(?:-(?!rc)([A-Za-z][\w.]*))?")


def suffix(tag: str) -> tuple[str, str] | None:
    """The version and the suffix of TAG: v1.17.8-ubuntu20.04 is ("v1.17.8", "ubuntu20.04"); None where it has none."""
    match = _TAG.fullmatch(tag)
    return (match[1], match[2]) if match and match[2] else None


def has_tag(version: str, suffix: str) -> bool | None:
    """Whether there are images of VERSION with SUFFIX; None where nothing is known of the suffix."""
    condition = _facts()["suffixes"].get(suffix)
    return _versions.satisfies(version, condition) if condition else None


def runs_on_ancient(tag: str) -> bool | None:
    """Whether the programs of TAG run with the C library of Amazon Linux 2 and EL 7; None where TAG has no version."""
    match = _TAG.match(tag)
    return _versions.satisfies(match[1], _facts()["ancient_systems"]) if match else None


def writes_etc_nvidia(tag: str) -> bool:
    """Whether the toolkit of TAG writes into /etc/nvidia of containers with GPUs."""
    match = _TAG.match(tag)
    return match is not None and _versions.satisfies(match[1], _facts()["writes_etc_nvidia"])
