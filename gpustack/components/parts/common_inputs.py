"""Inputs that many components share: the base class, what holds for every DaemonSet, and image references."""

import functools
import hashlib
import re
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from ...api import keys
from ...catalog.releases import release
from ...catalog.traits import Traits
from ...cluster.resolve import Cluster, resolve
from ...model import Body, Finding, FindingsError
from ...policy.language import images
from ...policy.language.carried import Carried
from ...policy.language.daemonsets import DaemonSets
from ...policy.language.spec import ClusterPolicySpec
from ..refusals import refused

Pairs = tuple[tuple[str, str], ...]
Runtime = Literal["containerd", "crio", "docker"]
DEFAULT_DRIVER_DIR = "/run/nvidia/driver"
DEFAULT_INSTALL_DIR = "/usr/local/nvidia"
GUARDED = {"gpustack.dev/guarded": "true"}
"""The label of ConfigMaps that only who applies the render may write (guards.py)."""
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""What the API server takes for the name of a volume; that of a ConfigMap may be longer and have dots."""


class Inputs(BaseModel):
    """Base of all inputs: frozen, closed, and named by their content."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def digest(self) -> str:
        """Names these inputs: equal inputs have equal digests, in any process."""
        return hashlib.sha256(f"{type(self).__name__}:{self.model_dump_json()}".encode()).hexdigest()


class Whole(Inputs):
    """Objects that follow from the policy alone, whole, with what the API server would fill in."""

    bodies: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, bodies: Iterable[Body]) -> Self | None:
        """BODIES, None for no object."""
        return cls(bodies=made) if (made := tuple(bodies)) else None


class OfRender(Inputs):
    """Inputs of a component that is about what all others render."""

    def seeing(self, rendered: Sequence[Body]) -> Self:
        """These inputs, with what is RENDERED."""
        raise NotImplementedError


class Validation(Inputs):
    """What the `*-validation` init containers take from the policy's validator section (operator.md 5.3)."""

    image: str
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()
    resources: dict[str, Any] | None = None
    driver_env: Pairs = ()
    toolkit_env: Pairs = ()


class Common(Inputs):
    """What steers every DaemonSet: daemonsets.*, hostPaths.*, the runtime, CDI and the validator's image."""

    namespace: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    priority_class: str = "system-node-critical"
    tolerations: tuple[dict[str, Any], ...] = ({"key": keys.GPU, "operator": "Exists", "effect": "NoSchedule"},)
    security_context: dict[str, Any] | None = None
    on_delete: bool = False
    max_unavailable: int | str = 1
    root_fs: str = "/"
    driver_dir: str = DEFAULT_DRIVER_DIR
    install_dir: str = DEFAULT_INSTALL_DIR
    runtime: Runtime = "containerd"
    runtime_class: str = "nvidia"
    cdi: bool = True
    nri: bool = False
    openshift: bool = False
    driver: bool = True
    """Whether this render brings the driver, so that others must wait for its pod."""
    toolkit: bool = True
    carried: tuple[Carried, ...] = ()
    """What DaemonSets keep of what they were."""
    traits: Traits = Traits()
    """How objects of the release differ from those of others."""
    validation: Validation

    @property
    def operand_runtime_class(self) -> str:
        """The RuntimeClass of pods that use a GPU, "" with NRI and on CRI-O without CDI (operator.md 5.5)."""
        return "" if self.nri or (self.runtime == "crio" and not self.cdi) else self.runtime_class

    @classmethod
    @functools.lru_cache(maxsize=1)  # each operand asks
    def from_cluster(cls, cluster: Cluster) -> Self:
        paths = cluster.spec.hostPaths
        return cls.of(cluster, cluster.spec.daemonsets, paths.driverInstallDir, paths.rootFS)

    @classmethod
    def of(cls, cluster: Cluster, sets: DaemonSets, driver_dir: str, root_fs: str) -> Self:
        """What steers the DaemonSets of CLUSTER that SETS are about, where the driver and the node's root are there."""
        spec, validator = cluster.spec, cluster.spec.validator
        rolling = sets.rollingUpdate.maxUnavailable if sets.rollingUpdate else None
        return cls(
            namespace=spec.cluster.namespace,
            labels=sets.labels,
            annotations=sets.annotations,
            priority_class=sets.priorityClassName,
            **({"tolerations": dumped(sets.tolerations)} if sets.tolerations else {}),
            security_context=dump(sets.podSecurityContext),
            on_delete=sets.updateStrategy == "OnDelete",
            max_unavailable=rolling if rolling and rolling.endswith("%") else int(rolling or 1),
            root_fs=root_fs,
            driver_dir=driver_dir,
            install_dir=spec.toolkit.installDir,
            runtime="crio" if cluster.engine == "cri-o" else cluster.engine,
            runtime_class=cluster.runtime_class,
            cdi=bool(spec.cdi.enabled),
            nri=spec.cdi.nriPluginEnabled,
            openshift=cluster.platform.security_constraints,
            driver=bool(cluster.container_drivers),
            toolkit=bool(spec.toolkit.enabled),
            carried=tuple(spec.carried),
            traits=release(spec.release).traits,
            validation=Validation(
                image=image(spec, validator, "validator"),
                pull_policy=validator.imagePullPolicy or "",
                pull_secrets=tuple(validator.imagePullSecrets or ()),
                resources=dump(validator.resources),
                driver_env=pairs(validator.driver and validator.driver.env),
                toolkit_env=pairs(validator.toolkit and validator.toolkit.env),
            ),
        )


