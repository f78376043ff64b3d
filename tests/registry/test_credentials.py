"""Logins, read as docker and podman keep them."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from gpustack.model import InputError
from gpustack.registry.credentials import Credentials, Login
from gpustack.registry.reference import parse

AUTH = base64.b64encode(b"me:pass:word").decode()


def found(environment: dict[str, str], image: str = "r.example.com/team/a:1") -> Login | None:
    """The login for IMAGE."""
    reference = parse(image)
    assert reference
    return Credentials(environment).of(reference)


def inline(config: Any) -> dict[str, str]:
    """An environment with CONFIG in it."""
    return {"DOCKER_AUTH_CONFIG": json.dumps(config)}


def test_files_in_their_order(tmp_path: Path) -> None:
    """The variable first, then podman's file, then docker's."""
    docker, podman = tmp_path / ".docker" / "config.json", tmp_path / "containers" / "auth.json"
    for path, user in ((docker, "docker"), (podman, "podman")):
        path.parent.mkdir()
        entry = {"auth": base64.b64encode(f"{user}:x".encode()).decode()}
        path.write_text(json.dumps({"auths": {"r.example.com": entry}}), encoding="utf-8")
    home = {"HOME": str(tmp_path)}
    assert found(home) == Login("docker", "x")
    assert found({"DOCKER_CONFIG": str(docker.parent)}) == Login("docker", "x")
    assert found({**home, "XDG_RUNTIME_DIR": str(tmp_path)}) == Login("podman", "x")
    assert found({**home, **inline({"auths": {"r.example.com": {"auth": AUTH}}})}) == Login("me", "pass:word")


@pytest.mark.parametrize(
    "key", ["r.example.com", "https://r.example.com", "https://r.example.com/v2/", "r.example.com/team"]
)
def test_how_a_registry_is_written(key: str) -> None:
    """With a scheme, with the API's version, and with a path as podman has it."""
    assert found(inline({"auths": {key: {"auth": AUTH}}})) == Login("me", "pass:word")


def test_other_registries_get_nothing() -> None:
    """Neither a longer name nor another path has the login."""
    for key in ("example.com", "r.example.com.evil", "r.example.com/other", "r.example.com/tea"):
        assert found(inline({"auths": {key: {"auth": AUTH}}})) is None


def test_docker_hub() -> None:
    """Docker Hub's key is the one that docker writes."""
    config = inline({"auths": {"https://index.docker.io/v1/": {"auth": AUTH}}})
    assert found(config, "busybox") == Login("me", "pass:word")


def helper(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a credential helper called `test` on the PATH."""
    program = folder / "docker-credential-test"
    program.write_text(f"#!/bin/sh\nread -r host\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_helpers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper is asked by the registry's name, for one registry or for all; its <token> is an identity token."""
    helper(tmp_path, 'echo "{\\"Username\\": \\"u\\", \\"Secret\\": \\"$host\\"}"', monkeypatch)
    assert found(inline({"credHelpers": {"r.example.com": "test"}})) == Login("u", "r.example.com")
    assert found(inline({"credsStore": "test"})) == Login("u", "r.example.com")
    helper(tmp_path, 'echo "{\\"Username\\": \\"<token>\\", \\"Secret\\": \\"t\\"}"', monkeypatch)
    assert found(inline({"credsStore": "test"})) == Login("", "", "t")
    helper(tmp_path, "echo credentials not found in native keychain; exit 1", monkeypatch)
    assert found(inline({"credsStore": "test"})) is None


@pytest.mark.parametrize(
    "config",
    [
        "{",
        "[]",
        {"credsStore": "../evil"},
        {"credsStore": "no-such-program"},
        {"auths": {"r.example.com": {"auth": "%"}}},
        {"auths": {"r.example.com": {"username": "\ud800", "password": "x"}}},
        {"auths": {"r.example.com": {"identitytoken": "\ud800"}}},
    ],
)
def test_what_cannot_be_read(config: Any) -> None:
    """A broken file or helper is said, instead of a refusal by the registry later."""
    environment = {"DOCKER_AUTH_CONFIG": config} if isinstance(config, str) else inline(config)
    with pytest.raises(InputError) as caught:
        found(environment)
    assert caught.value.findings[0].rule == "GPU964"


def test_passwords_are_not_shown() -> None:
    """A login that lands in a traceback or a log shows nothing."""
    assert "word" not in repr(Login("me", "password", "word"))


@pytest.mark.parametrize(
    "printed",
    [
        "echo garbage",
        "printf '\\377'",
        "yes",
        "yes [ | head -c 200000 | tr -d '\\n'",
        """echo '{"Username": null, "Secret": {}}'""",
        """echo '{"Username": "\\ud800", "Secret": "s"}'""",
        "exit 3",
    ],
)
def test_helpers_that_fail(printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that prints something else, or without end, is named."""
    helper(tmp_path, printed, monkeypatch)
    with pytest.raises(InputError, match="docker-credential-test") as caught:
        found(inline({"credsStore": "test"}))
    assert caught.value.findings[0].rule == "GPU964"


def test_a_helper_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for once, not once for each image, and not for what it leaves behind."""
    monkeypatch.setattr("gpustack.registry.credentials.SECONDS", 0.3)
    helper(tmp_path, f"echo >>{tmp_path}/asked; sleep 30 & exec sleep 30", monkeypatch)
    credentials = Credentials(inline({"credsStore": "test"}))
    for name in ("a", "b"):
        image = parse(f"r.example.com/{name}:1")
        assert image
        with pytest.raises(InputError, match="no answer"):
            credentials.of(image)
    assert (tmp_path / "asked").read_text() == "\n"


def test_a_file_that_was_named(tmp_path: Path) -> None:
    """Where somebody says which file has the logins, going on without it would be something else."""
    with pytest.raises(InputError, match="REGISTRY_AUTH_FILE names, is not there"):
        found({"REGISTRY_AUTH_FILE": str(tmp_path / "auth.json"), "HOME": str(tmp_path)})


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_no_file(kind: str, tmp_path: Path) -> None:
    """What is no file of logins is refused, and not waited for."""
    path = tmp_path / "config.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(InputError, match="can't be read") as caught:
        found({"DOCKER_CONFIG": str(tmp_path)})
    assert caught.value.findings[0].rule == "GPU964"
