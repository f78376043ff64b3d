"""The second opinion on dist/: kubeconform, another program with another YAML reader, over the same schemas.

What it is asked is narrow, so that "fine" means fine: strict, local schemas only, every file told apart. It says
nothing about a file whose name it doesn't know, and its exit code is 0 for a resource that it skipped. So its results
are counted: a file is good when exactly one object in it was found valid, and whatever else happened is a finding.

    GPU903  kubeconform refuses the object
    GPU904  kubeconform gave no verdict: no schema, unreadable, skipped, or the program failed
    GPU905  the number of objects that it looked at is not the number of objects that it was given
    GPU906  there is no kubeconform

Files that differ only in their first comment line (the header, which names the cluster) are looked at once. Reading
from stdin was rejected: kubeconform then calls every object "stdin".
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpustack.catalog import kubernetes
from gpustack.catalog.kinds import NONE, Kinds
from gpustack.compiler.cache import Store, digest
from gpustack.compiler.executor import available_cpus
from gpustack.model import Finding, Location, MissingToolError
from gpustack.text import programs
from gpustack.text.regular import open_regular, read_regular

from .refusals import said

NAME = "kubeconform"
CHUNK_FILES = 2000
CHUNK_BYTES = 100_000
"""Of file names in one call: systems allow from 128 KiB (some BSDs, Windows less) to megabytes."""
TIMEOUT_S = 300

Result = dict[str, Any]
"""One object as kubeconform reports it: filename, kind, name, status, msg, validationErrors."""


@dataclass(slots=True)
class Group:
    """Files with the same object for the same version. The first speaks for all."""

    minor: str
    content: str
    paths: list[Path] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The absolute path of the first file: kubeconform can't take it for an option or for a folder above."""
        return os.path.abspath(self.paths[0])  # not resolve(): a link must keep its own name


def find(explicit: Path | None = None) -> Path:
    """Return the kubeconform to use: EXPLICIT, else the PATH's. Never one that happens to lie in the current folder.

    Raises MissingToolError when there is none. An explicit one that can't be run is not replaced by another."""
    if explicit is not None:
        binary = shutil.which(explicit.absolute())
        places = str(explicit)
    else:
        binary = programs.find(NAME)
        places = "the folders that the PATH names from / on"
    if binary is None:
        raise _missing(f"looked at {places}")
    return Path(binary)


def _missing(why: str) -> MissingToolError:
    return MissingToolError(said("GPU906", why=why))


def second_opinion(
    files: Mapping[Path, str], binary: Path, verdicts: Store | None = None, jobs: int | None = None, kinds: Kinds = NONE
) -> list[Finding]:
    """Return what kubeconform has against FILES (file -> minor version of its cluster's Kubernetes), [] for nothing.

    Each file holds one object, of a kind that gpustack has a schema of or of the user's KINDS. VERDICTS remembers what
    was found valid by this binary and these schemas. At most JOBS processes run at a time, by default one per
    processor. Raises MissingToolError when BINARY can't be run."""
    groups, findings = _group(files)
    tool = _binary_digest(binary) if verdicts is not None else ""

    def key(group: Group) -> str:
        return digest(tool, kubernetes.schema_digest(group.minor), kinds.digest, group.content)

    if verdicts is not None:
        groups = [group for group in groups if verdicts.get(NAME, key(group)) is None]
    jobs = max(1, min(jobs or available_cpus(), len(groups)))
    chunks = list(_chunks(groups))
    workers = max(1, jobs // max(1, len(chunks)))
    with ThreadPoolExecutor(max(1, min(jobs, len(chunks)))) as pool, _copied(kinds) as own:
        answers = pool.map(lambda chunk: _ask(binary, chunk, workers, own), chunks)
        for chunk, (refused, good) in zip(chunks, answers, strict=True):
            findings += refused
            for group in chunk:
                # A file that was replaced meanwhile is not what the verdict is about.
                if verdicts is not None and group.name in good and _content(group.paths[0]) == group.content:
                    verdicts.put(NAME, key(group), {"valid": True})
    return sorted(findings, key=lambda f: (str(f.location), f.rule, f.what))


@contextlib.contextmanager
def _copied(kinds: Kinds) -> Iterator[Path | None]:
    """A folder with the schemas of KINDS as they were looked at, whatever becomes of the files; None without any."""
    if not kinds:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="gpustack-kinds-") as folder:
        for each in kinds.all():
            (Path(folder) / each.file).write_bytes(kinds.files[each.file])
        yield Path(folder)


def _group(files: Mapping[Path, str]) -> tuple[list[Group], list[Finding]]:
    """Gather files with equal objects; a finding for each that can't be read."""
    groups: dict[tuple[str, str], Group] = {}
    findings = []
    for path in sorted(files):
        try:
            key = (files[path], _content(path))
        except OSError as error:
            findings.append(said("GPU904", "", Location(str(path)), reason=error.strerror))
            continue
        groups.setdefault(key, Group(*key)).paths.append(path)
    return list(groups.values()), findings


def _content(path: Path) -> str:
    """Return the digest of what a file says, without a comment in its first line. Its suffix is part of it."""
    data = read_regular(path, follow=False)
    if data.startswith(b"#"):
        data = data.partition(b"\n")[2]
    return hashlib.sha256(path.suffix.encode() + b"\n" + data).hexdigest()


