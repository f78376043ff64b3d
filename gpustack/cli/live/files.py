"""A cluster out of files: what `kubectl get ... -o yaml` or `-o json` printed, as an API server in memory.

A must-gather is a folder of such files with logs among them, or an archive of it.
"""

from __future__ import annotations

import atexit
import json
import lzma
import os
import re
import shutil
import tarfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import yaml

from ...model import InputError, children
from ...text.regular import open_regular, read_regular
from ..common import clock
from ..refusals import refusal
from . import synced

if TYPE_CHECKING:
    from ...reconciler.memory.eviction import Stored
    from ...reconciler.shell.cluster import Kind

ENDINGS, LOGS = (".yaml", ".yml", ".json"), (".log", ".txt")
ARCHIVES = (".tgz", ".tar.gz", ".tar.xz", ".tar")
MOST_BYTES, LAST_BYTES, BLOCK = 4 << 30, 1 << 18, 1 << 12
"""What an archive may come to unpacked, what is read of the end of a log, and what the smallest file comes to."""
MOST_VALUES = 5_000_000
"""Values that a document may stand for with its aliases written out; nobody's kubectl writes any."""
NEEDED = {"Node": "nodes", "NodePolicy": "nodepolicies.gpustack.dev"}
TELLING = {
    "Pod": ("pods --all-namespaces", "nothing seems to run on the nodes"),
    "DaemonSet": ("daemonsets -n gpu-operator", "no driver seems to be rendered"),
    "ControllerRevision": ("controllerrevisions -n gpu-operator", "it isn't known which driver pods are outdated"),
    "PodDisruptionBudget": ("poddisruptionbudgets --all-namespaces", "every eviction counts as allowed"),
    "Lease": ("leases -n gpu-operator gpustack-reconciler", "it isn't known who leads and whether the fleet is paused"),
}
"""What an answer is wrong without: how to get it, and what is wrong then."""


@dataclass
class Dump:
    """What the files hold."""

    cluster: Stored
    namespace: str = ""
    """That of the driver's DaemonSets, or of the reconciler's Lease; "" where neither is in the files."""
    kinds: Counter[str] = field(default_factory=Counter)
    rendered: list[str] = field(default_factory=list)
    """Names of the NodePolicies that come from a render, over which the cluster's own give way."""

    @property
    def missing(self) -> list[str]:
        """What the answer is poorer for."""
        return [
            f"the files hold no {kind}, so {what} (kubectl get {how} -o yaml)"
            for kind, (how, what) in TELLING.items()
            if not self.kinds[kind]
        ]


def load(sources: list[str]) -> Dump:
    """Read files and folders. Refused where nodes or policies are missing, or an object can't be read."""
    from ...reconciler.memory.eviction import BUDGETS, Stored
    from ...reconciler.memory.server import Server
    from ...reconciler.shell import cluster

    dump = Dump(Stored(Server(now=clock().replace(microsecond=0))))
    every = [*(each for each in vars(cluster).values() if isinstance(each, cluster.Kind)), BUDGETS]
    known = {(kind.group, kind.name): kind for kind in every}
    late = []  # what is rendered goes over what is there, whichever file is named first
    for path in dict.fromkeys(path for source in sources for path in files(Path(source))):
        for body in objects(path):
            kind = known.get((str(body.get("apiVersion", "")).rpartition("/")[0], str(body.get("kind"))))
            if kind is not None and synced.rendered(kind, body):
                late.append((kind, body, path))
            elif kind is not None:
                put(dump, kind, body, path)
    for kind, body, path in late:
        put(dump, kind, body, path)
    policies = cluster.POLICIES
    dump.rendered = [str(body["metadata"]["name"]) for kind, body, _ in late if kind.name == policies.name]
    synced.prune(dump.cluster.server, policies, dump.rendered)
    for name, plural in NEEDED.items():
        if not dump.kinds[name]:
            raise refusal("GPU936", "no policy" if name == policies.name else "none", kind=name, plural=plural)
    return dump


def files(source: Path) -> Iterator[Path]:
    """SOURCE, or the files below it; with a rendered stage of NodePolicies that of their drivers."""
    beside = source.parent / "driver"
    if source.name == "reconciler" and source.is_dir() and beside.is_dir():
        yield from files(beside)
    if source.name.endswith(ARCHIVES) and source.is_file():
        source = unpacked(source)
    if source.is_dir():
        yield from sorted(path for path in source.rglob("*") if path.suffix in ENDINGS and path.is_file())
    elif source.exists():
        yield source
    else:
        raise refusal("GPU001", "source", source=source)


