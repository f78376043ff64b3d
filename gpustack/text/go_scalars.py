"""What a scalar of YAML is to a program in Go that reads it by sigs.k8s.io/yaml, as most of Kubernetes does.

Solves: that reader follows neither YAML 1.2 nor 1.1. `y` is true there and `tRue` a text, `010` is eight, `08` eight as
well (no octal number, so a fraction), `0o10` eight, `4.0` and `4e0` the whole number four, `1:30` a text. Rules about
files of such programs have to say what these make of a value, and not what we would.
"""

import re
from typing import Any

import yaml

from gpustack.text.yaml12 import PLAIN

Scalar = bool | int | float | str | None

_TRUE = frozenset("y Y yes Yes YES true True TRUE on On ON".split())
_FALSE = frozenset("n N no No NO false False FALSE off Off OFF".split())
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"
_INT64 = 2**63
_LONGEST = 310
"""Characters of a number that a float can still hold; what is longer stays a text."""


def scalar(node: Any) -> Scalar:
    """The value of NODE, a yaml.ScalarNode: what is in quotes, or tagged as a text, is text."""
    text = str(node.value)
    if node.tag != PLAIN and node.tag not in {_TAG + kind for kind in ("int", "float", "bool", "null")}:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    number = _number(text.replace("_", "")) if text[0] in "+-.0123456789" else None
    return text if number is None else number


def whole(node: Any) -> int | None:
    """The whole number that NODE is to a field that takes 64 bits; None for anything else, quoted numbers included."""
    value = scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and -_INT64 <= value < _INT64 else None


def is_null(node: Any) -> bool:
    """Whether NODE says nothing: a field keeps its default."""
    return isinstance(node, yaml.ScalarNode) and scalar(node) is None


def octal(node: Any) -> bool:
    """Whether NODE is a whole number that begins with a zero, and so means another number than it shows."""
    return node.tag == PLAIN and re.fullmatch(r"[-+]?0[0-9_]+", node.value) is not None


def folded(key: str) -> str:
    """KEY as Go compares names of fields: without regard to case, for the long s and the Kelvin sign too."""
    return "".join(one.upper().lower() if len(one.upper()) == 1 else one for one in key)


def _number(text: str) -> int | float | None:
    if len(text) > _LONGEST:
        return None
    if _NUMBER.fullmatch(text):
        digits = text.lstrip("+-")
        base = {"x": 16, "o": 8, "b": 2}.get(digits[1:2].lower())
        number = int(digits[2:], base) if base else int(digits, 8 if digits[0] == "0" else 10)
        return -number if text[0] == "-" else number
    return float(text) if _FRACTION.fullmatch(text) else None
