"""Logging in: what can go wrong is said, and no secret with it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from lightkube.config.models import UserExec

from gpustack.reconciler.shell.client import Client
from gpustack.reconciler.shell.cluster import NODES, NoLogin, Unreachable
from tests.reconciler.test_client import Asked, Reply, ask, configured, serving

SECRET = "s3cr3t"  # noqa: S105 - nobody's


def plugin(script: str, version: str = "v1beta1") -> UserExec:
    """A plugin that is a shell script."""
    return UserExec(apiVersion=f"client.authentication.k8s.io/{version}", command="sh", args=["-c", script])


def listed(**user: Any) -> list[Asked]:
    """What a server is asked when USER lists nodes."""
    asked: list[Asked] = []

    async def scenario() -> None:
        async with serving(lambda _: Reply(body={"items": []}), asked) as address:
            client = Client(configured(address, **user))
            try:
                await client.list(NODES)
            finally:
                await client.close()

    asyncio.run(scenario())
    return asked


@pytest.mark.parametrize(
    "user",
    [
        {"token": f"{SECRET}\nx"},
        {"token": f"{SECRET}\x00"},
        {"exec": plugin(f"echo {SECRET}")},
        {"exec": plugin("echo '{}'")},
        {"exec": plugin("echo '[]'")},
        {"exec": plugin(f"""echo '{{"status": {{"token": "{SECRET}\\n"}}}}'""")},
        {"exec": plugin(f"echo {SECRET}; exit 3")},
        {"exec": plugin(f"echo {SECRET}; printf '\\377' >&2; exit 3")},
        {"exec": plugin("", "v1alpha9")},
        {"exec": UserExec(apiVersion="client.authentication.k8s.io/v1", command="/no/such/program")},
    ],
)
def test_nothing_to_log_in_with(user: dict[str, Any]) -> None:
    """An error of one line, which does not say what is secret; the API server is not asked."""
    with pytest.raises(NoLogin) as error:
        listed(**user)
    assert SECRET not in str(error.value)
    assert str(error.value).splitlines() == [str(error.value)]


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"s3cr3t\nx"])
def test_a_token_file_that_holds_no_token(tmp_path: Path, content: bytes | None) -> None:
    """Not there, no text, several lines."""
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(NoLogin) as error:
        listed(token_file=str(tmp_path / "token"))
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_plugins(tmp_path: Path, version: str) -> None:
    """Both versions of their protocol, each told which it is."""
    told = tmp_path / "told"
    script = f"""printf %s "$KUBERNETES_EXEC_INFO" > {told}; echo '{{"status": {{"token": "a"}}}}'"""
    (request,) = listed(exec=plugin(script, version))
    assert request.headers["authorization"] == "Bearer a"
    found = json.loads(told.read_text())
    assert found == {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


@pytest.mark.parametrize("address", ["http://[::", "http://host:port", "not an address", "ftp://x", "http://"])
def test_an_address_that_is_none(address: str) -> None:
    """Of the kubeconfig."""

    async def scenario() -> None:
        client = Client(configured(address))
        try:
            await client.list(NODES)
        finally:
            await client.close()

    with pytest.raises(Unreachable):
        asyncio.run(scenario())


def test_names_lead_nowhere_else() -> None:
    """A name that somebody made up is one part of the path, whatever its characters."""

    async def call(client: Client) -> None:
        await client.patch(NODES, "../pods/x?y=z#", {})

    _, (request,) = ask(lambda _: Reply(), call)
    assert (request.path, request.query) == (
        "/api/v1/nodes/..%2Fpods%2Fx%3Fy%3Dz%23",
        {"fieldManager": "gpustack-reconciler"},
    )
