"""gpustack diff: what changes between what is merged and what is proposed, once for all clusters it changes in.

Without folders the old side is dist/ as it stands in Git, at the commit where the work tree departed from --base, and
the new side is what the policies render to now. Where dist/ is not in Git, the policies of that commit are rendered, in
a folder of their own. Nothing in the work tree is touched.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import Finding, InputError
from . import common

if TYPE_CHECKING:
    from ..compiler.fleet import Project, Source
    from ..review.diff.sides import Files, Side, Texts
    from .revisions import Git

HEAD = "HEAD"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="*", metavar="DIR", help="two rendered folders to compare instead")
    parser.add_argument("--base", metavar="REF", default=HEAD, help="the revision to compare with (default: HEAD)")
    parser.add_argument(
        "--out", metavar="DIR", default="dist", help="where rendered manifests stand in Git (default: dist)"
    )
    parser.add_argument(
        "--format",
        choices=["text", "markdown", "html", "json", "unified"],
        default="text",
        help="how to print the result (default: text)",
    )
    parser.add_argument(
        "--budget",
        type=common.positive,
        metavar="BYTES",
        default=65_000,
        help="most bytes of Markdown (default: 65000)",
    )
    parser.add_argument("--no-cache", action="store_true", help="compute everything anew; the result is the same")
    parser.add_argument(
        "--jobs", type=common.processes, metavar="N", help="processes to use (default: one per processor)"
    )
    common.add_today(parser)


def run(options: argparse.Namespace) -> int:
    from .formats import diff as formats

    with sides(options) as (before, after):
        from ..review.diff import groups
        from ..review.diff import sides as compared

        found = compared.differences(before, after)
        everything = groups.Difference(
            before.title, after.title, len({*before.clusters, *after.clusters}), tuple(groups.group(found))
        )
        print(formats.written(everything, options.format, options.budget), end="")
    return 1 if everything.groups else 0


@contextmanager
def sides(options: argparse.Namespace) -> Iterator[tuple[Side, Side]]:
    """Both sides of the comparison that OPTIONS ask for."""
    if len(options.folders) not in {0, 2}:
        what = f"diff compares two folders, and {len(options.folders)} was named"
        raise InputError(Finding("GPU027", "error", what, remedy="name both, or none to compare with Git"))
    if options.folders:
        yield folder_side(Path(options.folders[0])), folder_side(Path(options.folders[1]))
        return
    with common.project(options) as project:
        texts, after = new_side(options, project)
        yield git_side(options, project, texts, after), after.side


def folder_side(folder: Path) -> Side:
    """What stands in FOLDER, which has a folder for each cluster; every file is read."""
    from ..compiler.folders import regular_files
    from ..compiler.output import HEADER
    from ..policy.regular import read_regular
    from ..review.diff.sides import Side, Texts, without_header

    if not folder.is_dir():
        remedy = "name a folder that gpustack rendered into, such as dist"
        raise InputError(Finding("GPU027", "error", f"{folder} is no folder", remedy=remedy))
    texts = Texts()
    clusters: dict[str, Files] = {}
    for root in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        clusters[root.name] = {
            name: texts.name(without_header(read_regular(root / name).decode("utf-8", "replace"), HEADER))
            for name in sorted(regular_files(root))
            if name.endswith(".yaml")
        }
    return Side(clusters, texts, f"{folder}/")


@dataclass(frozen=True)
class New:
    """The side that the policies render to. `header` of a cluster begins each of its files."""

    side: Side
    headers: Mapping[str, str]


def new_side(options: argparse.Namespace, project: Project) -> tuple[Texts, New]:
    """What the policies render to. Raises FindingsError where a rule refuses one."""
    from ..compiler import fleet
    from ..compiler.output import header
    from ..review.diff.sides import Side, Texts

    found = fleet.compiled(project, common.select([]))
    texts = Texts()
    clusters = files_of(project, found, texts)
    headers = {source.name: header(source.display) for source in found}
    return texts, New(Side(clusters, texts, "policies: "), headers)


def files_of(project: Project, found: Sequence[Source], texts: Texts) -> dict[str, Files]:
    """The files of each cluster; clusters of one spec share a mapping."""
    from ..compiler import fleet

    shapes: dict[str, Files] = {}
    for source in found:
        if source.key not in shapes:
            shapes[source.key] = {file.path: texts.name(file.text) for file in fleet.stack_of(project, source).files}
    return {source.name: shapes[source.key] for source in found}


def git_side(options: argparse.Namespace, project: Project, texts: Texts, after: New) -> Side:
    """What is merged: the rendered folder at the base's commit, or what its policies render to."""
    from ..review.diff.sides import Side
    from .revisions import Git

    git = Git("diff compares with a revision of Git", "install Git, or name two folders to compare")
    commit = git.base(options.base)
    title = f"{options.base} ({commit[:10]}): "
    folder = options.out.rstrip("/")
    blobs = git.files(commit, folder)
    if not blobs:
        return rendered_there(git, commit, project, texts, title)
    known = {} if not blobs else unchanged(after, folder, algorithm(blobs))
    clusters: dict[str, dict[str, str]] = {}
    unread: dict[str, list[tuple[str, str]]] = {}
    for path, blob in blobs.items():
        cluster, slash, name = path.removeprefix(f"{folder}/").partition("/")
        if not slash or cluster.startswith(".") or not name.endswith(".yaml"):
            continue
        files = clusters.setdefault(cluster, {})
        if known.get(path) == blob:
            files[name] = after.side.clusters[cluster][name]
        else:
            unread.setdefault(blob, []).append((cluster, name))
    read_rest(git, unread, clusters, texts)
    return Side(shared(clusters, after.side.clusters), texts, title)


