"""Where an image lives, by the rules of container runtimes."""

from __future__ import annotations

import pytest

from gpustack.registry.reference import parse


@pytest.mark.parametrize(
    ("text", "host", "repository", "version"),
    [
        ("busybox", "registry-1.docker.io", "library/busybox", "latest"),
        ("team/tool:1", "registry-1.docker.io", "team/tool", "1"),
        ("docker.io/library/busybox:1.36", "registry-1.docker.io", "library/busybox", "1.36"),
        ("nvcr.io/nvidia/driver:595.91.07-rhel9", "nvcr.io", "nvidia/driver", "595.91.07-rhel9"),
        ("localhost:5000/a:b@sha256:" + "0" * 64, "localhost:5000", "a", "sha256:" + "0" * 64),
        ("[::1]:5000/a:b", "[::1]:5000", "a", "b"),
    ],
)
def test_parsed(text: str, host: str, repository: str, version: str) -> None:
    """The first part is a registry where it has a dot or a port or is localhost, else the image is Docker Hub's."""
    found = parse(text)
    assert found
    assert (found.host, found.repository, found.version) == (host, repository, version)


@pytest.mark.parametrize(
    "text", ["", "UPPER/case", "nvcr.io/", "a b", "https://nvcr.io/a", "a@sha256:1", "nvcr.io/a:b:c"]
)
def test_no_reference(text: str) -> None:
    """What is not an image is told apart."""
    assert parse(text) is None


@pytest.mark.parametrize(
    ("host", "scheme"),
    [
        ("localhost:1", "http"),
        ("127.0.0.9", "http"),
        ("[::1]", "http"),
        ("10.0.0.1", "https"),
        ("localhost.de", "https"),
    ],
)
def test_only_this_machine_is_asked_without_encryption(host: str, scheme: str) -> None:
    """A registry elsewhere is asked by https alone."""
    found = parse(f"{host}/a:1")
    assert found
    assert found.base.startswith(f"{scheme}://")
