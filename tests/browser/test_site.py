"""The documentation as a site: it needs nobody else, no link in it is dead, and it can be searched and read.

It is built twice, as `make site` does. What of its sources is wrong (a dead link, a page that the navigation lacks)
ends the build, which is strict.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from gpustack import __version__
from tests.browser.chromium import Browser, browser
from tests.project import ROOT, tree

PYTHON = ROOT / ".tools/docs-venv/bin/python"
SECONDS = 20
"""How long the search may take to have read its index on a busy machine; 1 s is usual."""


def build(folder: Path) -> Path:
    """Build the site into FOLDER; the version's folder."""
    command: list[str | Path] = [PYTHON, ROOT / "tools/site/build.py", "--into", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / __version__


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built."""
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of these tests."""
    with browser() as found:
        yield found


class Elements(HTMLParser):
    """The elements of a page, each with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, list[tuple[str, dict[str, str]]]]:
    """The elements of each page."""
    return {path: Elements(path.read_text("utf-8")).found for path in sorted(site.rglob("*.html"))}


def test_built_twice_it_is_equal(site: Path, tmp_path: Path) -> None:
    """Every byte depends on the sources alone; where there was a version before, it is replaced, and others stay."""
    kept = tmp_path / "0.0.9"
    (tmp_path / __version__).mkdir()
    (tmp_path / __version__ / "gone.html").touch()
    kept.mkdir()
    (kept / "index.html").write_text("before", "utf-8")
    assert tree(build(tmp_path)) == tree(site)
    assert (kept / "index.html").read_text("utf-8") == "before"
    listed = re.findall(r'href="([^"]+)"', (tmp_path / "index.html").read_text("utf-8"))
    assert listed == [f"{__version__}/index.html", "0.0.9/index.html"]
    assert {path.name for path in tmp_path.iterdir()} == {"index.html", "0.0.9", __version__}


def test_every_page_is_there(site: Path, pages: dict[Path, list[tuple[str, dict[str, str]]]]) -> None:
    """README, each page of docs/, and those beside it that people read; each says which version it is of."""
    docs = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    names = {path.with_name("index.html" if path.name == "README.md" else f"{path.stem}.html") for path in docs}
    brought = {Path(f"{name}.html") for name in ("index", "contributing", "security", "changelog")}
    assert {path.relative_to(site) for path in pages} == names | brought
    for path in pages:
        assert f"gpustack {__version__}</title>" in path.read_text("utf-8"), path


LOADED = {(tag, "src") for tag in ("script", "img", "iframe", "source")} | {("object", "data"), ("form", "action")}


def test_nothing_comes_from_another_host(site: Path, pages: dict[Path, list[tuple[str, dict[str, str]]]]) -> None:
    """No script, style, font, image or hint of a page or a style sheet has an address with a host. The theme's script
    knows some (a program that draws diagrams, by the class `mermaid`; counts of repositories): no page makes it ask.
    """
    for path, elements in pages.items():
        for tag, having in elements:
            loaded = [value for name, value in having.items() if (tag, name) in LOADED]
            loaded += [having["href"]] if tag == "link" and "href" in having else []
            loaded += [having["srcset"]] if "srcset" in having else []
            assert not [each for each in loaded if urlsplit(each).scheme or urlsplit(each).netloc], (path, tag, having)
            assert "mermaid" not in having.get("class", "").split(), path
            assert having.get("data-md-component") != "source", path
    for path in site.rglob("*.css"):
        text = path.read_text("utf-8")
        assert not re.findall(r"url\(\s*[\"']?(?!data:)(?:\w+:)?//[^)]*|@import[^;]*", text), path


def test_no_link_is_dead(site: Path, pages: dict[Path, list[tuple[str, dict[str, str]]]]) -> None:
    """Each link within the site leads to a file and, with a fragment, to what has that id."""
    ids = {path: {having["id"] for _, having in found if "id" in having} for path, found in pages.items()}
    overview = site.parent / "index.html"
    for path, found in pages.items():
        for tag, having in found:
            parts = urlsplit(having.get("href", "") if tag == "a" else "")
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), (path, having)
            if parts.fragment and parts.fragment not in {"__skip", "__search", "__toc", "__nav"}:
                assert target == overview or unquote(parts.fragment) in ids[target], (path, having)


PLAIN = re.compile(r"<p>(?:(?!</p>|<pre).)*\n *(?:[-*]|\d+\.) (?:(?!</p>).)*</p>|<p>\|", re.DOTALL)
"""A list or a table that became a paragraph."""


def test_it_reads_markdown_as_github_does(site: Path) -> None:
    """A list or a table right behind a paragraph is one, an inner list is inside, a bar in a table's code is one."""
    facts = (site / "facts/operator.html").read_text("utf-8")
    assert re.search(r"IfNotPresent<ul>\n<li>command: <code>driver-manager</code>", facts)
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        assert not PLAIN.search(text), path
    assert "<code>render [CLUSTER|FILE...]</code>" in (site / "index.html").read_text("utf-8")


def wait(condition: Callable[[], object], what: str) -> None:
    """Ask until the answer is true."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


RESULTS = "[...document.querySelectorAll('.md-search-result__link')].map((each) => each.href.split(/[?#]/)[0])"
"""The pages that the search has found, the best first."""


@pytest.mark.parametrize(
    ("words", "leads_to"),
    [("GPU102", "rules/GPU102.html"), ("maxUnavailable", "policy.html"), ("quarantine", "reconciler.html")],
)
def test_the_search_finds(chromium: Browser, site: Path, words: str, leads_to: str) -> None:
    """Without a server: the id of a rule leads to its page first, a field and a word to pages about them."""
    page = chromium.open(site / "index.html")
    page.ask("Page.bringToFront")
    page.value("document.querySelector('.md-search__input').focus()")
    page.type(words)
    page.press("Shift", 16)  # inserted text comes without keys, and the theme listens to those
    wait(lambda: page.value(f"{RESULTS}.length"), f"{words}: something is found")
    wanted = f"{site.resolve().as_uri()}/{leads_to}"
    wait(lambda: wanted in page.value(RESULTS), f"{words}: {page.value(RESULTS)}")
    if leads_to.startswith("rules/"):
        assert page.value(RESULTS)[0] == wanted
    assert [each for each in page.requests if not each.startswith(("file:", "data:", "about:"))] == []
    assert page.console == []


@pytest.mark.parametrize("name", ["index.html", "tutorial.html", "policy.html", "rules/GPU102.html", "verbs.html"])
@pytest.mark.parametrize("width", [500, 1280])
def test_nothing_runs_past_a_page(chromium: Browser, site: Path, name: str, width: int) -> None:
    """A page doesn't scroll sideways, narrow or wide: its tables and blocks do so by themselves."""
    page = chromium.open(site / name)
    page.screenshot(width=width, height=900)
    assert page.value(f"document.documentElement.scrollWidth <= {width}")
    assert page.console == []


CONTRAST = """
(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = (top, below) => {
    const alpha = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map((each) => top[each] * alpha + below[each] * (1 - alpha));
  };
  const light = (color) => {
    const [r, g, b] = color.map((each) => each / 255).map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = (node) => {
    if (!node) return [255, 255, 255];
    const found = parts(getComputedStyle(node).backgroundColor);
    return found.length > 3 && found[3] < 1 ? over(found, ground(node.parentElement)) : found;
  };
  const worst = [];
  for (const node of document.querySelectorAll('.md-content :is(h1, h2, h3, p, li, th, td, a, code, code span)')) {
    if (!node.textContent.trim() || node.closest('.headerlink, button, nav')) continue;
    const below = ground(node), pair = [light(over(parts(getComputedStyle(node).color), below)), light(below)];
    pair.sort((a, b) => b - a);
    worst.push([(pair[0] + .05) / (pair[1] + .05), node.tagName + ' ' + node.textContent.slice(0, 40)]);
  }
  return worst.sort((a, b) => a[0] - b[0])[0];
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", "tutorial.html", "policy.html"])
def test_words_can_be_read_in_both_schemes(chromium: Browser, site: Path, name: str, scheme: str) -> None:
    """A page is as light or dark as the system; the contrast of its words is at least 4.5, WCAG's AA, code included."""
    page = chromium.open(site / name)
    page.media(prefers_color_scheme=scheme)
    wanted = "slate" if scheme == "dark" else "default"
    wait(lambda: page.value("document.body.getAttribute('data-md-color-scheme')") == wanted, scheme)
    ratio, where = page.value(CONTRAST)
    assert ratio >= 4.5, where
