"""Where an image lives: registry, repository, tag, digest."""

import hashlib
import ipaddress
import re
from dataclasses import dataclass

DOCKER_HUB = "registry-1.docker.io"
"""Where Docker Hub answers, whose images people write without it (`busybox`) or as docker.io/library/busybox."""

HUB_NAMES = ("index.docker.io", "docker.io", DOCKER_HUB)
"""What logins of Docker Hub are kept under, the usual one first."""

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
_REFERENCE = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<repository>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """An image of a registry. `host` is what is connected to, with its port."""

    host: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def base(self) -> str:
        """The address of the repository in the API. A registry on this machine has no certificate."""
        return f"{'http' if self.loopback else 'https'}://{self.host}/v2/{self.repository}"

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def version(self) -> str:
        """What names the manifest: the digest, else the tag."""
        return self.digest or self.tag or "latest"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.host}/{self.repository}{tag}{f'@{self.digest}' if self.digest else ''}"


def parse(text: str) -> Reference | None:
    """TEXT as a reference, by the rules of container runtimes; None where it isn't one."""
    first, slash, _ = text.partition("/")
    explicit = bool(slash) and ("." in first or ":" in first or first == "localhost")
    match = _REFERENCE.fullmatch(text if explicit else f"docker.io/{text}")
    if not match or not match["host"]:
        return None
    host, repository = match["host"], match["repository"]
    if host in HUB_NAMES:
        host = DOCKER_HUB
        repository = repository if "/" in repository else f"library/{repository}"
    return Reference(host, repository, match["tag"] or "", match["digest"] or "")


def digest_of(content: bytes) -> str:
    """CONTENT as the API names it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def is_loopback(host: str) -> bool:
    """Whether HOST, which may have a port, is this machine."""
    name = re.sub(r":[0-9]+$", "", host).strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
