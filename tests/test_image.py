"""The Containerfile's steps give a program that starts, and nothing that it doesn't need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.components.test_verify import made, write
from tests.image import LOCKED, build
from tests.project import ROOT
from tools import image_root

ROOM = ROOT / "gpustack" / "reconciler"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image has in /opt/gpustack."""
    return build(tmp_path_factory.mktemp("image"))


def run(image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with WORDS, and with no package but the image's."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(image), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-S", *words], cwd="/", env=environment, capture_output=True, text=True, check=False
    )


def test_few_packages() -> None:
    """Under 20 packages, and neither cdk8s nor pydantic among them."""
    assert 5 < len(LOCKED) < 20
    assert not {"cdk8s", "constructs", "jsii", "pydantic", "jsonschema", "ruamel-yaml"} & {name for name, *_ in LOCKED}


def test_every_module_of_the_room_can_be_imported(image: Path) -> None:
    """The program imports what its image has; of gpustack there is only what it needs."""
    names = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in ROOM.rglob("*.py")
        if path.name not in {"__main__.py", "__init__.py"} and "memory" not in path.parts
    )
    assert names
    done = run(image, "-c", f"import importlib\nfor name in {names!r}: importlib.import_module(name)")
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in (image / "gpustack").iterdir()} == {
        *("__init__.py", "model.py", "api", "catalog", "live", "reconciler", "__pycache__")
    }


def test_verify_starts(image: Path, tmp_path: Path) -> None:
    """`python -m gpustack.live` reads what is rendered with these packages alone, and says so where it can't look."""
    write(tmp_path, made())
    done = run(image, "-m", "gpustack.live", str(tmp_path))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("the cluster could not be looked at: Unreachable")
    (tmp_path / "rendered.yaml").write_text("{")
    assert "could not be looked at: ParserError" in run(image, "-m", "gpustack.live", str(tmp_path)).stdout


def test_the_program_starts(image: Path) -> None:
    """`python -m gpustack.reconciler` starts with these packages alone, in a fraction of a second."""
    started = time.monotonic()
    done = run(image, "-m", "gpustack.reconciler", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--namespace" in done.stdout
    assert time.monotonic() - started < 5


def test_the_image_runs_as_nobody() -> None:
    """A number for the user, so that the kubelet can see that it isn't root; no registry is named."""
    text = (ROOT / "Containerfile").read_text("utf-8")
    assert re.findall(r"^USER (\S+)$", text, re.MULTILINE) == ["65532:65532"]
    assert re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE) == ['["python", "-m", "gpustack.reconciler"]']


def test_the_base_is_given_by_its_digest() -> None:
    """The base is the builder's to choose: it has no default, and a tag alone is no name of one."""
    text = (ROOT / "Containerfile").read_text("utf-8")
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"${BASE}@${DIGEST}"}
    assert re.findall(r"^ARG (.*)$", text, re.MULTILINE) == ["BASE", "DIGEST"]
    assert not re.findall(r"^(?:ENV|ADD|COPY) .*(?:https?:|BASE|DIGEST)", text, re.MULTILINE)


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    """.containerignore lets through the sources of COPY, and nothing else."""
    allowed = {line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")}
    copied = [
        word.rstrip("/") for name, rest in image_root.instructions() if name == "COPY" for word in rest.split()[:-1]
    ]
    assert allowed == set(copied)
