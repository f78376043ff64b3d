"""The client against a strict registry on this machine: what it keeps was checked, and nobody else sees a password."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from gpustack.model import GpustackError, InputError
from gpustack.registry.client import ATTEMPTS, MOST, Client, same_host
from gpustack.registry.credentials import Credentials
from gpustack.registry.reference import Reference, parse
from gpustack.registry.resolve import resolve
from tests.loopback_registry import Registry, digest_of, strict

PASSWORD = "s3cret-w0rd"  # noqa: S105 - nobody's


@pytest.fixture
def registry() -> Iterator[Registry]:
    """The strict registry."""
    with strict() as found:
        yield found


def client(environment: dict[str, str] | None = None, pauses: list[float] | None = None) -> Client:
    """A client that doesn't really wait."""
    return Client(Credentials(environment or {}), sleep=(pauses if pauses is not None else []).append)


def named(registry: Registry, text: str = "nvidia/driver:1") -> Reference:
    """An image of REGISTRY."""
    found = parse(f"{registry.host}/{text}")
    assert found
    return found


def login(registry: Registry, entry: dict[str, str] | None = None) -> dict[str, str]:
    """An environment with a login for REGISTRY."""
    auth = {"auth": base64.b64encode(f"me:{PASSWORD}".encode()).decode()} if entry is None else entry
    return {"DOCKER_AUTH_CONFIG": json.dumps({"auths": {registry.host: auth}})}


def refusal(error: GpustackError) -> str:
    """The rule of the one finding of ERROR, which must hold no password."""
    (finding,) = error.findings
    assert PASSWORD not in repr(finding)
    return finding.rule


def test_an_index(registry: Registry) -> None:
    """The index's digest pins all platforms; those of GPU nodes are listed, attestations are no platform."""
    digest, platforms = registry.index("nvidia/driver", "1")
    with client() as asking:
        found, there = resolve(asking, named(registry))
    assert (found, dict(there)) == (digest, platforms)


def test_an_image_of_one_platform(registry: Registry) -> None:
    """Of a single manifest the configuration says the platform."""
    digest = registry.image("nvidia/driver", "1", "arm64")
    with client() as asking:
        found, there = resolve(asking, named(registry))
    assert (found, dict(there)) == (digest, {"linux/arm64": digest})


def test_an_image_for_other_machines(registry: Registry) -> None:
    """An image that no GPU node can run is refused."""
    registry.image("nvidia/driver", "1", "s390x")
    with client() as asking, pytest.raises(InputError, match="no image for linux/amd64") as caught:
        resolve(asking, named(registry))
    assert refusal(caught.value) == "GPU963"


def test_a_busy_registry_is_asked_again(registry: Registry) -> None:
    """It is asked again after the time that it says; for ever busy, it is given up with the reason."""
    registry.image("nvidia/driver", "1")
    pauses: list[float] = []
    registry.busy, registry.busy_status = ATTEMPTS - 1, 429
    with client(pauses=pauses) as asking:
        asking.manifest(named(registry))
    assert pauses == [1.0] * (ATTEMPTS - 1)
    registry.busy = 99
    with client() as asking, pytest.raises(InputError, match="answers 429") as caught:
        asking.manifest(named(registry))
    assert refusal(caught.value) == "GPU960"


def test_nobody_answers() -> None:
    """A registry that is out of reach is an error that names it."""
    image = parse("127.0.0.1:1/a:1")
    assert image
    with client() as asking, pytest.raises(InputError, match=r"127\.0\.0\.1:1 can't be asked") as caught:
        asking.manifest(image)
    assert refusal(caught.value) == "GPU960"


def test_bytes_that_are_not_the_digests(registry: Registry) -> None:
    """A registry, or a proxy before it, that changes bytes is found out."""
    registry.image("nvidia/driver", "1")
    registry.lies = True
    with client() as asking, pytest.raises(InputError, match="its bytes are") as caught:
        asking.manifest(named(registry))
    assert refusal(caught.value) == "GPU963"


