"""Containers beside the driver's, each for a kernel module that needs the driver's: peermem, nvidia-fs and gdrdrv. And
the sidecar that builds kernel modules for RHCOS: OpenShift's driver toolkit (operator.md 8.1).

The container that installs the modules leaves its sources and its entry point in a shared folder, and the sidecar
builds there, with headers and compiler of exactly the node's kernel. So there is a DaemonSet per RHCOS version. Where
the image for a version is missing, the sidecar runs the installing container's own image, which then builds without the
toolkit, as the operator's does.

Then the init container that clears a node of the driver before.
"""

from collections.abc import Mapping
from typing import Any

from ..parts.common_inputs import Common
from ..parts.daemonset import host_root
from ..parts.pod import PRIVILEGED, PRIVILEGED_S0, Container, Env, Volume, exec_probe
from ..scripts import argument
from .driver_files_inputs import Part
from .driver_pools_inputs import DriverToolkit
from .driver_settings_inputs import DriverCommon, DriverPod, Manager, Module
from .driver_volumes import DEV_LOG, HOST_SYS, MELLANOX, RUN_NVIDIA, VAR_LOG, mount_files

WAIT_AND_INSTALL = (
    "until [ -d /run/nvidia/driver/usr/src ] && lsmod | grep -q '^nvidia '; do "
    "echo 'waiting for the driver to be installed'; sleep 10; done; exec {program} install"
)
"""Both build against the driver's sources, which are there once the driver's container has unpacked them."""
STARTUP = {"initialDelaySeconds": 10, "periodSeconds": 10, "failureThreshold": 120}
PROBE = {"timeoutSeconds": 10, "successThreshold": 1}


def features(settings: DriverCommon, target: DriverPod) -> list[Container]:
    """The containers of the features that are on, in the operator's order."""
    containers = [peermem(settings, target)] if settings.rdma else []
    builders: tuple[tuple[Part, Module | None], ...] = (("fs", target.gds), ("gdrcopy", target.gdrcopy))
    for part, module in builders:
        if module:
            containers.append(builder(settings, target, module, part))
    return containers


def peermem(settings: DriverCommon, target: DriverPod) -> Container:
    """Loads nvidia-peermem, and again whenever the network driver was reloaded; runs the driver's image."""
    container = Container(
        "nvidia-peermem-ctr",
        target.image,
        settings.pull_policy,
        command=["nvidia-driver"],
        args=["reload_nvidia_peermem"],
        security=PRIVILEGED_S0,
        resources=settings.resources,
    )
    if settings.type:
        container.env.set("NVIDIA_VISIBLE_DEVICES", "void")
    container.env.appended()
    if settings.host_mofed:
        container.env.set("USE_HOST_MOFED", True)
    check = ["sh", "-c", "nvidia-driver probe_nvidia_peermem"]
    container.startup = exec_probe(check, **STARTUP, **PROBE)
    container.liveness = exec_probe(check, initialDelaySeconds=30, periodSeconds=30, failureThreshold=1, **PROBE)
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    container.mount(VAR_LOG, "/var/log").mount(DEV_LOG, "/dev/log", read_only=True)
    container.mount(MELLANOX, "/run/mellanox/drivers", propagation="HostToContainer")
    mount_files(container, "peermem", target)
    return container


BUILDERS: dict[Part, tuple[str, str, str, str]] = {
    "fs": ("nvidia-fs-ctr", "nvidia-gds-driver", "nvidia_fs", "nv-fs-ctr-run-with-dtk"),
    "gdrcopy": ("nvidia-gdrcopy-ctr", "nvidia-gdrcopy-driver", "gdrdrv", "gdrcopy-ctr-run-with-dtk"),
}
"""A builder's container, the program that builds, its kernel module, and the word for it with OpenShift's toolkit."""


def builder(settings: DriverCommon, target: DriverPod, module: Module, part: Part) -> Container:
    """The container PART, which waits for the driver, then builds and loads its kernel module."""
    name, program, loaded, word = BUILDERS[part]
    container = Container(
        name,
        module.image,
        module.pull_policy,
        command=["bash", "-xc"],
        args=[WAIT_AND_INSTALL.format(program=program)],
        env=Env().appended().update(module.env),
        env_from=secret_env(settings),
        security=PRIVILEGED_S0,
        resources=settings.resources,
    )
    container.startup = exec_probe(["sh", "-c", f"lsmod | grep {loaded}"], **STARTUP, **PROBE)
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="HostToContainer")
    container.mount(VAR_LOG, "/var/log").mount(DEV_LOG, "/dev/log", read_only=True)
    if not settings.type:
        mount_files(container, part, target)
    if target.toolkit:
        use_toolkit(container, told(settings, target.toolkit, target.image), word)
    if settings.type:
        mount_files(container, part, target)
    return container


