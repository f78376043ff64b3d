"""The driver: builds or loads NVIDIA's kernel modules on each node and lends the node its user space (operator.md 7.1).

Which DaemonSets there are, and why they are called and selected so: inputs/driver_pools.py. They are updated by
deleting pods (OnDelete), node by node, never by Kubernetes itself: a driver can't be replaced under running workloads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from ..model import Body
from .component import Component
from .daemonset import daemonset, host_root
from .driver_features import features, secret_env
from .driver_volumes import ENTRYPOINT, HOST_SYS, MELLANOX, PROBE, RUN_NVIDIA, mount_files, mount_node
from .inputs.common import Common
from .inputs.driver import DriverInputs, DriverPod, DriverSettings
from .inputs.driver_pools import NAME as DAEMONSET
from .kube import PRIVILEGED_SCC, access, config_map, rule
from .pod import PRIVILEGED, PRIVILEGED_S0, Container, Env, Pod, exec_probe, unique
from .scripts import script

NAME = "nvidia-driver"
MAIN = "nvidia-driver-ctr"
COMPONENT = {"app.kubernetes.io/component": NAME}
"""On every driver pod, whatever its DaemonSet: the anti-affinity and whoever looks for driver pods go by it."""
DIGEST = "DRIVER_CONFIG_DIGEST"
READY_FILES = "/run/nvidia/validations/.driver-ctr-ready /run/nvidia/validations/.driver-daemons-status"
ONE_PER_NODE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {
                    "matchExpressions": [{"key": "app.kubernetes.io/component", "operator": "In", "values": [NAME]}]
                },
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}
"""Two drivers on one node would unload each other's modules. A pod that lost its DaemonSet thus keeps its node."""


class Driver(Component[DriverInputs]):
    """The DaemonSets of the driver, its startup probe, and its rights: the manager cordons its node and evicts pods."""

    stage = "driver"

    def manifests(self, inputs: DriverInputs) -> Iterator[Body]:
        common = inputs.common
        yield from access(
            NAME, common.namespace, role=[PRIVILEGED_SCC] if common.openshift else [], cluster=rights(common)
        )
        yield config_map(
            ENTRYPOINT,
            common.namespace,
            {"startup-probe.sh": script("driver-startup-probe")},
            labels={"app": DAEMONSET, **COMPONENT},
        )
        for target in inputs.pods:
            yield driver_daemonset(common, inputs.settings, target)


def rights(common: Common) -> list[Body]:
    """What the driver manager does: cordon and label its node, evict and drain.

    A drain asks which DaemonSet owns a pod; the manager, who holds a claim to a GPU.
    """
    found = [
        rule("", "nodes", "get list patch update watch"),
        rule("", "pods", "get list watch"),
        rule("", "pods/eviction", "create"),
        rule("resource.k8s.io", "resourceclaims", "get list"),
        rule("apps", "daemonsets", "get"),
    ]
    return [rule("config.openshift.io", "clusterversions", "get list"), *found] if common.openshift else found


def driver_daemonset(common: Common, settings: DriverSettings, target: DriverPod) -> Body:
    """The DaemonSet of TARGET."""
    labels = {**COMPONENT, "nvidia.com/precompiled": str(settings.precompiled).lower()}
    return daemonset(
        common,
        target.name,
        pod(common, settings, target),
        app=target.app,
        deploy="driver",
        labels=labels,
        pod_labels=labels,
        annotations={"openshift.io/scc": NAME},
        pod_annotations={"kubectl.kubernetes.io/default-container": MAIN},
        update="on-delete",
    )


def pod(common: Common, settings: DriverSettings, target: DriverPod) -> Pod:
    """The driver's pod, with the digest of what it installs on the two containers that compare it."""
    init, main = manager(common, settings), driver(settings, target)
    found = Pod(
        NAME,
        target.node_selector,
        [main, *features(settings, target)],
        init=[init],
        host_pid=True,
        host_network=settings.host_network,
        affinity=ONE_PER_NODE,
        pull_secrets=unique(settings.pull_secrets),
    )
    digest = config_digest(found)
    for container in (init, main):
        container.env.set(DIGEST, digest)
    return found


