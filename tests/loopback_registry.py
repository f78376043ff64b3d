"""Registries on this machine to test with: a strict one of our own, which can be told to fail, and Debian's.

The strict one is the part of the OCI distribution specification 1.1 that is used here, and refuses what breaks it:
digests that don't fit, manifests whose blobs it hasn't, a wrong media type, a request without the token that it gave.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
ROOT = Path(__file__).parents[1]
TOKEN = "eyJ0b2tlbg.x.y"  # noqa: S105 - nobody's


def digest_of(content: bytes) -> str:
    """CONTENT as a registry names it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Registry:
    """A registry at HOST, and what it was asked. With `user` it asks for a token, `busy` times it answers 503."""

    host: str
    blobs: dict[tuple[str, str], bytes] = field(default_factory=dict)
    manifests: dict[tuple[str, str], tuple[str, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    user: tuple[str, str] | None = None
    basic: bool = False
    busy: int = 0
    busy_status: int = 503
    lies: bool = False
    redirect: str = ""
    uploads: str = ""
    realm: str = ""
    challenge: str = ""

    def put(self, repository: str, tag: str, media_type: str, content: bytes) -> str:
        """Keep a manifest by TAG and by its digest."""
        for name in (tag, digest_of(content)):
            self.manifests[repository, name] = (media_type, content)
        return digest_of(content)

    def image(self, repository: str, tag: str, architecture: str = "amd64", content: bytes = b"layer") -> str:
        """Keep an image of one platform; returns its digest."""
        config = json.dumps({"os": "linux", "architecture": architecture, "of": content.decode()}).encode()
        for blob in (config, content):
            self.blobs[repository, digest_of(blob)] = blob
        body = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": digest_of(config), "size": len(config)},
            "layers": [{"mediaType": LAYER, "digest": digest_of(content), "size": len(content)}],
        }
        return self.put(repository, tag, MANIFEST, json.dumps(body).encode())

    def index(self, repository: str, tag: str, content: bytes = b"layer") -> tuple[str, dict[str, str]]:
        """Keep an image for amd64, arm64 and a platform that no GPU node has, with an attestation beside them."""
        found = {name: self.image(repository, f"{tag}-{name}", name, content) for name in ("amd64", "arm64", "s390x")}
        entries = [
            {"mediaType": MANIFEST, "digest": digest, "size": 1, "platform": {"os": "linux", "architecture": name}}
            for name, digest in found.items()
        ]
        attestation = {**entries[0], "platform": {"os": "unknown", "architecture": "unknown"}}
        body = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [attestation, *entries]}
        digest = self.put(repository, tag, INDEX, json.dumps(body).encode())
        return digest, {f"linux/{name}": found[name] for name in ("amd64", "arm64")}


@contextlib.contextmanager
def strict() -> Iterator[Registry]:
    """The strict registry."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    registry = Registry(f"127.0.0.1:{server.server_address[1]}")
    server.registry = registry  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def debian() -> str | None:
    """The program docker-registry, None where there is none (tools/docker_registry.sh brings it)."""
    return shutil.which("docker-registry", path=os.pathsep.join((os.environ["PATH"], str(ROOT / ".tools" / "bin"))))


@contextlib.contextmanager
def docker_registry(program: str, folder: Path, tls: tuple[Path, Path] | None = None) -> Iterator[str]:
    """Debian's registry in FOLDER: the host to ask. TLS: a certificate and its key, else it speaks HTTP."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{taken.getsockname()[1]}"
    config = folder / "config.yml"
    settings = {
        "version": 0.1,
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": host, **({"tls": {"certificate": str(tls[0]), "key": str(tls[1])}} if tls else {})},
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log) as running,
    ):
        try:
            _wait(host, running, tls[0] if tls else None)
            yield host
        finally:
            running.terminate()


