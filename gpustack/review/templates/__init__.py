"""HTML, CSS, JavaScript and SVG of the report and of pictures: files that editors and linters know as what they are."""

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from string import Template


@cache
def template(name: str) -> str:
    """The file NAME."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


@cache
def _parts() -> dict[str, Template]:
    """The pieces of parts.html by name; those that stand in a line of others end without a line break."""
    _, *found = re.split(r"^<!-- ([\w-]+)(, inline)? -->\n", template("parts.html"), flags=re.MULTILINE)
    return {
        name: Template(text.removesuffix("\n") if inline else text)
        for name, inline, text in zip(found[::3], found[1::3], found[2::3], strict=True)
    }


def part(name: str, /, **words: object) -> str:
    """The piece NAME of parts.html with WORDS, which are markup: what a policy holds went through `frame.text`."""
    return _parts()[name].substitute(words)


def each(name: str, bodies: Iterable[str]) -> str:
    """The piece NAME around each of BODIES."""
    return "".join(part(name, body=body) for body in bodies)