def test_an_endless_answer() -> None:
    """More than any manifest has is not read to its end."""
    served = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=httpx2.ByteStream(b"x" * (MOST + 1))))
    image = parse("r.example.com/a:1")
    assert image
    with Client(Credentials({}), transport=served) as asking, pytest.raises(InputError, match="more than 4 MiB"):
        asking.manifest(image)


def test_not_there(registry: Registry) -> None:
    """A tag that doesn't exist is told apart from a registry that refuses."""
    with client() as asking, pytest.raises(InputError) as caught:
        asking.manifest(named(registry))
    assert refusal(caught.value) == "GPU962"


def test_a_part_is_not_there(registry: Registry) -> None:
    """A layer that somebody deleted is named by its digest; the image's name and tag may be as they should."""
    with client() as asking, pytest.raises(InputError) as caught:
        asking.blob(named(registry), digest_of(b"deleted"))
    assert f"has no {digest_of(b'deleted')} in its registry" in caught.value.findings[0].what


def test_a_token(registry: Registry) -> None:
    """The token service gets the login, the registry the token alone, and the token serves further requests."""
    registry.index("nvidia/driver", "1")
    registry.user = ("me", PASSWORD)
    with client(login(registry)) as asking:
        asking.manifest(named(registry))
        asking.manifest(named(registry))
    words = [(path.split("?")[0], given.split(" ")[0]) for _, path, given in registry.asked]
    manifest = "/v2/nvidia/driver/manifests/1"
    assert words == [(manifest, ""), ("/token", "Basic"), (manifest, "Bearer"), (manifest, "Bearer")]


def test_an_identity_token(registry: Registry) -> None:
    """An identity token of a helper is exchanged, never sent to the registry."""
    registry.image("nvidia/driver", "1")
    registry.user = ("me", PASSWORD)
    with client(login(registry, {"identitytoken": "idt"})) as asking:
        asking.manifest(named(registry))
    assert ("POST", "/token", "") in registry.asked


def test_basic(registry: Registry) -> None:
    """A registry without tokens gets user and password."""
    registry.image("nvidia/driver", "1")
    registry.user, registry.basic = ("me", PASSWORD), True
    with client(login(registry)) as asking:
        asking.manifest(named(registry))


@pytest.mark.parametrize("basic", [True, False])
def test_refused(registry: Registry, basic: bool) -> None:
    """Without a login, and with a wrong one, the registry refuses; no password is in the message."""
    registry.image("nvidia/driver", "1")
    registry.user, registry.basic = ("somebody", "else"), basic
    for environment in ({}, login(registry)):
        with client(environment) as asking, pytest.raises(InputError) as caught:
            asking.manifest(named(registry))
        assert refusal(caught.value) == "GPU961"


def test_a_token_service_that_is_not_encrypted() -> None:
    """A registry can't make us send a password in the clear, nor to this machine."""
    for realm in ("http://r.example.com/token", "http://127.0.0.1:1/token", "ftp://x", ""):
        header = {"WWW-Authenticate": f'Bearer realm="{realm}"'}
        challenge = functools.partial(httpx2.Response, 401, headers=header, stream=httpx2.ByteStream(b""))
        served = httpx2.MockTransport(lambda _, challenge=challenge: challenge())
        image = parse("r.example.com/a:1")
        assert image
        known = {"DOCKER_AUTH_CONFIG": json.dumps({"auths": {"r.example.com": {"username": "a", "password": "b"}}})}
        with Client(Credentials(known), transport=served) as asking, pytest.raises(InputError) as caught:
            asking.manifest(image)
        assert refusal(caught.value) == "GPU963"


