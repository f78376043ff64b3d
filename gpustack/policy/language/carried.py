"""`carried`: what a DaemonSet that was there before keeps of what it was, so that its pods go on running.

A pod template equals the operator's but for what can't be: texts of scripts, which are NVIDIA's and stand nowhere here,
containers that gpustack adds, and names that end in a hash of an object which is gone. Whoever takes a cluster over
carries these from its live DaemonSets into its policy, once; the render is then the template that runs.

A name is kept as long as it stands here, because a DaemonSet of another name is another DaemonSet, and without the
first all its drivers stop. Everything else is kept while the template is the one that was taken over: when it changes,
its pods are replaced anyway, and what is carried has no purpose any more.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from .base import Section, items, mapping
from .daemonsets import Toleration
from .forms import absent, form, refuse_as
from .types import DNS_SUBDOMAIN, DnsLabel, DnsSubdomain, Release, Text

if TYPE_CHECKING:
    from .spec import ClusterPolicySpec

NAME = dataclasses.replace(DNS_SUBDOMAIN, longest=63)
"""It is the value of a label too."""


class CarriedText(Section):
    """A text of a pod template, word for word."""

    release: Release | None = None
    """Release of the GPU operator that has this text at this place, which is checked by its digest. Absent: nobody says
    where it is from, and a review has to read it."""
    text: Text
    """The text. It runs on nodes, mostly as root."""


Texts = Annotated[dict[Annotated[str, form("template_place")], CarriedText], BeforeValidator(absent)]


class Carried(Section):
    """What one DaemonSet keeps of what it was."""

    name: DnsSubdomain
    """What gpustack calls the DaemonSet by itself."""
    origin: DnsSubdomain
    """The ControllerRevision in the cluster that this was taken from, such as `nvidia-driver-daemonset-7d8f6c5b9`."""
    template: Annotated[str, form("template_hash")] | None = None
    """Hash of the pod template that this makes of the render, as in the annotation `gpustack.dev/revision`. When the
    template becomes another, its pods are replaced anyway, and only the name is kept. Absent: all is kept until it is
    taken out."""
    called: Annotated[str, NAME] | None = None
    """What the DaemonSet of one of `drivers` is called in the cluster. Absent: what gpustack calls it."""
    without: list[DnsLabel] = items()
    """Init containers of gpustack that its pods don't have. Absent: none."""
    texts: Texts = mapping()
    """Texts in the place of gpustack's, by where they stand: `initContainers` or `containers`, the container's name,
    `args` or `command`, and which of them from 0 up, joined by dots. Absent: none."""
    tolerations: list[Toleration] | None = None
    """Tolerations in the place of those that the policy gives. Absent: these."""
    digest: Annotated[str, form("driver_digest")] | None = None
    """DRIVER_CONFIG_DIGEST of a driver, by which it tells whether it is installed. Absent: what gpustack computes."""
    volumes: list[DnsLabel] = items()
    """Names of volumes in their order; others follow. Absent: the operator's order."""


def one_each(carried: list[Carried]) -> list[Carried]:
    """CARRIED, or the refusal of a DaemonSet that stands in it twice, or that two are to be."""
    for field, names in (
        ("name", [each.name for each in carried]),
        ("called", [each.called for each in carried if each.called]),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                raise refuse_as("carried_twice", "same", field=field, name=name)
    return carried


def called(spec: ClusterPolicySpec, name: str) -> str:
    """What the DaemonSet is called that gpustack by itself calls NAME."""
    return next((each.called for each in spec.carried if each.name == name and each.called), name)


def words(pod: dict[str, Any], at: str) -> tuple[list[str], int] | None:
    """The list of words of the PodSpec POD in which the text AT stands, and its position; None where there is none."""
    kind, name, field, position = at.split(".")
    container = next((each for each in pod.get(kind, []) if each["name"] == name), None)
    texts: list[str] = container.get(field, []) if container else []
    return (texts, int(position)) if int(position) < len(texts) else None


def misfits(carried: Carried, pod: dict[str, Any]) -> list[tuple[str, str]]:
    """What of CARRIED has no place in the PodSpec POD: the field of it, and what is missing."""
    names, volumes = ({each["name"] for each in pod.get(kind, [])} for kind in ("initContainers", "volumes"))
    missing = [
        (f"without[{index}]", f"no init container {name}")
        for index, name in enumerate(carried.without)
        if name not in names or not name.startswith("gpustack-")
    ]
    missing += [(f'texts["{at}"]', f"no text at {at}") for at in carried.texts if words(pod, at) is None]
    placed = enumerate(carried.volumes)
    missing += [(f"volumes[{index}]", f"no volume {name}") for index, name in placed if name not in volumes]
    if carried.digest and not digests(pod):
        missing.append(("digest", "no DRIVER_CONFIG_DIGEST, so it is not a driver that compares one"))
    return missing


def digests(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """The variables of the PodSpec POD that hold a driver's digest."""
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    return [entry for each in containers for entry in each.get("env", []) if entry["name"] == "DRIVER_CONFIG_DIGEST"]
