"""gpustack push: dist/<cluster> as an OCI artifact, for Flux's OCIRepository and Argo CD.

What is pushed is what was rendered and committed: the files that the index lists, with the bytes that it says; where it
has a digest in their place (`gitops.repository.dist: oci`), what the policy renders to, if that has the digest. The
revision is the last commit that touched the folder, or that index, so that a merge which doesn't change a cluster
doesn't change its artifact either.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..compiler.beside import INDEX
from ..gitops.engines import engine, names
from ..model import InputError, StaleError, masked
from ..text.programs import work_tree
from . import common, destination
from .refusals import said
from .text import document, plain, print_findings, printable, whole
from .trees import artifacts, links
from .trees.git import NOWHERE
from .trees.repository import Git, same
from .trees.strays import of_render

ENGINES = names()
"""Whose artifacts there are."""

if TYPE_CHECKING:
    from ..registry.client import Client


def run(options: argparse.Namespace) -> int:
    links.refuse(options.out)
    goals = destination.wanted(options)
    # Everything is looked at before the first is pushed: nobody wants half a fleet.
    held = destination.contents(options, [goal.cluster for goal in goals])
    known = [(goal, held[goal.cluster]) for goal in goals]
    alien = of_render(options, [goal.cluster for goal in goals])
    if alien:
        raise StaleError(*(each.finding for each in alien))
    ready = [(goal, files, origin(options, goal.cluster, files)) for goal, files in known]
    with contextlib.ExitStack() as stack:
        client = None if options.dry_run else stack.enter_context(common.registries())
        done = [pushed(options, client, *each) for each in ready]
    if options.format == "json":
        findings = [finding for each in done for finding in each.pop("findings")]
        facts: dict[str, Any] = {"artifacts": done} if options.all else done[0]
        print(document(0, findings, **facts))
    return 0


def pushed(
    options: argparse.Namespace,
    client: Client | None,
    goal: destination.Goal,
    files: dict[str, bytes],
    annotations: dict[str, str],
) -> dict[str, Any]:
    """Push FILES to GOAL, without a CLIENT only for show; says so, and returns the facts for --format json."""
    from ..registry import artifact

    where = goal.where
    made = artifact.artifact(files, engine(goal.engine).media, annotations)
    if client is not None:
        artifact.push(client, where, made)
    reference = f"oci://{where.host}/{where.repository}:{where.version}"
    findings = goal.told(made.digest)
    if options.format == "text":
        print_findings(findings, sys.stderr)
        done = "would push" if client is None else "pushed"
        print(printable(f"{done} {common.counted(len(files), 'file')} to {reference}@{made.digest}"))
        for name, value in annotations.items():
            print(printable(f"  {name}: {value}"))
    told = {"cluster": goal.cluster, "reference": reference, "digest": made.digest, "pushed": client is not None}
    return {**told, "annotations": annotations, "files": sorted(files), "findings": [plain(each) for each in findings]}


def origin(options: argparse.Namespace, cluster: str, files: Collection[str]) -> dict[str, str]:
    """Where FILES are from, as annotations: what the options say, else what Git knows, else nothing."""
    from ..registry.artifact import REVISION, SOURCE

    source, revision = options.source, options.revision
    if source is None or revision is None:
        out = Path(options.out)
        alone = artifacts.held(out, cluster)
        place, names = (out / INDEX / f"{cluster}.json", [""]) if alone else (out / cluster, files)
        known = from_git(place, names if revision is None else None)
        source, revision = source or known[0], revision or known[1]
    # CI systems put tokens before the host, and behind a question mark.
    plain_source = masked(source or "").replace("***@", "").partition("?")[0]
    annotations = {SOURCE: plain_source, REVISION: revision or ""}
    return {name: whole(value) for name, value in annotations.items() if value}


def from_git(folder: Path, files: Collection[str] | None) -> tuple[str, str]:
    """The remote `origin` and, with FILES, the last commit that touched FOLDER; empty where there is no repository."""
    top = work_tree(folder.parent)  # Git looks for no other repository on the way there
    if not os.path.lexists(top / ".git"):
        return "", ""
    try:
        git = Git("push annotates the commit that it pushes", "install Git, or give --source and --revision", top)
    except InputError as error:
        if NOWHERE in str(error):
            return "", ""
        raise
    remotes = (line.partition("\n") for line in git.ask("config", "--null", "--list").split("\0"))
    source = next((value.strip() for key, _, value in remotes if key == "remote.origin.url"), "")
    return source, "" if files is None else last_commit(git, folder, files)


def last_commit(git: Git, folder: Path, files: Collection[str]) -> str:
    """The last commit that touched FOLDER, which must hold FILES as that commit has them."""
    full = os.path.abspath(folder)
    head, where = git.head(), git.place(full) or "."
    held = git.entries(head, full) if head else {}
    names = {os.path.normpath(f"{where}/{name}") for name in files}
    current = held.keys() >= names and all(same(git.here(name), entry) for name, entry in held.items())
    commit = git.ask("rev-list", "--max-count=1", head, "--", where).strip() if current else ""
    if not commit:
        raise StaleError(said("GPU968", "uncommitted", folder=folder))
    shallow = git.ask("rev-parse", "--is-shallow-repository").strip() == "true"
    alone = shallow and len(git.ask("rev-list", "--parents", "--max-count=1", commit).split()) == 1
    # A commit of which this clone lacks the parents seems to touch everything.
    if alone and "\nparent " in git.ask("cat-file", "commit", commit).partition("\n\n")[0]:
        raise StaleError(said("GPU968", "shallow", commit=commit[:10], folder=folder))
    return f"{'sha256' if len(commit) == 64 else 'sha1'}:{commit}"
