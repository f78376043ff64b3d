"""A cluster is looked at, and nothing else: what is read of it makes the same policy as a dump."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpustack.text.read import parse
from tests.cli.live import kubeconfig
from tests.fidelity.cases import case
from tests.project import Project

from .test_cases import RELEASE, dump
from .test_shapes import SECRET

PATHS = {
    "ClusterPolicy": "/apis/nvidia.com/v1/clusterpolicies",
    "Node": "/api/v1/nodes",
    "ConfigMap": "/api/v1/namespaces/gpu-operator/configmaps",
    "ServiceMonitor": "/apis/monitoring.coreos.com/v1/namespaces/gpu-operator/servicemonitors",
}


@contextlib.contextmanager
def serving(folder: Path, answers: dict[str, list[dict[str, Any]] | None]) -> Iterator[tuple[Path, list[str]]]:
    """An API server that has ANSWERS by path, None for 403, and 404 for all else: a kubeconfig, and what was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            path = self.path.partition("?")[0]
            items = answers.get(path)
            text = json.dumps({"kind": "List", "metadata": {}, "items": items}).encode()
            self.send_response(200 if items is not None else 403 if path in answers else 404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{server.server_port}"), asked
        server.shutdown()


def test_a_cluster_is_read_as_its_dump_is(project: Project) -> None:
    """The policy is the same but for the comments; only lists are asked for, and of Secrets Helm's alone."""
    text = dump(case(RELEASE, "16-mig-mixed-custom"))
    project.write("dump.json", text)
    items = json.loads(text)["items"]
    answers: dict[str, Any] = {path: [each for each in items if each["kind"] == kind] for kind, path in PATHS.items()}
    answers["/api/v1/namespaces/gpu-operator/secrets"] = [SECRET]
    before = project.run("adopt", "dump.json", "--out", "x.yaml", "--format", "json").json
    with serving(project.folder, answers) as (config, asked):
        ran = project.run("adopt", "--kubeconfig", config, "--context", "prod", "--out", "x.yaml", "--format", "json")
    assert ran.code == 0, ran.json["findings"]
    assert without_comments(ran.json["policy"]) == without_comments(before["policy"])
    assert [path for path in asked if "secrets" in path] == [path for path in asked if "labelSelector=owner" in path]


def without_comments(text: str) -> list[str]:
    """The lines of a policy."""
    lines = (line.partition("  #")[0].partition(" # ")[0].rstrip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#") and "driver.enabled" not in line]


def test_neither_input_nor_cluster(project: Project) -> None:
    """Where nothing is named and no kubeconfig is there, that is said."""
    ran = project.run("adopt", "--format", "json", env={"KUBECONFIG": None, "HOME": str(project.folder)})
    assert (ran.code, ran.json["findings"][0]["rule"]) == (4, "GPU930")


NODE = {"kubeletVersion": "v1.34.1", "osImage": "Ubuntu 24.04.1 LTS", "containerRuntimeVersion": "containerd://2.1.4"}


@pytest.mark.parametrize(
    ("infos", "platform"),
    [
        ([{"kubeletVersion": "v1.34.1+rke2r1"}], "rke2"),
        ([{"kubeletVersion": "v1.34.1+k3s1"}, {"kubeletVersion": "v1.34.2+k3s1"}], "k3s"),
        ([{"kubeletVersion": "v1.34.1-eks-113cf36", "osImage": "Amazon Linux 2023.9.20250929"}], "eks-al2023"),
        ([{"kubeletVersion": "v1.34.1-gke.1829001", "osImage": "Container-Optimized OS from Google"}], "gke-cos"),
        ([{}], None),
        ([{"kubeletVersion": "v1.34.1-gke.1829001"}], None),
        ([{"kubeletVersion": "v1.34.1+k3s1"}, {}], None),
    ],
)
def test_the_platform_is_the_nodes_where_they_tell_it(infos: list[Any], platform: str | None, project: Project) -> None:
    """Where each node tells the same platform for certain, the policy names it and means what runs; else nobody
    guesses, and how to answer is said.
    """
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "uid": "u"},
            "status": {"nodeInfo": {**NODE, **info}},
        }
        for number, info in enumerate(infos)
    ]
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy", "uid": "p"},
    }
    items = [{**policy, "spec": {"driver": {"enabled": True}, "toolkit": {"enabled": True}}}, *nodes]
    project.write("dump.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    ran = project.run("adopt", "dump.json", "--out", "x.yaml", "--format", "json")
    assert parse(ran.json["policy"], "x.yaml")["spec"]["cluster"].get("platform") == platform
    assert ("--set cluster.platform=" in ran.out) == (platform is None)
