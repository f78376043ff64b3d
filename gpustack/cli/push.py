"""gpustack push: dist/<cluster> as an OCI artifact, for Flux's OCIRepository and Argo CD.

What is pushed is what was rendered and committed: the files that the index lists, with the bytes that it says. The
revision is the last commit that touched the folder, so that a merge which doesn't change a cluster doesn't change its
artifact either.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import Finding, InputError, MissingToolError, StaleError, masked
from . import common
from .text import document, printable, whole

if TYPE_CHECKING:
    from ..registry.reference import Reference
    from .revisions import Git


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="oci://REGISTRY/REPOSITORY[:TAG]", help="where to (default tag: latest)")
    parser.add_argument("cluster", nargs="?", metavar="CLUSTER", help="which cluster (default: the only one)")
    parser.add_argument("--out", metavar="DIR", default="dist", help="where the manifests are (default: dist)")
    parser.add_argument(
        "--for",
        dest="engine",
        choices=["flux", "argocd"],
        default="flux",
        help="media types: flux's own, or argocd: those that Argo CD takes as installed, and Flux as well",
    )
    parser.add_argument("--source", metavar="URL", help="annotate this source (default: Git's remote origin)")
    parser.add_argument(
        "--revision", metavar="TEXT", help="annotate this revision (default: the last commit that touched the folder)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say the digest, and ask no registry")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how to print the result")


def run(options: argparse.Namespace) -> int:
    from ..registry import artifact

    where = target(options.target)
    cluster = one(Path(options.out), options.cluster)
    files = content(Path(options.out), cluster)
    annotations = origin(options, cluster, files)
    made = artifact.artifact(files, options.engine, annotations)
    if not options.dry_run:
        from ..registry.client import Client
        from ..registry.credentials import Credentials

        with Client(Credentials(os.environ)) as client:
            artifact.push(client, where, made)
    report(options, where, made.digest, files, annotations)
    return 0


def report(
    options: argparse.Namespace, where: Reference, digest: str, files: dict[str, bytes], annotations: dict[str, str]
) -> None:
    reference = f"oci://{where.host}/{where.repository}:{where.version}"
    if options.format == "json":
        facts = {"reference": reference, "digest": digest, "pushed": not options.dry_run, "annotations": annotations}
        print(document(0, [], **facts, files=sorted(files)))
        return
    done = "would push" if options.dry_run else "pushed"
    print(printable(f"{done} {common.counted(len(files), 'file')} to {reference}@{digest}"))
    for name, value in annotations.items():
        print(printable(f"  {name}: {value}"))


def target(text: str) -> Reference:
    """Where to push."""
    from ..registry.reference import parse

    found = parse(text.removeprefix("oci://")) if text.startswith("oci://") else None
    if found is None or found.digest:
        what = f"{text!r} is no place for an artifact"
        remedy = "write oci://registry/repository:tag, such as oci://registry.example.com/gpu/prod-eu-1:v1"
        raise InputError(Finding("GPU966", "error", what, remedy=remedy))
    return found


def one(out: Path, word: str | None) -> str:
    """The one cluster in OUT that WORD means."""
    from .validate import chosen

    found = chosen(out, [word] if word else [])
    if len(found) > 1:
        what = f"{word!r} means {len(found)} clusters" if word else f"{out} holds {len(found)} clusters"
        raise InputError(
            Finding(
                "GPU033",
                "error",
                what,
                remedy=f"name one of them, for an artifact is one cluster's: {common.some(found)}",
            )
        )
    return found[0]


def content(out: Path, cluster: str) -> dict[str, bytes]:
    """The files of CLUSTER by their paths from its folder. Raises StaleError where they aren't what was rendered."""
    from ..compiler import folders, index
    from ..policy.regular import read_regular

    listed = index.index_data(out, cluster).get("files")
    there = folders.regular_files(out / cluster)
    found = {}
    for name, digest in sorted(listed.items()) if isinstance(listed, dict) else ():
        body = read_regular(out / cluster / name) if name in there else b""
        if name not in there or hashlib.sha256(body).hexdigest() != digest:
            what = f"{out / cluster / name} isn't what was rendered"
            why = "an artifact holds what `gpustack render` wrote, and nothing that was edited or got lost since"
            raise StaleError(Finding("GPU967", "error", what, why=why, remedy="run `gpustack render`"))
        found[name] = body
    if not found:
        what = f"{out / index.INDEX / cluster}.json lists no file"
        raise StaleError(Finding("GPU967", "error", what, remedy="run `gpustack render`"))
    inside = (name for name in common.foreign_files(out, cluster) if not name.startswith("../"))
    for name in sorted(inside)[:10]:
        print(printable(f"not ours, and not pushed: {out / cluster / name}"), file=sys.stderr)
    return found


