"""docs/facts/: whatever code, tests or tools cite of the facts stands there.

A citation is the file's name and what it has there: `operator.md 7.2`, `reconciler.md U23, U24, I9`,
`bug-reports.md B53`. Sections and ids go with their numbers; a file that is named alone is cited whole. Facts that the
product itself reads are cited by their file in its catalogue: `(drivers.yaml kernel_modules)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import ROOT

FACTS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "facts").glob("*.md"))}
ID = r"(?:[A-Z]{1,2}\d+|\d+(?:\.\d+)*)"
CITED = re.compile(rf"\b([a-z-]+\.md)((?:(?:,? (?:sections? )?|, | and | to |, and ){ID}\b(?! [a-z]+s\b))*)")
SOURCE = re.compile(
    r"(?:\(|[Ss]ources?: |[Ff]acts: |\bfacts/)((?:(?:gpus|platforms|releases)/)?[a-z0-9-]+\.(?:md|yaml))\b"
)
THEIRS = {"clients.yaml", "config.yaml", "ruamel.yaml"}
"""Keys of NVIDIA's ConfigMaps, and a library."""
HEADS = re.compile(rf"^(?:#+ |- |\*\*)({ID})\b", re.MULTILINE)


def texts() -> Iterator[tuple[Path, str]]:
    """Each file that may cite, and what it holds."""
    for folder in ("gpustack", "tests", "tools"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".yaml", ".sh", ".go") and path != Path(__file__):
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8", errors="replace")


def citations() -> Iterator[tuple[Path, str, str]]:
    """Where, which file, and which section or id of it."""
    for path, text in texts():
        for file, ids in CITED.findall(text):
            if file in FACTS:
                for cited in re.findall(ID, ids) or [""]:
                    yield path, file, cited


def has(file: str) -> set[str]:
    """The sections and ids of a file of facts."""
    return set(HEADS.findall(FACTS[file]))


@pytest.mark.parametrize("file", sorted(FACTS))
def test_what_is_cited_exists(file: str) -> None:
    """Each section and id that is cited is in the file."""
    cited = {(str(path), one) for path, name, one in citations() if name == file}
    there = has(file)
    assert not sorted((path, one) for path, one in cited if one and one not in there)


def test_files_that_are_cited_are_here() -> None:
    """A source that is named as a file is one of this repository's: nobody else has it."""
    folders = [ROOT / "docs", ROOT / "gpustack", ROOT / "tests"]
    here = {"/".join(path.parts[-n:]) for folder in folders for path in folder.rglob("*.*") for n in (1, 2)}
    assert not sorted((at, file) for at, text in texts() for file in SOURCE.findall(text) if file not in here | THEIRS)


def test_the_reconciler_can_be_audited_from_here() -> None:
    """All 26 invariants and the table of phases are there."""
    assert {f"I{number}" for number in range(1, 27)} <= has("reconciler.md")
    assert "### 6.2 Phases" in FACTS["reconciler.md"]


@pytest.mark.parametrize("file", sorted(FACTS))
def test_what_nobody_cites_is_not_kept(file: str) -> None:
    """Each main section is cited, or something in it is."""
    cited = {one for _, name, one in citations() if name == file}
    for section in re.split(r"^(?=## )", FACTS[file], flags=re.MULTILINE)[1:]:
        number = HEADS.match(section)
        assert number is None or not cited.isdisjoint(HEADS.findall(section)), section.partition("\n")[0]
