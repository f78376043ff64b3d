"""A user's repository of policies: made by `gpustack init`, rendered, committed and pushed by hand, as the docs say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.control_plane.cluster import ROOT
from tests.control_plane.manifests import Manifest, manifests

Spec = dict[str, Any]
AUTHOR = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
COMMITTER = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
GIT = {**AUTHOR, **COMMITTER, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
NO_MORE: Mapping[str, str] = {}


class Fleet:
    """The repository in FOLDER, which is pushed to URL."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.gpustack("init", "--ci", "none", str(folder), where=folder.parent)
        (folder / "policies/example.yaml").unlink()
        shutil.rmtree(folder / "policies/layers")
        shutil.copytree(ROOT / "policies/layers", folder / "policies/layers")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("remote", "add", "origin", url)

    def gpustack(self, *arguments: str, where: Path | None = None, env: Mapping[str, str] = NO_MORE) -> str:
        """What `gpustack ARGUMENTS` prints, with ENV in its environment."""
        given = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(self.folder.parent / "cache"), **env}
        command = [sys.executable, "-m", "gpustack", *arguments]
        done = subprocess.run(
            command, cwd=where or self.folder, env=given, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def git(self, *arguments: str) -> str:
        """What `git ARGUMENTS` prints."""
        command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "http.postBuffer=100000000", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **GIT},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
        return done.stdout.strip()

    # --- policies -----------------------------------------------------------------------------------------------------

    def example(self, name: str, gitops: Spec | None, change: Callable[[Spec], object] = lambda _: None) -> None:
        """Take over the example policy NAME, with GITOPS for its own section, and CHANGE done to its spec."""
        policy = yaml.safe_load((ROOT / f"policies/{name}.yaml").read_text("utf-8"))
        policy["spec"]["gitops"] = gitops
        change(policy["spec"])
        self.write(name, policy)

    def change(self, name: str, change: Callable[[Spec], object]) -> None:
        """Edit the spec of a policy."""
        policy = yaml.safe_load((self.folder / f"policies/{name}.yaml").read_text("utf-8"))
        change(policy["spec"])
        self.write(name, policy)

    def write(self, name: str, policy: Mapping[str, Any]) -> None:
        """Write a policy."""
        (self.folder / f"policies/{name}.yaml").write_text(yaml.safe_dump(policy, sort_keys=False), encoding="utf-8")

    def remove(self, name: str) -> None:
        """Take a cluster out of the fleet."""
        (self.folder / f"policies/{name}.yaml").unlink()

    # --- the way to the engine ----------------------------------------------------------------------------------------

    def publish(self, message: str, *more: str) -> str:
        """Render everything, commit and push it; the commit."""
        self.gpustack("render")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.push(*more)

    def push(self, *more: str) -> str:
        """Push what is committed; the commit."""
        self.git("push", "--quiet", *more, "origin", "main")
        return self.head

    @property
    def head(self) -> str:
        """The commit of the branch."""
        return self.git("rev-parse", "HEAD")

    def rendered(self, name: str) -> list[Manifest]:
        """The objects of a cluster."""
        folder = self.folder / "dist" / name
        return [one for stage in manifests(folder) for one in stage]

    def stages(self, name: str) -> list[list[Manifest]]:
        """The objects of a cluster by stages."""
        return list(manifests(self.folder / "dist" / name))
