"""The page around the sections: landmarks, styles and the filter box.

For people who use a keyboard, a screen reader, a dark room or paper: headings in order, a link past the navigation,
tables with scopes that scroll by keyboard, focus that is seen, colours that are never the only sign. The page reads
well without its script, which only adds the filter.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass

from ...model import printable


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading of its own; "" as body is left out."""

    id: str
    title: str
    body: str


def text(value: object) -> str:
    """VALUE as text of the page: nothing in it is a tag, an entity or a control character."""
    return html.escape(printable(str(value)).encode("utf-8", "backslashreplace").decode())


def section(name: str, title: str, body: str) -> Section:
    """A section; BODY is HTML."""
    return Section(name, title, body)


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML; the first of each row is its heading. Rows can be filtered."""
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    body = "".join(
        f'<tr data-row><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>\n'
        for first, *rest in rows
    )
    return (
        f'<div class="wide" role="region" aria-label="{text(caption)}" tabindex="0"><table>\n'
        f"<caption>{text(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The whole page."""
    parts = [part for part in sections if part.body]
    links = "".join(f'<li><a href="#{part.id}">{text(part.title)}</a></li>\n' for part in parts)
    body = "".join(
        f'<section id="{part.id}" aria-labelledby="{part.id}-title">\n'
        f'<h2 id="{part.id}-title">{text(part.title)}</h2>\n{part.body}</section>\n'
        for part in parts
    )
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; base-uri 'none'"
    )
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>{text(title)}</h1>
<p>{text(subtitle)}</p>
</header>
<nav aria-label="Sections">
<ul>
{links}</ul>
</nav>
<search class="filter" hidden>
<label for="filter">Show only what has these words</label>
<input id="filter" type="search" autocomplete="off" spellcheck="false" aria-describedby="shown">
<p id="shown" role="status"></p>
</search>
<main id="main" tabindex="-1">
{body}</main>
<footer><p>Made by gpustack.</p></footer>
<script>{SCRIPT}</script>
</body>
</html>
"""


SCRIPT = """
"use strict";
(() => {
  const box = document.getElementById("filter");
  const rows = [...document.querySelectorAll("[data-row]")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const sections = [...document.querySelectorAll("main > section")];
  const show = () => {
    const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      count += row.hidden ? 0 : 1;
    });
    for (const each of sections) {
      const own = [...each.querySelectorAll("[data-row]")];
      each.classList.toggle("nothing", words.length > 0 && own.length > 0 && own.every((row) => row.hidden));
    }
    document.getElementById("shown").textContent = words.length ? `${count} of ${rows.length} shown` : "";
  };
  box.addEventListener("input", show);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  document.querySelector("search.filter").hidden = rows.length === 0;
})();
"""

STYLE = """
:root { --ground: #fff; --ink: #1b1f24; --soft: #4a5159; --line: #c5cbd2; --panel: #f4f6f8; --link: #0a4ea3;
  --danger: #a3130a; --danger-panel: #fdeceb; --plus: #0b5d2a; --minus: #a3130a; --focus: #0a4ea3 }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --ink: #eef1f4; --soft: #b4bcc5; --line: #454d56;
  --panel: #1d232a; --link: #8fc1ff; --danger: #ffb0a8; --danger-panel: #3a1a18; --plus: #8fe0a8; --minus: #ffb0a8;
  --focus: #8fc1ff } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 110rem; padding: 1rem 1.5rem 4rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
a { color: var(--link) }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px }
.skip { position: absolute; left: -100rem }
.skip:focus { left: 1rem; top: 1rem; padding: .5rem 1rem; background: var(--ground); z-index: 2 }
header p, footer { color: var(--soft) }
h1 { margin: 0; font-size: 1.7rem }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.3rem }
h3 { margin: 1rem 0 .25rem; font-size: 1rem }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none }
.filter { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem .75rem; position: sticky; top: 0;
  padding: .5rem 0; background: var(--ground); border-bottom: 1px solid var(--line); z-index: 1 }
.filter[hidden] { display: none }
.filter input { flex: 1 1 16rem; max-width: 32rem; padding: .4rem .6rem; font: inherit; color: inherit;
  background: var(--panel); border: 1px solid var(--soft); border-radius: 4px }
.filter p { margin: 0; color: var(--soft) }
[hidden], .nothing { display: none }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
caption { text-align: start; color: var(--soft); padding-bottom: .25rem }
th, td { padding: .3rem .7rem; border: 1px solid var(--line); text-align: start; vertical-align: top;
  white-space: nowrap }
thead th { background: var(--panel) }
td { max-width: 20rem; white-space: normal; overflow-wrap: break-word }
tbody th { font-weight: 600; position: sticky; left: 0; background: var(--ground) }
.prose { display: block; min-width: 18rem; max-width: 32rem; white-space: normal }
td strong::before { content: "\\2260\\a0" }
.effect { margin: .75rem 0; padding: .5rem 1rem; background: var(--panel); border-inline-start: 5px solid var(--line) }
.effect.red { background: var(--danger-panel); border-color: var(--danger) }
.effect.red h3 { color: var(--danger) }
.effect p { margin: .25rem 0; color: var(--soft) }
.effect li { overflow-wrap: anywhere }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: 4px }
summary { padding: .5rem .75rem; cursor: pointer; font-weight: 600; overflow-wrap: anywhere }
pre { margin: 0; padding: .5rem .75rem; overflow-x: auto; background: var(--panel);
  font: 13px/1.45 ui-monospace, monospace }
pre ins { color: var(--plus); text-decoration: none } pre del { color: var(--minus); text-decoration: none }
svg { max-width: 100%; height: auto }
.unseen { position: absolute; width: 0; height: 0; overflow: hidden }
@media print { body { max-width: none; padding: 0; font-size: 11px } nav, .filter, .skip { display: none !important }
  details, .effect, tr, figure { break-inside: avoid } .wide { overflow: visible } th, td { white-space: normal }
  pre { white-space: pre-wrap } }
"""
