"""Who asks a registry: what `docker login`, `podman login` and credential helpers keep, read the way they do.

Passwords stay here and in one header: they are in no message, and no object prints them. A credential helper,
`docker-credential-NAME`, may hang, print without end, or print what is not JSON.
"""

import base64
import binascii
import contextlib
import errno
import json
import os
import re
import selectors
import subprocess
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ..model import InputError
from ..text import programs
from ..text.regular import read_regular
from .reference import DOCKER_HUB, HUB_NAMES, Reference

_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MOST = 4 * 1024 * 1024
"""Bytes of a file with logins."""
_PRINTED = 1024 * 1024
"""Bytes that a helper prints."""
_NOT_FOUND = b"credentials not found"
"""What a helper prints that knows no login; it fails then as well."""
SECONDS = 60.0
"""How long a helper may take: somebody may have to unlock a keychain."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Login:
    """A user with a password, or an identity token that is exchanged for others."""

    user: str = field(repr=False)
    password: str = field(repr=False)
    identity: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


class Credentials:
    """What the user's files and ENVIRONMENT say about registries, read when a registry asks for it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._logins: dict[str, Login | InputError | None] = {}
        self._helpers: dict[tuple[str, str], Login | InputError | None] = {}
        self._guard = threading.Lock()

    def of(self, image: Reference) -> Login | None:
        """The login for the registry of IMAGE; None where nobody logged in. Raises InputError.

        Looked up once for each repository, and a helper is asked once for each registry: it may take its time to fail.
        """
        name = f"{image.host}/{image.repository}"
        with self._guard:
            return _once(self._logins, name, lambda: self._look_up(image))

    def _look_up(self, image: Reference) -> Login | None:
        logins = (self._in_config(config, image, where) for where, config in self._configs)
        return next(filter(None, logins), None)

    @cached_property
    def _configs(self) -> list[tuple[str, dict[str, Any]]]:
        return [*self._read()]

    def _read(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if inline := self._environment.get("DOCKER_AUTH_CONFIG"):
            yield "DOCKER_AUTH_CONFIG", _parsed(inline, "the variable DOCKER_AUTH_CONFIG")
        for path in self._files():
            if os.path.lexists(path) and programs.of_work_tree(path):
                raise _unusable(
                    f"{path} is in the work tree, so it isn't read",
                    "a pull request can write it, and it names programs that are started",
                    "keep logins outside of the clone: HOME, DOCKER_CONFIG and REGISTRY_AUTH_FILE say where",
                )
            try:
                text = read_regular(path, limit=_MOST).decode("utf-8")
            except (FileNotFoundError, NotADirectoryError):
                if str(path) == self._environment.get("REGISTRY_AUTH_FILE"):
                    raise _unusable(f"{path}, which REGISTRY_AUTH_FILE names, is not there") from None
                continue
            except (OSError, UnicodeDecodeError) as error:
                raise _unusable(f"{path} can't be read: {getattr(error, 'strerror', None) or 'no UTF-8'}") from None
            yield str(path), _parsed(text, str(path))

    def _files(self) -> list[Path]:
        known = self._environment
        docker = ("DOCKER_CONFIG", "config.json") if known.get("DOCKER_CONFIG") else ("HOME", ".docker/config.json")
        places = ("REGISTRY_AUTH_FILE", ""), ("XDG_RUNTIME_DIR", "containers/auth.json"), docker
        return [Path(known[name], file) for name, file in places if known.get(name)]

    def _in_config(self, config: Mapping[str, Any], image: Reference, where: str) -> Login | None:
        keys = HUB_NAMES if image.host == DOCKER_HUB else (image.host,)
        helpers = config.get("credHelpers")
        for key in keys:
            if isinstance(helpers, dict) and isinstance(helpers.get(key), str):
                return self._helped(helpers[key], key, where)
        if login := _in_auths(config.get("auths"), [f"{key}/{image.repository}" for key in keys], where):
            return login
        store = config.get("credsStore")
        if isinstance(store, str) and store:
            asked = "https://index.docker.io/v1/" if image.host == DOCKER_HUB else image.host
            return self._helped(store, asked, where)
        return None

    def _helped(self, name: str, registry: str, where: str) -> Login | None:
        """What the credential helper NAME knows about REGISTRY."""
        program = f"docker-credential-{name}"
        if not _HELPER.fullmatch(name):
            raise _unusable(f"{where} names the credential helper {name!r}, which can't be a program's name")
        return _once(self._helpers, (program, registry), lambda: _asked(program, registry, where))


def _once(known: dict[K, Login | InputError | None], key: K, ask: Callable[[], Login | None]) -> Login | None:
    """What ASK comes to, a refusal included, once for each KEY."""
    if key not in known:
        try:
            known[key] = ask()
        except InputError as error:
            known[key] = error
    login = known[key]
    if isinstance(login, InputError):
        raise InputError(*login.findings)
    return login


def as_json(content: str | bytes) -> Any:
    """CONTENT as JSON, None where it isn't JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _parsed(text: str, where: str) -> dict[str, Any]:
    config = as_json(text) if text.strip() else {}
    if not isinstance(config, dict):
        raise _unusable(f"{where} is not a JSON document that `docker login` would write")
    return config


def _in_auths(auths: Any, wanted: list[str], where: str) -> Login | None:
    """The entry of AUTHS for the longest beginning of one of WANTED (podman has some for paths)."""
    best: tuple[int, Login] | None = None
    for key, entry in auths.items() if isinstance(auths, dict) else ():
        place = re.sub(r"^https?://", "", key).removesuffix("/v1/").removesuffix("/v2/").rstrip("/")
        if any(each == place or each.startswith(f"{place}/") for each in wanted) and isinstance(entry, dict):
            login = _login(entry, where)
            if login and (best is None or len(place) > best[0]):
                best = (len(place), login)
    return best[1] if best else None


def _login(entry: Mapping[str, Any], where: str) -> Login | None:
    token = entry.get("identitytoken")
    if isinstance(token, str) and token:
        return _checked(Login("", "", token), where)
    if isinstance(entry.get("username"), str) and isinstance(entry.get("password"), str):
        return _checked(Login(entry["username"], entry["password"]), where)
    if not isinstance(entry.get("auth"), str) or not entry["auth"]:
        return None
    try:
        user, colon, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = ""
    if not colon:
        raise _unusable(f"{where} has an `auth` that is not user:password in base64")
    return Login(user, password.rstrip("\0"))


def _asked(program: str, registry: str, where: str) -> Login | None:
    """The login that the credential helper PROGRAM, which WHERE names, knows for REGISTRY; None where it knows none."""
    who = f"{program}, which {where} names,"
    try:
        code, said = _run(program, registry.encode(), who)
    except OSError as error:
        raise _unusable(f"{where} names {program}, which can't be started: {error.strerror}") from None
    if code and _NOT_FOUND in said:
        return None
    if code:
        raise _unusable(f"{who} fails for {registry} (exit code {code})")
    answer = as_json(said)
    user, secret = (answer.get(name) if isinstance(answer, dict) else None for name in ("Username", "Secret"))
    if not isinstance(user, str) or not isinstance(secret, str):
        raise _unusable(f"{who} doesn't print what a credential helper prints")
    return _checked(Login("", "", secret) if user == "<token>" else Login(user, secret), program)


def _run(program: str, given: bytes, who: str) -> tuple[int, bytes]:
    """The exit code of PROGRAM, WHO in words, and what it prints. A program that it leaves behind, which may hold its
    output open, is not waited for either."""
    until = time.monotonic() + SECONDS
    path = programs.find(program)
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "the PATH has no such program")
    with subprocess.Popen(
        [path, "get"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as running:
        try:
            with contextlib.suppress(BrokenPipeError), running.stdin or contextlib.nullcontext() as stdin:
                if stdin:
                    stdin.write(given)
            said = _printed(running.stdout.fileno() if running.stdout else -1, until, who)
            return running.wait(max(0.0, until - time.monotonic())), said
        except subprocess.TimeoutExpired:
            raise _unusable(f"{who} gives no answer in {SECONDS:.0f} seconds") from None
        finally:
            running.kill()


def _printed(descriptor: int, until: float, who: str) -> bytes:
    """What comes from DESCRIPTOR, of WHO, to its end."""
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while selector.select(max(0.0, until - time.monotonic())):
            part = os.read(descriptor, 65536)
            if not part:
                return said
            said += part
            if len(said) > _PRINTED:
                raise _unusable(f"{who} prints without end")
    raise _unusable(f"{who} gives no answer in {SECONDS:.0f} seconds")


def _checked(login: Login, where: str) -> Login:
    """LOGIN, where it can be sent: halves of characters, which JSON can say, no encoding has."""
    try:
        f"{login.user}{login.password}{login.identity}".encode()
    except UnicodeEncodeError:
        raise _unusable(f"{where} has a login that is not text") from None
    return login


def _unusable(
    what: str,
    why: str = "the registry asks who wants the image",
    remedy: str = "mend or remove it, or log in anew: docker login",
) -> InputError:
    return InputError.of("GPU964", what, why=why, remedy=remedy)
