"""The OCI distribution API, as much of it as is needed: manifests and blobs, read and written.

Every answer that is kept was checked against its digest. A registry that is busy or out of reach is asked again, a few
times and ever more slowly; of one that never answered nothing is asked again. Credentials go to the registry itself, or
to the token service that it names itself, and only encrypted; where it sends us on to gets none, and can't ask for any.

No request lasts for ever: one that isn't over in time is given up, however steadily the registry sends a byte of it.
"""

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx2

from .. import __version__
from ..model import whole
from .credentials import Credentials, Login, as_json
from .media import INDEXES, MANIFESTS
from .reference import Reference, digest_of, is_loopback
from .trouble import host_in, misled, missing, refused, silent, unusable
from .waiting import started

ATTEMPTS = 4
LONGEST_PAUSE = 30.0
MOST = 4 * 1024 * 1024
"""Bytes of a manifest or a configuration: what registries must take at least, and what none has ever needed."""

# The grammar of challenges.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a word, in the language of the standard
_PARAMETER = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))', re.DOTALL)
_WORD = re.compile(_TOKEN)
_SCHEME = re.compile(rf"({_TOKEN})(?=[ \t]|,|$)")

_NONE: Mapping[str, str] = {}
_BUSY = {429, 500, 502, 503, 504}
_TIMEOUT = httpx2.Timeout(30, connect=10)
"""Seconds of silence."""
PATIENCE = 120.0
"""Seconds that a request may last in all, and one more for each SLOWEST bytes that it takes there."""
SLOWEST = 32 * 1024


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest or index with the digest of its bytes."""

    media_type: str
    content: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a registry answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Client:
    """Asks registries. May be shared by threads."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        patience: float = PATIENCE,
    ) -> None:
        """Raises InputError where the environment says how to connect, and that can't be."""
        self._credentials, self._sleep, self._patience = credentials, sleep, patience
        try:
            self._http = httpx2.Client(
                transport=transport,
                timeout=_TIMEOUT,
                follow_redirects=False,
                headers={"User-Agent": f"gpustack/{__version__}", "Accept-Encoding": "identity"},
            )
        except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:  # SSLError is an OSError
            raise misled(error) from None
        self._tokens: dict[tuple[str, str, bool], str] = {}
        self._silent: dict[str, tuple[str, str]] = {}
        self._guard = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def manifest(self, image: Reference) -> Manifest:
        """What IMAGE names, an index or a manifest. Raises InputError."""
        answer = self._read(image, f"manifests/{image.version}", {"Accept": ", ".join((*INDEXES, *MANIFESTS))})
        digest = digest_of(answer.content)
        for said in filter(None, (image.digest, answer.headers.get("docker-content-digest", ""))):
            if said.startswith("sha256:") and said != digest:
                raise unusable(image, f"its bytes are {digest}, and not {said}")
        return Manifest(answer.headers.get("content-type", "").partition(";")[0].strip(), answer.content, digest)

    def blob(self, image: Reference, digest: str) -> bytes:
        """The blob DIGEST of the repository of IMAGE, of a few megabytes at most."""
        content = self._read(image, f"blobs/{digest}").content
        if digest_of(content) != digest:
            raise unusable(image, f"the bytes of its blob {digest} are others")
        return content

    def _read(self, image: Reference, what: str, headers: Mapping[str, str] = _NONE) -> Answer:
        """What the repository of IMAGE has there."""
        answer = self._ask(image, "GET", f"{image.base}/{what}", headers)
        if answer.status == 404:
            raise missing(image, what.partition("blobs/")[2])
        self._expect(image, answer, {200})
        return answer

    def put_blob(self, image: Reference, content: bytes) -> str:
        """Write CONTENT into the repository of IMAGE, unless it is there; returns its digest."""
        digest = digest_of(content)
        if self._ask(image, "HEAD", f"{image.base}/blobs/{digest}").status == 200:
            return digest
        started = self._ask(image, "POST", f"{image.base}/blobs/uploads/")
        self._expect(image, started, {202})
        where = joined(f"{image.base}/", started.headers.get("location", ""))
        if "location" not in started.headers or not safe(where, image):
            raise unusable(image, "it says no address to upload to that can be trusted")
        where += f"{'&' if '?' in where else '?'}digest={digest.replace(':', '%3A')}"
        headers = {"Content-Type": "application/octet-stream"}
        self._expect(image, self._ask(image, "PUT", where, headers, content), {201, 204})
        return digest

    def put_manifest(self, image: Reference, content: bytes, media_type: str) -> str:
        """Write the manifest CONTENT under the tag of IMAGE; returns its digest."""
        where = f"{image.base}/manifests/{image.version}"
        answer = self._ask(image, "PUT", where, {"Content-Type": media_type}, content)
        self._expect(image, answer, {201})
        digest, said = digest_of(content), answer.headers.get("docker-content-digest", "")
        if said.startswith("sha256:") and said != digest:
            raise unusable(image, f"it keeps {said} for what is {digest}")
        return digest

    def _ask(
        self, image: Reference, method: str, address: str, headers: Mapping[str, str] = _NONE, content: bytes = b""
    ) -> Answer:
        """The answer to a request, after the registry learned who asks, and from where it sends us on to."""
        push = method != "GET"  # who asks by HEAD what is there wants to write the rest
        key = (image.host, image.repository, push)
        for anew in (False, True):
            with self._guard:
                given = self._tokens.get(key, "")
            own = same_host(address, image.host)
            ours = {"Authorization": given} if given and own else {}
            answer = self._send(image, method, address, {**headers, **ours}, content)
            if answer.status != 401 or anew or not own:  # whoever else asks for a login gets none
                break
            with self._guard:
                if self._tokens.get(key, "") == given:
                    self._tokens[key] = self._authorised(image, answer, push)
        for _ in range(5):
            if answer.status not in {301, 302, 303, 307, 308} or method not in {"GET", "HEAD"}:
                return answer
            address = joined(address, answer.headers.get("location", ""))
            if not safe(address, image):
                raise unusable(image, "it redirects to an address that is not encrypted")
            answer = self._send(image, method, address, headers)
        raise unusable(image, "it redirects without end")

    def _send(
        self, image: Reference, method: str, address: str, headers: Mapping[str, str], content: bytes = b""
    ) -> Answer:
        """The answer to one request, asked again while the registry is busy or out of reach."""
        # Limits of the HTTP library are about silence, and the look-up of a name has none at all.
        limit = self._patience + len(content) / SLOWEST
        host = host_in(address)
        if host in self._silent:
            raise silent(image, address, *self._silent[host])
        pause, trouble, tried, answered = 0.5, "", f"it was tried {ATTEMPTS} times", False
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(min(pause, LONGEST_PAUSE))
                pause *= 3
            try:
                answer = started(lambda: self._once(image, method, address, headers, content)).result(limit)
            except TimeoutError:
                trouble, tried = "the answer doesn't come to an end", "it was given up"
                break
            except httpx2.TransportError as error:  # whose words have no addresses of proxies, which may hold passwords
                late = isinstance(error, httpx2.TimeoutException)
                trouble = "no answer in time" if late else str(error) or type(error).__name__
                continue
            except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError):
                raise unusable(image, "it doesn't speak HTTP, or names what isn't an address") from None
            if answer.status not in _BUSY:
                return answer
            trouble, answered = f"it answers {answer.status}", True
            asked = whole(answer.headers.get("retry-after", "").strip())
            pause = float(asked) if asked is not None else pause
        if not answered:
            self._silent[host] = trouble, tried
        raise silent(image, address, trouble, tried)

    def _once(self, image: Reference, method: str, address: str, headers: Mapping[str, str], content: bytes) -> Answer:
        with self._http.stream(method, address, headers=dict(headers), content=content or None) as response:
            found = bytearray()
            for part in response.iter_raw():
                found += part
                if len(found) > MOST:
                    raise unusable(image, f"it answers with more than {MOST // 1024 // 1024} MiB")
            known = {name.lower(): value for name, value in response.headers.items()}  # several of a name as a list
            return Answer(response.status_code, known, bytes(found))

    def _authorised(self, image: Reference, answer: Answer, push: bool) -> str:
        """The header that the challenge in ANSWER asks for."""
        known = challenges(answer.headers.get("www-authenticate", ""))
        login = self._credentials.of(image)
        if "bearer" not in known:
            if "basic" in known and login:
                return login.basic
            raise refused(image, login)
        said = known["bearer"]
        realm = said.get("realm", "")
        if not safe(realm, image):
            what = f"its token service {realm!r} is not encrypted" if realm else "it names no token service"
            raise unusable(image, what)
        scope = f"repository:{image.repository}:{'pull,push' if push else 'pull'}"
        return f"Bearer {self._token(image, realm, {'service': said.get('service', ''), 'scope': scope}, login)}"

    def _token(self, image: Reference, realm: str, asked: dict[str, str], login: Login | None) -> str:
        asked = {name: value for name, value in asked.items() if value}
        if login and login.identity:
            form = {**asked, "grant_type": "refresh_token", "client_id": "gpustack", "refresh_token": login.identity}
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            answer = self._send(image, "POST", realm, headers, str(httpx2.QueryParams(form)).encode())
        else:
            address = f"{realm}{'&' if '?' in realm else '?'}{httpx2.QueryParams(asked)}"
            answer = self._send(image, "GET", address, {"Authorization": login.basic} if login else {})
        if answer.status in {400, 401, 403}:
            raise refused(image, login)
        reply = as_json(answer.content)
        token = (reply.get("token") or reply.get("access_token")) if isinstance(reply, dict) else None
        if answer.status != 200 or not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise unusable(image, f"its token service gives no token (status {answer.status})")
        return token

    def _expect(self, image: Reference, answer: Answer, good: set[int]) -> None:
        if answer.status in {401, 403}:
            raise refused(image, self._credentials.of(image))
        if answer.status not in good:
            raise unusable(image, f"it answers {answer.status}{said_by(answer)}")


