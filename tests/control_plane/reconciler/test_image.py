"""The image of a release, pushed to a registry and started from what that gives back, against the API server.

It is made without a container engine (tools/release.py): the steps of the Containerfile over Debian's Python
(tools/debian_root.sh). The rendered Deployment's command runs in it as its pod would: by its command and arguments, as
nobody, with a ServiceAccount's files where the kubelet puts them and nothing else of this machine but its loopback.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpustack.registry.client import Client
from gpustack.registry.credentials import Credentials
from gpustack.registry.reference import parse
from tests.control_plane.cluster import ROOT, free_ports
from tests.control_plane.process import Program
from tests.control_plane.reconciler.stack import ACCOUNT, NS, Stack
from tests.image import build
from tests.loopback_registry import debian, docker_registry, strict
from tools import release

DEBIAN = ROOT / ".tools" / "debian-root"
SECRETS = "var/run/secrets/kubernetes.io/serviceaccount"
NOBODY = "65532:65532"


@pytest.fixture(scope="module")
def filesystem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a container of the image sees, which comes from a registry."""
    assert DEBIAN.is_dir(), "there is no .tools/debian-root: run tools/debian_root.sh, or make test-control-plane"
    folder = tmp_path_factory.mktemp("container")
    release.image(folder / "image", build(folder), when=0)
    with contextlib.ExitStack() as stack:
        program = debian()
        host = stack.enter_context(docker_registry(program, folder)) if program else stack.enter_context(strict()).host
        push(host, folder / "image")
        for layer in pulled(host):
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                tar.extractall(folder / "root", filter="tar")
    return folder / "root"


def push(host: str, layout: Path) -> None:
    """Push the image in the OCI layout LAYOUT."""
    where = parse(f"{host}/gpu/reconciler:1")
    (listed,) = json.loads((layout / "index.json").read_text())["manifests"]
    blobs = {f"sha256:{path.name}": path.read_bytes() for path in (layout / "blobs/sha256").iterdir()}
    manifest = blobs.pop(listed["digest"])
    assert where is not None
    with Client(Credentials({})) as client:
        for content in blobs.values():
            client.put_blob(where, content)
        assert client.put_manifest(where, manifest, listed["mediaType"]) == listed["digest"]


def pulled(host: str) -> Iterator[bytes]:
    """The layers of the image, as a runtime asks for them; their digests are those that the manifest says."""
    manifest = json.loads(asked(host, "manifests/1"))
    config = json.loads(asked(host, f"blobs/{manifest['config']['digest']}"))
    assert config["config"]["User"] == NOBODY
    for layer, digest in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        content = gzip.decompress(asked(host, f"blobs/{layer['digest']}"))
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
        yield content


def asked(host: str, what: str) -> bytes:
    """What the registry answers."""
    kinds = "application/vnd.oci.image.manifest.v1+json"
    request = urllib.request.Request(f"http://{host}/v2/gpu/reconciler/{what}", headers={"Accept": kinds})
    with urllib.request.urlopen(request) as answer:  # noqa: S310  # ours
        content: bytes = answer.read()
        return content


def mount_account(stack: Stack, filesystem: Path) -> None:
    """The files that a kubelet mounts for a pod of the ServiceAccount."""
    target = filesystem / SECRETS
    target.mkdir(parents=True)
    (target / "token").write_text(stack.api.token_for(ACCOUNT, NS), encoding="utf-8")
    (target / "namespace").write_text(NS, encoding="utf-8")
    shutil.copy(stack.plane.ca, target / "ca.crt")
    for path in (filesystem.parent, filesystem, *target.rglob("*")):
        path.chmod(path.stat().st_mode | 0o055 if path.is_dir() else 0o444)


def confined(filesystem: Path) -> list[str]:
    """What runs a command in FILESYSTEM: as root by chroot, as nobody; else as root of a user namespace, which is
    nobody outside."""
    if os.geteuid() == 0:
        return ["/usr/sbin/chroot", f"--userspec={NOBODY}", str(filesystem)]
    return ["/usr/bin/unshare", "--user", "--map-root-user", "/usr/sbin/chroot", str(filesystem)]


def container(stack: Stack) -> dict[str, Any]:
    """The container of the rendered Deployment."""
    (made,) = [one.body for one in stack.applied if one.body["kind"] == "Deployment" and ACCOUNT in one.path.name]
    found: dict[str, Any] = made["spec"]["template"]["spec"]["containers"][0]
    return found


def test_the_image_sets_up_a_node(stack: Stack, filesystem: Path) -> None:
    """With what the image has and nothing else, the rendered command leads, sets a bare node up, and writes nothing
    into its root, which is read-only in the cluster."""
    mount_account(stack, filesystem)
    (port,) = free_ports(1)
    spec = container(stack)
    words = [word.replace("$(POD_NAMESPACE)", NS) for word in (*spec["command"], *spec["args"])]
    env = {
        "PATH": "/usr/bin",
        "PYTHONPATH": "/opt/gpustack",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "POD_NAME": "gpustack-reconciler-0",
        "POD_NAMESPACE": NS,
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(stack.plane.port),
    }
    before = sorted(filesystem.rglob("*"))
    program = Program("image", [*confined(filesystem), *words, "--port", str(port)], stack.folder, env)
    stack.programs.append(program)
    (node,) = stack.add(1)
    program.wait_until(lambda: stack.leads(program), 60)
    stack.all_done(node)
    program.stop()
    assert program.process.returncode == 0
    assert sorted(filesystem.rglob("*")) == before
