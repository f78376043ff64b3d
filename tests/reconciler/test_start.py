"""The program as a process: what it needs, how fast it starts, how it ends."""

from __future__ import annotations

import asyncio
import contextlib
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
from gpustack.reconciler.shell import access
from gpustack.reconciler.shell.cluster import LEASES, NODES, Answer, ApiError, Forbidden
from gpustack.reconciler.shell.lease import NAME
from gpustack.reconciler.shell.log import Log
from tests.reconciler.front import serving
from tests.reconciler.memory import FakeCluster, drive
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
    world, listen, probes = World(), port(), port()
    world.node("a")

    async def scenario() -> tuple[int | None, bytes, str]:
        async with serving(world.cluster) as address:
            ports = ("--port", str(listen), "--probe-port", str(probes))
            process = await start(kubeconfig(tmp_path / "config", address), *ports, "--identity", "me")

            async def ready() -> bool:
                found = world.server.find(LEASES, NAME, NAMESPACE)
                return found is not None and "200" in (await get(probes, "/readyz"))[:15]

            await until(ready)
            assert world.server.read(LEASES, NAME, NAMESPACE).spec.holderIdentity == "me"
            assert "404" in (await get(probes, "/metrics"))[:15]
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


def cost(folder: Path, *words: str) -> float:
    """Processor time of the interpreter with WORDS, with its bytecode in FOLDER as in an image; in s."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_it_starts_in_an_instant(tmp_path: Path) -> None:
    """All imports and the command line cost less than five times what asyncio and TLS do (0.42 s and 0.15 s
    of processor time on a quiet machine): a ratio of the best of five, since a busy machine lengthens both."""
    ways = {"program": ("-m", "gpustack.reconciler", "--help"), "python": ("-c", "import asyncio, ssl, logging")}
    for words in ways.values():
        cost(tmp_path, *words)  # compiles
    best = {way: min(times) for way, times in costs(tmp_path, ways).items()}
    assert best["program"] < 5 * best["python"], best


def costs(folder: Path, ways: dict[str, tuple[str, ...]]) -> dict[str, list[float]]:
    """Five costs of each way, in turn."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(5):
        for way, words in ways.items():
            found[way].append(cost(folder, *words))
    return found


@pytest.mark.parametrize("name", ["cdk8s", "pydantic", "gpustack.policy", "gpustack.compiler", "logging.config"])
def test_what_it_does_not_load(name: str) -> None:
    """The image holds a dozen small packages."""
    code = f"import gpustack.reconciler.__main__, sys; sys.exit({name!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--namespace", "a/../b"], "up to 63 small letters"),
        (["--namespace", "x" * 64], "up to 63 small letters"),
        (["--namespace", "x", "--port", "99999"], "a number from 1 to 65535"),
        (["--namespace", "x", "--port", "-1"], "a number from 1 to 65535"),
        (["--namespace", "x", "--port", "²"], "a number from 1 to 65535"),
        (["--namespace", "x", "--lease-seconds", "²"], "whole seconds from 3 to 3600"),
    ],
)
def test_arguments_that_are_none(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused before anything is asked: a port of 99999 would be another one, a namespace part of an address."""
    with pytest.raises(SystemExit) as exit_:
        program.arguments(given, {})
    assert exit_.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("where", [">&-", ">/dev/full", "| true", "2>&- >&-"])
def test_a_plan_that_nobody_reads(tmp_path: Path, where: str) -> None:
    """A closed or full output is said, a reader that has enough is no failure; no traceback."""
    world = World()
    for number in range(2000):
        world.node(f"n{number}", labels={"feature.node.kubernetes.io/pci-10de.present": "true"})

    async def scenario() -> tuple[int | None, bytes]:
        async with serving(world.cluster) as address:
            config = kubeconfig(tmp_path / "config", address)
            words = f"{sys.executable} -m gpustack.reconciler --namespace n --kubeconfig {config} --plan {where}"
            script = f"set -o pipefail; {words}"
            process = await asyncio.create_subprocess_exec(
                "bash", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            _, errors = await process.communicate()
            return process.returncode, errors

    code, errors = asyncio.run(scenario())
    assert code == (0 if where == "| true" else 1)
    said = [line["message"] for line in lines(errors)]
    assert said == (["cannot print the plan"] if where in {">&-", ">/dev/full"} else [])


def test_a_closed_standard_error_stops_nothing() -> None:
    """Python has no stream then."""
    Log(stream=None).error("x")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("more", [[], ["--plan"]])
def test_it_can_be_stopped_while_it_starts(tmp_path: Path, number: signal.Signals, more: list[str]) -> None:
    """The API server doesn't answer yet: a signal ends it at once, as it does the first process of a container."""

    async def scenario() -> tuple[int | None, bytes]:
        asked = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                await reader.read(1)
                asked.set()
                await reader.read()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        config = kubeconfig(tmp_path / "config", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        process = await start(config, "--port", str(port()), *more)
        async with asyncio.timeout(30):
            await asked.wait()
            process.send_signal(number)
            _, errors = await process.communicate()
        server.close()
        await asyncio.sleep(0.1)  # its connections end
        return process.returncode, errors

    code, errors = asyncio.run(scenario())
    assert code == (130 if more else 0)
    assert [line["message"] for line in lines(errors)] == ["stopped"]


def test_where_it_found_nobody_is_said(tmp_path: Path) -> None:
    """The address, without what somebody wrote there to log in."""

    async def scenario() -> bytes:
        process = await start(kubeconfig(tmp_path / "config", "http://me:s3cr3t@127.0.0.1:1"))
        return (await process.communicate())[1]

    errors = asyncio.run(scenario())
    assert lines(errors)[-1]["server"] == "http://127.0.0.1:1"
    assert b"s3cr3t" not in errors


def test_an_answer_that_is_no_review() -> None:
    """What stands before the API server may answer anything: that is said, and no right is taken for granted."""
    fake = FakeCluster()

    async def create(*_: Any, **__: Any) -> Answer:
        return Answer(body={"kind": "Status", "status": "Success"})

    fake.create = create  # type: ignore[method-assign]
    with pytest.raises(ApiError, match="does not say whether one may list nodes"):
        drive(access.missing(fake, "n"))
