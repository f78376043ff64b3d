"""`python -m gpustack.reconciler`: start the program in the cluster, or show with --plan what it would do."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ..model import whole
from .shell import access, report
from .shell.client import Client, configuration
from .shell.clock import Clock
from .shell.cluster import NAMESPACE, ApiError, Forbidden
from .shell.health import Answer, Health
from .shell.lease import Terms
from .shell.log import LEVELS, Log
from .shell.metrics import Metrics
from .shell.runner import Runner

STOPPED = 130
"""Exit code of a plan that somebody stopped."""
_INSIDE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def arguments(given: Sequence[str], environment: Mapping[str, str]) -> argparse.Namespace:
    """The command line; what it does not say comes from the environment."""
    parser = argparse.ArgumentParser(prog="python -m gpustack.reconciler", description=__doc__)
    parser.add_argument("--namespace", default=environment.get("POD_NAMESPACE", ""), help="where the operands are")
    parser.add_argument("--identity", default="", help="the name that this replica holds the Lease under")
    port, seconds = _whole(1, 65535, "a number"), _whole(3, 3600, "whole seconds")  # less leaves no room to renew in
    parser.add_argument("--port", type=port, default=8080, help="for /healthz, /readyz and /metrics")
    parser.add_argument("--probe-port", type=port, default=0, help="for /healthz and /readyz alone; default: none")
    parser.add_argument(
        "--lease-seconds", type=seconds, default=Terms().duration, help="after which another replica takes over"
    )
    parser.add_argument("--maintenance-leases", default="", help="namespace of Leases that share maintenance")
    parser.add_argument("--kured", default="", help="kured's DaemonSet, as NAMESPACE/NAME, whose lock counts")
    parser.add_argument("--plan", action="store_true", help="print what would be done, and do nothing")
    parser.add_argument("--kubeconfig", default=environment.get("KUBECONFIG", ""), help="default: the ServiceAccount")
    parser.add_argument("--log-level", choices=LEVELS, default="info")
    made = parser.parse_args(given)
    if not made.namespace:
        with contextlib.suppress(OSError, UnicodeError):
            made.namespace = _INSIDE.read_text().strip()
    if not made.namespace:
        parser.error("--namespace is needed: the namespace of the operands")
    if not NAMESPACE.fullmatch(made.namespace):
        parser.error(f"--namespace {made.namespace!r}: a namespace has up to 63 small letters, digits and dashes")
    if not made.identity:
        # Two processes must never share it, so a restarted one is another candidate.
        made.identity = f"{environment.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
    return made


def _whole(least: int, most: int, what: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if (number := whole(text)) is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text}: {what} from {least} to {most}")
        return number

    return read


async def main(options: argparse.Namespace) -> int:
    """Run until told to stop; the exit code. Told is it by a signal, from the beginning on: as the first process of a
    container it would not notice one that it does not ask for."""
    log, metrics, clock = Log(options.log_level), Metrics(), Clock()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel if task else loop.stop)
    try:
        client = Client(configuration(options.kubeconfig))
    except ApiError as error:
        log.error("cannot start", error=str(error))
        return 1
    client.observe = lambda verb, kind, code: metrics.requests.add(verb, kind, str(code))
    terms = Terms.lasting(options.lease_seconds)
    shared, lock, who = options.maintenance_leases, options.kured, options.identity
    runner = Runner(client, options.namespace, who, clock, log, metrics, terms, maintenance=shared, kured=lock)
    try:
        if options.plan:
            return _print(report.describe(await runner.plan()), log)
        if lacking := await access.missing(client, options.namespace, shared, lock):
            raise Forbidden(f"the ServiceAccount may not: {'; '.join(lacking)}", 403)
        return await _serve(runner, options.port, options.probe_port)
    except ApiError as error:
        log.error("cannot go on", error=str(error), status=error.status, server=client.server)
        return 1
    except asyncio.CancelledError:
        log.info("stopped")
        return STOPPED if options.plan else 0
    finally:
        await client.close()


def _print(lines: Iterable[str], log: Log) -> int:
    """Print LINES; the exit code. Whoever reads them may have enough, as `head` has."""
    if sys.stdout is None:
        log.error("cannot print the plan", error="standard output is closed")
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered must not fail once more
        if isinstance(error, BrokenPipeError):
            return 0
        log.error("cannot print the plan", error=str(error))
        return 1
    return 0


async def _serve(runner: Runner, port: int, probes: int) -> int:
    def page(good: bool) -> Answer:
        return (200, "ok\n") if good else (503, "not ok\n")

    pages = {"/healthz": lambda: page(runner.healthy), "/readyz": lambda: page(runner.ready)}
    servers = [Health({**pages, "/metrics": lambda: (200, runner.metrics.text())}, port)]
    servers += [Health(pages, probes)] if probes else []
    try:
        for each in servers:
            try:
                await each.start()
            except OSError as error:
                runner.log.error("cannot listen", port=each.port, error=str(error))
                return 1
        runner.log.info("started", identity=runner.identity, namespace=runner.namespace)
        await runner.run()
    finally:
        for each in servers:
            await each.stop()
    return 0


def start() -> int:
    """The program; its exit code."""
    try:
        return asyncio.run(main(arguments(sys.argv[1:], os.environ)))
    except KeyboardInterrupt:  # before anything was begun
        return STOPPED


if __name__ == "__main__":
    sys.exit(start())
