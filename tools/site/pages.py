"""What MkDocs doesn't do by itself with docs/: pages from outside of it, and GitHub's Markdown.

The pages are written for GitHub, where they lie in the repository. So their links lead to files that are no pages
(a Containerfile, a list of deviations) and out of docs/. Rejected: links to a host of the repository, which a site
without the internet doesn't reach, and pages that are written for MkDocs, which GitHub shows badly. Instead the files
that pages lead to are part of the site, and links are turned on the way. A link to what isn't there is left as it is:
the strict build names it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BROUGHT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages outside of docs/, and what they are in the site."""
FIRST = ("README.md", "index.md")
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
COMMENT = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)
CODE = re.compile(r"`[^`]+`")
ITEM = re.compile(r"( *)([-*]|\d+\.)( +)")
UNUSED = ("404.html", "sitemap.xml", "sitemap.xml.gz")
"""Pages that need to know the site's address, which a folder doesn't have."""


def on_config(config: MkDocsConfig) -> None:
    """The navigation is written out."""
    config.nav = list(unfolded(config.nav))


def unfolded(nav: list[Any]) -> Iterator[Any]:
    """The navigation, with each `FOLDER/*.md` as the pages of that folder but its first."""
    for item in nav:
        if isinstance(item, dict):
            yield {title: list(unfolded(at)) if isinstance(at, list) else at for title, at in item.items()}
        elif item.endswith("/*.md"):
            pages = sorted(path for path in DOCS.glob(item) if path.name not in FIRST)
            yield from (path.relative_to(DOCS).as_posix() for path in pages)
        else:
            yield item


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside of docs/, the files that pages lead to, and what the theme's licence asks for."""
    for source, target in BROUGHT.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text("utf-8")))
    sources = [*BROUGHT, *(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))]
    for name in sorted({name for source in sources for name in files_of(source)}):
        files.append(File.generated(config, shown(name), content=(ROOT / name).read_text("utf-8")))
    licence = next(path for path in metadata.files("mkdocs-material") or [] if path.name == "LICENSE")
    files.append(File.generated(config, "assets/LICENSE-of-theme.txt", content=licence.read_text("utf-8")))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """A rule's page is below the list of rules, though the navigation doesn't list it."""
    section = next(item for item in nav.items if isinstance(item, Section) and item.title == "Rules")
    for file in files.documentation_pages():
        if file.src_uri.startswith("rules/GPU"):
            Page(None, file, config).parent = section
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """As GitHub reads it, with links that lead to where things are in the site."""
    source = next((name for name, target in BROUGHT.items() if target == page.file.src_uri), None)
    source = source or f"docs/{page.file.src_uri}"
    return as_github("".join(turned(markdown, source)))


def on_post_build(config: MkDocsConfig) -> None:
    """Take out what is of no use."""
    for name in UNUSED:
        (Path(config.site_dir) / name).unlink(missing_ok=True)


def shown(path: str) -> str:
    """Where a file of the repository is in the site: as text, and not hidden, so that a browser shows it."""
    return f"files/{path.lstrip('.')}.txt"


def place(target: str, source: str) -> str:
    """The path in the repository that a link of SOURCE to TARGET leads to; of a folder, its first page."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    for name in FIRST:
        if (ROOT / path / name).is_file():
            return f"{path}/{name}"
    return path


def files_of(source: str) -> Iterator[str]:
    """The files that SOURCE leads to and that are no pages and not in docs/."""
    for line in outside_of_code((ROOT / source).read_text("utf-8")):
        for found in LINK.finditer(line):
            path = place(found[1], source)
            if path not in BROUGHT and not path.startswith(("docs/", "../")) and (ROOT / path).is_file():
                yield path


def turned(markdown: str, source: str) -> Iterator[str]:
    """MARKDOWN line by line, its links turned."""
    here = posixpath.dirname(BROUGHT.get(source, source.removeprefix("docs/")))

    def turn(found: re.Match[str]) -> str:
        path = place(found[1], source)
        if path in BROUGHT:
            target = BROUGHT[path]
        elif path.startswith("docs/"):
            target = path.removeprefix("docs/")
        elif (ROOT / path).is_file():
            target = shown(path)
        else:
            return found[0]
        return posixpath.relpath(target, here or ".") + (found[2] or "")

    for line, code in lines(markdown):
        yield line if code else LINK.sub(turn, line)


def lines(markdown: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is in a block of code."""
    fence = ""
    for line in markdown.splitlines(keepends=True):
        mark = line.strip()[:3]
        if fence or mark == "```":
            yield line, True
            fence = "" if fence and line.strip() == fence else fence or mark
        else:
            yield line, False


def outside_of_code(markdown: str) -> Iterator[str]:
    """The lines that are in no block of code."""
    return (line for line, code in lines(markdown) if not code)


def as_github(markdown: str) -> str:
    """A list or a table may follow a paragraph at once, an item of a list is inside the one whose text it is below,
    and a bar in code in a table has a backslash: Python-Markdown wants an empty line, four blanks for each level, and
    no backslash. A comment before the title hides that from MkDocs.
    """
    made: list[str] = []
    open_items: list[int] = []  # where the text of each item around this line begins
    before = ""
    for line, code in lines(COMMENT.sub("", markdown)):
        item = None if code else ITEM.match(line)
        if item:
            begins = len(item[1])
            if not open_items and before.strip():
                made.append("\n")
            open_items = [each for each in open_items if each <= begins]
            line = " " * (4 * len(open_items)) + line.lstrip(" ")  # noqa: PLW2901 - the line as it is to be read
            open_items.append(item.end())
        elif not before.strip() and line.strip() and not line.startswith(" "):
            open_items = []
        elif not code and line.startswith("|"):
            if before.strip() and not before.startswith("|"):
                made.append("\n")
            line = CODE.sub(lambda found: found[0].replace("\\|", "|"), line)  # noqa: PLW2901 - as above
        made.append(line)
        before = line
    return "".join(made)