def test_a_token_lets_do_no_more_than_is_needed() -> None:
    """Who reads asks to pull alone; who writes also to push, from the first look at what is there on. The words are the
    token specification's: repository:NAME:pull,push.
    """
    scopes: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/token":
            scopes.append(request.url.params["scope"])
            return httpx2.Response(200, stream=httpx2.ByteStream(b'{"token": "t"}'))
        if "authorization" not in request.headers:
            header = {"WWW-Authenticate": 'Bearer realm="https://r.example.com/token"'}
            return httpx2.Response(401, headers=header, stream=httpx2.ByteStream(b""))
        return httpx2.Response(200, stream=httpx2.ByteStream(b"x"))

    image = parse("r.example.com/a/b:1")
    assert image
    with Client(Credentials({}), transport=httpx2.MockTransport(answer)) as asking:
        asking.blob(image, digest_of(b"x"))
        asking.put_blob(image, b"x")
    assert scopes == ["repository:a/b:pull", "repository:a/b:pull,push"]


def test_redirects_get_no_token(registry: Registry) -> None:
    """Where a blob lies elsewhere, the token stays with the registry."""
    registry.image("nvidia/driver", "1")
    registry.user = ("me", PASSWORD)
    with strict() as elsewhere:
        elsewhere.image("nvidia/driver", "1")
        registry.redirect = f"http://{elsewhere.host}/v2/{{repository}}/blobs/{{digest}}"
        with client(login(registry)) as asking:
            resolve(asking, named(registry))
        assert [given for _, _, given in elsewhere.asked] == [""]


def test_blobs_are_written_once(registry: Registry) -> None:
    """What is there isn't uploaded anew."""
    with client() as asking:
        for _ in range(2):
            assert asking.put_blob(named(registry), b"content") == digest_of(b"content")
    assert [method for method, _, _ in registry.asked] == ["HEAD", "POST", "PUT", "HEAD"]


def test_no_file_of_credentials_is_needed(tmp_path: Path) -> None:
    """Nobody has to have logged in anywhere."""
    image = parse("r.example.com/a:1")
    assert image
    assert Credentials({"HOME": str(tmp_path)}).of(image) is None


def test_an_upload_elsewhere_gets_no_token(registry: Registry) -> None:
    """Where a registry takes uploads at another host, the token stays with the registry."""
    registry.user = ("me", PASSWORD)
    with strict() as elsewhere:
        registry.uploads = f"http://{elsewhere.host}"
        with client(login(registry)) as asking:
            asking.put_blob(named(registry), b"content")
        assert [(method, given) for method, _, given in elsewhere.asked] == [("PUT", "")]


@pytest.mark.parametrize("step", ["blob", "upload"])
@pytest.mark.parametrize("asking", ["Basic", 'Bearer realm="https://third.example.com/token",service="x"'])
def test_where_it_sends_us_on_to_can_not_ask_for_the_login(tmp_path: Path, step: str, asking: str) -> None:
    """Another host that answers 401, after a redirect or to an upload, gets no login, and neither does the token
    service that it names.
    """
    image = parse("r.example.com/a:1")
    assert image
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        empty = httpx2.ByteStream(b"")
        if request.url.host != "r.example.com":
            return httpx2.Response(401, headers={"WWW-Authenticate": asking}, stream=empty)
        if request.method == "HEAD":
            return httpx2.Response(404, stream=empty)
        status = 202 if request.method == "POST" else 307
        return httpx2.Response(status, headers={"Location": "https://other.example.com/x"}, stream=empty)

    config = tmp_path / "config.json"
    auth = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    config.write_text(json.dumps({"auths": {"r.example.com": {"auth": auth}}}))
    known = Credentials({"DOCKER_CONFIG": str(tmp_path)})
    with (
        Client(known, transport=httpx2.MockTransport(answer), sleep=lambda _: None) as client,
        pytest.raises(InputError),
    ):
        client.put_blob(image, b"x") if step == "upload" else client.blob(image, digest_of(b"x"))
    assert {request.url.host for request in asked} == {"r.example.com", "other.example.com"}
    assert not any("authorization" in request.headers for request in asked)


