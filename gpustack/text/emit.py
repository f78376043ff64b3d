"""Writes Kubernetes objects as YAML that every reader takes for the same data, and always with the same bytes.

The problem: YAML has two versions and many readers. A plain `1_000`, `0o17`, `1e3`, `12:30:45`, `y` or `=` is a string
to one and a number, a boolean or a merge to the next, and Go's reader, which decides for Kubernetes, agrees with none
of the others. A general writer asks its own reader only. This one leaves a string plain only where no rule of any
reader touches it, and quotes it where one does. Rejected: the writers of cdk8s and PyYAML (each leaves plain what Go
takes for a number), and JSON in place of YAML (safe, but nobody can review a script in a ConfigMap). What
readers made of such values in the field: bug-reports.md B60.

The form:

- one text per value: keys in a fixed order whatever the insertion order, two spaces a level, a list under a key at the
  key's own indent, no line folded, no anchor, tag or document mark;
- a string is plain, a literal block where it has several lines, or in double quotes with escapes;
- a number that is whole is written as an integer, as JSON and so the API server know no difference: 1.0 and -0.0
  are `1` and `0`. From 2**53 on, where a float no longer holds every integer, it keeps its float form (`1.0e+16`).
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from gpustack.model import DEEPEST, Body, Path, dotted

JSON: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any]
"""Plain data as JSON has it, without null."""

_TOP = ("apiVersion", "kind", "metadata")
_METADATA = ("name", "namespace")

# Readers look for the ":" of a key on one line within 1,024 characters; a longer key stands behind "? ".
_KEY_LENGTH = 1000
# Stands for the indent in a cached text of several lines. No reader takes a raw NUL, so no text holds one.
_MARK = "\0"

# A string is plain if it begins like a word, a path or an option, or with a digit where it holds a letter that no
# number and no time has (not a-f, o, t, x, z, p). Within it, ":" and " " stand only before something that keeps them.
_INNER = r"A-Za-z0-9_./+=@%$(),;~^<>*?!&|\"'`\\\[\]{}\-"
_PLAIN = re.compile(
    r"(?:[A-Za-z_/$(]|--?[A-Za-z]|[0-9](?=.*[g-nqrsuvwyG-NQRSUVWY]))"
    rf"(?:[{_INNER}]++|:(?=[A-Za-z0-9_./$(\-])|\x20(?=[{_INNER}]))*+"
)
# Words with a meaning of their own in YAML 1.1, 1.2 or JSON5, in any case.
_WORDS = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity", "-nan", "-inf", "-infinity")
)

# What readers refuse or take for a line end when it stands raw, and what a person can't see: controls, spaces other
# than the plain one, joiners, marks of direction, the byte order mark, surrogates, tags.
_UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff0-\uffff"
    r"\ud800-\udfff\U000e0000-\U000e0fff"
)
_NOT_IN_BLOCK = re.compile(f"[{_UNSEEN}]")
_ESCAPED = re.compile(rf'[\t\n"\\{_UNSEEN}]')
_SHORT = {"\0": r"\0", "\t": r"\t", "\n": r"\n", "\r": r"\r", '"': r"\"", "\\": r"\\"}


class EmitError(ValueError):
    """A value that YAML for Kubernetes can't hold: `path` says where it stands, the message also what to do.

    Each level on the way up adds its step to the path, so that the good way carries none."""

    def __init__(self, what: str, path: Path = ()) -> None:
        super().__init__(what)
        self.what, self.path = what, path

    def __str__(self) -> str:
        # A key may hold what no terminal can print.
        where = dotted(self.path).encode("utf-8", "backslashreplace").decode("utf-8") or "the value"
        return f"{where} {self.what}"


def emit(body: Body) -> str:
    """Write one Kubernetes object as a YAML document: no `---`, no header, one newline at the end.

    At the top apiVersion, kind and metadata come first, in any `metadata` name and namespace, in a mapping that is an
    item of a list its name (or its key, where it has no name). All other keys are sorted by code point.

    Raises EmitError for None, NaN, infinity, an integer outside int64 and uint64, a lone surrogate, a key that is no
    string, a type that JSON has not, and nesting deeper than 64 levels."""
    return _document(body, _TOP)


def emit_value(value: JSON) -> str:
    """Write any plain value, such as a configuration file in a ConfigMap, by the rules of `emit`.

    No key but those of `metadata` and of list items is special here. Raises EmitError as `emit` does."""
    return _document(value, ())


def _document(value: JSON, first: tuple[str, ...]) -> str:
    lines = _Lines()
    if isinstance(value, dict) and value:
        _mapping(value, _ordered(value, first), "", "", lines)
    elif isinstance(value, list) and value:
        _sequence(value, "", "", lines)
    else:
        _leaf("", value, "  ", lines)
    text = "".join(lines)
    if text.endswith("\n\n"):
        # A document that ends with blank lines loses them to the first tool that trims or joins files.
        lines[-1] = _quoted(lines.kept) + "\n"
        text = "".join(lines)
    return text


class _Lines(list[str]):
    """The text so far, in pieces. `kept` is the string last written as a block that keeps its blank lines."""

    kept = ""


def _mapping(body: dict[str, Any], keys: Iterable[str], lead: str, indent: str, lines: _Lines) -> None:
    """Write BODY in the order of KEYS: the first line behind LEAD ("  - " in a list), the others behind INDENT."""
    deeper = _deeper(indent)
    key: object = None
    try:
        for key in keys:
            value = body[key]
            head = _KEYS[key]
            if head[0] == "?":
                head = head.replace(_MARK, indent)
            if type(value) is str:
                text = _SCALARS[value]
                if text[0] != "|":
                    lines.append(f"{lead}{head} {text}\n")
                else:
                    _block(f"{lead}{head} ", text, value, deeper, lines)
            elif isinstance(value, dict) and value:
                lines.append(f"{lead}{head}\n")
                _mapping(value, _ordered(value, _METADATA if key == "metadata" else ()), deeper, deeper, lines)
            elif isinstance(value, list) and value:
                lines.append(f"{lead}{head}\n")
                _sequence(value, indent, indent, lines)
            else:
                _leaf(f"{lead}{head} ", value, deeper, lines)
            lead = indent
    except EmitError as refused:
        # A key that is not a string is what was refused, and has no place in a path.
        if isinstance(key, str):
            refused.path = (key, *refused.path)
        raise


def _sequence(items: list[Any], lead: str, indent: str, lines: _Lines) -> None:
    """Write ITEMS, none of which is a list without items: see `_mapping` for LEAD and INDENT."""
    deeper = _deeper(indent)
    item: Any = None
    try:
        for item in items:
            if type(item) is str:
                text = _SCALARS[item]
                if text[0] != "|":
                    lines.append(f"{lead}- {text}\n")
                else:
                    _block(f"{lead}- ", text, item, deeper, lines)
            elif isinstance(item, dict) and item:
                _mapping(item, _ordered(item, ("name",) if "name" in item else ("key",)), lead + "- ", deeper, lines)
            elif isinstance(item, list) and item:
                _sequence(item, lead + "- ", deeper, lines)
            else:
                _leaf(lead + "- ", item, deeper, lines)
            lead = indent
    except EmitError as refused:
        # The first of several equal objects is the one refused.
        refused.path = (next(index for index, other in enumerate(items) if other is item), *refused.path)
        raise


def _deeper(indent: str) -> str:
    if len(indent) >= 2 * DEEPEST:
        raise EmitError(f"is nested deeper than {DEEPEST} levels; readers give up on it")
    return indent + "  "


def _ordered(body: dict[str, Any], first: tuple[str, ...]) -> list[str]:
    """The keys of BODY: those of FIRST that it has, then the others by code point."""
    try:
        keys = sorted(body)
    except TypeError:
        raise EmitError("has keys that are not strings; quote them where they are written") from None
    for key in reversed(first):
        if key in body:
            keys.remove(key)
            keys.insert(0, key)
    return keys


def _leaf(head: str, value: object, deeper: str, lines: _Lines) -> None:
    """Write a value that has no children. A string comes here only at the top or as a subclass of str."""
    if isinstance(value, str):
        exact = str.__str__(value)
        text = _SCALARS[exact]
        if text[0] == "|":
            _block(head, text, exact, deeper, lines)
            return
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int):
        text = _integer(value)
    elif isinstance(value, float):
        text = _float(value)
    elif isinstance(value, dict):
        text = "{}"
    elif isinstance(value, list):
        text = "[]"
    elif value is None:
        raise EmitError("is None; leave the key out where there is no value")
    else:
        raise EmitError(f"is a {type(value).__name__}, which JSON has not; give str, int, float, bool, list, dict")
    lines.append(f"{head}{text}\n")


def _integer(value: int) -> str:
    if not -(2**63) <= value < 2**64:
        raise EmitError("is an integer of more than 64 bits, which Go's reader rounds; give it as a string")
    return int.__repr__(value)


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise EmitError(f"is {float.__repr__(value)}, which JSON has not")
    if abs(value) <= 2**53 and value == int(value):
        return str(int(value))
    digits, e, exponent = float.__repr__(value).partition("e")
    # PyYAML takes 1e+16 for a string: its numbers have a dot and a signed exponent.
    return f"{digits}.0e{exponent}" if e and "." not in digits else f"{digits}{e}{exponent}"


def _block(head: str, text: str, value: str, deeper: str, lines: _Lines) -> None:
    """Write TEXT, the cached block of the string VALUE, with its lines behind DEEPER."""
    lines.append(head)
    lines.append(text.replace(_MARK, deeper) + "\n")
    if text.endswith("\n"):
        lines.kept = value


def _scalar(text: str) -> str:
    """The string TEXT as a scalar: one line, or a literal block with _MARK in place of its indent."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if "\n" not in text or _NOT_IN_BLOCK.search(text):
        return _quoted(text)
    body = text.rstrip("\n")
    # Spaces at the end of the last line go the way of blank lines at the end of a document.
    if not body or body[-1] in " \t":
        return _quoted(text)
    indicator = "2" if body.lstrip("\n")[0] in " \t" else ""
    ends = len(text) - len(body)
    chomp = "-" if not ends else "+" if ends > 1 else ""
    block = (_MARK + body.replace("\n", "\n" + _MARK)).replace(_MARK + "\n", "\n")
    return f"|{indicator}{chomp}\n{block}" + "\n" * (ends - 1)


def _key(text: object) -> str:
    """A key up to its colon; one too long to stand on one line with it behind "? ", with _MARK before the colon."""
    if not isinstance(text, str):
        raise EmitError(f"has the key {text!r}, which is not a string; quote it where it is written")
    text = str.__str__(text)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and len(text) <= _KEY_LENGTH:
        return f"{text}:"
    quoted = _quoted(text)
    return f"{quoted}:" if len(quoted) <= _KEY_LENGTH else f"? {quoted}\n{_MARK}:"


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if 0xD800 <= code <= 0xDFFF:
        raise EmitError(f"holds half a surrogate pair (U+{code:04X}), which UTF-8 has not; read the text as UTF-8")
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _Cache(dict[str, str]):
    """What `write` makes of a string. Objects of a fleet say the same words over and over; long ones do not repeat."""

    _LENGTH = 512
    _COUNT = 1 << 15

    def __init__(self, write: Callable[[str], str]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, text: str) -> str:
        written = self._write(text)
        if len(text) <= self._LENGTH:
            if len(self) >= self._COUNT:
                self.clear()
            self[str.__str__(text)] = written
        return written


_SCALARS = _Cache(_scalar)
_KEYS = _Cache(_key)
