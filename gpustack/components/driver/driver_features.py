"""Containers beside the driver's, each for a kernel module that needs the driver's: peermem, nvidia-fs and gdrdrv."""

from __future__ import annotations

from typing import NamedTuple

from ..parts.pod import PRIVILEGED_S0, Container, Env, exec_probe
from .driver_files_inputs import Part
from .driver_settings_inputs import DriverCommon, DriverPod, Module
from .driver_toolkit import use_toolkit
from .driver_toolkit_inputs import DriverToolkit
from .driver_volumes import DEV_LOG, MELLANOX, RUN_NVIDIA, VAR_LOG, mount_files

WAIT_AND_INSTALL = (
    "until [ -d /run/nvidia/driver/usr/src ] && lsmod | grep -q '^nvidia '; do "
    "echo 'waiting for the driver to be installed'; sleep 10; done; exec {program} install"
)
"""Both build against the driver's sources, which are there once the driver's container has unpacked them."""


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
    timing = {"timeoutSeconds": 10, "successThreshold": 1}
    container.startup = exec_probe(check, initialDelaySeconds=10, periodSeconds=10, failureThreshold=120, **timing)
    container.liveness = exec_probe(check, initialDelaySeconds=30, periodSeconds=30, failureThreshold=1, **timing)
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    container.mount(VAR_LOG, "/var/log").mount(DEV_LOG, "/dev/log", read_only=True)
    container.mount(MELLANOX, "/run/mellanox/drivers", propagation="HostToContainer")
    mount_files(container, "peermem", target)
    return container


class Names(NamedTuple):
    """What a builder is called: its container, the program that builds, the kernel module that it loads, and the word
    for it with OpenShift's driver toolkit.
    """

    container: str
    program: str
    module: str
    word: str


BUILDERS: dict[Part, Names] = {
    "fs": Names("nvidia-fs-ctr", "nvidia-gds-driver", "nvidia_fs", "nv-fs-ctr-run-with-dtk"),
    "gdrcopy": Names("nvidia-gdrcopy-ctr", "nvidia-gdrcopy-driver", "gdrdrv", "gdrcopy-ctr-run-with-dtk"),
}


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
    container.startup = exec_probe(
        ["sh", "-c", f"lsmod | grep {loaded}"],
        initialDelaySeconds=10,
        periodSeconds=10,
        timeoutSeconds=10,
        failureThreshold=120,
        successThreshold=1,
    )
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
    so: only the driver's container is (operator.md 8.1, 10.3).
    """
    return toolkit.model_copy(update={"image": toolkit.image or image}) if settings.type else toolkit


def secret_env(settings: DriverCommon) -> list[dict[str, dict[str, str]]]:
    """The variables of the policy's `driver.secretEnv`, for containers that download packages."""
    return [{"secretRef": {"name": settings.secret_env}}] if settings.secret_env else []
