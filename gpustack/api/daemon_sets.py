"""DaemonSets and their revisions, as slim as objects.py says: which driver a node is to have, and which it has."""

from __future__ import annotations

from typing import Any

import msgspec

from .objects import Metadata, Object, Slim
from .pods import PodSpec


class Toleration(Slim, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class DaemonPodSpec(PodSpec):
    """A DaemonSet's pod, with what decides on which nodes it runs."""

    tolerations: list[Toleration] = []
    affinity: dict[str, Any] | None = None


class DaemonTemplate(Slim, kw_only=True):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: DaemonPodSpec = msgspec.field(default_factory=DaemonPodSpec)


class DaemonSetSpec(Slim, kw_only=True):
    template: DaemonTemplate = msgspec.field(default_factory=DaemonTemplate)


class DaemonSetStatus(Slim, kw_only=True):
    observedGeneration: int = 0


class DaemonSet(Object, kw_only=True):
    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = msgspec.field(default_factory=DaemonSetStatus)


class ControllerRevision(Object, kw_only=True):
    """A remembered template of a DaemonSet. Its hash is the value of the label that its pods have."""

    revision: int = 0
