"""Take the steps of the Containerfile in a folder, without a container: what its first stage copies and runs.

    python tools/image_root.py FOLDER     then FOLDER/opt/gpustack is what the image has in /opt/gpustack

So the steps can be proved where no image can be pulled, and the program started from nothing but what they bring.
Needs a network for the packages, as a build of the image does.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = "/opt/gpustack"


def instructions(stage: int = 1) -> Iterator[tuple[str, str]]:
    """The instructions of the STAGE, counted from 1, each with its arguments on one line."""
    lines = (line for line in (ROOT / "Containerfile").read_text("utf-8").splitlines() if not line.startswith("#"))
    stages = 0
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        stages += name == "FROM"
        if name and stages == stage:
            yield name, rest.strip()


def build(folder: Path, python: str = sys.executable) -> Path:
    """Take the steps in FOLDER, with PYTHON as that of the base image; where the program is then."""
    place, work = folder / PLACE[1:], folder / "build"
    for name, rest in instructions():
        words = shlex.split(rest.replace(PLACE, str(place)))
        if name == "COPY":
            *sources, target = words
            copy([ROOT / source for source in sources], work / target, contents=len(sources) == 1)
        elif name == "RUN":
            if words[:2] != ["python", "-m"]:
                raise SystemExit(f"can't run {rest!r} here: the steps are to run Python and nothing else")
            if words[2] == "compileall":  # files say where they were compiled, which is to be their place in the image
                words[3:3] = ["-s", str(folder), "-p", "/"]
            subprocess.run([python, *words[1:]], cwd=work, check=True)
        elif name == "WORKDIR":
            work = folder / words[0].lstrip("/")
            work.mkdir(parents=True, exist_ok=True)
    return place


def copy(sources: list[Path], target: Path, *, contents: bool) -> None:
    """Copy files, or the CONTENTS of the one folder that is given, as COPY does."""
    target.mkdir(parents=True, exist_ok=True)
    for source in sources:
        if source.is_dir() and contents:
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take the steps of the Containerfile in a folder.")
    parser.add_argument("folder", type=Path)
    print(build(parser.parse_args().folder.resolve()))
