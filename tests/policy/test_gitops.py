"""The section `gitops`: which texts are accepted, and what a revision means."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gpustack.gitops.engines.flux import ENGINE
from gpustack.policy.language.gitops import GitOps
from gpustack.policy.language.repository import Repository, revision


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/platform/gpu.git",
        "https://git.example.com:8443/gpu",
        "ssh://git@git.example.com/gpu.git",
        "ssh://git@git.example.com:2222/gpu.git",
        "git@git.example.com:platform/gpu.git",
        "oci://registry.example.com:5000/platform/gpu",
    ],
)
def test_addresses(url: str) -> None:
    """Addresses as the engines take them."""
    assert Repository(url=url).url == url


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("https://user:password@git.example.com/gpu.git", "leave user and password out"),
        ("https://token@git.example.com/gpu.git", "leave user and password out"),
        ("ssh://git:password@git.example.com/gpu.git", "leave the password out"),
        ("oci://registry.example.com/gpu:v1", "gitops.repository.revision"),
        ("git.example.com/gpu.git", "put https:// before it"),
        ("https://git.example.com/${REPO}", "write the address"),
        ("https://git.example.com/gpu.git?private_token=s3cret", "tokens are in a Secret"),
        ("oci://registry.example.com/gpu#v1", "gitops.repository.revision"),
        ("oci://registry.example.com/gpu\x1b[31m", ""),
        ("https://git.example.com", ""),
        ("dist", ""),
        ("", ""),
        ("https://git.example.com/a\nb", ""),
    ],
)
def test_no_addresses(url: str, remedy: str) -> None:
    """What an engine can't use, or would put a password into Git, is refused with what to write instead."""
    with pytest.raises(ValidationError) as caught:
        Repository(url=url)
    assert remedy in caught.value.errors()[0]["ctx"]["remedy"]


@pytest.mark.parametrize("path", ["dist", ".", "clusters/dist", "a.b/c_d-e"])
def test_paths(path: str) -> None:
    """Folders of a repository."""
    assert Repository(path=path).path == path


@pytest.mark.parametrize("path", ["/dist", "./dist", "../dist", "a/../b", "dist/", "a//b", "", "-rf", "a b", "a/."])
def test_no_paths(path: str) -> None:
    """A path that leaves the repository, or that engines would read in different ways."""
    with pytest.raises(ValidationError):
        Repository(path=path)


@pytest.mark.parametrize("name", ["a..b", "/main", "main/", "-x", "a b", "*", "v1.*", "", "main.", "a//b", "~main"])
def test_no_revisions(name: str) -> None:
    """What Git allows as no name, and patterns, by which the synced version would change without a commit here."""
    with pytest.raises(ValidationError):
        Repository(revision=name)


def test_a_revision_of_an_artifact_is_its_tag() -> None:
    """There are no branches and commits in a registry, whatever the name looks like."""
    commit = "0" * 40
    assert revision(Repository(url="oci://r.example.com/a", revision=commit)) == ("tag", commit)
    assert revision(Repository(url="https://git.example.com/a", revision=commit)) == ("commit", commit)


@pytest.mark.parametrize("interval", ["10m", "1h30m", "45s", "1h"])
def test_intervals(interval: str) -> None:
    """Durations as Flux takes them."""
    assert ENGINE.of(GitOps.model_validate({"flux": {"interval": interval}})).interval == interval


@pytest.mark.parametrize("interval", ["10", "1d", "0s", "", "5 m", "10m1h", "1.5h"])
def test_no_intervals(interval: str) -> None:
    """Days are no unit of Flux, and nothing is looked at without a pause."""
    with pytest.raises(ValidationError):
        GitOps.model_validate({"flux": {"interval": interval}})
