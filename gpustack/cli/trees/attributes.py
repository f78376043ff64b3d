"""Attributes and settings of Git by which a file is checked out as another than it was committed as.

Solves: what is reviewed is the work tree, and what is applied is what somebody else checks out. A line in a
.gitattributes makes something else of files, which some engines don't know; Git asked for each of a million files takes
longer than the rest of a review. So the lines are read first: where no word in them converts, nobody asks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ...compiler.foreign import all_above
from ...text.regular import read_regular

if TYPE_CHECKING:
    from .repository import Entry, Git

ATTRIBUTES = ".gitattributes"
CONVERTED = ("filter", "ident", "working-tree-encoding")
"""Attributes of Git by which a file is checked out as another than it was committed as."""
HARMLESS = re.compile(rb"[-!]?(text|binary|diff|merge|linguist-.*)|text=auto|eol=lf")
"""A word of attributes, whole, by which each file is checked out as it was committed, whatever other words say."""
FILES, SIZE = 64, 100_000
"""Files of attributes, and bytes of one, that are read here."""
NO = {"false", "no", "off", "0", "input"}
"""What core.autocrlf says where no file is checked out as another; all else means yes, nothing too."""


def converts(git: Git, paths: Collection[str], staged: Mapping[str, Entry]) -> list[tuple[str, str, str]]:
    """Which of PATHS Git checks out as another content than is committed: path, attribute and its value; first
    `line_ends`. STAGED are entries of the index, with the files of attributes in it."""
    rules = line_ends(git)
    if may_convert(git, paths, staged):
        said = git.attributes(sorted(paths), (*CONVERTED, "eol"))
        rules += [each for each in said if each[1] != "eol" or each[2] == "crlf"]
    return rules


def line_ends(git: Git) -> list[tuple[str, str, str]]:
    """The settings of the clone for line ends by which any file is checked out as another; their path is ""."""
    said = [(name, value.strip().lower()) for name, value in git.settings(r"^core\.(autocrlf|eol)$")]
    rules = [("", name, value) for name, value in said if name == "core.autocrlf" and value not in NO]
    rules += [("", name, value) for name, value in said if (name, value) == ("core.eol", "crlf")]
    return rules if os.linesep == "\n" else [*rules, ("", "core.eol", "native")]


def may_convert(git: Git, paths: Iterable[str], staged: Mapping[str, Entry]) -> bool:
    """Whether any of PATHS may have an attribute that isn't HARMLESS: Git reads a file in each folder from the
    repository's top to a path, in the work tree or as it is STAGED, and one of the clone's own."""
    tops = ["../" * count + ATTRIBUTES for count in range(git.prefix.count("/") + 1)]
    own = git.ask("rev-parse", "--git-path", "info/attributes").removesuffix("\n")
    root = os.fspath(git.here(""))
    files = [f"{root}/{file}" for file in (*tops, *(f"{way}/{ATTRIBUTES}" for way in all_above(paths)))]
    shown = [file for file in (*files, os.fspath(git.here(own))) if os.path.lexists(file)]
    entries = [entry for path, entry in staged.items() if path.endswith(f"/{ATTRIBUTES}")]
    entries += git.staged_files(tops).values()
    if len(shown) + len(entries) > FILES or not all(entry.mode[:3] == "100" and entry.blob for entry in entries):
        return True
    try:
        texts = [read_regular(file, follow=False, limit=SIZE) for file in shown]
    except OSError:  # a link, say
        return True
    texts += [text for _, text in git.contents(entry.blob for entry in entries)]
    return any(len(text) >= SIZE or not all(map(HARMLESS.fullmatch, _words(text))) for text in texts)


def _words(text: bytes) -> Iterator[bytes]:
    """The words of a file of attributes with TEXT, whatever they are given to, where Git may take them for words. A
    name for several of them is one too, and so is a pattern in quotes, which has an end of its own."""
    for line in text.split(b"\n"):
        first, *words = re.split(rb"[ \t\r]+", line.strip(b" \t\r"))
        if not first.startswith(b"#"):
            yield from (first, *words) if first.startswith((b"[attr]", b'"')) else words