def _wait(host: str, running: subprocess.Popen[bytes], authority: Path | None = None) -> None:
    trusted = ssl.create_default_context(cafile=authority) if authority else None
    url = f"{'https' if trusted else 'http'}://{host}/v2/"
    for _ in range(300):
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5, context=trusted):  # noqa: S310  # ours
            return
        assert running.poll() is None, "docker-registry ended"
        time.sleep(0.1)
    raise AssertionError("docker-registry doesn't answer")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def registry(self) -> Registry:
        return self.server.registry  # type: ignore[attr-defined, no-any-return]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that it replaces
        """Nothing: `asked` is the log."""

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - the names are the server's

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body, registry = self.rfile.read(length), self.registry
        registry.asked.append((self.command, self.path, self.headers.get("Authorization", "")))
        if registry.busy:
            registry.busy -= 1
            return self._send(registry.busy_status, b"", {"Retry-After": "1"})
        where = urlsplit(self.path)
        if where.path == "/token":
            return self._token(parse_qs(where.query), body)
        if registry.user and not self._let_in():
            realm = registry.realm or f"http://{registry.host}/token"
            challenge = f'Bearer realm="{realm}",service="test",scope="x"' if not registry.basic else 'Basic realm="x"'
            challenge = registry.challenge or challenge
            return self._send(401, b'{"errors":[{"code":"UNAUTHORIZED"}]}', {"WWW-Authenticate": challenge})
        match = re.fullmatch(r"/v2/(.+)/(manifests|blobs)/(.+)", where.path)
        if not match:
            return self._error(404, "NAME_UNKNOWN")
        what = self._manifest if match[2] == "manifests" else self._blob
        return what(match[1], match[3].removeprefix("uploads/"), parse_qs(where.query), body)

    def _let_in(self) -> bool:
        given = self.headers.get("Authorization", "")
        if self.registry.basic and self.registry.user:
            return given == "Basic " + base64.b64encode(":".join(self.registry.user).encode()).decode()
        return given == f"Bearer {TOKEN}"

    def _token(self, query: dict[str, list[str]], body: bytes) -> None:
        user = self.registry.user
        assert user
        basic = "Basic " + base64.b64encode(":".join(user).encode()).decode()
        form = parse_qs(body.decode())
        known = self.headers.get("Authorization") == basic if self.command == "GET" else form.get("refresh_token")
        asked = query if self.command == "GET" else form
        if not known or asked.get("service") != ["test"] or not asked.get("scope", [""])[0].startswith("repository:"):
            return self._error(401, "UNAUTHORIZED")
        return self._send(200, json.dumps({"token": TOKEN}).encode(), {"Content-Type": "application/json"})

    def _manifest(self, repository: str, name: str, _: dict[str, list[str]], body: bytes) -> None:
        registry = self.registry
        if self.command == "PUT":
            data = json.loads(body)
            blobs = [data["config"], *data["layers"]] if data["mediaType"] == MANIFEST else []
            for each in blobs:
                if len(registry.blobs.get((repository, each["digest"]), b"")) != each["size"]:
                    return self._error(400, "MANIFEST_BLOB_UNKNOWN")
            if any((repository, each["digest"]) not in registry.manifests for each in data.get("manifests", ())):
                return self._error(400, "MANIFEST_UNKNOWN")
            if name.startswith("sha256:") and name != digest_of(body):
                return self._error(400, "DIGEST_INVALID")
            if data["mediaType"] != self.headers["Content-Type"]:
                return self._error(400, "MANIFEST_INVALID")
            registry.put(repository, name, data["mediaType"], body)
            return self._send(201, b"", {"Location": "/", "Docker-Content-Digest": digest_of(body)})
        media_type, content = registry.manifests.get((repository, name), ("", b""))
        if not content:
            return self._error(404, "MANIFEST_UNKNOWN")
        if media_type not in self.headers.get("Accept", ""):
            return self._error(404, "MANIFEST_UNKNOWN")
        digest = digest_of(content)
        sent = content + b" " if registry.lies else content
        return self._send(200, sent, {"Content-Type": media_type, "Docker-Content-Digest": digest})

    def _blob(self, repository: str, name: str, query: dict[str, list[str]], body: bytes) -> None:
        registry = self.registry
        if self.command == "POST":
            return self._send(202, b"", {"Location": f"{registry.uploads}/v2/{repository}/blobs/uploads/1?state=a"})
        if self.command == "PUT":
            (digest,) = query["digest"]
            if digest_of(body) != digest or query.get("state") != ["a"]:
                return self._error(400, "DIGEST_INVALID")
            registry.blobs[repository, digest] = body
            return self._send(201, b"", {"Location": "/", "Docker-Content-Digest": digest})
        content = registry.blobs.get((repository, name))
        if content is None:
            return self._error(404, "BLOB_UNKNOWN")
        if registry.redirect and self.command == "GET":
            return self._send(307, b"", {"Location": registry.redirect.format(repository=repository, digest=name)})
        return self._send(200, content, {})

    def _error(self, status: int, code: str) -> None:
        self._send(status, json.dumps({"errors": [{"code": code}]}).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
