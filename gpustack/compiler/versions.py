"""Clusters that another version of gpustack renders, as gpustack.lock says: that version is started, and its result
is taken over as it is.

Solves: rings are worth nothing for gpustack itself where the one that happens to run renders them all. Versions are
installed side by side, each in a virtual environment named after it, in a folder outside the work tree. One is started
only where its files have the digest that the lock says, and the base's lock as well: what a pull request locks is data.
It gets fixed words, the files of policies and an empty folder. Its result is kept in the store, so that a further look
at the same policies starts nothing.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import Finding, FindingsError, InputError, Location, MissingToolError, OutputError
from ..policy.loading.brought import LOCK
from ..policy.loading.envelope import open_policy
from ..policy.loading.load import WAIVERS, display
from ..policy.loading.rings import CHANGES, Rings, rings_of
from ..text import programs
from ..text.read import read
from ..text.regular import read_regular
from . import dist, sources
from .beside import index_data, read_index
from .cache import digest, files_digest, ours_alone, own_digest
from .refusals import said
from .stack import layer_digest, stored_stack

if TYPE_CHECKING:
    from ..policy.loading.versions import Version
    from .sources import Project, Source

TIMEOUT_S = 3600
WORDS = ("-I", "-X", "utf8", "-m", "gpustack", "render", "--own-version", "--format", "json")
"""How a version is started."""


def split(project: Project, paths: Sequence[Path]) -> dict[Version, list[Path]]:
    """Those of PATHS that another version renders. Raises InputError where gpustack.lock doesn't say which."""
    rings: dict[Path, Rings] = {}
    for folder in {path.parent for path in paths} if project.versions else ():
        if (folder / CHANGES).is_dir():
            with suppress(InputError):  # whoever loads the policies says what is wrong
                rings[folder] = rings_of(folder.absolute(), lambda file: display(file, project.root))
    moving = [change for each in rings.values() for change in each.changes if change.version]
    if project.versions is None or not (moving or os.path.lexists(project.root / LOCK)):
        return {}
    from ..policy.loading.versions import renderer, versions_of

    listed, others = versions_of(project.root), dict["Version", list[Path]]()
    known = [each.version for each in listed]
    where = f"it lists {', '.join(known)}" if known else "there is no such file"
    unlisted = [each for each in moving if each.version not in known]
    if unlisted:
        raise InputError(*(each.of_version("unlisted", version=each.version, known=where) for each in unlisted))
    for path in paths if listed else ():
        version = listed[0]
        with suppress(InputError):
            if moving and path.parent in rings:
                policy = open_policy(read(path, display(path, project.root)))
                version, _ = renderer(listed, rings[path.parent], policy)
        if version.sha256 != own_digest():
            others.setdefault(version, []).append(path)
    return others


def rendered_by(project: Project, version: Version, paths: Sequence[Path]) -> list[Source]:
    """PATHS as sources whose stacks, which VERSION rendered, are in the store; where a rule of its own refuses some of
    them, one source with what it says. Raises InputError, MissingToolError or OutputError where nothing is rendered."""
    made, fresh, layers = dict[Path, "Source"](), dict[Path, str](), dict[Path, str]()
    for path in paths:
        stamps = (sources.stamp_of(each, project.root, layers) for each in (path, path.parent / WAIVERS))
        key = digest("by", version.sha256, *stamps, str(project.today))
        entry = project.store.get("by", key)
        if entry and stored_stack(entry["key"], project.store):
            made[path] = _source(project, version, path, entry)
        else:
            fresh[path] = key
    if fresh:
        from ..gitops.reads import artifact

        with tempfile.TemporaryDirectory(prefix="gpustack-version-") as folder:
            out = Path(folder, "dist")
            try:
                told = _started(project, version, out, list(fresh))
            except FindingsError as error:
                refused = {"name": next(iter(fresh)).stem, "key": "", "findings": [], "artifact": ""}
                source = _source(project, version, next(iter(fresh)), refused)
                return [*made.values(), dataclasses.replace(source, findings=tuple(error.findings))]
            for (path, key), cluster in zip(fresh.items(), told["clusters"], strict=True):
                stack = _taken(project, version, out / cluster["name"], display(path, project.root))
                findings = [each for each in told["findings"] if cluster["name"] in each["clusters"]]
                entry = {"name": cluster["name"], "key": stack, "findings": findings, "artifact": ""}
                with suppress(InputError):  # what this version can't read of the policy, only the other one knows
                    loaded = sources.load_policy(path, project.root, project.store)
                    entry["artifact"] = artifact(loaded.spec.gitops, loaded.name)
                project.store.put("by", key, entry)
                made[path] = _source(project, version, path, entry)
    return [made[path] for path in paths]


def _source(project: Project, version: Version, path: Path, entry: Mapping[str, Any]) -> Source:
    found, name = tuple(_finding(each) for each in entry["findings"]), entry["name"]
    key, read = entry["key"], entry["artifact"]
    return sources.Source(path, display(path, project.root), "", name, key, b"", found, read, by=version)


