"""The bytes of a policy file, and the text in them.

Solves: a path that a person typed may name nothing, a folder, a pipe or a photograph, and none of these may end in a
traceback or in a program that waits for ever. So the file is looked at before it is opened, at most `LIMIT` bytes are
read, and what is not text is refused with the place where it stops being text.
"""

import codecs
import difflib
import errno
import functools
import os
import pathlib
import re
import stat

from gpustack.model import InputError, Location
from gpustack.text import secrets
from gpustack.text.refusals import refusal
from gpustack.text.regular import read_regular

LIMIT = 8 * 1024 * 1024
"""Bytes of the largest file that is read. A policy has a few kilobytes; one with dashboards and all, a few hundred."""

_BREAK = re.compile(r"\r\n|\r|\n")

# What YAML 1.2, section 5.1, doesn't hold, and the three breaks that only YAML 1.1 knew (U+0085, U+2028, U+2029:
# libyaml still breaks lines there, no editor and no YAML 1.2 reader does), and a byte order mark but at the start.
# Said the other way round the expression takes 3 ms to build.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

_MAGIC = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive",
    b"\x7fELF": "a program",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a PNG picture",
}

_SPECIAL = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def load_bytes(path: pathlib.Path, display: str) -> bytes:
    """Return the content of the regular file PATH. Raises InputError for anything else, and for one over LIMIT."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            sort = next((words for test, words in _SPECIAL if test(mode)), "no regular file")
            raise refusal("GPU001", "folder" if stat.S_ISDIR(mode) else "special", Location(display), sort=sort)
        raw = read_regular(path, limit=LIMIT + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, display, error) from None
    if len(raw) > LIMIT:
        raise refusal("GPU001", "large", Location(display), limit=LIMIT)
    return raw


def decode(raw: bytes, display: str) -> str:
    """Return the text in RAW: UTF-8, or UTF-16 with a byte order mark. The mark itself is not part of the text."""
    encoding, name = "utf-8", "UTF-8"
    if raw.startswith(codecs.BOM_UTF8):
        raw = raw[len(codecs.BOM_UTF8) :]
    elif raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding, name = "utf-16", "UTF-16"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise _not_text(raw, error.start, display, f"the byte 0x{raw[error.start]:02x} is not valid {name}") from None
    bad = _UNPRINTABLE.search(text)
    if bad:
        raise _unprintable(raw, text, bad.start(), display)
    return text


@functools.lru_cache(maxsize=4)
def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines of TEXT without their ends, the way an editor numbers them."""
    return tuple(_BREAK.split(text))


def place(text: str, file: str, line: int, column: int) -> Location:
    """Return the Location of LINE and COLUMN (both from 1) of TEXT, with the line's text unless that is a Secret's.

    A place after the last line (where a parser notices that the file ended too early) becomes the end of that."""
    lines = split_lines(text)
    last = len(lines) - 1 if len(lines) > 1 and not lines[-1] else len(lines)
    if line > last:
        line, column = last, len(lines[last - 1]) + 1
    return Location(file, line, column, None if secrets.hides(text, line) else lines[line - 1])


def _unreadable(path: pathlib.Path, display: str, error: OSError | ValueError) -> InputError:
    where = Location(display)
    code, reason = (error.errno, error.strerror) if isinstance(error, OSError) else (None, None)
    if code == errno.ENOENT and path.is_symlink():
        return refusal("GPU001", "link to nothing", where, target=path.readlink())
    if code in (errno.ENOENT, errno.ENOTDIR):
        return refusal("GPU001", "missing", where, near=_nearest_files(path))
    case = {errno.EACCES: "permission", errno.EPERM: "permission", errno.ELOOP: "circle"}.get(code or 0, "other")
    return refusal("GPU001", case, where, reason=reason or error)


def _nearest_files(path: pathlib.Path) -> str:
    """Name the files beside PATH whose names are most like it, or say what is wrong with the folder."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder.name or folder} either: check the path"
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.endswith((".yaml", ".yml"))]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    near = near or [name for name in names if name.partition(".")[0] == path.name.partition(".")[0]]
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "check the name" if names else "there are no YAML files in that folder"


def _not_text(raw: bytes, offset: int, display: str, reason: str) -> InputError:
    """Refuse RAW, which stops being text at byte OFFSET."""
    line = raw.count(b"\n", 0, offset) + 1
    start = raw.rfind(b"\n", 0, offset) + 1
    column = len(raw[start:offset].decode("utf-8", "replace")) + 1
    content = raw[start:].partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    hidden = secrets.may_have(raw.decode("utf-8", "replace"))
    sort = next((words for magic, words in _MAGIC.items() if raw.startswith(magic)), None)
    where = Location(display, line, column, None if hidden else _UNPRINTABLE.sub("\ufffd", content))
    case = "not text" if sort else "not UTF-8"
    return refusal("GPU002", case, where, sort=sort, offset=offset, line=line, reason=reason)


def _unprintable(raw: bytes, text: str, index: int, display: str) -> InputError:
    char = text[index]
    if raw.startswith(tuple(_MAGIC)):
        return _not_text(raw, raw.find(char.encode()), display, "there is a control character")
    if char == "\0" and not raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _not_text(raw, raw.find(b"\0"), display, "there is a NUL, as in binary files or UTF-16 without a mark")
    before = _BREAK.split(text[:index])
    where = place(text, display, len(before), len(before[-1]) + 1)
    name = {"\ufeff": "a byte order mark", "\u2028": "a line separator", "\u2029": "a paragraph separator"}.get(
        char, "a next-line character" if char == "\x85" else "a control character"
    )
    return refusal("GPU002", "invisible", where, name=name, code=f"{ord(char):04X}")