def _binary_digest(binary: Path) -> str:
    """Return the digest of the program itself: what it calls its version says little (facts: "development")."""
    try:
        with open_regular(binary) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _missing(f"{binary}: {error.strerror}") from None


def _chunks(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Yield groups of one version, few enough for one command line."""
    chunk: list[Group] = []
    size = 0
    for group in sorted(groups, key=lambda group: (group.minor, group.paths[0])):
        length = len(os.fsencode(group.name)) + 1
        full = len(chunk) >= CHUNK_FILES or size + length > CHUNK_BYTES
        if chunk and (full or chunk[0].minor != group.minor):
            yield chunk
            chunk, size = [], 0
        chunk.append(group)
        size += length
    if chunk:
        yield chunk


def _command(binary: Path, minor: str, workers: int, own: Path | None) -> list[str]:
    locations = []
    for folder in (*kubernetes.schema_folders(minor), *([own] if own else [])):
        plain = str(folder).replace("{{", '{{"{{"}}')  # the location is a template: braces in a path are not part of it
        locations += ["-schema-location", f"{plain}/{kubernetes.FILE_TEMPLATE}"]
    # -verbose, as only then an object that is fine is reported at all, and can be counted.
    options = ["-strict", "-verbose", "-summary", "-output", "json", "-n", str(workers)]
    return [str(binary.absolute()), *options, "-kubernetes-version", f"{minor}.0", *locations, "--"]


def _ask(binary: Path, chunk: Sequence[Group], workers: int, own: Path | None) -> tuple[list[Finding], set[str]]:
    """Run kubeconform over a chunk. Return the findings and the names of the groups that are good."""
    command = [*_command(binary, chunk[0].minor, workers, own), *(group.name for group in chunk)]
    alone = {"PATH": programs.search(), "LC_ALL": "C"}  # nothing around it has a say
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False, env=alone
        )
    except subprocess.TimeoutExpired:
        return [_failed(chunk, "GPU904", f"it was still running after {TIMEOUT_S} seconds")], set()
    except OSError as error:
        raise _missing(f"{binary}: {error.strerror}") from None
    by_name: dict[str, list[Result]] = {group.name: [] for group in chunk}
    try:
        answer = json.loads(done.stdout)
        for result in answer["resources"]:
            by_name.setdefault(result["filename"], []).append(result)
        told = sum(1 for result in answer["resources"] if result["status"])
        counted = sum(answer["summary"][status] for status in ("valid", "invalid", "errors", "skipped"))
        valid = answer["summary"]["valid"]
    except (ValueError, KeyError, TypeError):
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-300:]
        return [_failed(chunk, "GPU904", f"it ended with exit code {done.returncode} and said: {said}")], set()
    judged = {group.name: _judge(group, by_name.pop(group.name)) for group in chunk}
    findings = [finding for each in judged.values() for finding in each]
    # What it says about files that it wasn't given is about the run.
    findings += [_failed(chunk, "GPU904", str(result.get("msg"))) for results in by_name.values() for result in results]
    if counted != told or (not findings and (done.returncode or valid != len(chunk))):
        why = f"{told} objects reported, {counted} counted, {valid} valid, exit code {done.returncode}"
        return [*findings, _failed(chunk, "GPU905", why)], set()
    return findings, {name for name, each in judged.items() if not each}


def _judge(group: Group, results: Sequence[Result]) -> list[Finding]:
    """Return the findings about one file; none when it holds exactly one object and that is valid."""
    findings = []
    for result in results:
        said = str(result.get("msg", ""))
        title = f"{result.get('kind') or 'object'} {result.get('name') or '(no name)'}"
        status = result["status"]
        if status == "statusInvalid":
            details = [f"{error['path'] or '/'}: {error['msg']}" for error in result.get("validationErrors") or ()]
            what = f"{title}: kubeconform finds it invalid for Kubernetes {group.minor}"
            findings.append(_finding(group, "GPU903", what, "; ".join(details) or said))
        elif status not in ("statusValid", ""):
            word = "skipped" if status == "statusSkipped" else "could not judge"
            findings.append(_finding(group, "GPU904", f"{title}: kubeconform {word} it", said))
    objects = sum(1 for result in results if result["status"])
    if objects != 1:
        what = f"kubeconform found {objects or 'no'} objects where one is expected"
        why = "" if objects else "it reads files named .yaml, .yml and .json that hold an object"
        findings.append(_finding(group, "GPU905", what, why))
    return findings


def _failed(chunk: Sequence[Group], rule: str, why: str) -> Finding:
    what = f"kubeconform failed on {len(chunk)} objects of Kubernetes {chunk[0].minor}, {chunk[0].paths[0]} and more"
    return Finding.error(rule, what, why=why, remedy="run it by hand on one of the files")


def _finding(group: Group, rule: str, what: str, why: str) -> Finding:
    others = len(group.paths) - 1
    also = f" (and {others} more files with the same object)" if others else ""
    remedy = "render again; if it stays, gpustack and kubeconform disagree: report the file to gpustack's developers"
    return Finding.error(rule, what + also, location=Location(str(group.paths[0])), why=why, remedy=remedy)
