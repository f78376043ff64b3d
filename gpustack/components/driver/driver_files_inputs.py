"""Files that the driver's pod takes from ConfigMaps, Secrets and the node, and where its containers find them.

Each key of a ConfigMap is mounted as a file of its own (subPath), beside what the image has in that folder. So the keys
must be known while rendering: the operator reads the ConfigMap in the cluster, here they come from the policy.

What comes in which order, and what a volume is called, is the operator's. Its two renderers have an order each.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

from ...catalog.oses import OsFamily, os_family, subscription
from ...catalog.releases import release
from ...model import FindingsError
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs, named_after
from ..refusals import refused
from .driver_pools_inputs import System
from .driver_view import DriverView

Part = Literal["driver", "peermem", "fs", "gdrcopy"]
"""The containers of a driver's pod that build or load kernel modules."""

BUILDERS: tuple[Part, ...] = ("driver", "fs", "gdrcopy")
"""Those that install packages, and so need package sources and certificates."""


Use = Literal["licence", "topology", "modules", "suse-modules", "repositories", "certificates", "subscription"]
"""What files are for."""

SECTION: tuple[Use, ...] = get_args(Use)
"""The order in which the operator appends them to a driver of the section `driver`."""
DRIVERS: tuple[Use, ...] = (
    *("repositories", "certificates", "subscription"),
    *("suse-modules", "modules", "licence", "topology"),
)
"""Its order for one of `drivers`."""

TAKEN = frozenset(
    """
    run-nvidia var-log dev-log host-os-release cgroup vfio run-nvidia-fabricmanager run-nvidia-topologyd
    mlnx-ofed-usr-src run-mellanox-drivers run-nvidia-validations host-root host-sys firmware-search-path
    host-sys-devices-system sysfs-memory-online nv-firmware driver-startup-probe-script licensing-config
    topology-config lib-modules subscription-config-0 subscription-config-1 subscription-config-2
    shared-nvidia-driver-toolkit gpu-operator-trusted-ca
    """.split()
)
"""What the volumes of a driver's or a vGPU manager's pod are called, less those that are called after a ConfigMap."""


class Files(Inputs):
    """Keys of a ConfigMap or Secret, each a read-only file; `paths` says where the containers of `parts` find each."""

    use: Use
    volume: str
    kind: Literal["ConfigMap", "Secret"]
    name: str
    paths: dict[str, str]
    parts: tuple[Part, ...] = ("driver",)


class HostFile(Inputs):
    """A file or folder of the node, read-only at `target` in the containers of `parts`. `kind` is its hostPath type."""

    use: Use = "subscription"
    volume: str
    path: str
    kind: str
    target: str
    parts: tuple[Part, ...] = ("driver",)


def files(view: DriverView, os: System) -> tuple[Files, ...]:
    """What the policy's ConfigMaps and Secrets bring into a driver's pod on OS (operator.md 7.1).

    A precompiled driver installs no packages, so it gets neither package sources nor certificates. Raises
    FindingsError where the keys of a ConfigMap, or the folder on OS, are not known."""
    driver = view.driver
    brought = [*licensing(view), *topology(view)]
    if driver.kernelModuleConfig.name:
        parameters = Mounted("modules", "kernel-module-config", "/drivers", ("driver", "peermem"))
        brought.append(
            keyed(view.spec, driver.kernelModuleConfig.name, view.at("driver.kernelModuleConfig.name"), parameters)
        )
    return tuple(brought) if driver.usePrecompiled else (*brought, *packages(view, os))


def packages(view: DriverView, os: System) -> Iterator[Files]:
    """Package sources and certificates, for a driver that is built on OS."""
    repo, cert = view.driver.repoConfig.configMapName, view.driver.certConfig.name
    if repo:
        path = view.at("driver.repoConfig.configMapName")
        where = family(view.spec, os, path, "package sources").repositories
        yield keyed(view.spec, repo, path, Mounted("repositories", "repo-config", where, BUILDERS))
    if cert:
        path = view.at("driver.certConfig.name")
        where = family(view.spec, os, path, "certificates").certificates
        yield keyed(view.spec, cert, path, Mounted("certificates", "cert-config", where, BUILDERS))


