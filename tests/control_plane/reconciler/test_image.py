"""The image that the Containerfile builds, in a root of Debian's packages, against the API server.

No image can be pulled here. So the steps of the Containerfile are taken beside Debian's Python (tools/debian_root.sh),
and the rendered Deployment's command runs in that root as its pod would: by its command and arguments, as nobody, with
a ServiceAccount's files where the kubelet puts them and nothing else of this machine but its loopback.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.control_plane.cluster import ROOT, free_ports
from tests.control_plane.process import Program
from tests.control_plane.reconciler.stack import ACCOUNT, NS, Stack
from tests.image import build

DEBIAN = ROOT / ".tools" / "debian-root"
SECRETS = "var/run/secrets/kubernetes.io/serviceaccount"
NOBODY = "65532:65532"


@pytest.fixture(scope="module")
def filesystem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a container of the image sees."""
    assert DEBIAN.is_dir(), "there is no .tools/debian-root: run tools/debian_root.sh, or make test-control-plane"
    folder = tmp_path_factory.mktemp("container")
    shutil.copytree(DEBIAN, folder / "root", symlinks=True)
    shutil.copytree(build(folder), folder / "root/opt/gpustack")
    return folder / "root"


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
