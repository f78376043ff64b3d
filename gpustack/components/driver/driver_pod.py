"""The driver's pod: the manager that clears the node, the driver, the modules beside it (operator.md 7.1, 10.3).

Two sets of rules, by `DriverCommon.type`: the one of the policy's section `driver`, and the one of its `drivers`. The
operator has two renderers; where they differ without need, that is kept: what runs on a node is adopted as it is.
"""

from collections.abc import Sequence

from ...api import keys
from ...catalog.traits import Traits
from ...model import Body
from ..parts.common_inputs import Common
from ..parts.daemonset import set_host_root
from ..parts.pod import PRIVILEGED_S0, Container, Env, Pairs, Pod, Volume, exec_probe
from .driver_digest_inputs import Records, Value, digest, mounts, variables, volumes
from .driver_features import build_with_toolkit, features, secret_env, toolkit_env, uninstaller, without_image
from .driver_settings_inputs import DriverCommon, DriverPod
from .driver_volumes import (
    HOST_MANAGER,
    MELLANOX,
    PROBE,
    declared,
    mount_authorities,
    mount_files,
    mount_node,
    mount_toolkit,
)

MAIN = "nvidia-driver-ctr"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DIGEST = "DRIVER_CONFIG_DIGEST"
READY, DAEMONS = "/run/nvidia/validations/.driver-ctr-ready", "/run/nvidia/validations/.driver-daemons-status"
CHECKS = f"[ -e /sys/module/nvidia/refcnt ] && nvidia-smi && touch {READY}"
"""The startup probe of releases that have no script for it."""


def pod(common: Common, settings: DriverCommon, target: DriverPod, others: Sequence[str] = ()) -> Pod:
    """The driver's pod, with the digest of what it installs on the containers that compare it.

    It stays away from nodes whose driver is one of OTHERS."""
    init, main = manager(common, settings, target), driver(common.traits, settings, target)
    sidecars = builders(settings, target, main)
    if settings.type and settings.trusted_ca:
        mount_authorities(main)
    template = Pod(
        target.account,
        target.node_selector,
        [main, *features(settings, target), *sidecars],
        init=[init],
        declared=declared(common, settings),
        host_pid=True,
        host_network=settings.host_network,
        affinity=affinity(settings, others),
        pull_secrets=settings.pull_secrets,
        grace_period=120 if settings.type == HOST_MANAGER else None,
    )
    if not settings.type:
        set_host_root(common, template)
    if common.traits.driver_digest and not target.installs:
        digest = digest_of(template)
        for container in (init, main, *sidecars):
            container.env.set(DIGEST, digest)
    return template


def component(settings: DriverCommon) -> dict[str, str]:
    """The label of every driver's pods, whatever its DaemonSet: whoever looks for driver pods goes by it."""
    return {keys.COMPONENT: "nvidia-vgpu-host-manager" if settings.type == HOST_MANAGER else "nvidia-driver"}


