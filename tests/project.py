"""A project in a folder of its own: policies to write, verbs to run on them, what they print and what they leave.

`run` calls the command line in this process, which is fast; `spawn` starts a program, for what only a program can show.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from gpustack.cli import main

ROOT = Path(__file__).parents[1]
TODAY = "2026-11-01"
"""The day of all runs, so that no test begins to fail when some version reaches its end of life."""

OFF = ("driver", "toolkit", "devicePlugin", "gfd", "dcgmExporter", "migManager", "nfd")
SMALL: dict[str, Any] = {
    "release": "v26.7.0",
    "cluster": {"kubernetesVersion": "1.34"},
    **{section: {"enabled": False} for section in OFF},
}
"""A spec that renders little more than the validator: what is tested here doesn't depend on what is rendered."""

REFUSED: dict[str, Any] = {"cdi": {"enabled": True, "nriPluginEnabled": True}}
"""What a rule refuses (GPU102) in a SMALL spec, which has no toolkit."""
WARNED: dict[str, Any] = {
    "driver": {"enabled": True},
    "nodePools": [{"name": "training", "os": "ubuntu24.04"}],
    "devicePlugin": {"enabled": False},
}
"""Sections with one warning, GPU473 at spec.devicePlugin.enabled, and notes about the driver."""


@dataclass(frozen=True)
class Ran:
    """How a run ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the JSON document that it must be."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Project:
    """Policies in folder/policies, the render in folder/dist, the cache in `cache`."""

    folder: Path
    cache: Path

    def policy(self, name: str, *, file: str = "", **spec: Any) -> Path:
        """Write the policy of the cluster NAME: SMALL with SPEC over it."""
        return self.write(file or f"policies/{name}.yaml", policy(name, **spec))

    def layer(self, name: str, **spec: Any) -> Path:
        """Write the layer NAME."""
        return self.write(f"policies/layers/{name}.yaml", document("PolicyLayer", name, spec))

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file below the project's folder."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        return target

    def environment(self, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Ours, with the project's cache and MORE; None takes a variable away."""
        wanted = {**os.environ, "GPUSTACK_CACHE": str(self.cache), "PYTHONPATH": str(ROOT), **(more or {})}
        return {name: value for name, value in wanted.items() if value is not None}

    def run(self, *words: str | Path, cwd: Path | None = None, env: Mapping[str, str | None] | None = None) -> Ran:
        """Run `gpustack WORDS` in this process."""
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(cwd or self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.dict(os.environ, self.environment(env), clear=True),
        ):
            code = main(dated(words))
        return Ran(code, out.getvalue(), err.getvalue())

    def start(
        self, *words: str | Path, cwd: Path | None = None, env: Mapping[str, str | None] | None = None
    ) -> subprocess.Popen[str]:
        """Start `gpustack WORDS` as a program."""
        return subprocess.Popen(
            [sys.executable, "-m", "gpustack", *dated(words)],
            cwd=cwd or self.folder,
            env=self.environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def spawn(self, *words: str | Path, cwd: Path | None = None, env: Mapping[str, str | None] | None = None) -> Ran:
        """Run `gpustack WORDS` as a program."""
        with self.start(*words, cwd=cwd, env=env) as program:
            out, err = program.communicate(timeout=120)
        return Ran(program.returncode, out, err)

    def python(self, code: str, *words: str, env: Mapping[str, str | None] | None = None) -> Ran:
        """Run the Python program CODE in the project's folder."""
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=self.folder,
            env=self.environment(env),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    @property
    def dist(self) -> Path:
        """Where the project renders to."""
        return self.folder / "dist"

    def tree(self, out: Path | None = None) -> dict[str, bytes]:
        """Every file below dist/ (or OUT) by its path, index included."""
        return tree(out or self.dist)


def dated(words: Sequence[str | Path]) -> list[str]:
    """WORDS, with TODAY for the verbs that look at the calendar."""
    found = [str(word) for word in words]
    dates = found[:1] in (["render"], ["check"], ["diff"], ["report"])
    return [*found[:1], "--today", TODAY, *found[1:]] if dates else found


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below FOLDER by its path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def policy(name: str, **spec: Any) -> str:
    """The text of the policy of the cluster NAME: SMALL with SPEC over it."""
    return document("ClusterPolicy", name, {**SMALL, **spec})


def document(kind: str, name: str, spec: Any) -> str:
    """A policy or layer as text."""
    body = {"apiVersion": "gpustack.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return yaml.safe_dump(body, sort_keys=False)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache that the tests of this process share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def project(tmp_path: Path, cache: Path) -> Project:
    """An empty project."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, cache)
