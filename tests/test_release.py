"""A release is of a commit: built twice, in two clones, it has the same bytes, and says what it is made of."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from gpustack import __version__
from tests.project import ROOT
from tools import release as release_program

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


def valid(document: str) -> bool:
    """Whether DOCUMENT is CycloneDX 1.6, by the standard's own schemas."""
    (folder,) = PYTHON.parents[1].glob("lib/python*/site-packages/cyclonedx/schema/_res")
    read = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.schema.json")]
    known = {one["$id"]: Resource.from_contents(one, default_specification=DRAFT7) for one in read if "$id" in one}
    whole = json.loads((folder / "bom-1.6.SNAPSHOT.schema.json").read_text("utf-8"))
    checker = Draft7Validator(whole, registry=Registry().with_resources(known.items()))
    assert not checker.is_valid({**json.loads(document), "components": [{"name": "no type"}]})
    return checker.is_valid(json.loads(document))


def test_parts(release: Path) -> None:
    """The list of parts has each package that is pinned, with all of its hashes, and is valid CycloneDX."""
    assert valid((release / "sbom.cdx.json").read_text())
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


def test_parts_of_the_image() -> None:
    """Debian's packages are named as tools ask for them, an epoch and a plus in the version included."""
    listed = f"{'a' * 64}  libc6_2.36-9+deb12u14_amd64.deb\n{'b' * 64}  perl_1%3a5.36.0-7_all.deb\n"
    code = (
        "import sys; from tools import release; print(release.bill('x', release.of_system(sys.argv[1], 'debian'), 0))"
    )
    made = subprocess.run([PYTHON, "-c", code, listed], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [
        (part["purl"], part["version"], part["hashes"][0]["content"]) for part in json.loads(made)["components"]
    ] == [
        ("pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64", "2.36-9+deb12u14", "a" * 64),
        ("pkg:deb/debian/perl@1:5.36.0-7?arch=all", "1:5.36.0-7", "b" * 64),
    ]
    assert valid(made)


def test_provenance(release: Path) -> None:
    """The statement names the commit, and the packages by their digests. What a statement says it is, how it was built
    and by whom are URIs, as in-toto and SLSA's provenance want them.
    """
    statement = json.loads((release / "provenance.json").read_text())
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert {"gitCommit": commit.strip()} in [
        each["digest"] for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    ]
    build, run = statement["predicate"]["buildDefinition"], statement["predicate"]["runDetails"]
    for uri in (statement["_type"], statement["predicateType"], build["buildType"], run["builder"]["id"]):
        assert re.fullmatch(r"(https|urn):[\w.:/-]+", uri), uri
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
    """Files that differ from the commit, or that it hasn't and the wheel would have, are no release: it is refused with
    their names.
    """
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tmp_path / "clone")], check=True)
    (tmp_path / "clone/NOTICE").write_text("other")
    (tmp_path / "clone/gpustack/more.py").touch()
    done = subprocess.run(
        [PYTHON, "tools/release.py"], cwd=tmp_path / "clone", capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert {"NOTICE", "gpustack/more.py"} <= {*done.stderr.split()}


def test_what_the_image_needs_comes_first(tmp_path: Path) -> None:
    """`make release ARGS=--image` brings Debian's packages before it builds; by themselves, the script and the one that
    brings them say what to run, and a release that was there stays whole."""

    def told(*words: str | Path, folder: Path = ROOT) -> tuple[int, str]:
        ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout + ran.stderr

    _, steps = told("make", "-n", "release", "ARGS=--image")
    assert 0 < steps.index("tools/venv.sh dev") < steps.index("tools/debian_root.sh") < steps.index("tools/release.py")
    assert "debian_root" not in told("make", "-n", "release")[1]
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    (clone / "release").mkdir()
    (clone / "release/SHA256SUMS").write_text("", "utf-8")
    code, said = told(sys.executable, "tools/release.py", "--image", folder=clone)
    assert (code, "run `make debian-root`" in said) == (4, True)
    assert [path.name for path in (clone / "release").iterdir()] == ["SHA256SUMS"]
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("apt-get", "dpkg"):
        (programs / name).symlink_to("/bin/true")
    code, said = told("env", f"PATH={programs}:/usr/bin:/bin", "tools/debian_root.sh", folder=clone)
    assert (code, "run make debian-root" in said) == (1, True)


def test_a_release_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left half done: what was there stays."""
    out = tmp_path / "release"
    out.mkdir()
    (out / "SHA256SUMS").write_text("whole", "utf-8")

    def fails(out: Path, *_: object) -> None:
        (out / "half").write_text("")
        raise OSError("no space")

    monkeypatch.setattr(release_program, "packages", fails)
    monkeypatch.setattr(release_program, "git", lambda *words: "0" if words[0] == "show" else "")
    monkeypatch.setattr(sys, "argv", ["release.py", "--out", str(out)])
    with pytest.raises(OSError, match="no space"):
        release_program.main()
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    assert (out / "SHA256SUMS").read_text("utf-8") == "whole"