class OperandInputs(Inputs):
    """Inputs of a component whose main container runs one image of the policy."""

    common: Common
    image: str
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    resources: dict[str, Any] | None = None
    env: Pairs = ()
    args: tuple[str, ...] = ()
    host_network: bool = False


def operand(spec: ClusterPolicySpec, section: Any, path: str, *, suffix: str = "") -> dict[str, Any]:
    """The fields of `OperandInputs` from the policy SECTION at PATH ("dcgmExporter"); SUFFIX as in `image`."""
    return {
        "common": Common.from_cluster(resolve(spec)),
        "image": image(spec, section, path, suffix=suffix),
        "pull_policy": pull_policy(section.imagePullPolicy),
        "pull_secrets": tuple(section.imagePullSecrets or ()),
        "resources": dump(getattr(section, "resources", None)),
        "env": pairs(getattr(section, "env", None)),
        "args": tuple(getattr(section, "args", None) or ()),
        "host_network": bool(getattr(section, "hostNetwork", False)),
    }


def image(spec: ClusterPolicySpec, section: Any, path: str, *, suffix: str = "", at: Callable[[str], str] = str) -> str:
    """The image reference of the policy SECTION at PATH, by the operator's rule (operator.md 4).

    `image` alone is a whole reference, with a tag or a digest: the operator takes one without, and runtimes pull
    :latest, which is another image every time. Otherwise repository, image and version must all be set. A version that
    is a digest is joined with "@". SUFFIX (an OS tag) goes behind a tag, never behind a digest. `cluster.registryMap`
    rewrites the longest registry prefix that matches, and `cluster.imageDigests` pins what comes out. AT says where in
    the policy a field of PATH stands, if not there.

    Raises FindingsError where a part is missing, and where `image` is a reference of its own beside the other two: the
    operator would ask the kubelet for an image that can't exist."""
    repository, name, version = section.repository or "", section.image or "", section.version or ""
    reference = images.composed(repository, name, version)
    if reference is None and name and not repository and not version:
        raise FindingsError(refused("GPU040", at(f"{path}.image"), "untagged", section=path, name=name))
    if reference is None:
        parts = {"repository": repository, "image": name, "version": version}
        lacks = [field for field, value in parts.items() if not value]
        place, whole, missing = at(f"{path}.{lacks[0]}"), at(f"{path}.image"), " and no ".join(lacks)
        raise FindingsError(refused("GPU040", place, "incomplete", section=path, missing=missing, image=whole))
    if repository and (images.is_tagged(name) or (images.registry(name) and repository in _published(spec))):
        raise FindingsError(_twice(name, reference, path, at))
    if suffix and "sha256:" not in reference:
        reference += f"-{suffix}"
    return served(spec, reference)


def served(spec: ClusterPolicySpec, reference: str) -> str:
    """What manifests name for REFERENCE, which the policy names: its mirror, pinned to the digest that there is."""
    return images.pinned(images.mirrored(reference, spec.cluster.registryMap), spec.cluster.imageDigests)


def _published(spec: ClusterPolicySpec) -> set[str | None]:
    """The repositories of the release's images. There is no other registry's path below them, as on a mirror."""
    known = release(spec.release)
    return {known.nfd_image.repository, *(each.repository for each in known.images.values())}


def _twice(name: str, reference: str, path: str, at: Callable[[str], str]) -> Finding:
    """The finding for the image NAME, which has a registry or a tag of its own beside repository and version."""
    before, _, last = name.rpartition("/")
    tag = re.split("[:@]", last, maxsplit=1)[1] if images.is_tagged(name) else ""
    parts = {"repository": before, "image": re.split("[:@]", last)[0], "version": tag}
    split = ", ".join(f"{field}: {value}" for field, value in parts.items() if value)
    return refused(
        "GPU045",
        at(f"{path}.image"),
        section=path,
        part="version" if tag else "registry",
        reference=reference,
        split=split,
    )


def pull_policy(value: str | None) -> str:
    """The imagePullPolicy of a main container: empty means IfNotPresent (operator.md 4)."""
    return value or "IfNotPresent"


def prometheus_rules(spec: ClusterPolicySpec) -> bool:
    """Whether exporters bring rules for Prometheus: on OpenShift, unless nothing monitors there (operator.md 1.4)."""
    return resolve(spec).platform.own_monitoring and bool(spec.cluster.monitoring)


def owned_crds(spec: ClusterPolicySpec, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the CRDs NAMES that this render owns: all but what `cluster.crds` expects from elsewhere."""
    return tuple(name for name in names if spec.cluster.crds.get(name) != "expect")


def dump(section: BaseModel | None) -> dict[str, Any] | None:
    """A policy section as plain data, without what is absent; None for an absent or empty one."""
    return (section.model_dump(exclude_none=True) or None) if section is not None else None


def dumped(sections: Any) -> tuple[dict[str, Any], ...]:
    """Policy sections as plain data."""
    return tuple(section.model_dump(exclude_none=True) for section in sections or ())


def pairs(env: Any) -> Pairs:
    """A policy's env list as (name, value) pairs; an absent value is an empty one, as in the API."""
    return tuple((entry.name, entry.value or "") for entry in env or ())


def named_after(config_map: str, otherwise: str, taken: Container[str]) -> str:
    """The name of CONFIG_MAP's volume: its own, as the operator has it, so that a pod which runs stays as it is.

    OTHERWISE is for a ConfigMap after which no volume can be called, and for one that is called like a volume that is
    TAKEN: the API server refuses the operator's DaemonSet there."""
    return config_map if LABEL.fullmatch(config_map) and config_map not in taken else otherwise
