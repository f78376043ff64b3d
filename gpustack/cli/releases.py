"""gpustack releases: which releases there are, and what a step from one to another changes."""

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..catalog import _versions, releases
from ..compiler import node
from ..compiler.stack import compile_stack
from ..model import GpustackError
from ..policy.loading.load import load, spec_key
from . import common
from .refusals import refusal
from .text import as_json, columns_of, folded

NEWER_FIELD = "GPU107"
"""The rule against fields that a release does not know: that one of the two lacks them is part of the answer."""


def run(options: argparse.Namespace) -> int:
    if options.action == "list":
        for name in releases.names():
            release = releases.release(name)
            print(f"{name}  {release.date}  driver {release.image('driver').version}")
        return 0
    for name in (options.before, options.after):
        known(name)
    from ..review.releases import compare

    diff = compare(options.before, options.after)
    objects = cluster_changes(options) if options.cluster else None
    if options.format == "json":
        print(as_json({"version": 1, **dataclasses.asdict(diff), "cluster": objects}))
    else:
        print("\n".join(text(diff, options, objects)))
    return 0


def known(name: str) -> None:
    """Refuse a release that the catalogue lacks, naming the nearest."""
    try:
        releases.release(name)
    except releases.UnknownRelease as error:
        near = f"did you mean {' or '.join(error.nearest)}? " if error.nearest else ""
        raise refusal("GPU026", "release", name=repr(name), near=near) from None


def text(diff: Any, options: argparse.Namespace, objects: dict[str, list[str]] | None) -> Iterable[str]:
    """The comparison for people: first what flips without being asked for."""
    before, after = diff.driver_branches
    yield f"{options.before} -> {options.after}" + (f" (driver branch {before} -> {after})" if before != after else "")
    flips = [row(change) for change in diff.defaults if change.flips]
    newest = max(options.before, options.after, key=_versions.key)
    sections = [
        ("Defaults that flip: what runs changes although no policy does", flips),
        ("Other defaults", [row(change) for change in diff.defaults if not change.flips]),
        ("Images", [row(change) for change in diff.images]),
        ("Behaviour", list(diff.behaviour)),
        (f"Fields that only {newest} knows", [change.path for change in diff.fields]),
    ]
    if objects is not None:
        names = {
            "refused": f"refused with {options.before} or {options.after}",
            "rolls": "pods restart",
            "waits": "changed; pods stay until they are deleted (OnDelete)",
            "changed": "changed",
            "added": "added",
            "removed": "removed",
        }
        sections += [(f"{options.cluster}: {words}", objects.get(key, [])) for key, words in names.items()]
    for title, rows in sections:
        if rows:
            yield f"\n{title}:"
            yield from (folded(f"  {line}", columns_of(sys.stdout) if title == "Behaviour" else 0) for line in rows)


def row(change: Any) -> str:
    return f"{change.path}: {shown(change.before)} -> {shown(change.after)}"


def shown(value: Any) -> str:
    """A value as in a policy; nothing is a dash."""
    return "-" if value is None else value if isinstance(value, str) and value else json.dumps(value)


def cluster_changes(options: argparse.Namespace) -> dict[str, list[str]]:
    """Objects of the cluster that differ between the two releases, by what happens to them."""
    from ..review.releases import object_changes

    path = common.select_one(options.cluster)
    node.configure(os.environ)
    files: list[dict[str, str]] = []
    refused: list[str] = []
    with common.store(options) as store:
        for release in (options.before, options.after):
            try:
                loaded = load(path, root=Path.cwd(), overrides={"release": release})
                stack = compile_stack(loaded.spec, spec_key(loaded.merged), store, {NEWER_FIELD})
            except GpustackError as error:
                refused += [f"{release}: {finding.rule} {finding.what}" for finding in error.findings]
            else:
                files.append({file.path: file.text for file in stack.files})
    return {"refused": refused} if refused else object_changes(*files)
