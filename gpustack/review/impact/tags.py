"""Tests by which the lists of tiers bound versions and images: which one, from where, and who says what is behind it.

Solves: a tag is a name that its registry gives to whatever it likes, so what runs is known by a digest, or by the
version that a tag names as long as nobody pulls it anew.
"""

import itertools
import re
from typing import Any

from ...catalog import releases
from ...model import numbers
from ...policy.language import images
from .leaves import Leaf

_VERSION = re.compile(r"v?[0-9][\w.+-]*")
_FOLLOWS = re.compile(
    r"(?<![a-z])(latest|stable|nightly|daily|weekly|main|master|trunk|head|edge|dev|snapshot|canary)(?![a-z])"
)
"""Words in a tag that moves with what they name."""


def split(reference: str) -> tuple[str, str]:
    """Repository and version of an image: tag or digest."""
    repository, at_sign, digest = reference.partition("@")
    head, colon, tag = repository.rpartition(":")
    if colon and "/" not in tag:
        return head, digest if at_sign else tag
    return repository, digest


def version(leaf: Leaf) -> bool:
    """Whether it numbers a version: no digest, and no moving tag. Precompiled drivers are published by branch."""
    places = {leaf.path[:-1], leaf.path[-2:-1]}
    branch = any(leaf.news.get((*place, "usePrecompiled")) is True for place in places)
    strings = isinstance(leaf.new, str) and isinstance(leaf.old, (str, type(None)))
    return strings and fixed(leaf.new, leaf.old or "", ".".join(leaf.path[:-1]), branch=branch)


def forward(leaf: Leaf) -> bool:
    """Whether a version isn't older than it was. That of one pool, where there was none, was that of all."""
    old = leaf.old if leaf.old is not None else leaf.olds.get(leaf.path[-2:])
    return old is None or leaf.new is None or not older(str(old), str(leaf.new))


def image_forward(leaf: Leaf) -> bool:
    """Whether the version of an image isn't older than it was."""
    if not isinstance(leaf.old, str) or not isinstance(leaf.new, str):
        return leaf.old is None
    return not older(images.tag_of(leaf.old), images.tag_of(leaf.new))


_EARLY = re.compile(r"(alpha|beta|pre|rc)[.-]?(\d{0,9})")


def build(tag: str) -> tuple[int, str]:
    """How many numbers TAG has, and what it says behind them: which build of a version it is."""
    numbered = len(_numbers(tag))
    rest = tag.removeprefix("v").split("-")[numbered:]
    return numbered, "-".join(rest[1:] if rest and _EARLY.fullmatch(rest[0]) else rest)


def known_builds(name: str) -> set[tuple[int, str]]:
    """The builds that releases have of the image, or for the section, of NAME."""
    known = (each for release in releases.names() for each in releases.release(release).images.items())
    return {build(image.version) for section, image in known if image.version and name in (section, image.image)}


def older(old: str, new: str) -> bool:
    """Whether NEW is an older version than OLD, by the numbers of both, part by part; what has none can't be told."""
    one, two = (_numbers(version) for version in (old, new))
    if old == new or not old or not new:
        return False
    return not one or not two or (two, _early(new)) < (one, _early(old))


def _early(version: str) -> tuple[str, int]:
    """How far VERSION is on its way to be out: rc2 is behind rc1, and nothing at all behind both."""
    match = next((match for part in version.split("-") if (match := _EARLY.fullmatch(part))), None)
    return (match[1], int(match[2] or 0)) if match else ("~", 0)


def _numbers(version: str) -> tuple[tuple[int, ...], ...]:
    """The numbers of VERSION: ((4, 6, 0), (4, 8, 3)) of v4.6.0-4.8.3-distroless."""
    return tuple(itertools.takewhile(bool, map(numbers, version.removeprefix("v").split("-"))))


def of_a_digest(leaf: Leaf) -> bool:
    """Whether the container beside a pull policy runs what its digest says, whatever its registry has at a start."""
    image = str(leaf.news.get((*leaf.path[:-1], "image")) or "")
    return leaf.new in ("IfNotPresent", "Never") or not moves(image, leaf.new)


def moves(image: str, policy: Any) -> bool:
    """Whether what a container of IMAGE runs is what its registry has when it starts: pulled each time, without digest.
    Kubernetes pulls so by default where the tag is latest, or none is said."""
    return "@" not in image and (policy == "Always" or (not policy and split(image)[1] in ("", "latest")))


def fixed(tag: str, was: str = "", name: str = "", *, branch: bool = False) -> bool:
    """Whether TAG is of one version: it begins with its numbers, as many as it WAS of (else two), and says nowhere that
    it follows something. What it says behind them, if anything, is what it said before, or what releases have of the
    image or section of NAME: anything else is another build, of whoever. BRANCH: one number may do."""
    parts = _numbers(tag)
    before = _numbers(was)
    least = 1 if branch else len(before[0]) if before else 2
    usual = build(tag) in {(1, ""), build(was)} or build(tag) in known_builds(name)
    plain = _VERSION.fullmatch(tag) and not _FOLLOWS.search(tag.lower())
    return bool(plain and parts and len(parts[0]) >= least and usual)


def same_repository(leaf: Leaf) -> bool:
    """Whether an image stays in its repository and gets another version: no digest is swapped or lost, and no tag."""
    if not isinstance(leaf.old, str) or not isinstance(leaf.new, str):
        return False
    old, new = leaf.old, leaf.new
    (one, was), (two, now) = split(old), split(new)
    if one != two or not now:
        return False
    tags = [reference.partition("@")[0].removeprefix(one).removeprefix(":") for reference in (old, new)]
    pins = [reference.partition("@")[2] for reference in (old, new)]
    if pins[0] and not pins[1]:
        return False
    if pins[1] and pins[0] != pins[1] and pins[0]:
        return tags[0] != tags[1] and fixed(tags[1], tags[0], one.rpartition("/")[2])
    return fixed(tags[1], tags[0], one.rpartition("/")[2]) if tags[1] else was == now


def pin(leaf: Leaf) -> bool:
    """Whether an image is pinned that wasn't, or is no longer as another version of it takes its place."""
    if leaf.old is None:
        return True
    if leaf.new is not None:
        return False
    repository = split(leaf.path[-1])[0]
    fresh = (path[-1] for path in leaf.news if path[:-1] == leaf.path[:-1] and path not in leaf.olds)
    return any(split(name)[0] == repository for name in fresh)


TAGS = (version, forward, image_forward, of_a_digest, same_repository, pin)
