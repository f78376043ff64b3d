"""Take the pictures of docs/verbs.md anew: `gpustack diff` in a terminal, and `gpustack report`.

Both show the example fleet, with an older driver and another MIG layout for one of its clusters. Needs a Chromium
(tools/chromium.sh), and is run by hand: a browser of another version draws other bytes.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from gpustack.cli import main, parser_for
from gpustack.cli.formats.diff import written
from gpustack.cli.trees.comparison import compare
from tests.browser.chromium import Browser, browser

ROOT = Path(__file__).parents[1]
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
EDITS = {"  reconciler:": '  driver: {version: "580.126.20"}\n  reconciler:', "2g.20gb: 2": "1g.10gb: 4"}
STYLES = {"1": "bold", "1;31": "danger", "33": "note", "32": "plus", "31": "minus", "2": "dim"}
TERMINAL = """<!doctype html><meta charset=utf-8><style>
body { margin: 0; padding: 16px 20px; background: #14181d; color: #d8dee4;
  font: 13px/1.4 "DejaVu Sans Mono", monospace }
pre { margin: 0; white-space: pre-wrap; font: inherit } .bold { font-weight: bold; color: #fff }
.danger { font-weight: bold; color: #ff8f85 } .note { color: #e8c26a }
.plus { color: #8fe0a8 } .minus { color: #ff8f85 }
.dim { color: #939ba4 }</style><pre>"""


def fleet(folder: Path) -> None:
    """The example fleet in FOLDER, committed, and changed."""
    for name in ("policies", "dist"):
        shutil.copytree(ROOT / name, folder / name)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    policy = folder / "policies" / "lab-a100.yaml"
    text = policy.read_text("utf-8")
    for old, new in EDITS.items():
        text = text.replace(old, new, 1)
    policy.write_text(text, "utf-8")


def terminal() -> str:
    """What `gpustack diff` prints on a terminal, as a page."""
    with compare(parser_for("diff").parse_args(["diff"])) as found:
        text = html.escape(written(found, "text", budget=0, colours=True))
    spans = re.sub(
        r"\x1b\[([\d;]+)m(.*?)\x1b\[0m", lambda each: f'<span class="{STYLES[each[1]]}">{each[2]}</span>', text
    )
    return f"{TERMINAL}$ gpustack diff\n{spans}</pre>"


def take(seen: Browser, page: Path, target: Path, width: int, height: int) -> None:
    """Write the picture of PAGE to TARGET."""
    opened = seen.open(page)
    opened.screenshot(width, height)  # the page is laid out anew for its size
    target.write_bytes(opened.screenshot(width, height))


def run() -> None:
    """Take both pictures."""
    with tempfile.TemporaryDirectory() as made, browser() as seen:
        pages, folder = Path(made), Path(made, "fleet")  # a page in the fleet's folder would be a change of it
        folder.mkdir()
        os.environ["GPUSTACK_CACHE"] = str(pages / "cache")
        fleet(folder)
        with contextlib.chdir(folder):
            (pages / "terminal.html").write_text(terminal(), "utf-8")
            main(["report", "--base", "HEAD", "--file", str(pages / "report.html")])
        take(seen, pages / "terminal.html", ROOT / "docs" / "diff.png", 1150, 1180)
        take(seen, pages / "report.html", ROOT / "docs" / "report.png", 1500, 1500)


if __name__ == "__main__":
    run()