@cache
def unpacked(archive: Path) -> Path:
    """A folder with the objects and logs that are in ARCHIVE; it goes with the process."""
    folder, size = Path(mkdtemp(prefix="gpustack-")), 0
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            for each in tar:
                size += max(each.size, BLOCK)  # of what is left out too: it is unpacked to be passed over
                if size > MOST_BYTES:
                    raise refusal("GPU936", "large", path=archive, most=MOST_BYTES >> 30)
                if each.isreg() and each.name.endswith((*ENDINGS, *LOGS)):
                    tar.extract(each, folder, filter="data")
    except (OSError, ValueError, OverflowError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError) as error:
        raise refusal("GPU936", "archive", path=archive, said=str(error).partition(":")[0]) from None
    return folder


def logs(sources: Iterable[str], pods: Collection[str]) -> dict[str, str]:
    """The ends of the logs in folders and archives among SOURCES, by the PODS that their paths name."""
    found = dict[str, str]()
    for each in map(Path, sources):
        folder = unpacked(each) if each.name.endswith(ARCHIVES) and each.is_file() else each
        for path in sorted(path for path in folder.rglob("*") if path.suffix in LOGS and path.is_file()):
            words = {*path.relative_to(folder).parts, *re.split(r"[^a-z0-9.-]+", path.stem.removesuffix(".previous"))}
            for name in words & {*pods}:
                found[name] = f"{found.get(name, '')}{end(path)}\n"
    return found


def end(path: Path) -> str:
    """The last letters of the log PATH."""
    with open_regular(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
        return file.read().decode("utf-8", "replace")


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file, those of lists too."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = read_regular(path).decode("utf-8-sig")
        documents = [json.loads(text)] if path.suffix == ".json" else list(yaml.load_all(text, loader))
        if values(documents, {}) > MOST_VALUES:
            raise ValueError("its aliases stand for too much")
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(getattr(error, "strerror", "") or error).split())
        raise refusal("GPU936", "file", path=path, said=said) from None
    for document in documents:
        yield from within(document)


def values(value: Any, known: dict[int, int]) -> int:
    """How many values VALUE stands for with aliases written out, by what is KNOWN; what holds itself, too many."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = MOST_VALUES + 1
        known[id(value)] = 1 + sum(values(each, known) for _, each in children(value))
    return known[id(value)]


def text(path: str, remedy: str) -> str:
    """What a person has brought in the file PATH. InputError with the REMEDY where it can't be read."""
    try:
        return read_regular(path).decode("utf-8", "replace")
    except OSError as error:
        raise InputError.of("GPU001", f"{path} can't be read: {error.strerror}", remedy=remedy) from None


def within(document: Any) -> Iterator[dict[str, Any]]:
    """DOCUMENT, or what it lists. Neither an item of a NodeList nor what `kubectl version` prints says what it is."""
    if isinstance(document, dict) and "serverVersion" in document:
        yield document
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        return
    items = document.get("items")
    if not (document["kind"].endswith("List") and isinstance(items, list)):
        yield document
        return
    of = document["kind"].removesuffix("List")
    head = {"kind": of, "apiVersion": document.get("apiVersion")} if of else {}
    for item in items:
        if isinstance(item, dict):
            yield from within({**head, **item})


def put(dump: Dump, kind: Kind[Any], body: dict[str, Any], path: Path) -> None:
    """Store an object as it is, its generation included."""
    from ...reconciler.core.selectors import matches
    from ...reconciler.shell.gather import DRIVER
    from ...reconciler.shell.lease import NAME

    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str):
        raise refusal("GPU936", "nameless", path=path, kind=kind.name)
    namespace = str(metadata.get("namespace") or "default") if kind.namespaced else ""
    made = {**body, "metadata": {**metadata, **({"namespace": namespace} if namespace else {})}}
    server = dump.cluster.server
    old = server.find(kind, name, namespace) if synced.rendered(kind, body) else None
    try:
        server.put(kind, synced.over(old, plain(made)))
        if synced.rendered(kind, body) and kind.name == "DaemonSet":
            synced.settle(server, kind, old, name, namespace)
        if isinstance(metadata.get("generation"), int):
            server.edit(kind, name, {"metadata": {"generation": metadata["generation"]}}, namespace)
        server.read(kind, name, namespace)
        labels = metadata.get("labels") or {}
        ours = (kind.name == "DaemonSet" and matches(DRIVER, labels)) or (kind.name == "Lease" and name == NAME)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise refusal("GPU936", "object", path=path, kind=kind.name, name=name, why=error) from None
    dump.kinds[kind.name] += 1
    if ours:
        dump.namespace = dump.namespace or namespace


def plain(value: Any) -> Any:
    """VALUE as JSON has it: YAML reads what looks like a time as one."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