@pytest.mark.parametrize(
    "address", ["http://[", "https://[", "https://\x7f/", "//", "https://", "https://x:port/", "https://xn--/"]
)
def test_addresses_that_are_none(address: str) -> None:
    """Whatever a registry names as a token service, a redirect or a place to upload to, is no defect of ours."""
    image = parse("r.example.com/a:1")
    assert image
    for status, header in ((401, {"WWW-Authenticate": f'Bearer realm="{address}"'}), (307, {"Location": address})):

        def answer(request: httpx2.Request, status: int = status, header: dict[str, str] = header) -> httpx2.Response:
            if request.url.host == "r.example.com":
                return httpx2.Response(status, headers=header, stream=httpx2.ByteStream(b""))
            raise httpx2.ConnectError("no such host")

        transport = httpx2.MockTransport(answer)
        with Client(Credentials({}), transport=transport, sleep=lambda _: None) as asking, pytest.raises(InputError):
            asking.manifest(image)
    moved = {"Location": address}
    served = httpx2.MockTransport(
        lambda request: httpx2.Response(
            {"HEAD": 404, "POST": 202}.get(request.method, 500), headers=moved, stream=httpx2.ByteStream(b"")
        )
    )
    with Client(Credentials({}), transport=served, sleep=lambda _: None) as asking, pytest.raises(InputError):
        asking.put_blob(image, b"content")


def raw(content: bytes, *, every: float = 0) -> str:
    """The host of a server that answers each request with CONTENT and goes on sending its end, a byte EVERY seconds."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            taken, _ = listening.accept()
            with taken, contextlib.suppress(OSError):
                taken.recv(65536)
                taken.sendall(content)
                while every:
                    time.sleep(every)
                    taken.sendall(content[-1:])

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("sent", [b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nx", b"HTTP/1.1 200 OK\r\nX: x"])
def test_a_trickle(sent: bytes) -> None:
    """A registry that sends a byte now and then, of what it says or before that, is given up."""
    image = parse(f"{raw(sent, every=0.05)}/a:1")
    assert image
    with Client(Credentials({}), patience=0.4) as asking, pytest.raises(InputError, match="come to an end") as caught:
        asking.manifest(image)
    assert refusal(caught.value) == "GPU960"


@pytest.mark.parametrize("errors", ["5", "true", "[5]", '{"code": 1}', '"x"', '[{"code": []}]'])
def test_errors_of_any_shape(errors: str) -> None:
    """Whatever a registry writes in place of its errors, its status is told."""
    body = f'{{"errors": {errors}}}'.encode()
    served = httpx2.MockTransport(lambda _: httpx2.Response(400, stream=httpx2.ByteStream(body)))
    image = parse("r.example.com/a:1")
    assert image
    with Client(Credentials({}), transport=served) as asking, pytest.raises(InputError, match="answers 400"):
        asking.manifest(image)


def test_a_manifest_that_is_kept_otherwise() -> None:
    """A registry that says it keeps other bytes than were written has not done it."""
    other = {"Docker-Content-Digest": f"sha256:{'0' * 64}"}
    served = httpx2.MockTransport(lambda _: httpx2.Response(201, headers=other, stream=httpx2.ByteStream(b"")))
    image = parse("r.example.com/a:1")
    assert image
    with Client(Credentials({}), transport=served) as asking, pytest.raises(InputError, match="it keeps sha256:000"):
        asking.put_manifest(image, b"{}", "application/json")


@pytest.mark.parametrize(
    "variables",
    [
        {"HTTPS_PROXY": f"nonsense://me:{PASSWORD}@proxy.example.com"},
        {"HTTPS_PROXY": f"http://me:{PASSWORD}@[::"},
        {"ALL_PROXY": f"socks5://me:{PASSWORD}@proxy.example.com"},
        {"SSL_CERT_FILE": "/nonexistent"},
        {"SSL_CERT_FILE": os.devnull},
        {"SSL_CERT_FILE": "/"},
    ],
)
def test_an_environment_that_leads_nowhere(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy or a file of certificates that can't be used is the user's to correct, and no password is shown."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as caught:
        client()
    assert refusal(caught.value) == "GPU972"


def test_a_token_service_out_of_reach() -> None:
    """What is told is who doesn't answer, which needs not be the registry."""
    header = {"WWW-Authenticate": 'Bearer realm="https://auth.example.com/token",service="x"'}

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "r.example.com":
            return httpx2.Response(401, headers=header, stream=httpx2.ByteStream(b""))
        raise httpx2.ConnectError("no such host")

    image = parse("r.example.com/a:1")
    assert image
    with (
        Client(Credentials({}), transport=httpx2.MockTransport(answer), sleep=lambda _: None) as asking,
        pytest.raises(InputError, match=r"auth\.example\.com, where the registry r\.example\.com sends us"),
    ):
        asking.manifest(image)


