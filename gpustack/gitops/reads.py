"""What an engine reads for a cluster, by the objects that were rendered for it (plan.py): `push` goes by what was
reviewed and committed, and has no policy at hand. And who applies it there: a guard refuses to everybody else what the
stack runs as root.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..policy.language.repository import address, is_oci, named, revision
from . import engines

if TYPE_CHECKING:
    from ..policy.language.gitops import GitOps
    from ..policy.language.spec import ClusterPolicySpec


class Reads(NamedTuple):
    """What an engine reads: the address, what of it (a tag or digest, of Git a branch or commit), and the folder."""

    engine: str
    url: str
    revision: str
    folder: str

    @property
    def oci(self) -> bool:
        return self.url.startswith("oci://")

    def __str__(self) -> str:
        if self.oci:
            return f"{self.url}{named(self.revision)}{'' if self.folder == '.' else f', folder {self.folder}'}"
        return f"the Git repository {self.url}"


def reads(bodies: Iterable[Any]) -> Reads | None:
    """What the engine of the objects BODIES reads, None where they don't say it: a source of somebody else, perhaps."""
    known = list(bodies)
    return next((place for each in engines.engines() if (place := each.reads(known))), None)


def artifact(given: GitOps | None, cluster: str) -> str:
    """The OCI artifact that the engine of CLUSTER reads, and the folder in it where that isn't its root; "" where it
    reads none that GIVEN names."""
    chosen = engines.chosen(given)
    if given is None or not is_oci(given.repository) or (chosen is not None and chosen.brings_source(given)):
        return ""
    where = f"{address(given.repository, cluster)}{named(revision(given.repository).name)}"
    return where if given.repository.path == "." else f"{where}, folder {given.repository.path}"


class Writing(NamedTuple):
    """Who applies the render: users and groups. `known`: these are all, so that everybody else can be refused."""

    users: tuple[str, ...]
    groups: tuple[str, ...]
    known: bool


def writing(spec: ClusterPolicySpec) -> Writing:
    """Who applies the render of SPEC, as far as the policy says.

    An engine in the cluster itself acts as an account of its namespace, under names that installations differ in. One
    elsewhere has whatever identity its kubeconfig gives it, so `guards.writers` must say which."""
    chosen, given = engines.chosen(spec.gitops), spec.guards.writers
    own = chosen.accounts(spec.gitops) if chosen and spec.gitops else None
    said = bool(given.users or given.groups)
    users, groups = own or ((), ())
    return Writing((*users, *given.users), (*groups, *given.groups), known=own is not None or said)
