"""Logins, plugins and caches in the work tree, or that others can write to, are not used."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.compiler import node
from gpustack.compiler.cache import Store, untrusted
from gpustack.model import InputError
from gpustack.registry.credentials import Credentials
from gpustack.registry.reference import parse
from tests.project import Project

IMAGE = parse("r.example.com/a:1")


def program(path: Path, proof: Path) -> Path:
    """A program that leaves PROOF."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\ntouch {proof}\necho \'{{"Username": "u", "Secret": "s"}}\'\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("variable", ["DOCKER_CONFIG", "HOME", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR"])
@pytest.mark.parametrize("absolute", [False, True])
def test_logins_in_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, *, absolute: bool) -> None:
    """A Docker configuration that a pull request can write is refused: it names programs that are started."""
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    monkeypatch.chdir(clone)
    proof = tmp_path / "pwned"
    tool = program(tmp_path / "bin/docker-credential-x", proof)
    monkeypatch.setenv("PATH", f"{tool.parent}:/bin")
    place = {"HOME": ".docker/config.json", "XDG_RUNTIME_DIR": "containers/auth.json"}.get(variable, "config.json")
    file = clone / "here" / place
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"credHelpers": {"r.example.com": "x"}}))
    value = str(clone / "here") if absolute else "here"
    value = f"{value}/config.json" if variable == "REGISTRY_AUTH_FILE" else value
    assert IMAGE
    with pytest.raises(InputError, match="in the work tree"):
        Credentials({variable: value}).of(IMAGE)
    assert not proof.exists()
    outside = tmp_path / "out"
    (clone / "here").rename(outside)
    value = f"{outside}/config.json" if variable == "REGISTRY_AUTH_FILE" else str(outside)
    assert Credentials({variable: value}).of(IMAGE)
    assert proof.exists()


def test_a_helper_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential helper is looked for in absolute folders of the PATH alone."""
    proof = tmp_path / "pwned"
    program(tmp_path / "clone/docker-credential-x", proof)
    (tmp_path / "config.json").write_text(json.dumps({"credHelpers": {"r.example.com": "x"}}))
    monkeypatch.chdir(tmp_path / "clone")
    assert IMAGE
    for path in (":/bin", ".", "./:/bin", ""):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(InputError, match="docker-credential-x"):
            Credentials({"DOCKER_CONFIG": str(tmp_path)}).of(IMAGE)
    assert not proof.exists()


def kubeconfig(command: str) -> str:
    """A file whose user logs in by the plugin COMMAND."""
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never"}
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": "c"}
    made["contexts"] = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
    made["clusters"] = [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}]
    made["users"] = [{"name": "u", "user": {"exec": plugin}}]
    return yaml.safe_dump(made)


@pytest.mark.parametrize("command", ["plugin", "./plugin", "bin/plugin", "{}/bin/plugin"])
@pytest.mark.parametrize("inside", [True, False])
def test_plugins_of_a_kubeconfig(project: Project, tmp_path: Path, command: str, *, inside: bool) -> None:
    """A plugin is not run that a kubeconfig of the clone names, or that lies there."""
    proof = tmp_path / "pwned"
    for place in ("plugin", "bin/plugin"):
        program(project.folder / place, proof)
    text = kubeconfig(command.format(project.folder))
    file = project.write("kubeconfig", text) if inside else tmp_path / "kubeconfig"
    file.write_text(text)
    ran = project.run("rollout", "status", "--kubeconfig", file, env={"PATH": f":.:bin:{os.environ['PATH']}"})
    assert ran.code == 4
    assert not proof.exists()
    assert "GPU932" in ran.err


def test_a_kubeconfig_of_the_clone_sends_no_token(project: Project, tmp_path: Path) -> None:
    """A file of the clone says where a request goes; it doesn't get a token from outside for that."""
    (tmp_path / "token").write_text("s3cret")
    text = (
        kubeconfig("x")
        .replace("exec:", "old:")
        .replace("user:\n    old:", f"user:\n    tokenFile: {tmp_path}/token\n    old:")
    )
    assert "tokenFile" in text
    ran = project.run("rollout", "status", "--kubeconfig", project.write("kubeconfig", text))
    assert (ran.code, "would send the content" in ran.err, "s3cret" in ran.err) == (4, True, False)


