"""A cache in an object store: what one machine computed no other computes again, and whatever is wrong with the store,
no file is.
"""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.machines.machine import BUCKET, Machines, code_in, free_port

NO_NODE = {"JSII_NODE": "/no/such/node"}
"""Whoever compiles something ends with exit code 5."""

CHANGED = """\
import sys, fsspec
from obstore.fsspec import register
register()
system, root = fsspec.core.url_to_fs("s3://bucket/cache")
names = sorted(system.find(root))
held = system.cat(names) if names else {}
print(len(names))
how = sys.argv[1]
for name, other in zip(names, names[1:] + names[:1]):
    data = held[name]
    garbled = {"cut": data[:-7], "empty": b"", "swapped": held[other], "flipped": data[:-9] + b"x" + data[-8:]}
    if how in garbled:
        system.pipe({name: garbled[how]})
"""


def test_what_one_machine_computed_no_other_does(
    machines: Machines, alone: dict[str, bytes], store: dict[str, str]
) -> None:
    """The second machine, which couldn't compile anything, has the same bytes; so has the first, of which the cache is
    gone. Values that mean nothing elsewhere (stamps of files) stay where they are.
    """
    first, second = machines(**store), machines(**store, **NO_NODE)
    assert (first.run("render").code, second.run("render").code) == (0, 0)
    assert first.dist == second.dist == alone
    listing = "import fsspec; from obstore.fsspec import register; register(); fs = fsspec.filesystem('s3')\n"
    values = "{name.split('/')[3] for name in fs.find('bucket/cache') if '/gpustack-' not in name}"
    kinds = code_in(first, f"{listing}print({values})").out
    assert eval(kinds) == {"stack", "component"}  # noqa: S307 - what the line above printed


def test_two_that_write_at_once(machines: Machines, alone: dict[str, bytes], store: dict[str, str]) -> None:
    """Both put the same entries there at the same time; a third, which couldn't compile anything, finds all of them."""
    both = [machines(**store), machines(**store)]
    with ThreadPoolExecutor() as pool:
        assert [ran.code for ran in pool.map(lambda machine: machine.run("render", "--jobs", "1"), both)] == [0, 0]
    third = machines(**store, **NO_NODE)
    assert third.run("render").code == 0
    assert both[0].dist == both[1].dist == third.dist == alone


@pytest.mark.parametrize("how", ["cut", "empty", "swapped", "flipped"])
def test_a_store_that_lies_is_not_believed(
    machines: Machines, alone: dict[str, bytes], store: dict[str, str], how: str
) -> None:
    """Entries that are cut off, empty, of another key, or changed are computed again, and put right for others."""
    first, second, third = machines(**store), machines(**store), machines(**store, **NO_NODE)
    assert first.run("render").code == 0
    assert int(code_in(first, CHANGED, how).out) > 20
    ran = second.run("render")
    assert (ran.code, ran.err, second.dist) == (0, "", alone)
    assert (third.run("render").code, third.dist) == (0, alone)


def test_nothing_is_written_unless_that_is_said(machines: Machines, store: dict[str, str]) -> None:
    """Without GPUSTACK_CACHE_WRITE, as in jobs of pull requests, the store is as it was; with 0 as well."""
    for word in ("", "0"):
        machine = machines(**{**store, "GPUSTACK_CACHE_WRITE": word})
        assert machine.run("render").code == 0
        assert code_in(machine, CHANGED, "as it is").out == "0\n"


@pytest.mark.parametrize("folder", ["", "/deep/er"])
def test_a_folder_that_machines_mount(machines: Machines, alone: dict[str, bytes], tmp_path: Path, folder: str) -> None:
    """file:// is a store as well; one in the work tree is not used, since a pull request could fill it."""
    shared = {"GPUSTACK_CACHE": f"file://{tmp_path}/shared{folder}", "GPUSTACK_CACHE_WRITE": "1"}
    first, second = machines(**shared), machines(**shared, **NO_NODE)
    assert (first.run("render").code, second.run("render").code) == (0, 0)
    assert second.dist == alone
    inside = machines()
    ran = inside.run("render", env={"GPUSTACK_CACHE": f"file://{inside.folder}/cache", "GPUSTACK_CACHE_WRITE": "1"})
    assert (ran.code, inside.dist, (inside.folder / "cache").exists()) == (0, alone, False)
    assert "GPU984: the shared cache" in ran.err
    assert "isn't used: it is in the work tree" in ran.err


