"""Platforms: what EKS, GKE, k3s, Talos and the rest change about a release's defaults, and what they ask for.

One file per platform in data/platforms/. A choice that changes the defaults (who installs the driver, who runs the
device plugin) is a platform of its own with a `base`, named base plus choice: aks-ubuntu and
aks-ubuntu-managed-driver. It adds to the lists of its base, except `uncertain` and `node_pool.options`, which it may
state anew.

`presets` is a list of changes to the spec, applied in order::

    presets:
    - defaults: {driver: {enabled: false}}           # always
    - when: {release: ">=v25.10", kubernetes: ">=1.33"}  # all of these must hold; the syntax is in _versions.py
      defaults: {toolkit: {env: [{name: RUNTIME_CONFIG_SOURCE, value: file}]}}

Settings that the sources are not sure of aren't presets but stand in `uncertain`, in words.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpustack.catalog import _data, _versions
from gpustack.catalog._lookup import UnknownName, nearest

GENERIC, OPENSHIFT = "generic", "openshift"
"""The platform that changes nothing, for nothing is known of the cluster; that of the language's section openshift."""
DEFAULT_KUBELET_ROOT = "/var/lib/kubelet"
DEFAULT_RUNTIME_FOLDERS = ("/etc/containerd", "/run/containerd")
"""Where files and socket of containerd are on platforms that say nothing else."""


class UnknownPlatform(UnknownName):
    what = "platform"


@dataclass(frozen=True, slots=True)
class Containerd:
    """Paths on the host of a distribution's containerd. `drop_in` is None where it has no drop-in file of its own."""

    config: str
    socket: str
    drop_in: str | None = None


DEFAULT_CONTAINERD = Containerd(
    "/etc/containerd/config.toml", "/run/containerd/containerd.sock", "/etc/containerd/conf.d/99-nvidia.toml"
)
"""Those that the toolkit is told of where nobody says anything (operator.md 7.2)."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What the node image of a platform has: WHAT says it in words; not `sure` where the sources are not."""

    sure: bool
    what: str


@dataclass(frozen=True, slots=True)
class OwnPlugin:
    """A device plugin that the platform runs on nodes without the label UNLESS=true: WHOSE, and what that does ALSO."""

    whose: str
    unless: str
    also: str


@dataclass(frozen=True, slots=True)
class Listed:
    """The last release line whose support table has the platform, under NAME; ASK who supports it since."""

    name: str
    until: str
    ask: str


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform.

    `confidence` says how well the preset is known: documented, issue (from public threads) or inferred. `kubelet_root`
    sets nothing: while `kubelet_root_certain` is false, hostPaths.kubeletRootDir is the user's to decide. `namespace`
    is where the platform's own catalogue installs the stack, and so the default there. `kernel_flavor` is the suffix
    that precompiled Ubuntu driver images need there. `brings` says by section of the policy (and fabric_manager) what
    the node image has already, `systems` the os-release IDs of that image; none where any may do. `runtime_folders`
    hold all files of containerd, and `config_owner` is who else writes its configuration; with `own_template` a
    template beside it replaces what the platform would write. `machines` says what its nodes are, "" where they may be
    either. With `tolerates_by_name` a pod tolerates taints that are called like a resource it asks for.
    `kubernetes_max` is the newest minor version by release line, where the platform is documented for less than others.
    `runtime_classes` are the RuntimeClasses that the platform makes itself. `quota` is the ResourceQuota without which
    it admits no system-critical pod in a namespace.

    What OpenShift has of its own: with `security_constraints` accounts are given what their pods may do by
    SecurityContextConstraints; `own_monitoring`: its Prometheus scrapes the namespaces that it trusts; `own_discovery`:
    an operator of its catalogue runs node feature discovery; `os_images`: nodes run images of a system by their own
    versions, which MachineConfigs change and driver toolkits are made for; `hyperconverged`: that operator holds
    KubeVirt's configuration; `own_versions`: it stands in support tables by its own versions."""

    name: str
    title: str
    confidence: str
    base: str | None = None
    caveats: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    host_needs: tuple[str, ...] = ()
    kubelet_root: str = DEFAULT_KUBELET_ROOT
    kubelet_root_certain: bool = True
    psa_required: bool = False
    runtime_classes: tuple[str, ...] = ()
    quota: Mapping[str, Any] = field(default_factory=dict)
    node_pool_labels: Mapping[str, str] = field(default_factory=dict)
    node_pool_options: tuple[str, ...] = ()
    containerd: Containerd | None = None
    container_runtime: str | None = None
    kernel_flavor: str | None = None
    namespace: str | None = None
    operator_min: str | None = None
    brings: Mapping[str, Brought] = field(default_factory=dict)
    systems: tuple[str, ...] = ()
    runtime_folders: tuple[str, ...] = DEFAULT_RUNTIME_FOLDERS
    config_owner: str | None = None
    own_template: bool = False
    machines: Literal["virtual", "metal", ""] = ""
    security_constraints: bool = False
    own_monitoring: bool = False
    own_discovery: bool = False
    os_images: bool = False
    hyperconverged: bool = False
    own_versions: bool = False
    tolerates_by_name: bool = False
    own_plugin: OwnPlugin | None = None
    listed: Listed | None = None
    kubernetes_max: Mapping[str, str] = field(default_factory=dict)
    presets: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


