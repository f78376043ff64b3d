"""`gitops.repository`: where an engine finds the render, and what of it: a branch, tag or commit of Git, or a tag or
digest of an OCI artifact.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple

from .base import Section, own
from .forms import Form

OCI = "oci://"
REPOSITORY_URL = Form(
    "repository_url",
    "address of a repository",
    "https://, ssh:// or oci:// with host and path, or git@host:path; no password, no token: what is rendered "
    "goes into Git",
    r"(?!.*[\x00-\x20\x7f?#$])(?:https?://[^\s/@]+/[^\s@]+|ssh://(?:[\w.-]+@)?[^\s/@]+/\S+|[\w.-]+@[\w.-]+:[^\s:]+"
    r"|oci://[^\s/@]+/[^\s@:]+)",
    1024,
    hints=(
        (r"^https?://[^/]*@", "leave user and password out; the engine takes them from a Secret"),
        (r"^ssh://[^/]*:[^/]*@", "leave the password out; the engine takes the key from a Secret"),
        (r"^oci://.*:[^/]*$", "leave the tag out and set gitops.repository.revision"),
        (r"^[\w.-]+\.[a-z]+/", "put https:// before it"),
        (r"\$", "there are no variables here: write the address"),
        (r"[?#]", "leave out what follows: tokens are in a Secret, a branch is gitops.repository.revision"),
    ),
)
REVISION = Form(
    "revision",
    "branch, tag, commit or digest",
    "letters, digits, '.', '_', '-', '+' and '/', no '..', a letter or digit at both ends; or sha256: and 64 hex",
    r"(?!.*(?:\.\.|//))[A-Za-z0-9](?:[A-Za-z0-9._+/-]*[A-Za-z0-9_+-])?|sha256:[0-9a-f]{64}",
    255,
    hints=((r"\*|^[~^]", "name one branch or tag: what is synced must not change by itself"),),
)
REPOSITORY_PATH = Form(
    "repository_path",
    "folder of a repository",
    "a path from the repository's root such as dist or clusters/dist, without '..'; '.' is the root",
    r"\.|(?!-)(?!(?:.*/)?\.\.?(?:/|$))[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*",
    1024,
    hints=(
        (r"^\.?/", "it starts at the repository's root: leave out the '/' at the beginning"),
        (r"/$", "leave out the '/' at the end"),
    ),
)


class Repository(Section):
    """Where the engine finds `dist/`."""

    url: Annotated[str, REPOSITORY_URL] | None = None
    """Address of the Git repository (https://, ssh://, for Argo CD also git@host:path), or of the cluster's own OCI
    artifact, as `gpustack push` makes it (oci://). Has no default."""
    revision: Annotated[str, REVISION] = own("gitops.repository.revision")
    """Branch that is synced, or refs/tags/NAME for a tag, or a commit in full; of an OCI artifact its tag, or its
    digest (sha256:...). Absent: main; of an OCI artifact `latest`."""
    path: Annotated[str, REPOSITORY_PATH] = own("gitops.repository.path")
    """Folder of the render in the repository; in an OCI artifact the cluster's folder. Absent: dist; in an artifact its
    root."""


def is_oci(repository: Repository) -> bool:
    """Whether the render comes as an OCI artifact."""
    return (repository.url or "").startswith(OCI)


def named(name: str) -> str:
    """What stands behind an artifact's address: its tag or digest NAME."""
    return f"{'@' if is_digest(name) else ':'}{name}"


def is_digest(name: str) -> bool:
    """Whether NAME is a digest."""
    return name.startswith("sha256:")


class Revision(NamedTuple):
    """What of the repository is synced, of an OCI artifact a tag or digest."""

    kind: Literal["branch", "tag", "commit", "digest"]
    name: str


def revision(repository: Repository) -> Revision:
    """What `repository.revision` means."""
    given = repository.revision
    if is_oci(repository):
        return Revision("digest" if is_digest(given) else "tag", given)
    if given.startswith("refs/tags/"):
        return Revision("tag", given.removeprefix("refs/tags/"))
    return Revision(
        "commit" if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", given) else "branch", given.removeprefix("refs/heads/")
    )
