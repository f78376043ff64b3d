"""What the sections of components have in common: image, arguments, environment, resources.

Each class adds what the operator's API has for that kind of component and no more, so that a field without effect
does not exist. (GDS and GDRCopy run inside the driver's pod, so they have no resources; a driver manager has no
arguments.)
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from gpustack.catalog.environment import paths_in
from gpustack.model import has_credentials, masked

from .base import Section, items
from .forms import refuse_as, refuse_at
from .types import (
    ENV_NAME,
    HOST_PATH,
    AtLeast0,
    AtLeast1,
    DnsSubdomain,
    ImageName,
    ImageRepository,
    ImageTagOrDigest,
    Quantities,
    Text,
)


def _without_password(value: str) -> str:
    if has_credentials(value):
        raise refuse_as("env_value", "password", value=repr(masked(value)))
    return value


class EnvVar(Section):
    """One environment variable of a container."""

    name: Annotated[str, ENV_NAME]
    """Name of the variable. Layers merge lists of variables by it."""
    value: Annotated[Text, AfterValidator(_without_password)] | None = None
    """Its value, always text: write numbers and true or false in quotes. Absent is the empty text."""

    def model_post_init(self, _: Any) -> None:
        for path in paths_in(self.name, self.value or ""):
            try:
                HOST_PATH.check(path)
            except PydanticCustomError as error:
                raise refuse_at(("value",), error, self.value) from None


class ResourceRequirements(Section):
    """CPU, memory and other resources of a container. Given at all, it replaces the built-in requests and limits."""

    limits: Quantities | None = None
    """The most that the container may use, by resource name: `{cpu: 500m, memory: 1Gi}`. Absent: no limit."""
    requests: Quantities | None = None
    """What the scheduler sets aside for the container, by resource name. Absent: what `limits` says."""


class Probe(Section):
    """Timing of a probe; what it runs is fixed."""

    initialDelaySeconds: AtLeast0 | None = None
    """Seconds from the start of the container to the first check. Absent: 0."""
    periodSeconds: AtLeast1 | None = None
    """Seconds between checks. Absent: 10."""
    timeoutSeconds: AtLeast1 | None = None
    """Seconds after which a check counts as failed. Absent: 1."""
    failureThreshold: AtLeast1 | None = None
    """Failures in a row after which the container is restarted or counts as not ready. Absent: 3."""
    successThreshold: AtLeast1 | None = None
    """Successes in a row that are needed after a failure. Absent: 1."""


def _one(value: int) -> int:
    if value != 1:
        raise refuse_as("success_threshold", "other")
    return value


class RestartingProbe(Probe):
    """Timing of a startup or liveness probe: the container restarts when it fails. What it runs is fixed."""

    successThreshold: (
        Annotated[int, AfterValidator(_one), Field(json_schema_extra={"minimum": 1, "maximum": 1})] | None
    ) = None
    """Successes in a row that are needed after a failure. Absent: 1, the only value that the API server takes."""


class ImageSource(Section):
    """Where an image comes from. Repository, name and version are all set, or `image` alone is a whole reference."""

    repository: ImageRepository | None = None
    """Registry and path before the image name, such as `nvcr.io/nvidia`. Absent: that of the release."""
    image: ImageName | None = None
    """Name of the image, or a whole reference with path and tag or digest, which stands for `repository` and `version`
    too. Absent: that of the release."""
    version: ImageTagOrDigest | None = None
    """Tag or `sha256:` digest of the image, in quotes where it looks like a number. Absent: that of the release."""
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never", ""] | None = None
    """When the kubelet pulls the image. Absent or empty: IfNotPresent."""
    imagePullSecrets: list[DnsSubdomain] = items()
    """Names of Secrets in the operator's namespace that hold credentials for the registry. Absent: none."""


class DriverManager(ImageSource):
    """The init container that clears a node of its old driver before the new one loads."""

    env: list[EnvVar] = items()
    """Environment variables; they replace built-in ones of the same name. Absent: the built-in ones."""


class Component(ImageSource):
    """A container that runs beside others in a pod."""

    args: list[Text] = items()
    """Arguments of the main container. They replace the built-in ones, the entrypoint script of some included. Absent:
    the built-in ones."""
    env: list[EnvVar] = items()
    """Variables of the main container; they replace built-in ones of the same name. Absent: the built-in ones."""


class SideModule(Component):
    """A kernel module that is built in the driver's pod."""

    enabled: bool = False
    """Whether the module is built and loaded. Absent: the default of the release, false."""


class Workload(Component):
    """A pod of its own, without a switch."""

    resources: ResourceRequirements | None = None
    """CPU and memory of the containers. Absent: the built-in ones; most components have none."""
    hostNetwork: bool | None = None
    """Whether the pod uses the node's network instead of its own. Absent: false."""


class Operand(Workload):
    """A pod of its own on every node that takes part."""

    hostNetwork: bool = False

    enabled: bool = False
    """Whether the component is installed. Absent: the default of the release and the platform."""
