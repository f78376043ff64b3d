"""Which image a mirror's stands for, and what a driver image was built for."""

from __future__ import annotations

from gpustack.review.images.inventory import source_of

KNOWN = ["nvcr.io/nvidia/driver:595.91.07", "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"]
BOTH = {"nvcr.io": "mirror.example.com", "registry.k8s.io": "mirror.example.com"}


def test_two_registries_behind_one_mirror() -> None:
    """The way back from a mirror goes to the image that the policy names, not to the first entry of the map."""
    assert source_of("mirror.example.com/nfd/node-feature-discovery:v0.19.0", BOTH, KNOWN) == KNOWN[1]
    assert source_of("mirror.example.com/nvidia/driver:595.91.07-rhel9", BOTH, KNOWN) == f"{KNOWN[0]}-rhel9"


def test_the_longest_match_wins_on_the_way_back_too() -> None:
    """An entry that a longer one beats for this image rewrote nothing."""
    registry_map = {"nvcr.io": "a.example.com", "nvcr.io/nvidia": "b.example.com/nvidia"}
    assert source_of("b.example.com/nvidia/driver:1", registry_map, KNOWN) == "nvcr.io/nvidia/driver:1"
    assert source_of("a.example.com/nvidia/driver:1", registry_map, KNOWN) == "a.example.com/nvidia/driver:1"


def test_what_no_section_names() -> None:
    """An image of `extraObjects` at the mirror's address is what it is: nothing rewrote it."""
    assert source_of("mirror.example.com/team/tool:1", BOTH, KNOWN) == "mirror.example.com/team/tool:1"
