"""The other operands: toolkit, device plugin, GFD, DCGM, validator, and the init containers that make them wait.

What they wait for and leave behind are files in /run/nvidia/validations (reconciler.md 4.1 and 4.2): existence counts,
not age (V2).
"""

from __future__ import annotations

import asyncio

from tests.control_plane.actors import driver, mig
from tests.control_plane.api import STRATEGIC, Api
from tests.control_plane.kubelet import Kubelets, plain_pod
from tests.control_plane.machine import Machine
from tests.control_plane.pace import Pace
from tests.control_plane.pod import Pod

VALIDATOR_FILES = ("driver-ready", "toolkit-ready", "cuda-ready", "plugin-ready")


async def wait_for_driver(pod: Pod) -> None:
    """`gpustack-wait-for-driver`: the driver's startup probe has written its file."""
    await pod.until(lambda: ".driver-ctr-ready" in pod.machine.files)


async def validate_driver(pod: Pod) -> None:
    """`driver-validation`: nvidia-smi works, however old the driver is (V3)."""
    pod.machine.remove("driver-ready")
    await pod.until(lambda: pod.machine.driver is not None)
    pod.machine.write("driver-ready")


async def validate_toolkit(pod: Pod) -> None:
    """`toolkit-validation`: the validator's writes the file, everybody else's waits for it."""
    if pod.app == mig.VALIDATOR:
        pod.machine.remove("toolkit-ready")
        await pod.until(lambda: pod.machine.toolkit and pod.machine.driver is not None)
        pod.machine.write("toolkit-ready")
    await pod.until(lambda: "toolkit-ready" in pod.machine.files)


async def validate_cuda(pod: Pod) -> None:
    """`cuda-validation`."""
    await pod.until(lambda: pod.machine.driver is not None)
    pod.machine.write("cuda-ready")


async def validate_plugin(pod: Pod) -> None:
    """`plugin-validation`: the node has at least one GPU resource."""
    await pod.until(lambda: any(pod.kubelets.capacity(pod.machine).values()))
    pod.machine.write("plugin-ready")


async def toolkit(pod: Pod) -> None:
    """The container toolkit: what it installs on the host stays there."""
    await pod.sleep(pod.kubelets.pace.start)
    pod.machine.toolkit = True
    await pod.start()
    await pod.ready()
    await pod.forever()


async def validator(pod: Pod) -> None:
    """The validator is ready when all of its init containers are through; at its end it removes its files."""
    try:
        await pod.start()
        await pod.until(lambda: not pod.machine.faults.validator_never_ready)
        await pod.ready()
        await pod.forever()
    finally:
        pod.machine.remove(*VALIDATOR_FILES)


async def device_plugin(pod: Pod) -> None:
    """Advertises what is there at its start. Gone, nothing is allocatable, and later there is no capacity (A13)."""
    machine, kubelets = pod.machine, pod.kubelets
    await pod.sleep(kubelets.pace.start)
    await pod.start()
    try:
        await pod.until(lambda: not machine.faults.plugin_never_ready and machine.driver is not None)
        found = machine.resources(pod.env("MIG_STRATEGY") or "none")
        await kubelets.advertise(machine, {**kubelets.capacity(machine), **found}, found)
        await pod.ready()
        await pod.forever()
    finally:
        kubelets.spawn(_plugin_gone(kubelets, machine), f"plugin/{machine.name}")


async def _plugin_gone(kubelets: Kubelets, machine: Machine) -> None:
    await kubelets.advertise(machine, kubelets.capacity(machine), {})
    await asyncio.sleep(kubelets.pace.plugin_linger)
    still = kubelets.allocatable(machine)
    await kubelets.advertise(machine, still, still)


async def gfd(pod: Pod) -> None:
    """Describes the GPUs in node labels, by way of node feature discovery; gone, the labels go too (L29)."""
    machine, kubelets = pod.machine, pod.kubelets
    await pod.sleep(kubelets.pace.start)
    await pod.start()
    await pod.ready()
    try:
        while True:
            await pod.until(lambda: machine.driver is not None and not machine.faults.gfd_gone)
            await _publish(kubelets, machine, gfd_labels(machine))
            await pod.until(lambda: machine.faults.gfd_gone)
            await _publish(kubelets, machine, dict.fromkeys(gfd_labels(machine)))
    finally:
        kubelets.spawn(_publish(kubelets, machine, dict.fromkeys(gfd_labels(machine))), f"gfd/{machine.name}")


def gfd_labels(machine: Machine) -> dict[str, str | None]:
    """What GFD says."""
    return {
        "nvidia.com/gpu.product": machine.product,
        "nvidia.com/gpu.count": str(machine.gpus),
        "nvidia.com/gpu.machine": "simulated",
        "nvidia.com/mig.capable": str(machine.mig_capable).lower(),
    }


async def _publish(kubelets: Kubelets, machine: Machine, wanted: dict[str, str | None]) -> None:
    await asyncio.sleep(kubelets.pace.nfd)
    if wanted != {key: machine.label(key) or None for key in wanted}:
        patch = {"metadata": {"labels": wanted}}
        await kubelets.call(kubelets.api.patch, "Node", machine.name, patch, how=STRATEGIC)


async def driver_with_pull(pod: Pod) -> None:
    """The driver manager, once the images are there."""
    await pod.pull(lambda: pod.machine.faults.pull_fails)
    await driver.driver_manager(pod)


async def images(pod: Pod) -> None:
    """What pulls a driver's images beforehand, and does nothing else."""
    await pod.pull(lambda: pod.machine.faults.pull_fails)
    await plain_pod(pod)


INITS = {
    driver.MANAGER: driver_with_pull,
    "gpustack-wait-for-driver": wait_for_driver,
    "driver-validation": validate_driver,
    "toolkit-validation": validate_toolkit,
    "cuda-validation": validate_cuda,
    "plugin-validation": validate_plugin,
}
"""Init container -> what it does."""

PROGRAMS = {
    "nvidia-driver": driver.driver,
    "nvidia-mig-manager": mig.mig_manager,
    "nvidia-container-toolkit-daemonset": toolkit,
    "nvidia-device-plugin-daemonset": device_plugin,
    "gpu-feature-discovery": gfd,
    "nvidia-operator-validator": validator,
    "gpustack-images": images,
}
"""Role of a pod -> what it does; all others start, are ready and run."""


def gpu_kubelets(api: Api, pace: Pace | None = None) -> Kubelets:
    """Kubelets whose pods behave like NVIDIA's operands."""
    return Kubelets(api, programs=PROGRAMS, inits=INITS, pace=pace)
