"""`gitops`: the engine that syncs the render, and from where: the Argo CD or Flux objects are made of it.

A policy without the section renders no such objects, and nothing that an engine alone reads. What is common to a fleet
(repository, engine) belongs into a layer, the destination into the cluster's file. Who says what goes together is
`checks/gitops/gitops_engine.py`: a layer alone needs not be complete.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple

from .base import Section, section
from .forms import Form
from .types import DnsLabel, DnsSubdomain

Engine = Literal["argocd", "flux"]
SourceKind = Literal["GitRepository", "OCIRepository"]

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
SERVER_URL = Form(
    "server_url",
    "address of an API server",
    "https:// and a host, as Argo CD knows the cluster: https://kubernetes.default.svc is the one that it runs in",
    r"https?://[^\s/@$\x00]+(?:/[^\s@$\x00]*)?",
    1024,
    hints=((r"^[\w.-]+(?::[0-9]+)?$", "put https:// before it"),),
)
DESTINATION = Form(
    "destination_name",
    "name of a cluster in Argo CD",
    "as `argocd cluster list` shows it",
    r"[^\s$\x00][^\n$\x00]*",
    253,
)
INTERVAL = Form(
    "interval",
    "interval",
    "hours, minutes and seconds such as 10m or 1h30m",
    r"(?=[0-9])(?:[1-9][0-9]{0,4}h)?(?:[1-9][0-9]{0,5}m)?(?:[1-9][0-9]{0,6}s)?",
    hints=((r"^[0-9]+$", "add the unit: 10m"),),
)


class Repository(Section):
    """Where the engine finds `dist/`."""

    url: Annotated[str, REPOSITORY_URL] | None = None
    """Address of the Git repository (https://, ssh://, for Argo CD also git@host:path), or of the cluster's own OCI
    artifact, as `gpustack push` makes it (oci://). Has no default."""
    revision: Annotated[str, REVISION] | None = None
    """Branch that is synced, or refs/tags/NAME for a tag, or a commit in full; of an OCI artifact its tag, or its
    digest (sha256:...). Absent: main; of an OCI artifact `latest`."""
    path: Annotated[str, REPOSITORY_PATH] | None = None
    """Folder of the render in the repository; in an OCI artifact the cluster's folder. Absent: dist; in an artifact its
    root."""


class Destination(Section):
    """The cluster, as Argo CD knows it. One of both."""

    server: Annotated[str, SERVER_URL] | None = None
    """Address of its API server; `https://kubernetes.default.svc` where Argo CD runs in the cluster itself. Absent:
    `name` says it."""
    name: Annotated[str, DESTINATION] | None = None
    """Its name in Argo CD. Absent: `server` says it."""


class ArgoCd(Section):
    """How Argo CD syncs the cluster."""

    namespace: DnsLabel | None = None
    """Namespace of Argo CD. Absent: argocd."""
    project: DnsSubdomain | None = None
    """AppProject of yours that the Application belongs to. Absent: one of its own is rendered, which permits this
    repository, this cluster and the kinds that gpustack renders."""
    destination: Destination = section()
    """The cluster, as Argo CD knows it. Has no default."""
    autoSync: bool | None = None
    """Whether a commit is applied without anybody's help. Absent: true."""
    prune: bool | None = None
    """Whether `autoSync` deletes what is no longer rendered; what would stop drivers waits for somebody who confirms
    it. Absent: true."""
    selfHeal: bool | None = None
    """Whether `autoSync` takes back what somebody changed in the cluster. Absent: true."""


class FluxSource(Section):
    """A source that is in the cluster already, such as that of `flux bootstrap`."""

    kind: SourceKind
    """GitRepository or OCIRepository."""
    name: DnsSubdomain
    """Its name, in `flux.namespace`."""


class KubeConfig(Section):
    """How a Flux that runs elsewhere reaches the cluster."""

    secretName: DnsSubdomain
    """Secret with a kubeconfig of the cluster under the key `value`, in `flux.namespace` of the cluster in which Flux
    runs."""


class Flux(Section):
    """How Flux syncs the cluster: one that runs in it or, with `kubeConfig`, one that serves many."""

    namespace: DnsLabel | None = None
    """Namespace of the Kustomizations and the source. Absent: flux-system."""
    source: FluxSource | None = None
    """A source that is there already. Absent: one is rendered from `repository`: an OCIRepository for oci://, else a
    GitRepository."""
    secretName: DnsSubdomain | None = None
    """Secret with the credentials of the repository, in `namespace`. Absent: none."""
    interval: Annotated[str, INTERVAL] | None = None
    """How often the repository is looked at and the cluster compared with it. Absent: 10m."""
    serviceAccountName: DnsSubdomain | None = None
    """ServiceAccount in `namespace` by whose rights Flux applies; with `kubeConfig`, of the cluster that is synced.
    Absent: Flux's own, or those of the kubeconfig."""
    kubeConfig: KubeConfig | None = None
    """Where Flux runs in another cluster, as one that serves many does: how it reaches this one. The objects' names
    have the cluster in them then. Absent: Flux runs in the cluster."""
    prune: bool | None = None
    """Whether what is no longer rendered is deleted; what would stop drivers never is. Absent: true."""


class GitOps(Section):
    """The engine that syncs the render."""

    engine: Engine | None = None
    """`argocd` or `flux`. Has no default."""
    repository: Repository = section()
    """Where the engine finds the render."""
    argocd: ArgoCd = section()
    """How Argo CD syncs."""
    flux: Flux = section()
    """How Flux syncs."""


def is_oci(repository: Repository) -> bool:
    """Whether the render comes as an OCI artifact."""
    return (repository.url or "").startswith("oci://")


def artifact(given: GitOps | None) -> str:
    """The OCI artifact that the engine reads, and the folder in it where that isn't its root; "" where it reads none
    that GIVEN names.
    """
    if given is None or not is_oci(given.repository) or (given.engine == "flux" and given.flux.source):
        return ""
    inside = given.repository.path or "."
    where = f"{given.repository.url}{named(revision(given.repository).name)}"
    return where if inside == "." else f"{where}, folder {inside}"


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
    """What `repository.revision` means; main where it says nothing, of an OCI artifact the tag latest."""
    if is_oci(repository):
        name = repository.revision or "latest"
        return Revision("digest" if is_digest(name) else "tag", name)
    given = repository.revision or "main"
    if given.startswith("refs/tags/"):
        return Revision("tag", given.removeprefix("refs/tags/"))
    return Revision(
        "commit" if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", given) else "branch", given.removeprefix("refs/heads/")
    )