def read_rest(
    git: Git, unread: Mapping[str, list[tuple[str, str]]], clusters: dict[str, dict[str, str]], texts: Texts
) -> None:
    """Read the blobs that are not what is rendered now."""
    from ..compiler.output import HEADER
    from ..review.diff.sides import without_header

    for blob, content in git.contents(unread):
        name = texts.name(without_header(content.decode("utf-8", "replace"), HEADER))
        for cluster, file in unread[blob]:
            clusters[cluster][file] = name


def shared(clusters: Mapping[str, dict[str, str]], after: Mapping[str, Files]) -> dict[str, Files]:
    """CLUSTERS, with the very mapping of AFTER where nothing differs."""
    return {name: after[name] if after.get(name) == files else files for name, files in clusters.items()}


def algorithm(blobs: Mapping[str, str]) -> str:
    """How Git names contents in this repository."""
    return "sha256" if len(next(iter(blobs.values()))) == 64 else "sha1"


def unchanged(after: New, folder: str, how: str) -> dict[str, str]:
    """The names that Git would give to the files of AFTER, by path: what has the same name need not be read."""
    encoded: dict[str, bytes] = {}
    found = {}
    for cluster, files in after.side.clusters.items():
        head = after.headers[cluster].encode()
        for name, text in files.items():
            if text not in encoded:
                encoded[text] = after.side.text(text).encode()
            body = encoded[text]
            made = hashlib.new(how, b"blob %d\0" % (len(head) + len(body)), usedforsecurity=False)
            made.update(head)
            made.update(body)
            found[f"{folder}/{cluster}/{name}"] = made.hexdigest()
    return found


def rendered_there(git: Git, commit: str, project: Project, texts: Texts, title: str) -> Side:
    """What the policies of COMMIT render to, for repositories that do not commit what they render to."""
    from ..compiler import fleet
    from ..policy.load import policy_files
    from ..review.diff.sides import Side

    with tempfile.TemporaryDirectory(prefix="gpustack-diff-") as made:
        root = Path(made).resolve()
        git.extract(commit, [common.POLICIES], root)
        paths = policy_files(root / common.POLICIES, common.POLICIES) if (root / common.POLICIES).is_dir() else []
        there = replace(project, root=root, out=root / "dist")
        found = fleet.compiled(there, paths) if paths else []
        return Side(files_of(there, found, texts), texts, title)
