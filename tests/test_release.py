"""A release is of a commit: built twice, in two clones, it has the same bytes, and says what it is made of."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from gpustack import __version__
from tests.project import ROOT

PYTHON = ROOT / ".tools/release-venv/bin/python"


def built(folder: Path, **environment: str) -> Path:
    """A release of this commit, from a clone in FOLDER."""
    if not PYTHON.exists():
        pytest.fail("there is no .tools/release-venv: run `make venv-release`")
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    subprocess.run(
        [PYTHON, "tools/release.py"], cwd=folder, check=True, capture_output=True, env={**os.environ, **environment}
    )
    return folder / "release"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release."""
    return built(tmp_path_factory.mktemp("first") / "clone")


def test_the_same_bytes(release: Path, tmp_path: Path) -> None:
    """Another place, another time zone and another mask of modes give the same files."""
    before = os.umask(0o077)
    try:
        other = built(tmp_path / "another clone", TZ="Asia/Tokyo")
    finally:
        os.umask(before)
    assert (other / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


def test_checksums(release: Path) -> None:
    """Every file is listed by its digest, but for the list."""
    lines = [line.split("  ") for line in (release / "SHA256SUMS").read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    files = {path.name for path in release.iterdir()} - {"SHA256SUMS"}
    assert listed == {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in files}


def test_parts(release: Path) -> None:
    """The list of parts has each package that is pinned, with all of its hashes."""
    parts = {
        (each["name"], each["version"]): {one["content"] for one in each["hashes"]}
        for each in json.loads((release / "sbom.cdx.json").read_text())["components"]
    }
    text = (ROOT / "requirements/runtime.txt").read_text("utf-8")
    pinned = re.findall(r"^(\S+)==([^ ;\\]+)((?:.*\\\n?)(?:    --hash=.*\n)+)", text, re.MULTILINE)
    assert len(pinned) > 30
    assert parts == {
        (name, version): set(re.findall(r"sha256:([0-9a-f]{64})", hashes)) for name, version, hashes in pinned
    }


def test_provenance(release: Path) -> None:
    """The statement names the commit, and the packages by their digests."""
    statement = json.loads((release / "provenance.json").read_text())
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert {"gitCommit": commit.strip()} in [
        each["digest"] for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    ]
    (wheel,) = release.glob("*.whl")
    assert {"name": wheel.name, "digest": {"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}} in statement[
        "subject"
    ]


def test_the_wheel_is_whole(release: Path) -> None:
    """The wheel has the schemas, the data files and what `gpustack init` writes into requirements, and no test."""
    (wheel,) = release.glob("*.whl")
    assert __version__ in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {"gpustack/schemas/index.json", "gpustack/catalog/data/drivers.yaml", "gpustack/requirements/runtime.txt"}
    assert wanted <= names
    assert not [name for name in names if name.startswith(("tests/", "tools/")) or "__pycache__" in name]


def test_of_a_commit(tmp_path: Path) -> None:
    """Files that differ from the commit are no release: it is refused with their names."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tmp_path / "clone")], check=True)
    (tmp_path / "clone/NOTICE").write_text("other")
    done = subprocess.run(
        [PYTHON, "tools/release.py"], cwd=tmp_path / "clone", capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert "NOTICE" in done.stderr