def challenges(header: str) -> dict[str, dict[str, str]]:
    """The parameters of each scheme in HEADER, by which a registry says how it wants to be told who asks.

    It is WWW-Authenticate (RFC 9110, 11.6.1): there may be several challenges in it, and a value stands in quotes or
    not. All names are in small letters; of a scheme that comes twice it is the first."""
    by_scheme: dict[str, dict[str, str]] = {}
    said: dict[str, str] = {}
    position = 0
    while position < len(header):
        parameter = _PARAMETER.match(header, position)
        scheme = None if parameter else _SCHEME.match(header, position)
        if parameter:
            name, quoted, plain = parameter.groups()
            said.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if plain is None else plain)
        elif scheme:
            said = {}
            by_scheme.setdefault(scheme[1].lower(), said)
        elif header[position] == '"':
            break  # a value without an end, or in a place where none can be
        match = parameter or scheme or _WORD.match(header, position)
        position = match.end() if match else position + 1
    return by_scheme


def joined(base: str, address: str) -> str:
    """ADDRESS as BASE means it; "" where it isn't one."""
    try:
        return urljoin(base, address)
    except ValueError:
        return ""


def same_host(address: str, host: str) -> bool:
    """Whether ADDRESS is of the registry HOST, so that it may see our token."""
    try:
        asked = urlsplit(address)
        return asked.hostname is not None and _place(asked) == _place(urlsplit(f"{asked.scheme}://{host}"))
    except ValueError:
        return False


def _place(parts: SplitResult) -> tuple[str | None, int | None]:
    """Host and port of an address: a registry may name the port that goes without saying."""
    return parts.hostname, {"https": 443, "http": 80}.get(parts.scheme) if parts.port is None else parts.port


def safe(address: str, image: Reference) -> bool:
    """Whether ADDRESS may be asked on behalf of the registry of IMAGE: encrypted, or both are on this machine."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and image.loopback and is_loopback(parts.netloc))


def said_by(answer: Answer) -> str:
    """The code of the error that ANSWER has in it."""
    content = as_json(answer.content)
    errors = content.get("errors") if isinstance(content, dict) else None
    listed = errors if isinstance(errors, list) else []
    codes = [str(each.get("code", ""))[:40] for each in listed if isinstance(each, dict)]
    return f" ({', '.join(filter(None, codes))})" if any(codes) else ""
