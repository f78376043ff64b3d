"""What rules of node feature discovery can ask about: features, attributes, operators.

A rule that asks about something else is accepted and never matches.
"""

import functools
import re

from gpustack.catalog import _data

_facts = functools.partial(_data.load, "nfd")

features = functools.partial(_data.words, "nfd", "features")
"""The names of all features: pci.device, kernel.version, ..."""


def kernel(release: str) -> str:
    """What node feature discovery makes of a kernel's RELEASE (`uname -r`), in its label and its feature: letters that
    no label holds become `_`, and what isn't a letter or digit goes at both ends. Source: NFD source/kernel."""
    return re.sub(r"[^-A-Za-z0-9_.]", "_", release.strip()).strip("-_.")


def attributes(feature: str) -> tuple[str, ...] | None:
    """The attributes of FEATURE, None where they depend on the node, or nobody knows the feature."""
    names = _facts()["features"].get(feature)
    return tuple(names) if names else None


def values_of(operator: str) -> tuple[int, int | None] | None:
    """How many values OPERATOR takes: the fewest and the most, None for any number. None for an unknown OPERATOR."""
    for number, operators in _facts()["operators"].items():
        if operator in operators:
            return (1, None) if number == "some" else (number, number)
    return None


def in_hex(feature: str, attribute: str) -> bool:
    """Whether the values of ATTRIBUTE are four hex digits, lower-case."""
    return feature == "pci.device" and attribute in _facts()["hex_digits"]


def default_prefix() -> str:
    """What a label without a prefix gets."""
    return str(_facts()["default_prefix"])
