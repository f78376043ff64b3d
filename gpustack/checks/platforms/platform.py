"""Rules about the platform: what its node images or systems bring, where things are on its nodes, what has to be done
there; and what OpenShift decides beside: runtime, namespace and node finder.

The same component twice is worse than none: a driver container can't unload a driver that is in use, and two device
plugins fight for one resource (bug-reports.md B47).
"""

from collections.abc import Iterator

from ...catalog import defaults, platforms
from ...catalog._versions import numbers
from ...catalog.platforms import Platform
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...policy.language.spec import ClusterPolicySpec
from ..language.policy import newer_fields
from ..rule import Hit, hit, rule
from ..subjects import Render, Written

SECTIONS = {
    "driver": ("the driver", "a driver container can't unload a driver that is in use, so it never gets ready"),
    "toolkit": ("the container toolkit", "two of them write the configuration of the container runtime"),
    "devicePlugin": ("the device plugin", "two of them offer the same GPUs, and the kubelet takes turns with them"),
    "migManager": ("the MIG manager", "two sides cut the GPUs, and each undoes the other's work"),
}
"""By section of the policy: the component, and what happens where there are two of them."""
DRIVER_DIR = "/run/nvidia/driver"
DEPLOYED = {"toolkit": "container-toolkit", "devicePlugin": "device-plugin", "migManager": "mig-manager"}
"""The ends of the labels nvidia.com/gpu.deploy.*, by section of the policy, where they are called otherwise."""


@rule("GPU445", "error")
def installed_twice(cluster: Cluster) -> Iterator[Hit]:
    """A component is installed that the platform's node image has already."""
    yield from _twice(cluster, sure=True)


@rule("GPU446", "warning")
def perhaps_installed_twice(cluster: Cluster) -> Iterator[Hit]:
    """A component is installed that the platform's node image has already, as far as is known."""
    yield from _twice(cluster, sure=False)


def _twice(cluster: Cluster, *, sure: bool) -> Iterator[Hit]:
    spec, platform = cluster.spec, cluster.platform
    foreign = foreign_nodes(spec, platform)
    also = "; the pools run another system than that image, though" if foreign else ""
    for section, (title, harm) in SECTIONS.items():
        brought = platform.brings.get(section)
        on = cluster.container_drivers if section == "driver" else getattr(spec, section).enabled
        if brought is not None and (brought.sure and not foreign) == sure and on:
            because = f"{brought.what}; {harm}{also}"
            yield hit(f"spec.{section}.enabled", title=title, platform=platform.title, because=because)


def foreign_nodes(spec: ClusterPolicySpec, platform: Platform) -> bool:
    """Whether all pools run another system than the platform's node image: then that says nothing about them."""
    others = all(pool.os and not pool.os.startswith(platform.systems) for pool in spec.nodePools)
    return bool(platform.systems and spec.nodePools) and others


@rule("GPU447", "warning")
def platforms_own_plugin(cluster: Cluster) -> Iterator[Hit]:
    """GKE runs a device plugin of its own on a pool, beside this one."""
    own = cluster.platform.own_plugin
    for pool in cluster.pools if own and cluster.spec.devicePlugin.enabled and not cluster.dra else ():
        if own and pool.said.nodeSelector.get(own.unless) != "true" and pool.workload == "container":
            path = f"{pool.path}.nodeSelector"
            yield hit(path, pool_name=pool.name, whose=own.whose, unless=own.unless, also=own.also)


@rule("GPU448", "warning")
def platform_needs_a_newer_release(cluster: Cluster) -> Iterator[Hit]:
    """The platform needs a newer release."""
    release, least = cluster.spec.release, cluster.platform.operator_min
    if least and numbers(release) < numbers(least):
        yield hit("spec.release", title=cluster.platform.title, least=least, release=release)


@rule("GPU449", "warning")
def folders_of_the_platform(cluster: Cluster) -> Iterator[Hit]:
    """A folder or name is not the one that the platform has."""
    spec = cluster.spec
    platform = cluster.platform
    if not platform.presets or foreign_nodes(spec, platform):
        return
    minor = ".".join(map(str, numbers(spec.cluster.kubernetesVersion)[:2]))
    preset = platforms.defaults(platform.name, spec.release, minor)
    for section, field in (("hostPaths", "driverInstallDir"), ("toolkit", "installDir"), ("operator", "runtimeClass")):
        expected, have = preset.get(section, {}).get(field), getattr(getattr(spec, section), field)
        if expected and (have or "") != expected:
            yield hit(f"spec.{section}.{field}", has=have or "empty", title=platform.title, expected=expected)


@rule("GPU450", "warning")
def driver_in_another_folder(cluster: Cluster) -> Iterator[Hit]:
    """The driver comes in a container, and hostPaths.driverInstallDir says that it is elsewhere."""
    where = cluster.spec.hostPaths.driverInstallDir
    if cluster.container_drivers and where != DRIVER_DIR:
        yield hit("spec.hostPaths.driverInstallDir", container=DRIVER_DIR, where=where)


@rule("GPU451", "note")
def what_hosts_need(cluster: Cluster) -> Iterator[Hit]:
    """The platform's nodes need something that no manifest can do."""
    platform = cluster.platform
    blocked = cluster.pools and all(pool.said.host.blockNouveau for pool in cluster.pools)
    for text in platform.host_needs:
        if not (blocked and "nouveau" in text):
            yield hit("spec.cluster.platform", "nodes", title=platform.title, wish=text.rstrip("."))
    for option in platform.node_pool_options:
        yield hit("spec.cluster.platform", "option", title=platform.title, option=option)