def topology(view: DriverView) -> list[Files]:
    """What the daemon of a virtual topology is told."""
    name = view.driver.virtualTopology.config
    if not name:
        return []
    paths = {"nvidia-topologyd.conf": "/etc/nvidia/nvidia-topologyd.conf"}
    return [Files(use="topology", volume="topology-config", kind="ConfigMap", name=name, paths=paths)]


def licensing(view: DriverView) -> list[Files]:
    """The licence of a vGPU guest: a Secret wins over a ConfigMap, an empty name counts as absent (operator.md 7.1)."""
    config = view.driver.licensingConfig
    name = config.secretName or config.configMapName
    if not name:
        return []
    paths = {"gridd.conf": "/drivers/gridd.conf"}
    if config.nlsEnabled:
        paths["client_configuration_token.tok"] = "/drivers/ClientConfigToken/client_configuration_token.tok"
    kind: Literal["Secret", "ConfigMap"] = "Secret" if config.secretName else "ConfigMap"
    return [Files(use="licence", volume="licensing-config", kind=kind, name=name, paths=paths)]


def subscriptions(view: DriverView, os: System, *, crio: bool) -> tuple[HostFile, ...]:
    """The node's own package subscription, for builds that need packages of RHEL or SUSE (operator.md 7.1).

    CRI-O hands a RHEL node's subscription to containers by itself, and package sources of the policy replace it."""
    if view.driver.usePrecompiled:
        return ()
    sources = view.driver.repoConfig.configMapName and release(view.spec.release).traits.repo_replaces_subscription
    if os.id == "rhel" and (crio or view.cluster.platform.os_images or sources):
        return ()
    known = enumerate(subscription(os.id))
    return tuple(HostFile.model_validate({"volume": f"subscription-config-{at}", **facts}) for at, facts in known)


SUSE_IDS = frozenset({"sles", "sl-micro"})
SUSE_MODULES = HostFile(
    use="suse-modules", volume="lib-modules", path="/lib/modules", kind="Directory", target="/run/host/lib/modules"
)
"""A precompiled driver on SUSE links its modules against those of the node."""


class Mounted(NamedTuple):
    """Where all keys of a ConfigMap go: into folder `where` of the containers `parts`.

    `otherwise` is what the volume is called where it can't be called after the ConfigMap."""

    use: Use
    otherwise: str
    where: str
    parts: tuple[Part, ...]


def keyed(spec: ClusterPolicySpec, name: str, path: str, to: Mounted) -> Files:
    """All keys of the ConfigMap NAME, which the policy's field PATH names, as files."""
    paths = {key: f"{to.where}/{key}" for key in config_map_keys(spec, name, path)}
    volume = named_after(name, to.otherwise, TAKEN)
    return Files(use=to.use, volume=volume, kind="ConfigMap", name=name, paths=paths, parts=to.parts)


def config_map_keys(spec: ClusterPolicySpec, name: str, path: str) -> list[str]:
    """The keys of the ConfigMap NAME, sorted, from `extraObjects` or `references`.

    PATH is the policy's field that names it. Raises FindingsError when neither says which keys there are."""
    own, keys = spec.cluster.namespace, set[str]()
    for body in spec.extraObjects:
        meta = body["metadata"]
        if (body["kind"], meta["name"], meta.get("namespace", own)) == ("ConfigMap", name, own):
            keys.update(body.get("data", {}), body.get("binaryData", {}))
    for reference in spec.references:
        if (reference.kind, reference.name, reference.namespace or own) == ("ConfigMap", name, own):
            keys.update(reference.keys or ())
    if keys:
        return sorted(keys)
    raise FindingsError(refused("GPU057", path, name=name))


def family(spec: ClusterPolicySpec, os: System, path: str, what: str) -> OsFamily:
    """How OS configures packages; the policy's field PATH brings WHAT for it.

    Raises FindingsError for a system whose folders are not known, as the operator does."""
    known = os_family(os.text, spec.release)
    if known is not None:
        return known
    raise FindingsError(refused("GPU058", path, system=os.text, files=what))
