"""The driver pod: k8s-driver-manager in its init container, then the driver (reconciler.md 2.13 and 2.14).

Simulated: the decision between "no module", "same digest" and "full" (D3 to D8), pausing and waiting (D5), the refusal
to evict where the upgrade annotation says that a controller does it (D6, L31), failing with all operands brought back,
so that a crash loop bounces them (D11), the load, the startup probe, and the attempt to unload at the end (D13).
"""

from __future__ import annotations

from tests.control_plane.actors import labels
from tests.control_plane.api import ApiError
from tests.control_plane.pod import Pod

MANAGER = "k8s-driver-manager"
CONTAINER = "nvidia-driver-ctr"
UPGRADE_ENABLED = "nvidia.com/gpu-driver-upgrade-enabled"

ALWAYS = (
    "operator-validator",
    "container-toolkit",
    "device-plugin",
    "gpu-feature-discovery",
    "dcgm",
    "dcgm-exporter",
    "nvsm",
    "sandbox-validator",
    "sandbox-device-plugin",
    "vgpu-device-manager",
    "dra-validator",
    "dcgm-dra",
    "dcgm-exporter-dra",
)
"""Paused in one write, deployed or not."""
IF_SET = ("mig-manager", "client")
WAITED = ("operator-validator", "container-toolkit", "device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm")
WAITED_IF_SET = ("mig-manager", "sandbox-validator", "sandbox-device-plugin", "vgpu-device-manager")

MODULE_USERS = ("nvidia-device-plugin-daemonset", "nvidia-dcgm", "nvidia-dcgm-exporter", "gpu-feature-discovery")


class CannotUnloadError(Exception):
    """The module is in use."""


def gpu_pods(pod: Pod) -> list[Pod]:
    """Running pods with GPUs on the pod's machine."""
    return [one for one in pod.kubelets.on(pod.machine) if one.running and one.takes_gpu and not one.finished]


def in_use(pod: Pod) -> bool:
    """Whether anything on the machine holds the module."""
    return bool(gpu_pods(pod)) or any(one.running and one.app in MODULE_USERS for one in pod.kubelets.on(pod.machine))


async def driver_manager(pod: Pod) -> None:
    """The init container: again and again until it succeeds."""
    while True:
        try:
            await _uninstall(pod)
        except CannotUnloadError as error:
            await pod.crash(MANAGER, str(error))
        else:
            return


async def _uninstall(pod: Pod) -> None:
    machine = pod.machine
    before = await labels.components(pod, [*ALWAYS, *IF_SET])
    may_evict = machine.annotation(UPGRADE_ENABLED) != "true" and pod.env("ENABLE_GPU_POD_EVICTION", MANAGER) == "true"
    loaded = machine.driver is not None
    try:
        if loaded and machine.driver != pod.env("DRIVER_CONFIG_DIGEST", MANAGER):
            await _pause(pod, before)
            await _unload(pod, may_evict=may_evict)
        if may_evict and machine.driver is None:
            await _cordon(pod, yes=False)  # whoever cordoned it (D4, D10, P1)
    except CannotUnloadError:
        await _restore(pod)
        raise
    await _restore(pod)  # a manager that is killed comes to neither: what it paused stays so (P29)


async def _unload(pod: Pod, *, may_evict: bool) -> None:
    if pod.machine.faults.driver_manager_fails:
        raise CannotUnloadError("failed to uninstall the driver components")
    if may_evict:
        await _evict(pod)
    if in_use(pod):
        raise CannotUnloadError("the driver's module is in use, and eviction is left to the upgrade controller")
    pod.machine.driver = None
    pod.machine.changed()


async def _pause(pod: Pod, before: dict[str, str]) -> None:
    names = [*ALWAYS, *(name for name in IF_SET if before[name])]
    await labels.write(pod, {labels.DEPLOY + name: labels.paused_for_driver(before[name]) for name in names})
    waited = [*WAITED, *(name for name in WAITED_IF_SET if before.get(name))]
    if not await labels.wait_gone(pod, waited):
        raise CannotUnloadError("timed out waiting for the operands' pods")


async def _restore(pod: Pod) -> None:
    now = await labels.components(pod, [*ALWAYS, *IF_SET])
    back = {labels.DEPLOY + name: labels.back_from_driver(value) for name, value in now.items()}
    await labels.write(
        pod, {key: value for key, value in back.items() if value != now[key.removeprefix(labels.DEPLOY)]}
    )


async def _evict(pod: Pod) -> None:
    """Cordon, and evict the pods with GPUs; a PodDisruptionBudget's no is the end of this attempt."""
    await _cordon(pod, yes=True)
    for one in gpu_pods(pod):
        try:
            await pod.kubelets.call(pod.kubelets.api.evict, one.name, one.namespace)
        except ApiError as error:
            await _cordon(pod, yes=False)
            raise CannotUnloadError(f"cannot evict {one.namespace}/{one.name}: {error.message}") from error
    if not await pod.within(lambda: not gpu_pods(pod), pod.kubelets.pace.pod_wait):
        await _cordon(pod, yes=False)
        raise CannotUnloadError("timed out waiting for evicted pods")


async def _cordon(pod: Pod, *, yes: bool) -> None:
    await pod.kubelets.call(pod.kubelets.api.patch, "Node", pod.machine.name, {"spec": {"unschedulable": yes or None}})


async def driver(pod: Pod) -> None:
    """The driver's own container."""
    machine, pace = pod.machine, pod.kubelets.pace
    await pod.start()
    try:
        await pod.sleep(pace.driver)
        while machine.faults.driver_crashes:
            await pod.crash(CONTAINER, "the kernel module does not build")
        machine.driver = pod.env("DRIVER_CONFIG_DIGEST", CONTAINER) or "unknown"
        await pod.until(lambda: not machine.faults.driver_never_ready)
        await pod.sleep(pace.probe)
        machine.write(".driver-ctr-ready")
        await pod.ready()
        await pod.forever()
    finally:
        machine.remove(".driver-ctr-ready", ".driver-daemons-status")
        if not in_use(pod):
            machine.driver = None
            machine.changed()