def test_a_login_that_is_not_enough(registry: Registry) -> None:
    """Who has a login that the registry takes, and may not do it nevertheless, isn't told to log in first."""
    image = named(registry)
    known = {"DOCKER_AUTH_CONFIG": json.dumps({"auths": {registry.host: {"username": "a", "password": PASSWORD}}})}
    served = httpx2.MockTransport(lambda _: httpx2.Response(403, stream=httpx2.ByteStream(b"")))
    with Client(Credentials(known), transport=served) as asking, pytest.raises(InputError, match="refuses the login"):
        asking.manifest(image)


@pytest.mark.parametrize("header", ['Basic realm="x", Bearer {}', 'Bearer {}, Basic realm="x"', "bearer  {}"])
def test_several_challenges(registry: Registry, header: str) -> None:
    """A token is asked for wherever the registry offers that, whatever else it offers and however it writes it."""
    registry.image("nvidia/driver", "1")
    registry.user = ("me", PASSWORD)
    registry.challenge = header.format(f'Realm="http://{registry.host}/token", service=test')
    with client(login(registry)) as asking:
        asking.manifest(named(registry))


@pytest.mark.parametrize("name", ["[::::]/a:1", "a..b/a:1", "r.example.com:99999/a:1"])
def test_hosts_that_are_none(name: str) -> None:
    """An image of a host that can't be is told as such."""
    image = parse(name)
    assert image
    with client() as asking, pytest.raises(InputError):
        asking.manifest(image)


@pytest.mark.parametrize(
    ("address", "same"),
    [
        ("https://R.example.com:443/v2/a/blobs/uploads/1", True),
        ("https://r.example.com:444/", False),
        ("https://r.example.com:x/", False),
        ("https://r.example.com.evil/", False),
        ("https://r.example.com@evil.example.com/", False),
        ("http://r.example.com:443/", False),
        ("v2/a/manifests/1", False),
    ],
)
def test_who_sees_a_token(address: str, same: bool) -> None:
    """The registry alone, also where it writes its own address in another way."""
    assert same_host(address, "r.example.com") is same


def test_a_registry_out_of_reach_is_tried_once() -> None:
    """A fleet has a hundred images: a registry that never answered isn't waited for again by each of them."""
    tried: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        tried.append(request.url.host)
        raise httpx2.ConnectTimeout("no answer")

    with Client(Credentials({}), transport=httpx2.MockTransport(answer), sleep=lambda _: None) as asking:
        for text in ("r.example.com/a:1", "r.example.com/b:1", "s.example.com/a:1"):
            image = parse(text)
            assert image
            with pytest.raises(InputError, match=f"^the registry {image.host} can.t be asked") as caught:
                asking.manifest(image)
            assert refusal(caught.value) == "GPU960"
    assert tried == ["r.example.com"] * ATTEMPTS + ["s.example.com"] * ATTEMPTS
