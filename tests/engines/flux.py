"""Flux: its source and kustomize controllers, as processes."""

from __future__ import annotations

import time
from typing import Any

from tests.control_plane.api import Body
from tests.control_plane.cluster import free_ports, wait_for
from tests.engines.engine import SECONDS, Engine, condition, program

SOURCES = ("source.toolkit.fluxcd.io/v1/GitRepository", "source.toolkit.fluxcd.io/v1/OCIRepository")
KUSTOMIZATION = "kustomize.toolkit.fluxcd.io/v1/Kustomization"
REQUESTED = "reconcile.fluxcd.io/requestedAt"


class Flux(Engine):
    """Flux in its own cluster, or, where policies have a kubeConfig, in one beside."""

    name = "flux"
    namespace = "flux-system"

    def start(self) -> None:
        """Start both; what they find is served on a port of the source controller's."""
        (port,) = free_ports(1)
        storage = self.folder / "storage"
        storage.mkdir(exist_ok=True)
        common = [
            "--enable-leader-election=false",
            "--metrics-addr=127.0.0.1:0",
            "--health-addr=127.0.0.1:0",
            "--watch-all-namespaces",
        ]
        where = [
            f"--storage-path={storage}",
            f"--storage-addr=127.0.0.1:{port}",
            f"--storage-adv-addr=127.0.0.1:{port}",
        ]
        env = {"RUNTIME_NAMESPACE": self.namespace}
        self.run("source-controller", [program("source-controller"), *common, *where], **env)
        quick = "--requeue-dependency=1s"  # 30 s by default, for each stage
        self.run("kustomize-controller", [program("kustomize-controller"), *common, quick], **env)

    def gitops(self, url: str) -> dict[str, Any]:
        """Flux in the cluster itself."""
        return {"engine": "flux", "repository": {"url": url}}

    def refresh(self) -> None:
        """Sources first: what is new in them has Kustomizations looked at by itself."""
        for kind in (*SOURCES, KUSTOMIZATION):
            for one in self.api.list(kind, self.namespace):
                annotations = {"metadata": {"annotations": {REQUESTED: str(time.time())}}}
                self.api.patch(kind, one["metadata"]["name"], annotations, self.namespace, fieldManager="flux")

    def round(self, cluster: str) -> None:
        """Every Kustomization is applied once more."""
        before = {body["metadata"]["name"]: handled(body) for body in self.objects(cluster)}
        time.sleep(1)
        self.refresh()

        def done() -> bool:
            return all(handled(body) != before.get(body["metadata"]["name"]) for body in self.objects(cluster))

        wait_for(done, "Flux has applied everything again", SECONDS)

    def objects(self, cluster: str) -> list[Body]:
        """The Kustomizations, the root's too. Where one Flux serves many clusters, their names have the cluster's."""
        found = self.api.list(KUSTOMIZATION, self.namespace)
        return [body for body in found if body["metadata"]["name"] == "gpustack" or self._about(body, cluster)]

    def _about(self, body: Body, cluster: str) -> bool:
        name = str(body["metadata"]["name"])
        return name.startswith((f"gpustack-{cluster}-", "root-gpustack-")) or "kubeConfig" not in body["spec"]

    def complaints(self, cluster: str, commit: str, *, meanwhile: bool = False) -> list[str]:
        """Every Kustomization is Ready, about its present generation and COMMIT; MEANWHILE too."""
        found = self.objects(cluster)
        said = [] if len(found) > 1 else [f"there are {len(found)} Kustomizations"]
        for body in found:
            name, ready, status = body["metadata"]["name"], condition(body, "Ready"), body.get("status", {})
            if (
                ready.get("status") != "True"
                or ready.get("observedGeneration") != body["metadata"]["generation"]
                or commit not in str(status.get("lastAppliedRevision", ""))
            ):
                at = status.get("lastAppliedRevision")
                said.append(f"Kustomization {name} at {at}: {ready.get('reason')}: {ready.get('message')}")
        return said

    def said(self, cluster: str) -> list[str]:
        """What a source or a Kustomization says that is not Ready."""
        found = [*self.objects(cluster), *(one for kind in SOURCES for one in self.api.list(kind, self.namespace))]
        told = [(body["kind"], body["metadata"]["name"], condition(body, "Ready")) for body in found]
        return [
            f"{kind} {name}: {ready.get('message')}" for kind, name, ready in told if ready.get("status") == "False"
        ]

    def asks(self, cluster: str) -> bool:
        """Never: what is guarded is deleted by hand."""
        return False

    def confirm(self, cluster: str) -> None:
        """There is nothing to confirm."""


def handled(body: Body) -> str:
    """Which request of `refresh` an object has answered last."""
    return str(body.get("status", {}).get("lastHandledReconcileAt", ""))
