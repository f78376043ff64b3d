"""What push pushes, and where to: the place that somebody names, else the artifact that the cluster's engine reads.

What an engine reads is taken from its rendered objects, as all that is pushed is: they were reviewed and committed.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..compiler import beside, folders
from ..gitops.engines import unasked
from ..model import Finding, InputError, StaleError
from ..policy.language.repository import is_digest, named
from ..text.regular import read_regular
from . import common
from .refusals import refusal, said
from .text import printable, say
from .trees import artifacts

if TYPE_CHECKING:
    from ..gitops.reads import Reads
    from ..registry.reference import Reference


@dataclass(frozen=True, slots=True)
class Goal:
    """A cluster to push: where to, for which engine, what to say of it, and the digest that its policy reads."""

    cluster: str
    where: Reference
    engine: str
    findings: tuple[Finding, ...] = ()
    digest: str = ""

    def told(self, digest: str) -> tuple[Finding, ...]:
        """What is to be said when what is pushed has DIGEST."""
        if self.digest in {"", digest}:
            return self.findings
        words = {"cluster": self.cluster, "reads": self.digest, "digest": digest}
        return (*self.findings, said("GPU974", "outdated", severity="warning", **words))


def wanted(options: argparse.Namespace) -> list[Goal]:
    """What OPTIONS ask for. Raises InputError."""
    from .validate import chosen

    out, text, word = Path(options.out), options.target, options.cluster
    if not options.all:
        if text is not None and word is None and not set(text) & set("/:"):
            text, word = None, text  # a cluster's name
        where = None if text is None else target(text)
        return [goal(options, one(out, word), where)]
    if text is not None:
        raise refusal("GPU026", "all to one", text=repr(text))
    clusters = chosen(out, [])
    by_cluster = {cluster: read_by(out, cluster) for cluster in clusters}
    goals = [goal(options, cluster, None) for cluster, reads in by_cluster.items() if reads and reads.oci]
    if not goals:
        raise InputError(nowhere(f"no policy of the {common.counted(len(clusters), 'cluster')} in {out}"))
    first: dict[Reference, Goal] = {}
    for each in goals:  # of which one would overwrite another: a render of all clusters refuses such policies
        if (other := first.setdefault(each.where, each)) is not each:
            raise InputError(said("GPU046", one=other.cluster, other=each.cluster, place=each.where))
    for cluster in sorted(by_cluster.keys() - {each.cluster for each in goals}):
        say(printable(f"not pushed: {cluster}, whose policy names no OCI artifact"), sys.stderr)
    return goals


def goal(options: argparse.Namespace, cluster: str, where: Reference | None) -> Goal:
    """CLUSTER with WHERE it goes, by its policy where nobody says it. Raises InputError where nothing does."""
    reads = read_by(Path(options.out), cluster)
    if where is None and (reads is None or not reads.oci):
        raise InputError(nowhere(f"the policy of {cluster}"))
    fixed = reads.revision if reads and reads.oci and is_digest(reads.revision) else ""
    # What is read by its digest has a tag all the same, so that registries keep it: the default one.
    where = where or target("" if reads is None else reads.url if fixed else f"{reads.url}:{reads.revision}")
    engine = options.engine or (reads.engine if reads else unasked().name)
    return Goal(cluster, where, engine, tuple(elsewhere(cluster, where, reads)), fixed)


def read_by(out: Path, cluster: str) -> Reads | None:
    """What the engine that syncs CLUSTER reads, by its rendered objects; None where there are none that say it."""
    from ..gitops.reads import reads

    listed = beside.index_data(out, cluster).get("engine")
    files = as_listed(out, listed, beside.files_in(out, cluster))
    return reads(yaml.safe_load(body) for body in files.values())


def contents(options: argparse.Namespace, clusters: Collection[str]) -> dict[str, dict[str, bytes]]:
    """The files of CLUSTERS by path, be they there or not. Raises StaleError where they aren't what was rendered."""
    out = Path(options.out)
    alone = [cluster for cluster in clusters if artifacts.held(out, cluster)]
    compiled = artifacts.contents(options, alone)
    found = {cluster: {file.path: file.text.encode() for file in stack.files} for cluster, stack in compiled}
    return {cluster: found.get(cluster) or content(out, cluster) for cluster in clusters}


def content(out: Path, cluster: str) -> dict[str, bytes]:
    """The files of CLUSTER by their paths from its folder. Raises StaleError where they aren't what was rendered."""
    listed = beside.index_data(out, cluster).get("files")
    files = as_listed(out / cluster, listed, folders.regular_files(out / cluster))
    if not files:
        raise StaleError(said("GPU967", "empty", index=f"{out / beside.INDEX / cluster}.json"))
    return files


def as_listed(folder: Path, listed: Any, there: Collection[str]) -> dict[str, bytes]:
    """Those files of FOLDER that are THERE and an index has LISTED, by path. Raises StaleError where one is another."""
    files = {}
    for name, digest in sorted(listed.items()) if isinstance(listed, dict) else ():
        body = read_regular(folder / name) if name in there else b""
        if name not in there or hashlib.sha256(body).hexdigest() != digest:
            raise StaleError(said("GPU967", "other", path=folder / name))
        files[name] = body
    return files


def elsewhere(cluster: str, where: Reference, reads: Reads | None) -> Iterator[Finding]:
    """What to say where the engine of CLUSTER, by what it READS, gets nothing of what is pushed to WHERE."""
    from ..registry.reference import parse

    if reads is None:
        return
    place = parse(f"{reads.url.removeprefix('oci://')}{named(reads.revision)}") if reads.oci else None
    same = (
        place is not None
        and (place.host, place.repository) == (where.host, where.repository)
        and place.version in {where.version, place.digest}
    )
    if same and reads.folder == ".":
        return
    case = "folder" if same else "elsewhere" if reads.oci else "no artifact"
    to = f"{where.host}/{where.repository}:{where.version}"
    yield said("GPU974", case, severity="warning", cluster=cluster, reads=reads, place=to)


def nowhere(whose: str) -> Finding:
    """The finding that nothing says where to push to."""
    return said("GPU973", whose=f"{whose} names {'an' if whose.startswith('no ') else 'no'}")


def target(text: str) -> Reference:
    """Where to push."""
    from ..registry.reference import parse

    reference = parse(text.removeprefix("oci://")) if text.startswith("oci://") else None
    if reference is None or reference.digest:
        raise refusal("GPU966", "place", text=repr(text))
    return reference


def one(out: Path, word: str | None) -> str:
    """The one cluster in OUT that WORD means."""
    from .validate import chosen

    clusters = chosen(out, [word] if word else [])
    if len(clusters) > 1:
        which = f"{word!r} means" if word else f"{out} holds"
        names = common.some(clusters)
        raise InputError(said("GPU033", "artifact", which=which, clusters=len(clusters), names=names))
    return clusters[0]
