"""gpustack lock: ask the registries what the images of the fleet are at the moment, and keep it in images.lock."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import Finding, GpustackError, InputError
from ..text.source import load_bytes
from . import common, images
from .refusals import refusal, said
from .saving import save
from .text import document, plain, print_findings, printable, say

if TYPE_CHECKING:
    from ..registry.client import Client
    from ..review.images.lock import Difference, Locked

AT_ONCE = 8
"""Images that are asked for at the same time: registries count requests."""


def run(options: argparse.Namespace) -> int:
    from ..review.images import lock

    if options.offline and not options.check:
        raise refusal("GPU026", "offline")
    with common.project(options) as project:
        used, _ = images.used(project, [], common.progress_line(options))
    needed = sorted({lock.key_of(image.reference) for image in used})
    before = locked_before(must=options.check)
    now = {} if options.offline else asked(needed)
    difference = lock.compare(before or {}, needed, now)
    layer = layer_file()
    pinning = options.layer or os.path.lexists(layer)
    unfit = [
        said("GPU969", image=each.name, platform=each.platform, clusters=folded(each.clusters))
        for each in lock.lacking(now or before or {}, used)
    ]
    state = State(difference, unfit, lock.by_tag_alone(used) if pinning else [])
    if options.check:
        stale = os.path.lexists(layer) and load_bytes(layer, str(layer)) != lock.layer(before or {}).encode()
        return told(options, state, len(needed), stale)
    changed = write(Path(lock.FILE), lock.written(now))
    if pinning:
        changed = write(layer, lock.layer(now)) or changed
    end = f"{common.counted(len(now), 'image')} locked{'' if changed else ', nothing changed'}"
    return report(options, state, end, 2 if state.unfit else 0)


@dataclass(frozen=True, slots=True)
class State:
    """What is to be told: how the lock differs, images that don't fit nodes, and clusters without the layer."""

    difference: Difference
    unfit: Sequence[Finding]
    unpinned: Sequence[str]


def layer_file() -> Path:
    from ..review.images.lock import LAYER

    return Path(common.POLICIES) / "layers" / f"{LAYER}.yaml"


def locked_before(*, must: bool) -> dict[str, Locked] | None:
    """What images.lock says; None if the file is missing or can't be read, both of which --check refuses."""
    from ..review.images import lock

    try:
        locked = images.locked()
    except InputError:
        if must:
            raise
        return None  # it is about to be written anew
    if locked is None and must:
        raise InputError(said("GPU965", lock=lock.FILE))
    return locked


def asked(needed: Iterable[str]) -> dict[str, Locked]:
    """What registries say about the images NEEDED. Raises InputError with everything that can't be found out."""
    from ..registry.waiting import each

    with common.registries() as client:
        answers = each(lambda name: (name, one(client, name)), needed, AT_ONCE)
    findings = [finding for _, answer in answers if isinstance(answer, GpustackError) for finding in answer.findings]
    if findings:
        raise InputError(*dict.fromkeys(findings))
    return {name: answer for name, answer in answers if not isinstance(answer, GpustackError)}


def one(client: Client, name: str) -> Locked | GpustackError:
    """What the registry says about the image NAME."""
    from ..registry.reference import parse
    from ..registry.resolve import resolve
    from ..review.images.lock import Locked

    reference = parse(name)
    if reference is None:
        return refusal("GPU966", "image", name=name)
    try:
        return Locked(*resolve(client, reference))
    except GpustackError as error:
        return error


def write(path: Path, text: str) -> bool:
    """Write TEXT to PATH in one step unless it is there; returns whether it wasn't."""
    if os.path.lexists(path) and load_bytes(path, str(path)) == text.encode():
        return False
    save(path, text, "the file", "give gpustack the room or the permission, and run it again")
    return True


def told(options: argparse.Namespace, state: State, needed: int, layer: bool) -> int:
    """The verdict of --check."""
    stale = bool(state.difference) or layer
    end = f"images.lock is current: {common.counted(needed, 'image')}"
    if stale:
        end = "images.lock isn't current: run `gpustack lock` and commit it"
        if layer and not state.difference:
            end = f"{layer_file()} isn't what images.lock says: run `gpustack lock` and commit it"
    return report(options, state, end, 3 if stale else 2 if state.unfit else 0)


def report(options: argparse.Namespace, state: State, end: str, code: int) -> int:
    """What is in STATE, and a last line; returns CODE."""
    difference = state.difference
    parts = {"missing": difference.missing, "moved": difference.moved, "unused": difference.unused}
    if options.format == "json":
        lists = {name: list(listed) for name, listed in parts.items()}
        print(document(code, [*map(plain, state.unfit)], **lists, unpinned=list(state.unpinned)))
        return code
    words = ("not locked", "moved", "not used") if options.check else ("new", "moved", "gone")
    for word, listed in zip(words, parts.values(), strict=True):
        for image in listed:
            print(printable(f"{word}: {image}"))
    if state.unpinned:
        say(printable(f"by tag alone: {folded(state.unpinned)}; `extends: [locked-images]` renders their digests"))
    print_findings(state.unfit, sys.stderr)
    say(end, sys.stderr if code else sys.stdout)
    return code


def folded(clusters: Iterable[str]) -> str:
    """CLUSTERS the way people write them."""
    from ..review.diff.ranges import fold

    return ", ".join(fold(clusters))