def told(settings: DriverCommon, toolkit: DriverToolkit, image: str) -> DriverToolkit:
    """TOOLKIT as the builders know it.

    Where its image is missing, the sidecar runs the driver's IMAGE, and the builders of one of `drivers` are not told
    so: only the driver's container is (operator.md 8.1, 10.3)."""
    return toolkit.model_copy(update={"image": toolkit.image or image}) if settings.type else toolkit


def secret_env(settings: DriverCommon) -> list[dict[str, dict[str, str]]]:
    """The variables of the policy's `driver.secretEnv`, for containers that download packages."""
    return [{"secretRef": {"name": settings.secret_env}}] if settings.secret_env else []


TOOLKIT = "openshift-driver-toolkit-ctr"
SHARED = Volume.empty_dir("shared-nvidia-driver-toolkit")
SHARED_DIR = "/mnt/shared-nvidia-driver-toolkit"


def build_with_toolkit(
    main: Container, toolkit: DriverToolkit, env: Env, *, resources: Mapping[str, Any] | None
) -> Container:
    """Let MAIN build with TOOLKIT, and return the sidecar for it, which has no mounts but the shared folder.

    ENV is the sidecar's, from `toolkit_env`. The arguments that MAIN had are gone, those of the policy with them."""
    use_toolkit(main, toolkit, "nv-ctr-run-with-dtk")
    if not toolkit.image:
        env.set("RHCOS_IMAGE_MISSING", True)
    sidecar = Container(
        TOOLKIT,
        toolkit.image or main.image,
        "IfNotPresent",
        command=["bash", "-xc"],
        args=[argument("build-driver")],
        env=env,
        security=PRIVILEGED_S0,
        resources=resources,
    )
    return sidecar.mount(SHARED, SHARED_DIR)


def toolkit_env(toolkit: DriverToolkit) -> Env:
    """What the sidecar of TOOLKIT is told, less what depends on what is built."""
    return Env({"RHCOS_VERSION": toolkit.rhcos, "NVIDIA_VISIBLE_DEVICES": "void"}).appended()


def use_toolkit(container: Container, toolkit: DriverToolkit, word: str) -> None:
    """Make CONTAINER prepare the shared folder and take its modules from there.

    WORD is the argument of its entry point."""
    container.command, container.args = ["ocp_dtk_entrypoint"], [word]
    container.mount(SHARED, SHARED_DIR)
    without_image(container.env, toolkit)


def without_image(env: Env, toolkit: DriverToolkit) -> None:
    """Tell a container that installs modules to build them itself, where TOOLKIT has no image for its nodes."""
    if not toolkit.image:
        env.set("RHCOS_IMAGE_MISSING", True).set("RHCOS_VERSION", toolkit.rhcos)


def toolkit_labels(toolkit: DriverToolkit) -> tuple[dict[str, str], dict[str, str]]:
    """The labels of the DaemonSet for TOOLKIT, and those of its pods."""
    pod = {"openshift.driver-toolkit": "true"}
    if not toolkit.image:
        pod["openshift.driver-toolkit.rhcos-image-missing"] = "true"
    return {**pod, "openshift.driver-toolkit.rhcos": toolkit.rhcos}, pod


EVICTION = ("ENABLE_GPU_POD_EVICTION", "ENABLE_AUTO_DRAIN")
"""The variables that tell a driver manager to evict (reconciler.md D1)."""


def clear_node(common: Common, manager: Manager, resources: Mapping[str, Any] | None) -> Container:
    """The init container that clears a node for virtual machines (operator.md 7.11, 7.14): it unloads the driver that
    containers used. Nodes change what they serve by hand and while nothing runs on them, so it neither evicts nor
    drains, unless the policy's `driverManager.env` says so. RESOURCES are those of the component that it runs in."""
    env = Env().field("NODE_NAME", "spec.nodeName").set("NVIDIA_VISIBLE_DEVICES", "void")
    env.set("ENABLE_GPU_POD_EVICTION", False).set("ENABLE_AUTO_DRAIN", False)
    env.field("OPERATOR_NAMESPACE", "metadata.namespace")
    return uninstaller(common, manager, env.policy(manager.env), resources)


def uninstaller(common: Common, manager: Manager, env: Env, resources: Mapping[str, Any] | None) -> Container:
    """MANAGER's container with its environment ENV."""
    command = ["driver-manager"]
    container = Container("k8s-driver-manager", manager.image, manager.pull_policy, command, ["uninstall_driver"], env)
    container.security, container.resources = PRIVILEGED, resources
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    container.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    return container.mount(HOST_SYS, "/sys")


def evicts(manager: Manager) -> bool:
    """Whether the policy tells MANAGER to evict or to drain."""
    return any(name in EVICTION and value.lower() not in ("", "false") for name, value in manager.env)
