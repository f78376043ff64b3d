"""Quantities of Kubernetes and durations of Prometheus: which of 1500m and 2 is more, how the API server writes what
it was given, and what is more than either can hold.

Solves: the API server gives 1000m back as 1 and 1024Mi as 1Gi, so an object that says the former shows as changed for
ever. `canonical` follows the rules of k8s.io/apimachinery/pkg/api/resource: no fraction, and the largest suffix that
leaves none; a number below 1024, or one with a fraction, never has a binary suffix.
"""

import math
import re
from fractions import Fraction

from gpustack.model import INT64

UNITS = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
UNITS |= {unit: Fraction(1000 ** (power + 1)) for power, unit in enumerate("kMGTPE")}
UNITS |= {f"{unit}i": Fraction(1024 ** (power + 1)) for power, unit in enumerate("KMGTPE")}
QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")
DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
MILLISECONDS = {"y": 31536000000, "w": 604800000, "d": 86400000, "h": 3600000, "m": 60000, "s": 1000, "ms": 1}
WORDS = {"d": "day", "h": "hour", "m": "minute", "s": "second", "ms": "millisecond"}
BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
MOST = Fraction(INT64)
"""The largest quantity: the API server takes every larger one for this (apimachinery's ParseQuantity)."""
LONGEST_DURATION = INT64 // 10**6
"""Milliseconds of the longest duration: Prometheus counts nanoseconds in 64 bits."""
_PART = re.compile(r"([0-9]+)(ms|[ywdhms])")
LONGEST = 64
"""Characters of a quantity that is read, and the largest exponent: 1e1000000 has a million digits."""


def size(quantity: int | str) -> Fraction:
    """How much QUANTITY is. Policies hold only what the API server reads (language/types.py). ValueError for others."""
    return _read(quantity)[0]


def canonical(quantity: int | str) -> str:
    """QUANTITY as the API server writes it. ValueError where it isn't a quantity."""
    value, exponent, unit = _read(quantity)
    value = Fraction(math.ceil(value * 10**9), 10**9)  # it rounds up to nanos
    if value == 0:
        return "0"
    if unit.endswith("i") and value >= 1024 and value.denominator == 1:
        amount, power = int(value), 0
        while amount % 1024 == 0 and power + 1 < len(BINARY):
            amount, power = amount // 1024, power + 1
        return f"{amount}{BINARY[power]}"
    amount, tens = int(value * 10**9), -9
    while amount % 10 == 0:
        amount, tens = amount // 10, tens + 1
    amount, tens = amount * 10 ** (tens % 3), tens - tens % 3
    if exponent or tens not in DECIMAL:
        return f"{amount}e{tens}" if tens else str(amount)
    return f"{amount}{DECIMAL[tens]}"


def too_much(quantity: str) -> str:
    """In which way QUANTITY is beyond what the API holds, "" for one that is not."""
    try:
        return "" if size(quantity) <= MOST else f"the API server takes what is above {INT64} for {INT64}"
    except ValueError:
        return "it has more digits, or a larger exponent, than any number of resources"


def milliseconds(duration: str) -> int:
    """How long DURATION (1m30s) is. ValueError for numbers beyond any duration."""
    return sum(int(number) * MILLISECONDS[unit] for number, unit in _PART.findall(duration[:LONGEST]))


def in_words(duration: str) -> str:
    """DURATION as people say it: of 90m "1 hour 30 minutes", of 1h "an hour", of 0s "a moment"."""
    rest, parts = milliseconds(duration), []
    for unit, name in WORDS.items():
        count, rest = divmod(rest, MILLISECONDS[unit])
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    if len(parts) == 1:
        return re.sub("^1 ", "an " if parts[0] == "1 hour" else "a ", parts[0])
    return " ".join(parts) or "a moment"


def too_long(duration: str) -> str:
    """In which way DURATION is beyond what Prometheus holds, "" for one that is not."""
    long = len(duration) > LONGEST or milliseconds(duration) > LONGEST_DURATION
    return "Prometheus counts up to 292 years" if long else ""


def _read(quantity: int | str) -> tuple[Fraction, str, str]:
    """How much it is, its exponent and its unit, each "" where it has none."""
    text = str(quantity) if not isinstance(quantity, int) or abs(quantity) <= INT64 else ""
    match = QUANTITY.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(f"{str(text)[:LONGEST]!r} is not a quantity")
    number, exponent, unit = match.groups()
    if exponent and abs(int(exponent[1:])) > LONGEST:
        raise ValueError(f"{quantity!r} is not a quantity: its exponent is beyond any number of resources")
    value = Fraction(f"{number.rstrip('.')}{exponent or ''}") * UNITS[unit or ""]
    return value, exponent or "", unit or ""
