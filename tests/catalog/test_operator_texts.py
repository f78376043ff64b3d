"""The digests of the operator's texts are those of what it wrote to real clusters."""

from __future__ import annotations

import hashlib
import re

from gpustack.catalog import _data, releases
from gpustack.catalog.texts import releases_with
from gpustack.moving.adopt.carry import texts
from tests.fidelity.live import daemonsets, names

TEXT = re.compile(r"# text of (\d+) bytes, sha256 ([0-9a-f]{64})\ntrue\n")
"""What stands in the place of a text in the facts."""


def test_every_measured_text_is_known_in_its_place() -> None:
    """Each text of six live clusters has an entry with its length, its place and v26.7.0."""
    known = {(each["sha256"], at): each for each in _data.load("operator-texts") for at in each["at"]}
    found = 0
    for name in names():
        for body in daemonsets(name).values():
            for at, text in texts(body["spec"]["template"]["spec"]).items():
                if match := TEXT.fullmatch(text):
                    entry = known[match[2], at]
                    assert entry["bytes"] == int(match[1])
                    assert "v26.7.0" in entry["releases"]
                    found += 1
    assert found > 30


def test_entries_name_known_releases() -> None:
    """Oldest first, each of the catalogue, and a digest once for a place."""
    seen = set[tuple[str, str]]()
    for each in _data.load("operator-texts"):
        assert each["releases"] == [name for name in releases.names() if name in each["releases"]]
        assert len(each["sha256"]) == 64
        places = {(each["sha256"], at) for at in each["at"]}
        assert not places & seen
        seen |= places


def test_a_text_is_known_in_its_place_alone() -> None:
    """The text that two validators have in common, which is short enough to be told by its digest here."""
    text = "echo all validations are successful; while true; do sleep 86400; done"
    at = "containers.nvidia-operator-validator.args.0"
    assert hashlib.sha256(text.encode()).hexdigest().startswith("a302665d")
    assert releases_with(text, at)[-1] == "v26.7.0"
    assert releases_with(text, "containers.nvidia-driver-ctr.args.0") == ()
    assert releases_with(f"{text} ", at) == ()
