"""Build the documentation into a folder named after the version, and list the versions that lie beside it.

    make site                                  build/site/VERSION, and build/site/index.html
    make site ARGS='--into ~/gpustack-docs'    the same there, beside what was built there before

Versions are folders: a site is files that need no server, so a version is kept by leaving its folder where it is.
Rejected: mike, which keeps versions as commits of a branch and tells pages of each other by a request, which no browser
makes from a disk. The list of versions is made of the folders alone, newest first.

Is run by the Python of `make venv-docs`. The same sources give the same bytes: nothing of the day or the machine is in
them.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIST = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>gpustack: versions of the documentation</title>
<style>body {{ font: 1.1rem/1.6 sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}</style>
<h1>gpustack</h1>
<p>The documentation of each version:</p>
<ul>
{}
</ul>
</html>
"""


def key(name: str) -> tuple[list[int], bool, str]:
    """Sorts versions: by numbers, a release after what came before it (1.0.0rc1)."""
    numbers, rest = re.fullmatch(r"([\d.]*)(.*)", name).groups()  # type: ignore[union-attr] # matches anything
    return [int(part) for part in numbers.split(".") if part], not rest, rest


def listing(folder: Path) -> str:
    """The page that leads to each version in FOLDER."""
    names = sorted((path.parent.name for path in folder.glob("*/index.html")), key=key, reverse=True)
    rows = (f'<li><a href="{html.escape(name)}/index.html">{html.escape(name)}</a></li>' for name in names)
    return LIST.format("\n".join(rows))


def build(folder: Path, version: str) -> Path:
    """Build FOLDER/VERSION anew."""
    target = folder / version
    environment = {
        **os.environ,
        "SITE_NAME": f"gpustack {version}",
        "SOURCE_DATE_EPOCH": "0",  # MkDocs writes the time of building into pages otherwise
        "NO_MKDOCS_2_WARNING": "1",  # a word on the theme's future, between the errors
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    new = folder / f".{version}.new"
    words = ["build", "--strict", "--clean", "--config-file", str(HERE / "mkdocs.yml"), "--site-dir", str(new)]
    try:
        command = [sys.executable, "-m", "mkdocs", *words]
        subprocess.run(command, check=True, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        shutil.rmtree(target, ignore_errors=True)
        new.rename(target)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    (folder / "index.html").write_text(listing(folder), "utf-8")
    return target


def main() -> int:
    """Build, and say where and how long it took."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site")
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site", help="folder of all versions")
    folder = parser.parse_args().into.expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "gpustack" / "__init__.py").read_text("utf-8")
    version = re.search(r'__version__ = "(.+)"', text)[1]  # type: ignore[index] # as text: its packages are not here
    begin = time.monotonic()
    try:
        target = build(folder, version)
    except subprocess.CalledProcessError as error:
        print("".join(line for line in error.stderr.splitlines(keepends=True) if not line.startswith("INFO")))
        return 1
    print(f"{target}/index.html ({time.monotonic() - begin:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
