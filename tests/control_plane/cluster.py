"""A real control plane on the loopback interface: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

Each ControlPlane has a folder, ports and data of its own. `emulated` makes the same programs behave as an older
release of Kubernetes. Options that differ from a production cluster's, and why:

- the API server advertises no endpoint: a loopback address can't be;
- etcd does not wait for the disk: the data are worth nothing after the test;
- clients of the controllers are not throttled, and nodes are not declared dead for want of heartbeats: hundreds of
  simulated nodes (kubelet.py) come and go in seconds. A node that a test wants dead says so itself, and is tainted at
  once.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import yaml

from tests.control_plane.api import Api, ApiError
from tests.control_plane.process import Program

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".tools/control-plane/bin"
T = TypeVar("T")

RELEASE = "1.37"
EMULATED = ("1.34", "1.35", "1.36", "1.37")
"""The releases that the API server can behave as."""

START_SECONDS = 120
"""How long a program may take to get ready on a machine that is busy with other things; 4 s are usual."""


def program(name: str) -> Path:
    """A program that tools/control_plane.sh builds."""
    found = BIN / name
    if not found.exists():
        raise FileNotFoundError(f"{found} is missing: `make test-control-plane` builds it")
    return found


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on. All are held until all are found, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in sockets]


def wait_for(condition: Callable[[], T], what: str, seconds: float = 120, every: float = 0.1) -> T:
    """Ask until the answer is true, and give it back. WHAT is the sentence of the failure."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what} (the last answer: {answer!r})")
        time.sleep(every)
    return answer


RUNNING: list[ControlPlane] = []
"""The control planes of this test run, for the report of a failed test."""


class ControlPlane:
    """A running control plane; `admin` may do everything in it."""

    def __init__(self, folder: Path, *, emulated: str = RELEASE, controllers: bool = True) -> None:
        self.folder = folder
        self.emulated = emulated
        self.controllers = controllers
        self.programs: dict[str, Program] = {}
        self._commands: dict[str, list[str | Path]] = {}
        self.token = secrets.token_hex(16)
        etcd, peer, self.port = free_ports(3)
        self.etcd, self.peer = (f"http://127.0.0.1:{port}" for port in (etcd, peer))
        self.ca = folder / "certs/apiserver.crt"
        self.admin = Api(self.port, str(self.ca), self.token)

    def __enter__(self) -> ControlPlane:
        try:
            RUNNING.append(self)
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything, and wait until it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        signing = self.folder / "service-account.key"
        if not shutil.which("openssl"):
            raise FileNotFoundError("there is no openssl on the PATH to make a key with: apt-get install openssl")
        subprocess.run(["openssl", "genrsa", "-out", signing, "2048"], check=True, capture_output=True)
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n', encoding="utf-8")
        self._commands = _commands(self, signing, tokens)
        self.run("etcd")
        self.run("kube-apiserver").wait_until(self.serves, START_SECONDS)
        if self.controllers:
            self.kubeconfig("admin", self.token)
            self.run("kube-controller-manager")
            self.run("kube-scheduler")
            self._wait_for_controllers()

    def run(self, name: str) -> Program:
        """Start one of the programs (again: tests may stop one)."""
        command = self._commands[name]
        self.programs[name] = Program(name, [program(name), *command], self.folder, {"PATH": os.defpath})
        return self.programs[name]

    def stop(self) -> None:
        """Stop everything, the last started first."""
        self.admin.close()
        for one in reversed(self.programs.values()):
            one.stop()
        if self in RUNNING:
            RUNNING.remove(self)

    def kubeconfig(self, user: str, token: str, *, server: str = "") -> Path:
        """Write a kubeconfig for USER, for programs that a test starts; `server` is a proxy's address, if any."""
        where = {"server": server or f"https://127.0.0.1:{self.port}"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {**where, "certificate-authority": str(self.ca)}}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        target = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        target.write_text(yaml.safe_dump(config), encoding="utf-8")
        return target

    def account(self, name: str, namespace: str) -> Path:
        """A kubeconfig of a ServiceAccount that exists, to run a program under exactly its rights."""
        return self.kubeconfig(f"{namespace}:{name}", self.admin.token_for(name, namespace))

    def python(self, name: str, *arguments: str, kubeconfig: Path, **env: str) -> Program:
        """Start `python ARGUMENTS` of this checkout with a kubeconfig; NAME is its log's."""
        given = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "KUBECONFIG": str(kubeconfig), **env}
        return Program(name, [sys.executable, *arguments], self.folder, given)

    def namespace(self, name: str) -> str:
        """Create a namespace, and wait until pods can be created in it."""
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        if self.controllers:
            wait_for(lambda: self.admin.find("ServiceAccount", "default", name), f"the namespace {name} is ready")
        return name

    def serves(self) -> bool:
        """Whether the API server is ready. A certificate may be half written, and a port not open yet."""
        api = Api(self.port, str(self.ca), self.token, timeout=5)
        try:
            api.request("GET", "/readyz")
        except (OSError, ApiError):
            return False
        finally:
            api.close()
        return True

    def _wait_for_controllers(self) -> None:
        """The controllers run when a namespace gets its ServiceAccount."""
        self.programs["kube-controller-manager"].wait_until(
            lambda: self.admin.find("ServiceAccount", "default", "default") is not None, START_SECONDS
        )


def _commands(plane: ControlPlane, signing: Path, tokens: Path) -> dict[str, list[str | Path]]:
    """The command lines, without the programs."""
    kubeconfig = plane.folder / "admin.kubeconfig"
    emulated = [] if plane.emulated == RELEASE else [f"--emulated-version={plane.emulated}"]
    client = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    return {
        "etcd": [
            f"--data-dir={plane.folder}/etcd",
            f"--listen-client-urls={plane.etcd}",
            f"--advertise-client-urls={plane.etcd}",
            f"--listen-peer-urls={plane.peer}",
            f"--initial-advertise-peer-urls={plane.peer}",
            f"--initial-cluster=default={plane.peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
        "kube-apiserver": [
            f"--etcd-servers={plane.etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={plane.port}",
            f"--cert-dir={plane.folder}/certs",
            f"--service-account-key-file={signing}",
            f"--service-account-signing-key-file={signing}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--allow-privileged=true",
            *emulated,
        ],
        "kube-controller-manager": [
            *client,
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={signing}",
            f"--root-ca-file={plane.ca}",
            "--controllers=*,-nodeipam",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            "--node-monitor-grace-period=24h",
            "--node-startup-grace-period=24h",
            "--node-eviction-rate=100",
            "--secondary-node-eviction-rate=100",
            *emulated,
        ],
        "kube-scheduler": [*client, "--kube-api-qps=1000", "--kube-api-burst=2000", *emulated],
    }
