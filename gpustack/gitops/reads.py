"""What an engine reads for a cluster, by the objects that were rendered for it (plan.py): `push` goes by what was
reviewed and committed, and has no policy at hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..policy.language.gitops import Engine, named

SOURCES = ("OCIRepository", "GitRepository")


class Reads(NamedTuple):
    """The address that an engine reads from, what of it (a tag or digest, of Git a branch or commit), and the folder in
    it.
    """

    engine: Engine
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
    url = revision = ""
    folder = "."
    for body in bodies:
        kind, spec = body.get("kind"), body.get("spec") or {}
        if kind == "Application":
            source = spec.get("source") or {}
            return Reads("argocd", source.get("repoURL", ""), source.get("targetRevision", ""), source.get("path", "."))
        if kind in SOURCES:
            url, revision = spec.get("url", ""), next(iter((spec.get("ref") or {}).values()), "")
        elif kind == "Kustomization":  # one for each stage, which the path ends with
            folder = str(spec.get("path", "")).removeprefix("./").rpartition("/")[0] or "."
    return Reads("flux", url, revision, folder) if url else None
