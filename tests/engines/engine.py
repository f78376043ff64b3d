"""What Argo CD and Flux have in common for tests: programs on the loopback interface, by the API server of a test."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml

from tests.control_plane.api import Api, Body
from tests.control_plane.cluster import ROOT, ControlPlane, wait_for
from tests.control_plane.manifests import established, make_namespace
from tests.control_plane.process import Program

KEPT = ROOT / ".tools/engines"
SECONDS = 240
"""Within this time what was pushed is synced and well, on a machine that is busy with other things."""


def program(name: str) -> Path:
    """A program that tools/engines.sh builds."""
    found = KEPT / "bin" / name
    if not found.exists():
        raise FileNotFoundError(f"{found} is missing: `make test-engines` builds it")
    return found


class Engine(ABC):
    """An engine that runs in PLANE; its files are in FOLDER."""

    name: ClassVar[str]
    namespace: ClassVar[str]

    def __init__(self, plane: ControlPlane, folder: Path, *, certificate: Path | None = None) -> None:
        self.plane = plane
        self.folder = folder
        self.certificate = certificate
        self.programs: dict[str, Program] = {}

    @property
    def api(self) -> Api:
        """The API server of the cluster in which it runs."""
        return self.plane.admin

    def __enter__(self) -> Engine:
        self.folder.mkdir(parents=True, exist_ok=True)
        install(self.api, self.name, self.namespace)
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start its programs."""

    @abstractmethod
    def gitops(self, url: str) -> dict[str, Any]:
        """The section of a policy for a cluster in which it runs itself."""

    @abstractmethod
    def refresh(self) -> None:
        """Have it look now, as its command line does (`argocd app get --refresh`, `flux reconcile`)."""

    @abstractmethod
    def round(self, cluster: str) -> None:
        """Have it compare CLUSTER with what is in Git, and apply what differs, once more; until it is done."""

    @abstractmethod
    def complaints(self, cluster: str, commit: str, *, meanwhile: bool = False) -> list[str]:
        """What is not as it should be: nothing where all of CLUSTER is synced at COMMIT, and well.

        MEANWHILE: while a roll-out is held back on purpose.
        """

    @abstractmethod
    def said(self, cluster: str) -> list[str]:
        """What it says that goes wrong, whatever the commit."""

    @abstractmethod
    def asks(self, cluster: str) -> bool:
        """Whether it waits for somebody who confirms that objects are pruned."""

    @abstractmethod
    def confirm(self, cluster: str) -> None:
        """Confirm it, as its command line does."""

    @abstractmethod
    def objects(self, cluster: str) -> list[Body]:
        """Its own objects that sync CLUSTER."""

    def stop(self) -> None:
        """Stop its programs, the last started first."""
        for one in reversed(self.programs.values()):
            one.stop()
            self.plane.programs.pop(one.name, None)

    def run(self, name: str, command: Sequence[str | Path], **env: str) -> Program:
        """Start one of its programs."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        given = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home),
            "KUBECONFIG": str(self.plane.kubeconfig("admin", self.plane.token)),
            **({"SSL_CERT_FILE": str(self.certificate)} if self.certificate else {}),
            **env,
        }
        self.programs[name] = self.plane.programs[name] = Program(name, command, self.folder, given)
        return self.programs[name]

    def synced(self, cluster: str, commit: str, seconds: float = SECONDS, *, meanwhile: bool = False) -> None:
        """Wait until all of CLUSTER is synced at COMMIT, and well."""
        self.refresh()

        def well() -> bool:
            return not self.complaints(cluster, commit, meanwhile=meanwhile)

        try:
            wait_for(well, f"{cluster} is synced", seconds, every=0.5)
        except AssertionError:
            complaints = "\n".join(self.complaints(cluster, commit, meanwhile=meanwhile))
            raise AssertionError(
                f"{self.name} has not synced {cluster} at {commit} within {seconds:g} s:\n{complaints}"
            ) from None


def install(api: Api, engine: str, namespace: str) -> None:
    """Apply the definitions of its kinds, and make its namespace."""
    make_namespace(api, namespace)
    names = []
    for body in _definitions(KEPT / "crds" / engine):
        api.apply(body, manager="install")
        names.append(body["metadata"]["name"])
    wait_for(lambda: all(established(api, name) for name in names), f"the kinds of {engine} are served")


def _definitions(folder: Path) -> Iterator[Body]:
    for path in sorted(folder.glob("*.yaml")):
        yield from (body for body in yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader) if body)


def condition(body: Mapping[str, Any], kind: str) -> Body:
    """A condition of an object, empty where it has none."""
    found = body.get("status", {}).get("conditions") or []
    return next((one for one in found if one["type"] == kind), {})
