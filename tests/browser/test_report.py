"""The report in a real browser: it opens, filters, prints, and can be used without a mouse."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, Page, browser
from tests.project import ROOT, Project, cache

__all__ = ["cache"]

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of these tests."""
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """The report of the example fleet, with a change of a driver and one of a MIG layout."""
    project = Project(tmp_path_factory.mktemp("fleet"), cache)
    shutil.copytree(ROOT / "policies", project.folder / "policies")
    shutil.copytree(ROOT / "dist", project.folder / "dist")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", *words], cwd=project.folder, env={**os.environ, **GIT}, check=True)
    policy = project.folder / "policies" / "lab-a100.yaml"
    text = policy.read_text("utf-8")
    policy.write_text(text.replace("  reconciler:", '  driver: {version: "580.126.20"}\n  reconciler:', 1), "utf-8")
    assert policy.read_text("utf-8") != text
    ran = project.run("report", "--base", "HEAD")
    assert ran.code == 0, ran.err
    return project.folder / "report.html"


@pytest.fixture
def page(chromium: Browser, report: Path) -> Page:
    """The report, opened anew."""
    return chromium.open(report)


def test_it_opens_and_asks_for_nothing_else(page: Page, report: Path) -> None:
    """One request, for itself; nothing on the console; every section has its heading."""
    assert page.requests == [report.resolve().as_uri()]
    assert page.console == []
    titles = page.value("[...document.querySelectorAll('h2')].map((each) => each.textContent)")
    assert {"Clusters and versions", "MIG", "Findings", "What changes", "Changes"} <= set(titles)


def test_the_filter_shows_what_has_the_words(page: Page) -> None:
    """Typing narrows the rows, says how many are left, and an empty box shows all again."""
    visible = "[...document.querySelectorAll('#fleet tbody tr')].filter((row) => !row.hidden).length"
    every = page.value(visible)
    page.value("document.getElementById('filter').focus()")
    page.type("lab-a100")
    assert page.value(visible) == 1
    assert " shown" in page.value("document.getElementById('shown').textContent")
    page.type(" no such word")
    assert page.value(visible) == 0
    assert page.value("getComputedStyle(document.getElementById('fleet')).display") == "none"
    page.value(
        "document.getElementById('filter').value = ''; "
        "document.getElementById('filter').dispatchEvent(new Event('input'))"
    )
    assert page.value(visible) == every
    assert page.console == []


def test_the_keyboard_is_enough(page: Page) -> None:
    """The first Tab shows the way past the navigation; Enter goes there; what has the focus is seen."""
    page.press("Tab", 9)
    assert page.value("document.activeElement.className") == "skip"
    assert page.value("document.activeElement.getBoundingClientRect().left >= 0")
    assert page.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.ask("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.ask("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)
    assert page.value("location.hash") == "#main"
    page.press("Tab", 9)
    assert page.value("document.getElementById('main').contains(document.activeElement)")


CONTRAST = """
(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = color.map((each) => each / 255).map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const found = parts(getComputedStyle(each).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return parts(getComputedStyle(document.body).backgroundColor);
  };
  const worst = [];
  for (const node of document.querySelectorAll('h1, h2, h3, p, li, th, td, a, summary, ins, del, caption, b, strong')) {
    if (!node.textContent.trim() || node.className === 'skip') continue;
    const pair = [light(parts(getComputedStyle(node).color)), light(ground(node))].sort((a, b) => b - a);
    worst.push([(pair[0] + .05) / (pair[1] + .05), node.tagName + ' ' + node.textContent.slice(0, 40)]);
  }
  return worst.sort((a, b) => a[0] - b[0])[0];
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_both_schemes(page: Page, scheme: str) -> None:
    """The contrast of all words is at least 4.5, WCAG's AA."""
    page.media(prefers_color_scheme=scheme)
    ratio, where = page.value(CONTRAST)
    assert ratio >= 4.5, where
    dark = page.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    assert dark == (scheme == "dark")


def test_it_prints(page: Page) -> None:
    """On paper there is no navigation and no box, and changes are unfolded."""
    page.media("print")
    assert page.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.value("getComputedStyle(document.querySelector('.filter')).display") == "none"
    assert page.pdf().startswith(b"%PDF")
    assert page.value("[...document.querySelectorAll('details')].every((each) => each.open)")


WIDE = """
[...document.querySelectorAll('table, svg, pre, code, h3, figure')].filter((each) => {
  const box = each.closest('.wide') || each, edge = box.getBoundingClientRect();
  return edge.right > innerWidth || edge.left < 0 || (box === each && each.tagName === 'TABLE');
}).map((each) => each.outerHTML.slice(0, 60))
"""


@pytest.mark.parametrize("width", [400, 500, 1280])
def test_nothing_runs_past_the_page(page: Page, width: int) -> None:
    """The page doesn't scroll sideways: tables and changes do so by themselves in boxes that fit, pictures shrink."""
    page.screenshot(width=width, height=800)
    assert page.value(f"document.documentElement.scrollWidth <= {width}")
    assert page.value(WIDE) == []