def test_a_disk_that_takes_nothing(machines: Machines, alone: dict[str, bytes], store: dict[str, str]) -> None:
    """What is fetched is used where it can't be kept: slower, never wrong."""
    assert machines(**store).run("render").code == 0
    second = machines(**store, **NO_NODE, XDG_CACHE_HOME="/proc/nowhere")
    ran = second.run("render")
    assert (ran.code, ran.err, second.dist) == (0, "", alone)


@contextmanager
def answering(status: int | None) -> Iterator[str]:
    """A server that lacks each object, and says STATUS to whoever brings one; None: it says nothing."""
    hold = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if status is None:
                hold.wait(60)
            listing = b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>'
            body = listing if "list-type" in self.path else b"<Error><Code>NoSuchKey</Code></Error>"
            code = (status or 500) if self.command == "PUT" else 200 if body is listing else 404
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_GET = do_HEAD = do_PUT = do_POST = answer  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    hold.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [507, 403])
def test_a_store_that_takes_nothing(
    machines: Machines, alone: dict[str, bytes], store: dict[str, str], status: int
) -> None:
    """One that is full, or that this login may not write to, changes nothing of the render. Whoever is to fill it is
    told once, and not handed to Dask's workers, whose results nobody would find; who only reads isn't.
    """
    with answering(status) as address:
        machine = machines(**{**store, "AWS_ENDPOINT_URL": address})
        ran = machine.run("render")
        asked = machine.run("check", "--executor", "dask://127.0.0.1:1")
        quiet = machine.run("check", env={"GPUSTACK_CACHE_WRITE": ""})
    assert (ran.code, ran.err.count("warning"), machine.dist) == (0, 1, alone)
    assert "GPU984: the shared cache s3://bucket/cache takes nothing: " in ran.err
    assert (asked.code, "GPU985" in asked.err, quiet.err) == (4, True, "")


PATIENCE = "import sys; from gpustack.compiler import shared; shared.SECONDS = 1.0\nfrom gpustack.cli import main\n"


def test_nobody_waits_for_a_store(machines: Machines, alone: dict[str, bytes], store: dict[str, str]) -> None:
    """One that doesn't answer, and one that isn't there, is told once, and the render goes on without."""
    with answering(None) as address:
        machine = machines(**{**store, "AWS_ENDPOINT_URL": address})
        ran = code_in(machine, f"{PATIENCE}sys.exit(main(['render', '--today', '2026-11-01']))")
    assert (ran.code, machine.dist) == (0, alone)
    assert ran.err.count("GPU984") == 1
    assert "TimeoutError: no answer in 1 s" in ran.err
    gone = machines(**{**store, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"})
    ran = gone.run("render")
    assert (ran.code, ran.err.count("GPU984"), gone.dist) == (0, 1, alone)


@pytest.mark.parametrize("address", ["what://bucket", "s3://", "file://", "file:///", "memory://"])
def test_an_address_that_nothing_reads_is_refused(machines: Machines, address: str) -> None:
    """It is an error of whoever set it, so it isn't passed over; nothing is rendered. One that ends where a variable
    was empty names no bucket and no folder, and isn't taken for a folder of the work tree.
    """
    machine = machines(GPUSTACK_CACHE=address)
    ran = machine.run("render")
    assert (ran.code, machine.dist) == (4, {}), ran.err
    assert f"GPU981: GPUSTACK_CACHE={address} can't be used" in ran.err


def test_a_store_of_one_process(machines: Machines, alone: dict[str, bytes]) -> None:
    """memory:// is there to try things with: nothing outlives the process, and no file is another."""
    machine = machines(GPUSTACK_CACHE="memory://x", GPUSTACK_CACHE_WRITE="1")
    ran = machine.run("render")
    assert (ran.code, ran.err, machine.dist) == (0, "", alone)


def test_what_is_not_installed_is_named(machines: Machines) -> None:
    """Without the extra an address is no cache: that is told, with what to install."""
    from tests.project import ROOT

    machine = machines(GPUSTACK_CACHE=BUCKET)
    ran = machine.run("render", python=ROOT / ".venv/bin/python")
    assert ran.code == 5
    assert "GPU980: s3://bucket/cache can't be used: No module named 'fsspec'" in ran.err
    assert "gpustack-gitops[fleet]" in ran.err
