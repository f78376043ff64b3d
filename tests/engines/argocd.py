"""Argo CD: Redis, its repository server and its application controller, as processes."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
from pathlib import Path
from typing import Any

from tests.control_plane.api import Body
from tests.control_plane.cluster import ROOT, START_SECONDS, free_ports, wait_for
from tests.engines.engine import SECONDS, Engine, program

APPLICATION = "argoproj.io/v1alpha1/Application"
PROJECT = "argoproj.io/v1alpha1/AppProject"
HERE = "https://kubernetes.default.svc"
REFRESH = "argocd.argoproj.io/refresh"
APPROVED = "argocd.argoproj.io/deletion-approved"


class ArgoCd(Engine):
    """Argo CD in its own cluster; by Secrets it serves others too."""

    name = "argocd"
    namespace = "argocd"

    def start(self) -> None:
        """Bring its configuration as its own manifests do, and start it."""
        for body in settings():
            if not self.api.find(body["kind"], body["metadata"]["name"], self.namespace):
                self.api.create(body)
        if not self.api.find(PROJECT, "default", self.namespace):
            self.api.create(default_project())
        redis, repo, *metrics = free_ports(4)
        self._redis(redis)
        common = ["--redis", f"127.0.0.1:{redis}"]
        env = {
            "ARGOCD_FAKE_IN_CLUSTER": "true",  # else the destination `kubernetes.default.svc` wants a token file
            "ARGOCD_GPG_ENABLED": "false",
        }
        server = [*common, "--port", str(repo), "--address", "127.0.0.1", "--disable-tls"]
        server += ["--metrics-address", "127.0.0.1", "--metrics-port", str(metrics[0])]
        self.run("repo-server", [program("argocd"), *server], ARGOCD_BINARY_NAME="argocd-repo-server", **env)
        self.programs["repo-server"].wait_until(lambda: listens(repo), START_SECONDS)
        controller = [*common, "--repo-server", f"127.0.0.1:{repo}", "--repo-server-plaintext"]
        controller += ["--namespace", self.namespace, "--metrics-port", str(metrics[1]), "--app-resync", "20"]
        controller += ["--kubeconfig", str(self.plane.kubeconfig("admin", self.plane.token))]
        self.run(
            "application-controller",
            [program("argocd"), *controller],
            ARGOCD_BINARY_NAME="argocd-application-controller",
            **env,
        )

    def _redis(self, port: int) -> None:
        command = [str(redis_server()), "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
        self.run("redis", command, LD_LIBRARY_PATH=str(ROOT / ".tools/redis/lib"))
        self.programs["redis"].wait_until(lambda: listens(port), START_SECONDS)

    def gitops(self, url: str) -> dict[str, Any]:
        """Argo CD in the cluster itself."""
        return {"engine": "argocd", "repository": {"url": url}, "argocd": {"destination": {"server": HERE}}}

    def refresh(self) -> None:
        """All Applications compare again, with what is in Git now."""
        for one in self.api.list(APPLICATION, self.namespace):
            annotations = {"metadata": {"annotations": {REFRESH: "normal"}}}
            self.api.patch(APPLICATION, one["metadata"]["name"], annotations, self.namespace, fieldManager="argocd")

    def round(self, cluster: str) -> None:
        """A refresh, and an operation of syncing, which compares and applies what differs."""
        before = self._times(cluster)
        self.refresh()
        wait_for(lambda: not set(self._times(cluster)) & set(before), "Argo CD has compared again", SECONDS)

    def _times(self, cluster: str) -> list[tuple[str, str]]:
        """When each Application was compared last."""
        found = self.objects(cluster)
        return [(body["metadata"]["name"], body.get("status", {}).get("reconciledAt", "")) for body in found]

    def objects(self, cluster: str) -> list[Body]:
        """The root and the Application."""
        names = {"root-gpustack", f"root-gpustack-{cluster}", f"gpustack-{cluster}"}
        return [body for body in self.api.list(APPLICATION, self.namespace) if body["metadata"]["name"] in names]

    def complaints(self, cluster: str, commit: str, *, meanwhile: bool = False) -> list[str]:
        """Both are Synced and Healthy at COMMIT, the last operation succeeded; MEANWHILE health may be Suspended."""
        found = self.objects(cluster)
        said = [] if f"gpustack-{cluster}" in {body["metadata"]["name"] for body in found} else ["no Application"]
        for body in found:
            said += [f"Application {body['metadata']['name']}: {word}" for word in _wrong(body, commit, meanwhile)]
        return said

    def said(self, cluster: str) -> list[str]:
        """Conditions and the last operation's words, about each object too."""
        found = [body.get("status", {}) for body in self.objects(cluster)]
        told = [one["message"] for status in found for one in status.get("conditions") or [] if "Error" in one["type"]]
        for operation in (status.get("operationState", {}) for status in found):
            if operation.get("phase") not in {"Succeeded", None}:
                each = operation.get("syncResult", {}).get("resources") or []
                told += [operation.get("message", "")]
                told += [one.get("message", "") for one in each if one.get("status") == "SyncFailed"]
        return told

    def asks(self, cluster: str) -> bool:
        """Whether the operation says so."""
        return any("pruning confirmation" in word for word in self.said(cluster))

    def confirm(self, cluster: str) -> None:
        """What `argocd app confirm-deletion` writes."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        annotations = {"metadata": {"annotations": {APPROVED: now}}}
        self.api.patch(APPLICATION, f"gpustack-{cluster}", annotations, self.namespace, fieldManager="argocd")


def _wrong(body: Body, commit: str, meanwhile: bool) -> list[str]:
    status = body.get("status", {})
    sync, health, operation = (status.get(name, {}) for name in ("sync", "health", "operationState"))
    said = [f"{one['type']}: {one['message']}" for one in status.get("conditions") or [] if "Error" in one["type"]]
    if sync.get("status") != "Synced" or commit not in str(sync.get("revision", "")):
        said.append(f"{sync.get('status')} at {sync.get('revision')}")
        waits = [one for one in status.get("resources") or [] if one.get("status") != "Synced"]
        said += [f"{one['kind']} {one['name']} is {one.get('status')}" for one in waits]
    if health.get("status") not in {"Healthy", "Suspended" if meanwhile else "Healthy"}:
        said.append(f"{health.get('status')}")
        ill = [
            one for one in status.get("resources") or [] if one.get("health", {}).get("status") not in {None, "Healthy"}
        ]
        said += [f"{one['kind']} {one['name']} is {one['health']}" for one in ill]
    if operation and operation.get("phase") != "Succeeded":
        said.append(f"operation {operation.get('phase')}: {operation.get('message')}")
    return said


def redis_server() -> Path:
    """The program that tools/redis.sh brings, or the PATH's."""
    found = shutil.which("redis-server", path=os.pathsep.join((str(ROOT / ".tools/redis"), os.environ["PATH"])))
    if found is None:
        raise FileNotFoundError("there is no redis-server: `make test-engines` brings it")
    return Path(found)


def listens(port: int) -> bool:
    """Whether somebody listens on PORT."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def settings() -> list[Body]:
    """Its configuration, with what `gpustack bootstrap` says about the health of NodePolicies on top, later."""

    def body(kind: str, name: str, data: dict[str, str]) -> Body:
        labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}
        meta = {"name": name, "namespace": ArgoCd.namespace, "labels": labels}
        return {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": meta,
            ("stringData" if kind == "Secret" else "data"): data,
        }

    return [
        body("ConfigMap", "argocd-cm", {"timeout.reconciliation": "15s", "timeout.reconciliation.jitter": "0s"}),
        body("ConfigMap", "argocd-rbac-cm", {}),
        body("ConfigMap", "argocd-cmd-params-cm", {}),
        body("Secret", "argocd-secret", {"server.secretkey": "nobody's"}),
    ]


def default_project() -> Body:
    """The project that every Argo CD has."""
    permits = {"group": "*", "kind": "*"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": ArgoCd.namespace},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [permits],
        },
    }