@rule("GPU452", "note", over="origins")
def kubelet_elsewhere(written: Written) -> Iterator[Hit]:
    """The platform's kubelet keeps its files in a folder of its own."""
    path, release = "spec.hostPaths.kubeletRootDir", written.spec.release
    platform = written.cluster.platform
    if platform.kubelet_root != platforms.DEFAULT_KUBELET_ROOT and not written.by_user(path):
        known = all(f"spec.{each}" != path for each, _ in newer_fields(release))
        there = f"set {path}: {platform.kubelet_root}" if known else f"link it to {platform.kubelet_root} there"
        yield hit(path, title=platform.title, folder=platform.kubelet_root, there=there)


@rule("GPU453", "note", over="render")
def kubelet_paths_that_stay(render: Render) -> Iterator[Hit]:
    """The kubelet's folder is not the default one, and some rendered paths are in the default one."""
    default, root = platforms.DEFAULT_KUBELET_ROOT, render.spec.hostPaths.kubeletRootDir
    if root.rstrip("/") == default:
        return
    mounted_by: dict[str, list[str]] = {}
    for resource, pod in render.pods:
        mounts = [volume.get("hostPath") or {} for volume in pod.get("volumes", [])]
        for path in (str(one["path"]) for one in mounts if "path" in one):
            if path == default or path.startswith(f"{default}/"):
                mounted_by.setdefault(path, []).append(f"{resource.kind}/{resource.name}")
    for path, names in mounted_by.items():
        yield hit("spec.hostPaths.kubeletRootDir", section=path, names=", ".join(names), root=root)


@rule("GPU484", "warning")
def system_with_its_own_stack(cluster: Cluster) -> Iterator[Hit]:
    """A node pool's system brings components that this cluster installs too."""
    own = cluster.platform
    for pool in cluster.pools:
        if pool.system is None or pool.system.driver_image != "none" or pool.system.id in own.systems:
            continue
        for section, what in sorted(_brought(pool.system.id).items()):
            label = f"nvidia.com/gpu.deploy.{DEPLOYED.get(section, section)}"
            if _runs(cluster, pool, section) and pool.said.nodeSelector.get(label) != "false":
                title, harm = SECTIONS[section]
                yield hit(
                    f"{pool.path}.os",
                    what=what,
                    title=title,
                    harm=harm,
                    label=label,
                    pool_path=pool.path,
                    pool_name=pool.name,
                    system=pool.system.title,
                )


def _brought(system: str) -> dict[str, str]:
    """What every platform that has the system with the os-release ID SYSTEM is sure to bring, by section, in words."""
    known = [platform for name in platforms.names() if system in (platform := platforms.platform(name)).systems]
    brought = [{section: one.what for section, one in each.brings.items() if one.sure} for each in known]
    common = set.intersection(*map(set, brought)) if brought else set()
    return {section: brought[0][section] for section in common & SECTIONS.keys()}


def _runs(cluster: Cluster, pool: Pool, section: str) -> bool:
    if section == "driver":
        return pool.driver is not None
    cuts = section != "migManager" or pool.product is None or pool.product.mig is not None
    serves = pool.workload == "container" and not cluster.dra
    return serves and cuts and bool(getattr(cluster.spec, section).enabled)


POD_PARTS = ("master", "worker", "gc")


@rule("GPU120", "error")
def openshift_runs_crio(cluster: Cluster) -> Iterator[Hit]:
    """Settings of another container runtime on OpenShift."""
    spec = cluster.spec
    if not (runs := cluster.platform.container_runtime):
        return
    why = f"{cluster.platform.title} runs {runs}, on every node"
    pools = [(pool.path, pool.said.containerRuntime) for pool in cluster.pools]
    for path, value in [("spec.cluster", spec.cluster.containerRuntime), *pools]:
        if value and not value.partition(":")[0].lower().startswith("cri"):
            yield hit(f"{path}.containerRuntime", "runtime", why=why, value=value)
    for index, entry in enumerate(spec.toolkit.env or ()):
        if entry.name.startswith("CONTAINERD_"):
            yield hit(f"spec.toolkit.env[{index}]", "toolkit", why=why, entry=entry.name)


@rule("GPU121", "warning")
def namespace_of_openshift(cluster: Cluster) -> Iterator[Hit]:
    """A namespace on OpenShift that gets no labels for monitoring and Pod Security."""
    said, usual = cluster.spec.cluster, cluster.platform.namespace
    lost = ["metrics are not scraped by OpenShift's own Prometheus"] if said.monitoring else []
    lost += ["psa.enabled has no effect"] if cluster.spec.psa.enabled else []
    if cluster.platform.own_monitoring and said.namespace != usual and lost:
        yield hit("spec.cluster.namespace", namespace=said.namespace, lost=" and ".join(lost), usual=usual)


@rule("GPU122", "note")
def nfd_of_openshift(cluster: Cluster) -> Iterator[Hit]:
    """Settings for the pods of node feature discovery on OpenShift."""
    spec = cluster.spec
    if not cluster.platform.own_discovery or not spec.nfd.enabled:
        return
    empty = type(spec.nfd)()
    own = next(rule.values["nfd"] for rule in defaults.rules() if not rule.kind)
    parts = {name: getattr(spec.nfd, name).model_dump(exclude_none=True, exclude_defaults=True) for name in POD_PARTS}
    given = [name for name, said in parts.items() if said and said != own.get(name)]
    given += [name for name in ("helmRelease", "imagePullSecrets") if getattr(spec.nfd, name) != getattr(empty, name)]
    for name in given:
        yield hit(f"spec.nfd.{name}")