def affinity(settings: DriverCommon, others: Sequence[str]) -> Body:
    """One driver per node, as two would unload each other's modules: a pod that lost its DaemonSet keeps its node.

    And none where the node's label names one of OTHERS."""
    drivers = ["nvidia-driver", "nvidia-vgpu-manager"] if settings.type else ["nvidia-driver"]
    expression = {"key": keys.COMPONENT, "operator": "In", "values": drivers}
    term = {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": "kubernetes.io/hostname"}
    body: Body = {"podAntiAffinity": {REQUIRED: [term]}}
    if others:
        owned = {"key": keys.DRIVER_OWNER, "operator": "NotIn", "values": list(others)}
        body["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [owned]}]}}
    return body


def manager(common: Common, settings: DriverCommon, target: DriverPod) -> Container:
    """The init container that clears the node of its old driver: evicts GPU pods, unloads modules, waits for MOFED.

    Its settings do not follow `driver.upgradePolicy`, which steers a roll-out alone (case 34): that evicts and drains
    before it deletes the driver's pod, and marks the node so that the manager does neither. They hold on nodes without
    the mark, and `driver.manager.env` changes them."""
    env = Env().field("NODE_NAME", "spec.nodeName").set("NVIDIA_VISIBLE_DEVICES", "void")
    env.set("ENABLE_GPU_POD_EVICTION", True).set("ENABLE_AUTO_DRAIN", False)
    env.set("DRAIN_USE_FORCE", False).set("DRAIN_POD_SELECTOR_LABEL", "").set("DRAIN_TIMEOUT_SECONDS", "0s")
    env.set("DRAIN_DELETE_EMPTYDIR_DATA", False).field("OPERATOR_NAMESPACE", "metadata.namespace").appended()
    known_digest(env, target)
    rdma_env(env, settings).update(settings.manager.env)
    container = uninstaller(common, settings.manager, env, settings.resources)
    return container.mount(MELLANOX, "/run/mellanox/drivers", propagation="HostToContainer")


def driver(traits: Traits, settings: DriverCommon, target: DriverPod) -> Container:
    """The container that installs the driver and then stays, with its daemons, for as long as the driver is loaded."""
    container = Container(
        MAIN,
        target.image,
        settings.pull_policy,
        command=["nvidia-driver"],
        args=settings.args or ["init"],
        env=environment(traits, settings, target),
        env_from=secret_env(settings),
        security=PRIVILEGED_S0,
        resources=settings.resources,
    )
    if settings.type != HOST_MANAGER:
        check = ["sh", PROBE] if traits.driver_probe_script else ["sh", "-c", CHECKS]
        container.startup = exec_probe(check, **{**STARTUP, **settings.startup})
        files = f"{READY} {DAEMONS}" if traits.driver_daemons_status else READY
        container.pre_stop = ["/bin/sh", "-c", f"rm -f {files}"]
    mount_node(container, traits, settings)
    mount_files(container, "driver", target)
    if settings.trusted_ca and not settings.type:
        mount_authorities(container)
    return container


def builders(settings: DriverCommon, target: DriverPod, main: Container) -> list[Container]:
    """The sidecar in which MAIN builds on OpenShift, where the driver toolkit is used (operator.md 8.1)."""
    if target.toolkit is None:
        return []
    env = toolkit_env(target.toolkit)
    known_digest(env, target)
    if not settings.type:
        announce(env, target, gdrcopy_first=False)
    sidecar = build_with_toolkit(main, target.toolkit, env, resources=settings.resources)
    announce(env, target, gdrcopy_first=False)
    mount_toolkit(sidecar, settings)
    return [sidecar]


STARTUP = {
    "initialDelaySeconds": 60,
    "periodSeconds": 10,
    "timeoutSeconds": 60,
    "failureThreshold": 120,
    "successThreshold": 1,
}
"""A driver takes minutes to build: 20 of them, then the container is restarted."""


def environment(traits: Traits, settings: DriverCommon, target: DriverPod) -> Env:
    """The driver's settings. The policy's env wins over features, and what the cluster is over it (operator.md 5.2).

    That of one of `drivers` also wins over the version of OpenShift, but not over RDMA (10.3)."""
    env = Env({"NVIDIA_VISIBLE_DEVICES": "void"} if settings.type else None)
    env.field("NODE_NAME", "spec.nodeName").field("NODE_IP", "status.hostIP").appended()
    known_digest(env, target)
    env.set("KERNEL_MODULE_TYPE", settings.module_type)
    if settings.module_type == "open":
        env.set("OPEN_KERNEL_MODULES_ENABLED", True)
    if traits.driver_announces_modules:
        announce(env, target, gdrcopy_first=not settings.type)
    version: Pairs = (("OPENSHIFT_VERSION", settings.openshift_version),) if settings.openshift_version else ()
    if settings.type:
        rdma_env(env.update(version).update(settings.env), settings)
        if target.toolkit:
            without_image(env, target.toolkit)
    else:
        rdma_env(env, settings).update(settings.env).update(version)
    return env.update(settings.proxy)


def announce(env: Env, target: DriverPod, *, gdrcopy_first: bool) -> None:
    """Say which modules are built beside the driver's."""
    modules = [("GDS_ENABLED", target.gds), ("GDRCOPY_ENABLED", target.gdrcopy)]
    for name, module in reversed(modules) if gdrcopy_first else modules:
        if module:
            env.set(name, True)


def known_digest(env: Env, target: DriverPod) -> None:
    """Say what is installed where that is known beforehand: with one of `drivers`, whose template says it."""
    if target.installs:
        env.set(DIGEST, target.installs)


def rdma_env(env: Env, settings: DriverCommon) -> Env:
    """Whether nvidia-peermem will be loaded, and whose network driver it goes with."""
    if settings.rdma:
        env.set("GPU_DIRECT_RDMA_ENABLED", True)
    if settings.host_mofed:
        env.set("USE_HOST_MOFED", True)
    return env


def digest_of(pod: Pod) -> str:
    """The digest of POD, a driver's of the section `driver`, which has none yet: what of it decides what is on the node
    afterwards (driver_digest_inputs.py).

    It covers images, the driver's command, plain variables, and what is declared and mounted; not labels, tolerations,
    resources, probes or node selectors. Changing what enters here makes every driver of every cluster re-install."""
    by_name = {container.name: container for container in pod.every_container()}
    main, manager = by_name["nvidia-driver-ctr"], by_name["k8s-driver-manager"]
    declared = pod.volumes()
    fields: dict[str, Value] = {
        "DriverImage": main.image,
        "DriverCommand": list(main.command),
        "DriverArgs": list(main.args),
        "DriverEnv": plain(main),
        "SecretEnvSource": next((str(each["secretRef"]["name"]) for each in main.env_from), ""),
        "DriverManagerImage": manager.image,
        "ManagerEnv": plain(manager),
        "AdditionalVolumes": volumes(source(volume) for volume in declared),
        "AdditionalVolumeMounts": mounts(
            (mount["name"], mount["mountPath"], mount.get("subPath", ""), mount.get("readOnly", False))
            for _, mount in main.mounts
        ),
        "HostRoot": next(volume.path for volume in declared if volume.name == "host-root"),
    }
    if peermem := by_name.get("nvidia-peermem-ctr"):
        fields |= {"PeermemImage": peermem.image, "GPUDirectRDMAEnabled": True}
    for name, part in (("GDS", "nvidia-fs-ctr"), ("GDRCopy", "nvidia-gdrcopy-ctr")):
        if builder := by_name.get(part):
            fields |= {f"{name}Image": builder.image, f"{name}Enabled": True, f"{name}Env": plain(builder)}
    if toolkit := by_name.get("openshift-driver-toolkit-ctr"):
        fields |= {"DTKImage": toolkit.image, "DTKEnabled": True}
    return digest(fields)


def plain(container: Container) -> Records:
    """The variables of CONTAINER that are plain texts."""
    return variables((entry["name"], entry["value"]) for entry in container.env.body() if "value" in entry)


def source(volume: Volume) -> tuple[str, str, str, str]:
    """VOLUME as the digest counts it; of an empty folder only the name."""
    kinds = (("configMap", "name"), ("secret", "secretName"), ("hostPath", "path"))
    config_map, secret, path = (str(volume.source.get(kind, {}).get(key, "")) for kind, key in kinds)
    return volume.name, config_map, secret, path
