"""`gitops.repository`: where an engine finds the render, and what of it: a branch, tag or commit of Git, or a tag or
digest of an OCI artifact.
"""

import re
from typing import Annotated, Literal, NamedTuple

from .base import Section, own
from .forms import form

OCI = "oci://"
CLUSTER = "{cluster}"
"""Stands for the cluster's name in an address, which so may stand in a layer: clusters with it share their spec."""


class Repository(Section):
    """Where the engine finds the render."""

    url: Annotated[str, form("repository_url")] | None = None
    """Address of the Git repository (https://, ssh://, for Argo CD also git@host:path), or of the cluster's own OCI
    artifact, as `gpustack push` makes it (oci://), in which `{cluster}` stands for the cluster's name. Has no
    default."""
    revision: Annotated[str, form("revision")] = own("gitops.repository.revision")
    """Branch that is synced, or refs/tags/NAME for a tag, or a commit in full; of an OCI artifact its tag, or its
    digest (sha256:...). Absent: main; of an OCI artifact `latest`."""
    path: Annotated[str, form("repository_path")] = own("gitops.repository.path")
    """Folder of the render in the repository; in an OCI artifact the cluster's folder. Absent: dist; in an artifact its
    root."""
    dist: Literal["files", "oci"] = own("gitops.repository.dist")
    """Where the cluster's manifests are kept: as `files` in `dist/`, or in the OCI artifact alone (`oci`), of which Git
    has an index with the digest. Absent: files."""


def is_oci(repository: Repository) -> bool:
    """Whether the render comes as an OCI artifact."""
    return (repository.url or "").startswith(OCI)


def address(repository: Repository, cluster: str) -> str:
    """The address of REPOSITORY for CLUSTER, "" where it has none."""
    return (repository.url or "").replace(CLUSTER, cluster)


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
