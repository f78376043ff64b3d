"""Links in the place of what a project is read from and written to.

Solves: a link is one line in a pull request, and what it leads to is in none: a policy that is somebody's login, whose
first lines a message then quotes; a dist/ that is another folder; waivers that lie where nobody looks for them. So what
lies in the clone stays in the clone, and the files by which a review is steered are not links at all.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...model import Finding, InputError, Location
from ...policy.loading.load import LAYERS, WAIVERS
from ...policy.loading.rings import CHANGES, FLEET
from ...text.programs import work_tree
from ..refusals import said

POLICIES = "policies"
PLAIN = (
    *("dist.allow.yaml", "constructs.allow.yaml", "images.lock", "acceptances.yaml", "gpustack.lock"),
    *(WAIVERS, f"{POLICIES}/{WAIVERS}", f"{POLICIES}/{FLEET}"),
    *("requirements.txt", ".gitattributes", ".gitmodules"),
)
"""What steers the review, or says what is pinned: by a link a review would look at one file and we at another."""


def refuse(out: str = "dist") -> None:
    """Raise InputError for links that lead out of the project, or stand where none may. OUT is its rendered folder."""
    policies = leading_out(Path(POLICIES) / each for each in ("", LAYERS, CHANGES))
    if findings := [*steering(), *rendered(Path(out)), *policies]:
        raise InputError(*findings)


def refuse_files(paths: Iterable[Path]) -> None:
    """Raise InputError for those of PATHS, policies, their layers and changes that lie in the clone and lead out."""
    known = list(paths)
    folders = [folder / each for folder in dict.fromkeys(path.parent for path in known) for each in (LAYERS, CHANGES)]
    layers = [Path(entry.path) for folder in folders if folder.is_dir() for entry in os.scandir(folder)]
    if findings := [*leading_out([*known, *folders, *layers])]:
        raise InputError(*findings)


def steering() -> Iterator[Finding]:
    """What is wrong with files that steer the review."""
    what = "is a link, and a review would show the link and not what it leads to"
    yield from (finding(name, what, "the file itself") for name in PLAIN if Path(name).is_symlink())


def rendered(out: Path) -> Iterator[Finding]:
    """What is wrong with the rendered folder OUT, where it is in the clone."""
    here = Path.cwd()
    what = "is a link, and what is rendered would be looked at elsewhere"
    for path in (here / out, *(here / out).parents):
        if here in path.parents and path.is_symlink():
            yield finding(os.path.relpath(path, here), what, "a folder")


def leading_out(paths: Iterable[Path]) -> Iterator[Finding]:
    """What is wrong with those of PATHS that are links in the clone and lead out of it."""
    top = work_tree()
    for path in paths:
        if path.is_symlink():
            place = Path(os.path.realpath(path.parent)) / path.name
            target = Path(os.path.realpath(path))
            if place.is_relative_to(top) and not target.is_relative_to(top):
                yield finding(str(path), "is a link that leads out of this project", "what it leads to")


def finding(path: str, what: str, instead: str) -> Finding:
    return said("GPU978", "", Location(path), what=what, instead=instead)
