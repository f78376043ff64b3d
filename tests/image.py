"""What the Containerfile puts into the reconciler's image, made without a network.

tools/image_root.py takes the steps; the packages that pip would fetch by their hashes are those of this environment, in
the very versions that are pinned.
"""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path

from tests.project import ROOT
from tools import image_root

LOCKED = re.findall(
    r"^([a-z0-9-]+)==([^ ]+)((?: ; .*)?) \\$", (ROOT / "requirements/reconciler.txt").read_text("utf-8"), re.MULTILINE
)
"""Package, version and marker of each line of the lock."""
HERE = [(name, version) for name, version, marker in LOCKED if "== 'emscripten'" not in marker]
"""Packages and versions that the image has, on any system with a kernel."""

PYTHON = """\
#!{python}
# The base image's Python, whose pip takes what is pinned from this environment: tests have no network.
import os, shutil, sys
from importlib.metadata import distribution
from pathlib import Path
words = sys.argv[1:]
if words[:3] != ["-m", "pip", "install"]:
    os.execv({python!r}, [{python!r}, *words])
wanted = {{"--no-deps", "--require-hashes", "--only-binary=:all:", "--requirement=reconciler.txt"}}
assert wanted <= set(words) and Path("reconciler.txt").is_file()
target = next(Path(word.partition("=")[2]) for word in words if word.startswith("--target="))
for name, version in {packages!r}:
    found = distribution(name)
    assert found.version == version, (name, found.version, version)
    for file in found.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found.locate_file(file), target / file)
"""


def build(folder: Path) -> Path:
    """Take the steps in FOLDER; the folder in it that the image has as /opt/gpustack."""
    python = folder / "python"
    python.write_text(PYTHON.format(python=sys.executable, packages=HERE), encoding="utf-8")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return image_root.build(folder, str(python))
