"""What lies in the folder of rendered manifests and isn't rendered, or isn't what the render makes.

Solves: engines apply files, and the review compares policies. A file that a pull request adds below dist/, a link in
place of a folder, a folder of a cluster that no policy describes: all of it would reach a cluster unseen. So the whole
folder is looked at, and whatever the render does not make is told, with its path and its kind.

    file     a file that nothing renders                folder   a folder that nothing rendered is in
    link     a symbolic link, or a submodule of Git     special  a pipe, a socket, a device
    mode     a rendered file that can be executed       case     a name that differs in case, or in how it is encoded
    content  a rendered file with another content       index    an index of no cluster, or that claims another project

Exceptions stand in `dist.allow.yaml` (policy/loading/decisions.py), which names the path and the digest of a file.
A link, a mode and a folder have none.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Literal, Self

from ..gitops import FOLDER
from ..gitops.engines import names
from ..model import Finding, Location
from ..text.refusals import Texts
from . import beside
from .beside import INDEX, index_data, owner
from .folders import A_FILE, A_FOLDER, Thing, above, look, read
from .refusals import said

if TYPE_CHECKING:
    from .dist import Change, Rendering

Kind = Literal["file", "folder", "link", "mode", "case", "content", "index", "special"]

TEXTS = Texts(__file__)


@dataclass(frozen=True, slots=True, order=True)
class Foreign:
    """A path that the render does not make, or not with this content; `path` is as people write it."""

    path: str
    kind: Kind
    why: str

    @classmethod
    def of(cls, path: str, case: str, **words: object) -> Self:
        """PATH, which is as foreign.yaml says of CASE with WORDS."""
        facts = TEXTS.table[case]
        return cls(path, facts.get("kind", case), Template(facts["why"]).substitute(words))

    @property
    def finding(self) -> Finding:
        return said("GPU976", "", Location(self.path), why=self.why)


def judge(there: Mapping[str, Thing], made: Collection[str], folders: Iterable[str] = ()) -> Iterator[Foreign]:
    """What of THERE is not a file that is MADE, nor a folder on the way to one, nor one of A_FOLDER; by their paths."""
    made = made if isinstance(made, Mapping | set | frozenset) else set(made)
    ways = {*folders, *all_above(made)}
    odd = [
        (path, seen)
        for path, seen in there.items()
        if not ((seen is A_FILE and path in made) or (seen is A_FOLDER and path in ways and path not in made))
    ]
    alike = {folded(path) for path in (*made, *ways)} if odd else set()
    for path, seen in sorted(odd, key=lambda one: one[0]):
        kind: Kind = seen.kind
        if seen.kind in {"link", "special"}:
            pass
        elif path in made:
            kind = "folder" if seen.kind == "folder" else "mode"
        elif folded(path) in alike and path not in ways:
            kind = "case"
        elif path.startswith(f"{INDEX}/") and seen.kind == "file":
            kind = "index"
        yield Foreign.of(path, kind)


def all_above(paths: Iterable[str]) -> set[str]:
    """The folders that PATHS are in. Each folder is followed once: a fleet has a million files in some ten thousand."""
    folders = {path.rpartition("/")[0] for path in paths if "/" in path}
    return folders.union(*map(above, folders))


def folded(path: str) -> str:
    """PATH as file systems see it that tell neither case nor ways to encode a letter."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())


def of_cluster(out: Path, rendering: Rendering, inside: Mapping[str, Thing] | None = None) -> list[Foreign]:
    """What lies in the folders of the cluster of RENDERING below OUT and isn't rendered. Files that were rendered with
    another content are a Change's business (dist.compare), which reads them. INSIDE: what `look` just saw of it."""
    cluster = rendering.cluster
    made = {*(f"{cluster}/{path}" for path in rendering.files), *rendering.engine, f"{INDEX}/{cluster}.json"}
    there = {**(look(out, cluster) if inside is None else inside)}
    for engine in {*names(), *beside.engines_in(out)}:
        there |= look(out, f"{FOLDER}/{engine}/{cluster}")
    there |= look(out, f"{INDEX}/{cluster}.json")
    foreign = list(judge(there, made))
    claimed = index_data(out, cluster).get("project", "")
    if not rendering.owner and claimed:
        foreign.append(Foreign(f"{INDEX}/{cluster}.json", "index", "it says that another project rendered the cluster"))
    return foreign


