"""Made-up versions of gpustack, installed side by side without a network: a copy of the package with another version
and whatever else is other in it, in a virtual environment that finds what gpustack needs in ours.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import yaml

from gpustack import __version__
from gpustack.compiler.cache import files_digest
from tests.project import ROOT

SITE = f"lib/python{sysconfig.get_python_version()}/site-packages"


def install(folder: Path, version: str, change: Callable[[Path], object] = lambda _: None) -> str:
    """Install VERSION of gpustack below FOLDER, made different by CHANGE; the digest of its files."""
    place = folder / version
    venv.create(place, symlinks=True, with_pip=False)
    package = place / SITE / "gpustack"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gpustack", package, ignore=ignored)
    shutil.copytree(ROOT / "schemas", package / "schemas", copy_function=os.link)
    (place / SITE / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    edit(package / "__init__.py", f'"{__version__}"', f'"{version}"')
    change(package)
    return files_digest(package, package / "schemas" / "index.json")


def lock(**versions: str) -> str:
    """The text of gpustack.lock with VERSIONS, their digests by name."""
    return yaml.safe_dump([{"version": name, "sha256": digest} for name, digest in versions.items()], sort_keys=False)


def edit(path: Path, old: str, new: str) -> None:
    """Put NEW in the place of OLD in the file PATH."""
    text = path.read_text(encoding="utf-8")
    assert old in text, path
    path.write_text(text.replace(old, new), encoding="utf-8")
