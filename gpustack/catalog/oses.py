"""Operating systems of GPU nodes: their names, the suffix of driver images, and where packages are configured.

A policy writes an operating system as os-release ID and VERSION_ID joined: ubuntu22.04, rhel9.4, sl-micro6.1. Every
system can be named; one that the catalogue doesn't know gets the tag that the operator would give it (`os_id` and
`os_tag` ask for the form only). `operating_system` is the strict look-up, for rules that refuse typos.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpustack.catalog import _data, _versions, releases
from gpustack.catalog._lookup import UnknownName, nearest
from gpustack.model import whole

_facts = functools.partial(_data.load, "operating-systems")

_NAME = re.compile(r"([a-z](?:[a-z_-]*[a-z])?)([0-9][0-9A-Za-z_.+-]*)")


class UnknownOS(UnknownName):
    what = "operating system"


@dataclass(frozen=True, slots=True)
class OsFamily:
    """Systems that configure packages alike: apt, yum or zypp, with the directories that driver containers read."""

    name: str
    repositories: str
    certificates: str


@dataclass(frozen=True, slots=True)
class OperatingSystem:
    """A known system. `driver_image` says who publishes driver containers for it: nvidia, vendor or none; `published`
    whether NVIDIA does for this version. `selinux`: SELinux enforces unless somebody turned it off. `ancient`: its C
    library is too old for programs that the container toolkit since v1.15 puts on the node."""

    id: str
    version: str
    title: str
    driver_image: str
    published: bool
    selinux: bool = False
    ancient: bool = False

    @property
    def name(self) -> str:
        return f"{self.title} {self.version}"


def os_names(release: str | None = None) -> list[str]:
    """The systems in the support table of RELEASE (default: the newest), such as ubuntu22.04; RHCOS is not in it."""
    return list(_versions.of_line(_facts()["supported"], releases.release(release or releases.latest()).line))


os_ids = functools.partial(_data.words, "operating-systems", "ids")
"""The os-release IDs that the catalogue knows."""


@functools.cache
def os_id(os: str) -> tuple[str, str]:
    """Split OS into os-release ID and VERSION_ID: rhel9.4 is ("rhel", "9.4"). UnknownOS for a text of another form."""
    match = _NAME.fullmatch(os)
    if match is None:
        raise UnknownOS(os, nearest_os(os))
    return match[1], match[2]


def operating_system(os: str) -> OperatingSystem:
    """What is known of OS. UnknownOS, with the nearest names, where its ID is not in the catalogue."""
    name, version = os_id(os)
    facts = _facts()["ids"].get(name)
    if facts is None:
        raise UnknownOS(os, nearest_os(os))
    versions, major = facts.get("versions"), version.partition(".")[0]
    offered = versions is None or version in versions or major in versions
    ancient, published = major in facts.get("ancient", ()), facts["driver_image"] == "nvidia" and offered
    return _data.made(OperatingSystem, facts, id=name, version=version, published=published, ancient=ancient)


def of_image(text: str) -> str:
    """The system that TEXT, a node's osImage, names: of "Ubuntu 22.04.5 LTS" ubuntu22.04. "" where it isn't known, and
    for RHCOS, whose numbers there aren't those of os-release."""
    known = {facts["title"]: name for name, facts in _facts()["ids"].items()}
    title = max((each for each in known if text.startswith(each)), key=len, default="")
    match = re.match(r"\D*(\d+(?:\.\d+)?)(?: SP(\d+))?", text[len(title) :])
    if not title or match is None or known[title] == "rhcos":
        return ""
    return f"{known[title]}{match[1]}{f'.{match[2]}' if match[2] else ''}"


def os_tag(os: str, release: str | None = None) -> str:
    """The suffix of the driver images of RELEASE (default: the newest) for OS: of rhel9.4 rhel9, before v26.7 rhel9.4.
    Also the suffix of GDS, GDRCopy and vGPU manager images."""
    name, version = os_id(os)
    release = release or releases.latest()
    rule = next(rule for rule in _facts()["tags"] if _versions.satisfies(release, rule["when"]))
    major = version.partition(".")[0]
    threshold = rule["major_from"].get(name)
    return f"{name}{major}" if threshold is not None and (whole(major) or 0) >= threshold else os


def kernels(os: str) -> tuple[str, ...]:
    """The kernel series ("6.8") that the support table lists for OS; empty where it lists none."""
    return tuple(_facts()["kernels"].get(os, ()))


def subscription(name: str) -> Sequence[Mapping[str, str]]:
    """The files by which nodes of the system with the ID NAME may fetch packages: path, hostPath type, target."""
    return _facts()["subscriptions"].get(name, ())  # type: ignore[no-any-return]


def openshift(version: str) -> Mapping[str, str]:
    """What OpenShift VERSION ("4.19.3") brings: `kubernetes`, `os` and `rhel`; empty where it is not known."""
    return _facts()["openshift"].get(".".join(version.split(".")[:2]), {})  # type: ignore[no-any-return]


def os_family(os: str, release: str | None = None) -> OsFamily | None:
    """How OS configures packages, as RELEASE (default: the newest) knows it; None where it doesn't. Without a family,
    driver.repoConfig and driver.certConfig are an error of the operator."""
    name, _ = os_id(os)
    facts = _facts()["ids"].get(name, {})
    family = facts.get("packages")
    if family is None or _versions.key(release or releases.latest()) < _versions.key(facts.get("since", "v0")):
        return None
    directories = _facts()["package_directories"][family]
    return _data.made(OsFamily, directories, name=family)


@functools.lru_cache(maxsize=256)
def nearest_os(os: str) -> list[str]:
    """Names of systems that are like OS, the nearest first."""
    return nearest(os, [*os_names(), "rhcos4.18", "sles15.6", "debian12", "ol9.4", "amzn2023"])
