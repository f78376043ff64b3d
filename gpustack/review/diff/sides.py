"""Two sides of a comparison, and what differs between them, each distinct pair of clusters looked at once.

A side says for each cluster which files it has and names their content (without the header line, which names the policy
and differs where nothing else does). Clusters that were rendered from one effective spec share one mapping, so 1,000
clusters of 20 shapes are 20 comparisons. Only files whose content differs are ever parsed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from ...model import Finding, InputError
from .objects import Identity, ObjectChange, Objects, Rendered, compare

Files = Mapping[str, str]
"""The files of a cluster below its folder, and the name of each content."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Side:
    """One side: the files of each cluster, and how the text behind a name is had."""

    clusters: Mapping[str, Files]
    text: Callable[[str], str]
    title: str = ""


@dataclass
class Texts:
    """Contents by name: what a side's `text` usually is."""

    known: dict[str, str] = field(default_factory=dict)

    def name(self, text: str) -> str:
        """The name of TEXT, which is kept."""
        named = hashlib.sha256(text.encode()).hexdigest()
        self.known.setdefault(named, text)
        return named

    def __call__(self, name: str) -> str:
        return self.known[name]


def without_header(text: str, header: str) -> str:
    """TEXT without its first line, if that begins with HEADER."""
    return text.partition("\n")[2] if text.startswith(header) else text


def differences(before: Side, after: Side) -> dict[str, Sequence[ObjectChange]]:
    """What changed in each cluster of either side; clusters without changes are left out.

    Clusters that have the very same changes share one list. Raises InputError for a file that is no Kubernetes object.
    """
    done: dict[tuple[int, int], list[ObjectChange]] = {}
    found: dict[str, Sequence[ObjectChange]] = {}
    parsed: dict[tuple[str, str], tuple[Identity, Rendered] | None] = {}
    nothing: Files = {}
    shapes = _Shapes()
    for cluster in sorted({*before.clusters, *after.clusters}):
        left = shapes.one(before.clusters.get(cluster, nothing))
        right = shapes.one(after.clusters.get(cluster, nothing))
        pair = (id(left), id(right))
        if pair not in done:
            files = {*left, *right}
            other = [file for file in sorted(files) if left.get(file) != right.get(file)]
            done[pair] = compare(
                _objects(before, left, other, cluster, parsed), _objects(after, right, other, cluster, parsed)
            )
        if done[pair]:
            found[cluster] = done[pair]
    return found


class _Shapes:
    """Equal mappings as one object."""

    def __init__(self) -> None:
        self._by_id: dict[int, Files] = {}
        self._by_content: dict[str, Files] = {}
        self._kept: list[Files] = []

    def one(self, files: Files) -> Files:
        """The one mapping that stands for all that are equal to FILES."""
        if id(files) not in self._by_id:
            content = "\n".join(f"{file}\t{name}" for file, name in sorted(files.items()))
            self._by_id[id(files)] = self._by_content.setdefault(content, files)
            self._kept.append(files)  # an id means something as long as its object lives
        return self._by_id[id(files)]


def _objects(
    side: Side,
    files: Files,
    wanted: Sequence[str],
    cluster: str,
    parsed: dict[tuple[str, str], tuple[Identity, Rendered] | None],
) -> Objects:
    found: dict[Identity, Rendered] = {}
    for file in wanted:
        if file not in files:
            continue
        key = (file, files[file])
        if key not in parsed:
            parsed[key] = _parse(side.text(files[file]), file, f"{side.title}{cluster}/{file}")
        one = parsed[key]
        if one is not None:
            found[one[0]] = one[1]
    return found


def _parse(text: str, file: str, shown: str) -> tuple[Identity, Rendered] | None:
    try:
        body = yaml.load(text, Loader=LOADER)  # noqa: S506 - a safe loader, in C where there is one
        return (Identity.of(body), Rendered(body, file)) if body is not None else None
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, RecursionError):
        remedy = "compare folders that gpustack rendered, or take the file out of them"
        raise InputError(Finding("GPU950", "error", f"{shown} is no Kubernetes object", remedy=remedy)) from None