def program(project: Project, version: Version) -> str:
    """The Python of VERSION, as it is locked. Raises MissingToolError or InputError."""
    from ..policy.loading.versions import is_of_base

    folder = Path(project.versions or "", version.version)
    packages, python = [*folder.glob("lib/python3*/site-packages/gpustack")], folder / "bin" / "python"
    made, pip = shlex.quote(str(folder)), f"{shlex.quote(str(python))} -m pip install --require-hashes"
    install = f"python3 -m venv {made} && {pip} --only-binary :all: -r requirements-{version.version}.txt"
    words: dict[str, Any] = {"version": version.version, "folder": folder, "do": install}
    if not is_of_base(project.root, version):
        raise InputError(said("GPU914", "base", **words))
    if len(packages) != 1 or not python.exists():
        raise MissingToolError(said("GPU914", "missing", **words))
    if any(map(programs.of_work_tree, (folder, packages[0]))) or not ours_alone(packages[0].stat()):
        raise InputError(said("GPU914", "others", **words))
    found = files_digest(packages[0], packages[0] / "schemas" / "index.json")
    if found != version.sha256:
        raise InputError(said("GPU914", "other", found=found, **words))
    return str(python)


def _started(project: Project, version: Version, out: Path, paths: Sequence[Path]) -> Any:
    """What VERSION says of PATHS, which it renders into OUT. Raises the error that it ends with."""
    day = ["--today", project.today.isoformat()] if project.today else []
    files = [f"./{os.path.relpath(path.absolute(), project.root)}" for path in paths]
    jobs = ["--jobs", str(project.jobs)] if project.jobs else []
    words = [program(project, version), *WORDS, "--out", str(out), *day, *jobs, "--", *files]
    env = {"PATH": programs.search(), "LC_ALL": "C.UTF-8", "GPUSTACK_CACHE": str(project.store.root)}
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True}
    try:
        done = subprocess.run(words, check=False, cwd=project.root, env=env, timeout=TIMEOUT_S, **pipes)
        reason = done.stderr.decode("utf-8", "replace").strip()[-300:] or f"exit code {done.returncode}"
        told = json.loads(done.stdout)
        errors = [_finding(each) for each in told["findings"] if each["severity"] == "error"]
        if not errors if done.returncode else len(told["clusters"]) != len(paths):
            raise ValueError(reason)
    except (OSError, subprocess.SubprocessError) as error:
        raise OutputError(said("GPU914", "failed", version=version.version, reason=error)) from None
    except (ValueError, KeyError, TypeError):
        raise OutputError(said("GPU914", "failed", version=version.version, reason=reason)) from None
    if done.returncode:
        raise (FindingsError if done.returncode == FindingsError.exit_code else InputError)(*errors)
    return told


def _taken(project: Project, version: Version, folder: Path, shown: str) -> str:
    """Put what VERSION rendered into FOLDER, from the policy SHOWN, into the store: the key of its content. Raises
    OutputError where it isn't written as this version writes: `check` would never be content."""
    out, cluster, head = folder.parent, folder.name, dist.header(shown)
    index = index_data(out, cluster)
    minor = str(index.get("kubernetes"))
    files = {path: read_regular(folder / path, follow=False) for path in index.get("files", ())}
    beside = {path: read_regular(out / path, follow=False) for path in index.get("engine", ())}
    ours = all(each.startswith(head.encode()) for each in (*files.values(), *beside.values()))
    made = dist.Rendering(cluster, shown, minor, files, "", beside, index.get("artifact"))
    bodies = {path: each.removeprefix(head.encode()) for path, each in files.items()}
    packed = made.artifact is None or layer_digest(bodies) == made.artifact["digest"]
    if not (ours and packed and made.indexed_as(read_index(out, cluster))):
        raise OutputError(said("GPU914", "format", version=version.version))
    texts, engine = (
        {path: each.decode().removeprefix(head) for path, each in sorted(side.items())} for side in (files, beside)
    )
    key = digest("by-stack", json.dumps([minor, texts, engine, made.artifact]))
    part = {"files": [*texts.items()], "provides": [], "needs": [], "section": "", "findings": [], "bodies": "[]"}
    project.store.put("component", key, part)
    more: dict[str, Any] = {"plan": {"files": engine}} if engine else {}
    more |= {"artifact": made.artifact} if made.artifact else {}
    project.store.put("stack", key, {"minor": minor, "components": [key], "findings": [], **more})
    return key


def _finding(told: Mapping[str, Any]) -> Finding:
    """The finding that another version TOLD as JSON."""
    where = Location(told["file"], told["line"], told["column"]) if told["file"] else None
    return Finding(told["rule"], told["severity"], told["what"], told["path"], where, told["why"], told["remedy"])
