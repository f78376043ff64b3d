"""The project's own promises: how it is pinned, packaged, licensed and set up.

They are about files that no module of ours imports, so nothing else would notice when one is broken.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))

# Written in two parts, so that this file passes its own test.
HOSTS = re.compile(
    "|".join(
        re.escape(host + rest)
        for host, rest in (
            ("pypi", ".org"),
            ("pythonhosted", ".org"),
            ("registry.npmjs", ".org"),
            ("proxy.golang", ".org"),
            ("sum.golang", ".org"),
            ("repo.maven", ".apache.org"),
            ("crates", ".io"),
            ("helm.ngc", ".nvidia.com"),
        )
    ),
    re.IGNORECASE,
)
MACHINE_PATHS = re.compile(r"""(?<![\w./$}-])/(?:work|tmp)(?=[/"'\s]|$)""")
ALLOWED_PATHS: dict[str, str] = {
    "tests/test_project.py": "spells the patterns",
}
"""Files in which such a path is a fact about a node or a container, or input of a test; with the reason."""


def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def group(name: str) -> list[str]:
    """The requirements of a dependency group, those of the groups that it includes among them."""
    found: list[str] = []
    for entry in project()["dependency-groups"][name]:
        found += [entry] if isinstance(entry, str) else group(entry["include-group"])
    return found


def wanted(file: str) -> list[str]:
    """What pyproject.toml asks for in requirements/FILE.txt."""
    direct: list[str] = project()["project"]["dependencies"]
    return direct if file == "runtime" else direct + group("dev") if file == "dev" else group(file)


def pins(file: Path) -> dict[str, Version]:
    """Canonical name -> version of each requirement that FILE pins. A line that pins nothing fails here."""
    found: dict[str, Version] = {}
    for entry in file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        match = re.fullmatch(r"(\S+)==(\S+)( ; .+?)?((?: +--hash=sha256:[0-9a-f]{64})+) *", entry)
        assert match, f"{file.name}: not a pinned requirement with hashes: {entry[:80]}"
        found[canonicalize_name(match[1])] = Version(match[2])
    return found


def repository_files() -> list[str]:
    """Every text file that is, or is about to be, under version control."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def matches(pattern: re.Pattern[str], names: list[str]) -> list[str]:
    """`file:line: text` of each line in NAMES that PATTERN is found in. Binary files are passed over."""
    found = []
    for name in names:
        text = (ROOT / name).read_bytes().decode("utf-8", "replace")
        if "\0" not in text[:8192] and pattern.search(text):
            lines = enumerate(text.splitlines(), 1)
            found += [f"{name}:{number}: {line.strip()[:100]}" for number, line in lines if pattern.search(line)]
    return found


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: file.stem)
def test_requirements_are_pinned_with_hashes_and_name_no_address(file: Path) -> None:
    """Every line of requirements/ is name==version with hashes: no range, no address, no option, no comment."""
    assert pins(file)
    assert "://" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: file.stem)
def test_requirements_are_what_pyproject_asks_for(file: Path) -> None:
    """`make lock` was run after the last change: each dependency is pinned to a version inside its bounds."""
    pinned = pins(file)
    for text in wanted(file.stem):
        requirement = Requirement(text)
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in {file.name}: make lock"
        assert requirement.specifier.contains(version), f"{file.name} has {requirement.name} {version}: make lock"


def test_every_group_is_locked() -> None:
    """No dependency group is left unpinned, and no requirement file is left over."""
    assert {file.stem for file in REQUIREMENTS} == {"runtime", *project()["dependency-groups"]}


def test_test_environment_has_the_versions_that_users_get() -> None:
    """dev.txt holds all of runtime.txt and build.txt, in the same versions: tools/venv.sh installs it alone."""
    dev = pins(ROOT / "requirements/dev.txt")
    for name in ("runtime", "build"):
        assert pins(ROOT / f"requirements/{name}.txt").items() <= dev.items()


def test_package_builds_with_what_is_pinned() -> None:
    """The build backend is in the group `build`, so that an installation without build isolation has it."""
    assert set(project()["build-system"]["requires"]) <= set(group("build"))


def test_no_file_names_a_registry() -> None:
    """Nothing in the repository says where packages are fetched from: that is the user's configuration."""
    assert matches(HOSTS, repository_files()) == []


def test_no_file_names_a_path_of_somebody_s_machine() -> None:
    """Nothing in the repository depends on, or tells of, the machine it was written on."""
    names = [name for name in repository_files() if name not in ALLOWED_PATHS]
    assert matches(MACHINE_PATHS, names) == []


def test_licence_is_in_place() -> None:
    """LICENSE is the whole Apache License 2.0, NOTICE disclaims NVIDIA's names, and the package carries both."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "9. Accepting Warranty or Additional Liability." in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "not affiliated with, endorsed by or sponsored by NVIDIA" in (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert project()["project"]["license"] == "Apache-2.0"
    assert set(project()["project"]["license-files"]) == {"LICENSE", "NOTICE"}


def test_make_help_lists_each_target() -> None:
    """`make help`, which is what plain `make` does, names each target that is meant for people, with a word on it."""
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = set(
        "help setup render check validate test explore test-control-plane test-engines test-browser".split()
        + "test-machines laptop-cluster site lint format bench schemas lock release clean".split()
    )
    assert set(re.findall(r"^  make ([a-z-]+) +\S", shown, re.MULTILINE)) == targets


def test_scripts_can_be_started() -> None:
    """Shell scripts parse, have a shebang and the executable bit: a checkout can run them."""
    for script in (ROOT / ".ci/run", *(ROOT / "tools").glob("*.sh")):
        shell = script.read_text(encoding="utf-8").split("\n", 1)[0].rpartition("/")[2].removeprefix("env ")
        assert script.stat().st_mode & 0o111, script
        assert subprocess.run([shell, "-n", str(script)], check=False).returncode == 0


def test_wheel_carries_schemas_and_data(tmp_path: Path) -> None:
    """An installed gpustack finds schemas, data and its pinned packages inside the package; tests, policies and dist/
    stay out of it.
    """
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = [Path(name) for name in repository_files()]
    package = {str(name) for name in tracked if name.parts[0] == "gpustack"}
    schemas = {str("gpustack" / name) for name in tracked if name.parts[0] == "schemas"}
    assert schemas
    schemas.add("gpustack/requirements/runtime.txt")
    assert package | schemas == {name for name in names if ".dist-info/" not in name}


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("gpustack", "cdk8s jsii pydantic yaml ruamel jsonschema jsonschema_rs"),
        ("gpustack.cli", "cdk8s jsii pydantic yaml ruamel jsonschema jsonschema_rs"),
        ("gpustack.components.parts.common_inputs", "cdk8s jsii ruamel jsonschema"),
        ("gpustack.compiler", "cdk8s jsii ruamel jsonschema"),
    ],
)
def test_imports_stay_light(module: str, unwanted: str) -> None:
    """`--help` loads no library, and what a warm render needs loads neither cdk8s nor what only explains failures.

    import-linter sees what a module names; this sees what a package's `__init__` and a library bring along.
    """
    code = f"import sys, {module}; print(*sorted(set({unwanted.split()}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