def manager(common: Common, settings: DriverSettings) -> Container:
    """The init container that clears the node of its old driver: evicts GPU pods, unloads modules, waits for MOFED.

    Its settings do not follow `driver.upgradePolicy`, which steers a roll-out alone (case 34): that evicts and drains
    before it deletes the driver's pod, and marks the node so that the manager does neither. They hold on nodes without
    the mark, and `driver.manager.env` changes them.
    """
    env = Env({"NVIDIA_VISIBLE_DEVICES": "void", "ENABLE_GPU_POD_EVICTION": "true", "ENABLE_AUTO_DRAIN": "false"})
    env.field("NODE_NAME", "spec.nodeName").field("OPERATOR_NAMESPACE", "metadata.namespace")
    env.set("DRAIN_USE_FORCE", False).set("DRAIN_POD_SELECTOR_LABEL", "").set("DRAIN_TIMEOUT_SECONDS", "0s")
    env.set("DRAIN_DELETE_EMPTYDIR_DATA", False)
    container = Container(
        "k8s-driver-manager",
        settings.manager.image,
        settings.manager.pull_policy,
        command=["driver-manager"],
        args=["uninstall_driver"],
        env=rdma_env(env, settings).policy(settings.manager.env),
        security=PRIVILEGED,
        resources=settings.resources,
    )
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    container.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    return container.mount(HOST_SYS, "/sys").mount(MELLANOX, "/run/mellanox/drivers", propagation="HostToContainer")


def driver(settings: DriverSettings, target: DriverPod) -> Container:
    """The container that installs the driver and then stays, with its daemons, for as long as the driver is loaded."""
    container = Container(
        MAIN,
        target.image,
        settings.pull_policy,
        command=["nvidia-driver"],
        args=settings.args or ["init"],
        env=environment(settings, target),
        env_from=secret_env(settings),
        security=PRIVILEGED_S0,
        resources=settings.resources,
        startup=exec_probe(["sh", PROBE], **{**STARTUP, **settings.startup}),
        pre_stop=["/bin/sh", "-c", f"rm -f {READY_FILES}"],
    )
    mount_node(container, host_mofed=settings.host_mofed)
    mount_files(container, "driver", target)
    return container


STARTUP = {
    "initialDelaySeconds": 60,
    "periodSeconds": 10,
    "timeoutSeconds": 60,
    "failureThreshold": 120,
    "successThreshold": 1,
}
"""A driver takes minutes to build: 20 of them, then the container is restarted."""


def environment(settings: DriverSettings, target: DriverPod) -> Env:
    """The driver's settings. The policy's env wins over features, and what the cluster is over it (operator.md 5.2)."""
    env = Env().field("NODE_NAME", "spec.nodeName").field("NODE_IP", "status.hostIP")
    env.set("KERNEL_MODULE_TYPE", settings.module_type)
    if settings.module_type == "open":
        env.set("OPEN_KERNEL_MODULES_ENABLED", True)
    rdma_env(env, settings)
    if target.gds:
        env.set("GDS_ENABLED", True)
    if target.gdrcopy:
        env.set("GDRCOPY_ENABLED", True)
    return env.update(settings.env)


def rdma_env(env: Env, settings: DriverSettings) -> Env:
    """Whether nvidia-peermem will be loaded, and whose network driver it goes with."""
    if settings.rdma:
        env.set("GPU_DIRECT_RDMA_ENABLED", True)
    if settings.host_mofed:
        env.set("USE_HOST_MOFED", True)
    return env


def config_digest(pod: Pod) -> str:
    """Names what POD installs: 10 hex digits, equal for pods that differ only in what a restart suffices for.

    The manager and the driver keep the modules that are loaded when the digest is the one they were installed with, and
    a roll-out then spares the workloads (operator.md 12, reconciler.md U34 and D8). It covers what each container runs
    (image, command, environment), and the sources of what it mounts; not labels, tolerations, resources, probes, node
    selectors or the names of volumes. Changing what enters here makes every driver of every cluster re-install.
    """
    facts = [installed(container) for container in pod.every_container()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:10]


def installed(container: Container) -> dict[str, Any]:
    """What of CONTAINER decides what is on the node afterwards. Order counts in words, nowhere else."""
    mounts = [{**mount, "name": volume.source} for volume, mount in container.mounts]
    return {
        "name": container.name,
        "image": container.image,
        "words": [*container.command, *container.args],
        "env": sorted(container.env.body(), key=lambda entry: str(entry["name"])),
        "envFrom": list(container.env_from),
        "mounts": sorted(mounts, key=lambda mount: str(mount["mountPath"])),
    }