def origin(options: argparse.Namespace, cluster: str, files: Collection[str]) -> dict[str, str]:
    """Where FILES are from, as annotations: what the options say, else what Git knows, else nothing."""
    from ..registry.artifact import REVISION, SOURCE

    source, revision = options.source, options.revision
    if source is None or revision is None:
        known = from_git(Path(options.out) / cluster, files if revision is None else None)
        source, revision = source or known[0], revision or known[1]
    found = {SOURCE: without_secrets(source or ""), REVISION: revision or ""}
    return {name: whole(value) for name, value in found.items() if value}


def from_git(folder: Path, files: Collection[str] | None) -> tuple[str, str]:
    """The remote `origin` and, with FILES, the last commit that touched FOLDER; empty where there is no repository."""
    from .revisions import NOWHERE, Git

    try:
        git = Git("push annotates the commit that it pushes", "install Git, or give --source and --revision", folder)
    except MissingToolError:
        if any((above / ".git").exists() for above in folder.resolve().parents):
            raise
        return "", ""
    except InputError as error:
        if NOWHERE in str(error):
            return "", ""
        raise
    remotes = (line.partition("\n") for line in git.ask("config", "--null", "--list").split("\0"))
    source = next((value.strip() for key, _, value in remotes if key == "remote.origin.url"), "")
    return source, "" if files is None else last_commit(git, folder, files)


def last_commit(git: Git, folder: Path, files: Collection[str]) -> str:
    """The last commit that touched FOLDER, which must hold FILES as that commit has them."""
    where = os.path.abspath(folder)
    changed = git.ask("status", "--porcelain", "--untracked-files=all", "--", where).strip()
    tracked = {os.path.relpath(name, where) for name in git.tracked(where)}
    commit = git.ask("rev-list", "--max-count=1", "HEAD", "--", where).strip() if tracked and not changed else ""
    if not commit or not tracked.issuperset(files):
        what = f"{folder} isn't committed, so no revision names what would be pushed"
        raise StaleError(Finding("GPU968", "error", what, remedy="commit it, or give --revision"))
    if cut_off(git, commit):
        what = f"this clone begins with {commit[:10]}, so nobody can tell which commit touched {folder} last"
        why = "a shallow clone has not the whole history, and each run would name another commit"
        remedy = "fetch the whole history (git fetch --unshallow; in CI a depth of 0), or give --revision"
        raise StaleError(Finding("GPU968", "error", what, why=why, remedy=remedy))
    return f"{'sha256' if len(commit) == 64 else 'sha1'}:{commit}"


def cut_off(git: Git, commit: str) -> bool:
    """Whether COMMIT has parents that this clone has not: it seems to touch everything then."""
    if git.ask("rev-parse", "--is-shallow-repository").strip() != "true":
        return False
    known = git.ask("rev-list", "--parents", "--max-count=1", commit).split()
    head = git.ask("cat-file", "commit", commit).partition("\n\n")[0]
    return len(known) == 1 and "\nparent " in head


def without_secrets(address: str) -> str:
    """ADDRESS without user, password and what follows a question mark: CI systems put tokens there."""
    return masked(address).replace("***@", "").partition("?")[0]
