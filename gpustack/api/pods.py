"""Pods and DaemonSets, as slim as objects.py says: what tells which pod uses a GPU, and which driver a node has."""

from typing import Any

import msgspec

from .objects import Condition, Metadata, Object, Slim, Time

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of pods that stand for static ones."""


class EnvVar(Slim, kw_only=True):
    """An environment variable with a literal value."""

    name: str = ""
    value: str = ""


class Requirements(Slim, kw_only=True):
    """Resources of a container; numbers are quantities as text."""

    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}


class Container(Slim, kw_only=True):
    name: str = ""
    env: list[EnvVar] = []
    resources: Requirements = msgspec.field(default_factory=Requirements)


class ConfigMapVolume(Slim, kw_only=True):
    name: str = ""


class Volume(Slim, kw_only=True):
    """A volume; only whether it is an emptyDir or a ConfigMap matters."""

    name: str = ""
    emptyDir: dict[str, Any] | None = None
    configMap: ConfigMapVolume | None = None


class PodResourceClaim(Slim, kw_only=True):
    """A claim that a pod refers to: its own name, or the template that a claim is made from."""

    name: str = ""
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodSpec(Slim, kw_only=True):
    nodeName: str = ""
    runtimeClassName: str = ""
    nodeSelector: dict[str, str] = {}
    containers: list[Container] = []
    initContainers: list[Container] = []
    volumes: list[Volume] = []
    resourceClaims: list[PodResourceClaim] = []
    terminationGracePeriodSeconds: int | None = None
    """How long it may take to end; None is the API server's default, 30."""


class Running(Slim, kw_only=True):
    startedAt: Time | None = None


class Waiting(Slim, kw_only=True):
    """A container that waits, with the reason: CrashLoopBackOff, ImagePullBackOff."""

    reason: str = ""
    message: str = ""


class Terminated(Slim, kw_only=True):
    """A container that has ended; what it said, where it wrote that down."""

    exitCode: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(Slim, kw_only=True):
    running: Running | None = None
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Slim, kw_only=True):
    name: str = ""
    ready: bool = False
    restartCount: int = 0
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    lastState: ContainerState = msgspec.field(default_factory=ContainerState)


class ClaimStatus(Slim, kw_only=True):
    """The claim that was made for a pod's claim NAME."""

    name: str = ""
    resourceClaimName: str | None = None


class PodStatus(Slim, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    containerStatuses: list[ContainerStatus] = []
    initContainerStatuses: list[ContainerStatus] = []
    resourceClaimStatuses: list[ClaimStatus] = []
    extendedResourceClaimStatus: ClaimStatus | None = None
    """The claim that the scheduler made for resources that the pod asks for by the name of a DeviceClass."""


class Pod(Object, kw_only=True):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def key(self) -> str:
        """namespace/name, as messages name it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def terminating(self) -> bool:
        return self.metadata.deletionTimestamp is not None

    @property
    def finished(self) -> bool:
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def ready(self) -> bool:
        """Whether it runs with every container ready."""
        return (
            self.status.phase == "Running"
            and bool(self.status.containerStatuses)
            and all(each.ready for each in self.status.containerStatuses)
        )

    @property
    def claims(self) -> list[str]:
        """Names of the ResourceClaims that it has, in its namespace."""
        made = [each.resourceClaimName for each in self.spec.resourceClaims]
        made += [each.resourceClaimName for each in self.status.resourceClaimStatuses]
        if (of := self.status.extendedResourceClaimStatus) is not None:
            made.append(of.resourceClaimName)
        return [name for name in made if name]

    @property
    def mirror(self) -> bool:
        """Whether it stands for a static pod, which the API can't remove."""
        return MIRROR in self.metadata.annotations


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