def around(out: Path, clusters: Collection[str], others: Collection[str] = ()) -> list[Foreign]:
    """What lies in OUT beside the folders of CLUSTERS and of OTHERS, whose policies are elsewhere (`of_cluster`)."""
    known = {*clusters, *others}
    places = {f"{FOLDER}/{engine}" for engine in names()}
    there: dict[str, Thing] = {}
    for path, seen in look(out, deep=False).items():
        there[path] = seen
        if path in {INDEX, FOLDER} and seen.kind == "folder":
            there |= look(out, path, deep=False)
        elif path not in known and seen.kind == "folder":
            there |= look(out, path)
    for path in [path for path, seen in there.items() if seen.kind == "folder" and path.startswith(f"{FOLDER}/")]:
        there |= look(out, path, deep=path not in places)
    for path in list(there):
        parts = path.split("/")
        if parts[0] == FOLDER and len(parts) == 3 and parts[2] not in known and there[path].kind == "folder":
            there |= look(out, path)
    fine = {INDEX, FOLDER, *places, *known, *(f"{place}/{name}" for place in places for name in known)}
    skipped = {*known, *(f"{place}/{name}" for place in places for name in known)}
    made = {f"{INDEX}/{name}.json" for name in known}
    # What is wrong with a cluster's own folder or index, `of_cluster` says.
    return [each for each in judge(there, made, fine) if each.path not in skipped | made]


def less(foreign: Iterable[Foreign], out: Path, allowed: Mapping[str, str]) -> list[Foreign]:
    """FOREIGN below OUT, with paths as people write them, less what is ALLOWED: digests by path. A folder that an
    allowed file is in is allowed as well."""
    kept: list[Foreign] = []
    passed: set[str] = set()
    for each in sorted(foreign):
        path = f"{out}/{each.path}"
        wanted = allowed.get(os.path.normpath(path))
        if wanted is None or each.kind != "file":
            kept.append(Foreign(path, each.kind, each.why))
        elif os.lstat(path).st_mode & 0o7111:
            kept.append(Foreign(path, "mode", "dist.allow.yaml allows it, and no execution of it"))
        elif hashlib.sha256(read(path) or b"").hexdigest() == wanted:
            passed.add(path)
        else:
            kept.append(Foreign(path, each.kind, "dist.allow.yaml allows another content of it (sha256)"))
    ways = {way for path in passed for way in above(path)}
    return [each for each in kept if each.kind != "folder" or each.path not in ways]


def gathered(
    root: Path, out: Path, inside: Iterable[Foreign], clusters: Collection[str] | None, others: Collection[str] = ()
) -> list[Foreign]:
    """What lies in OUT and isn't rendered by the project in ROOT: what is INSIDE its clusters' folders and, where all
    its CLUSTERS are known, what is around these; less what dist.allow.yaml lists.

    OTHERS are clusters that say they are another project's. They may be there where several projects share an output
    folder; a dist/ that lies right in its project has one alone. Raises InputError for a list that can't be read."""
    shared = others if owner(root, out) else ()
    foreign = [*inside, *(around(out, clusters, shared) if clusters is not None else ())]
    if not foreign:
        return []
    from ..policy.loading.decisions import allowed

    return less(foreign, out, {path: spec.sha256 for path, spec in allowed(root).items()})


def untold(out: Path, foreign: Sequence[Foreign], changes: Iterable[Change]) -> tuple[Foreign, ...]:
    """FOREIGN without what CHANGES tell as left over, and the folders of nothing else."""
    told = {os.path.normpath(out / change.cluster / name) for change in changes for name in change.removed}
    rest = [each for each in foreign if os.path.normpath(each.path) not in told]
    leaves = [each.path for each in rest if each.kind != "folder"]
    emptied = {way for path in told for way in above(path)}
    return tuple(
        each
        for each in rest
        if each.kind != "folder"
        or os.path.normpath(each.path) not in emptied
        or any(leaf.startswith(f"{each.path}/") for leaf in leaves)
    )