def test_a_cache_in_the_clone(project: Project) -> None:
    """Entries of a cache can be forged by whoever can write them: one in the work tree is neither read nor written."""
    project.policy("one")
    (project.folder / ".git").mkdir()
    (project.folder / "cache").mkdir(mode=0o700)
    ran = project.run("render", env={"GPUSTACK_CACHE": "cache"})
    assert (ran.code, "warning GPU975" in ran.err) == (0, True)
    assert not [*(project.folder / "cache").iterdir()]


@pytest.mark.parametrize("home", [".", "users/me"])
def test_a_home_is_no_work_tree(project: Project, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    """Whoever stands in the own home, or above it, where there is neither a clone nor policies: what lies there is
    used, a cache as a kubeconfig with its plugin; what lies in a clone below it isn't. With a clone or policies it is a
    work tree as any other, and so it is where nobody knows of a home."""
    proof, at = project.folder / "run", (project.folder / home).resolve()
    (at / "clone" / ".git").mkdir(parents=True)
    places = [at / name for name in ("kubeconfig", "clone/kubeconfig")]
    for file in places:
        program(file.parent / "plugin", proof)
        file.write_text(kubeconfig(f"{file.parent}/plugin"), "utf-8")
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("HOME", str(at))

    def refused(file: Path) -> bool:
        proof.unlink(missing_ok=True)
        ran = project.run("rollout", "status", "--kubeconfig", file, env={"HOME": str(at)})
        told = "GPU932" in ran.err and "is in the work tree" in ran.err
        assert told == bool(untrusted(file.parent / ".cache")) != proof.exists(), ran.err
        return told

    assert [refused(file) for file in places] == [False, True]
    for name in ("policies", ".git"):
        (project.folder / name).mkdir()
        assert [refused(file) for file in places] == [True, True]
        (project.folder / name).rmdir()
    monkeypatch.setenv("HOME", "")
    assert untrusted(at / ".cache")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722, 0o702])
def test_a_cache_that_others_can_write(project: Project, tmp_path: Path, mode: int) -> None:
    """So is one that others can write to; with --no-cache nobody is told."""
    cache = tmp_path / "others"
    cache.mkdir()
    cache.chmod(mode)
    assert untrusted(cache)
    project.policy("one")
    ran = project.run("lint", env={"GPUSTACK_CACHE": str(cache)})
    assert (ran.code, "warning GPU975" in ran.err) == (0, True)
    assert not [*cache.iterdir()]
    assert "GPU975" not in project.run("lint", "--no-cache", env={"GPUSTACK_CACHE": str(cache)}).err


def test_entries_that_others_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that is another's, or that others can write, is a miss; what we write is for us alone, whatever the
    umask is.
    """
    umask = os.umask(0)
    try:
        Store(tmp_path / "cache", "s" * 64).put("kind", "k" * 64, {"a": 1})
    finally:
        os.umask(umask)
    made = [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]
    assert not [path for path in made if path.stat().st_mode & 0o022]
    assert not untrusted(tmp_path / "cache")
    (entry,) = [path for path in made if path.is_file()]

    def found() -> dict[str, Any] | None:
        return Store(tmp_path / "cache", "s" * 64).get("kind", "k" * 64)

    assert found() == {"a": 1}
    entry.chmod(0o620)
    assert found() is None
    entry.chmod(0o600)
    assert found() == {"a": 1}
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    if uid:
        assert found() is None
        assert untrusted(tmp_path / "cache")


def test_the_environment_of_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that Node loads first, other runtimes and packages in the clone are taken out; limits of memory stay."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(node, "version", lambda program: 24)
    given = {
        "NODE_OPTIONS": "--require ./x.js --max-old-space-size=512 --import=./y.mjs --experimental-loader=./z",
        "NODE_PATH": "modules",
        "JSII_RUNTIME": "./runtime.js",
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": "packages",
        "JSII_NODE": "/some/node",
    }
    node.configure(given)
    assert {name: value for name, value in given.items() if name not in node.QUIET} == {
        "NODE_OPTIONS": "--max-old-space-size=512",
        "JSII_RUNTIME_PACKAGE_CACHE": "disabled",
        "JSII_NODE": "/some/node",
    }


@pytest.mark.parametrize("value", ["./node", "bin/node", "node"])
def test_a_node_in_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """JSII_NODE is a path from / on, or a name that the PATH has."""
    for place in ("node", "bin/node"):
        program(tmp_path / place, tmp_path / "pwned")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match="JSII_NODE"):
        node.configure({"JSII_NODE": value, "PATH": ".:bin:"})
    assert not (tmp_path / "pwned").exists()