def of(name: str | None, *, openshift: bool) -> Platform:
    """The platform of a cluster whose policy calls it NAME. With OPENSHIFT the policy has a section of that name, and
    means OpenShift where NAME says otherwise or nothing."""
    known = platform(name or (OPENSHIFT if openshift else GENERIC))
    return platform(OPENSHIFT) if openshift and not known.own_versions else known


def names() -> list[str]:
    """All platforms, in alphabetical order."""
    return list(_data.listing("platforms"))


@functools.cache
def platform(name: str) -> Platform:
    """The platform called NAME; UnknownPlatform names the nearest ones."""
    if name not in _data.listing("platforms"):
        raise UnknownPlatform(name, nearest(name, names()))
    data = _whole(name)
    root = data.get("kubelet_root", {"path": DEFAULT_KUBELET_ROOT, "certain": True})
    pool, containerd = data.get("node_pool", {}), data.get("containerd", {})
    return _data.made(
        Platform,
        data,
        name=name,
        kubelet_root=root["path"],
        kubelet_root_certain=root["certain"],
        node_pool_labels=pool.get("labels", {}),
        node_pool_options=tuple(pool.get("options", ())),
        containerd=_data.made(Containerd, containerd) if containerd else None,
        brings={name: Brought(**facts) for name, facts in data.get("brings", {}).items() if facts},
        runtime_folders=tuple(containerd.get("folders", DEFAULT_RUNTIME_FOLDERS)),
        own_template=containerd.get("own_template", False),
        own_plugin=OwnPlugin(**data["own_plugin"]) if "own_plugin" in data else None,
        listed=Listed(**data["listed"]) if "listed" in data else None,
    )


def defaults(name: str, release: str, kubernetes_minor: str) -> dict[str, Any]:
    """What platform NAME changes about the defaults of RELEASE on Kubernetes KUBERNETES_MINOR ("1.33"). A fresh spec
    tree, a layer between the release's defaults and the user's; {} where the platform changes nothing."""
    have = {"release": release, "kubernetes": kubernetes_minor}
    known = platform(name)
    named = {"namespace": known.namespace, "containerRuntime": known.container_runtime}
    cluster = {name: value for name, value in named.items() if value}
    tree: dict[str, Any] = {"cluster": cluster} if cluster else {}
    for preset in known.presets:
        if all(_versions.satisfies(have[what], condition) for what, condition in preset.get("when", {}).items()):
            _data.merge(tree, preset["defaults"])
    return tree


def _whole(name: str) -> dict[str, Any]:
    """The data of platform NAME, with those of its base."""
    own: dict[str, Any] = _data.load(f"platforms/{name}")
    if "base" not in own:
        return own
    data: dict[str, Any] = _data.copy(_whole(own["base"]))
    joined = {key: data.get(key, []) + own[key] for key in ("caveats", "host_needs", "presets") if key in own}
    return _data.merge(data, own | joined)
