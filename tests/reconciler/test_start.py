"""The program as a process: what it needs, how fast it starts, how it ends."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpustack.reconciler import __main__ as program
from gpustack.reconciler import access
from gpustack.reconciler.cluster import LEASES, NODES, Forbidden
from gpustack.reconciler.lease import NAME
from gpustack.reconciler.testing import FakeCluster, drive
from tests.reconciler.front import serving
from tests.reconciler.shell import NAMESPACE, World, fail


def test_arguments() -> None:
    """The command line wins over the environment; two processes never share a name by themselves."""
    made = program.arguments(["--namespace", "x"], {"POD_NAMESPACE": "y", "POD_NAME": "pod-1", "KUBECONFIG": "k"})
    again = program.arguments([], {"POD_NAMESPACE": "y", "POD_NAME": "pod-1"})
    assert (made.namespace, made.kubeconfig, made.plan, again.namespace) == ("x", "k", False, "y")
    assert made.identity.startswith("pod-1_")
    assert made.identity != again.identity


def test_rights_are_asked_for() -> None:
    """Each right that is missing is named, with its group and namespace (reconciler.md T20)."""
    fake = FakeCluster()
    assert drive(access.missing(fake, "n")) == []
    fake.denied = {("create", "pods/eviction"), ("patch", "leases"), ("patch", "nodepolicies/status")}
    assert drive(access.missing(fake, "n")) == [
        "patch nodepolicies/status.gpustack.dev",
        "create pods/eviction",
        "patch leases.coordination.k8s.io in n",
    ]


def test_who_may_not_ask_starts() -> None:
    """Where reviews themselves are forbidden, what is missing shows later."""
    fake = FakeCluster()
    fake.fault = fail(Forbidden("no", 403), "before", lambda _: True)
    assert drive(access.missing(fake, "n")) == []


def test_every_request_that_is_made_is_a_right() -> None:
    """What the shell's tests see the program ask for is in the table: nodes, pods, policies, Leases, Events."""
    verbs = {(right.verb, right.kind.plural, right.subresource) for right in access.RIGHTS}
    for verb in ("list", "watch"):
        for kind in ("nodes", "nodepolicies", "daemonsets", "controllerrevisions", "deployments", "pods"):
            assert (verb, kind, "") in verbs
    assert ("create", "pods", "eviction") in verbs
    assert ("delete", "pods", "") in verbs


def kubeconfig(path: Path, address: str) -> str:
    """A file that leads to ADDRESS."""
    path.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
        f"clusters: [{{name: k, cluster: {{server: '{address}'}}}}]\n"
    )
    return str(path)


def port() -> int:
    """One that is free."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def start(config: str, *more: str) -> asyncio.subprocess.Process:
    """The program."""
    given = ["-m", "gpustack.reconciler", "--namespace", NAMESPACE, "--kubeconfig", config, *more]
    return await asyncio.create_subprocess_exec(
        sys.executable, *given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}
    )


async def get(of: int, path: str) -> str:
    """A page; "" while nobody listens."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", of)
    except OSError:
        return ""
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return text


async def until(test: Callable[[], Awaitable[bool]]) -> None:
    """Wait for it."""
    async with asyncio.timeout(30):
        while not await test():
            await asyncio.sleep(0.05)


def lines(text: bytes) -> list[dict[str, Any]]:
    """A log."""
    return [msgspec.json.decode(line) for line in text.splitlines()]


def test_it_starts_leads_and_ends(tmp_path: Path) -> None:
    """Ready after its lists, metrics of its requests, and the Lease free after SIGTERM with exit code 0."""
    world, listen = World(), port()
    world.node("a")

    async def scenario() -> tuple[int | None, bytes, str]:
        async with serving(world.cluster) as address:
            process = await start(kubeconfig(tmp_path / "config", address), "--port", str(listen), "--identity", "me")

            async def ready() -> bool:
                found = world.server.find(LEASES, NAME, NAMESPACE)
                return found is not None and "200" in (await get(listen, "/readyz"))[:15]

            await until(ready)
            assert world.server.read(LEASES, NAME, NAMESPACE).spec.holderIdentity == "me"
            metrics = await get(listen, "/metrics")
            process.send_signal(signal.SIGTERM)
            _, errors = await process.communicate()
            return process.returncode, errors, metrics

    code, errors, metrics = asyncio.run(scenario())
    assert code == 0, errors.decode()
    assert [line["message"] for line in lines(errors)][-1] == "stopped"
    assert 'gpustack_reconciler_requests_total{verb="list",kind="nodes",code="200"} 1\n' in metrics
    assert world.server.read(LEASES, NAME, NAMESPACE).spec.holderIdentity == ""


def test_it_does_not_start_without_its_rights(tmp_path: Path) -> None:
    """Loudly, with exit code 1 and what is missing, and before anything is written."""
    world = World()
    world.cluster.denied = {("patch", "nodes")}

    async def scenario() -> tuple[int | None, bytes]:
        async with serving(world.cluster) as address:
            process = await start(kubeconfig(tmp_path / "config", address), "--port", str(port()))
            _, errors = await process.communicate()
            return process.returncode, errors

    code, errors = asyncio.run(scenario())
    assert code == 1
    assert "patch nodes" in lines(errors)[-1]["error"]
    assert world.server.writes == []


def test_a_plan_is_printed(tmp_path: Path) -> None:
    """Exit code 0, and nothing written, the Lease included."""
    world = World()
    world.node("a", labels={"feature.node.kubernetes.io/pci-10de.present": "true"})

    async def scenario() -> tuple[int | None, bytes, bytes]:
        async with serving(world.cluster) as address:
            process = await start(kubeconfig(tmp_path / "config", address), "--plan")
            out, errors = await process.communicate()
            return process.returncode, errors, out

    code, errors, out = asyncio.run(scenario())
    assert code == 0, errors.decode()
    assert b"node a: waits (membership): no NodePolicy matches it" in out
    assert world.server.writes == []
    assert world.server.read(NODES, "a").annotations == {}


def test_no_cluster(tmp_path: Path) -> None:
    """One line that says so, and exit code 1."""

    async def scenario() -> tuple[int | None, bytes]:
        process = await start(kubeconfig(tmp_path / "config", "http://127.0.0.1:1"), "--plan")
        _, errors = await process.communicate()
        return process.returncode, errors

    code, errors = asyncio.run(scenario())
    assert code == 1
    assert len(lines(errors)) == 1


def test_it_starts_within_half_a_second() -> None:
    """Of processor time, which other programs on the machine do not lengthen: all imports, and the command line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(2):  # the first may compile
        first = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "gpustack.reconciler", "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert before.ru_utime <= first.ru_utime
    assert after.ru_utime + after.ru_stime - first.ru_utime - first.ru_stime < 0.5


@pytest.mark.parametrize("name", ["cdk8s", "pydantic", "gpustack.policy", "gpustack.compiler", "logging.config"])
def test_what_it_does_not_load(name: str) -> None:
    """The image holds a dozen small packages."""
    code = f"import gpustack.reconciler.__main__, sys; sys.exit({name!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
