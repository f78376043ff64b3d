"""The page around the sections: landmarks, styles and the filter box.

For people who use a keyboard, a screen reader, a dark room or paper: headings in order, a link past the navigation,
tables with scopes that scroll by keyboard, focus that is seen, colours that are never the only sign. The page reads
well without its script, which only adds the filter. Page, styles and script are files in review/templates/.
"""

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template

from ...model import printable
from ..templates import each, part, template


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading of its own. `body` is HTML; "" is left out."""

    id: str
    title: str
    body: str


def text(value: object) -> str:
    """VALUE as text of the page: nothing in it is a tag, an entity or a control character."""
    return html.escape(printable(str(value)).encode("utf-8", "backslashreplace").decode())


def prose(value: object) -> str:
    """VALUE as text of the page; what it has between backticks is code."""
    return re.sub(r"`+([^`]+)`+", part("code"), text(value))


def rule_link(name: str) -> str:
    """The id of a rule, which leads to what it means (`rules`)."""
    return part("link", name=text(name))


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML; the first of each row is its heading. Rows can be filtered."""
    body = "".join(part("row", first=first, rest=each("cell", rest)) for first, *rest in rows)
    return part("table", caption=text(caption), head=each("column", map(text, columns)), body=body)


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The whole page."""
    parts = [one for one in sections if one.body]
    links = "".join(part("entry", id=one.id, title=text(one.title)) for one in parts)
    body = "".join(part("section", id=one.id, title=text(one.title), body=one.body) for one in parts)
    script = template("page.js")
    digest = base64.b64encode(hashlib.sha256(f"\n{script}".encode()).digest()).decode()  # as it stands in its element
    words = {"title": text(title), "subtitle": text(subtitle), "links": links, "body": body, "digest": digest}
    return Template(template("page.html")).substitute(words, style=template("page.css"), script=script)
