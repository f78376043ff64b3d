"""mig-manager v0.15.0, with its defects (reconciler.md 3.1 to 3.3).

It acts on the newest value of nvidia.com/mig.config when the label changes and once at its start (M2), leaves the old
`success` in place until it writes `pending` (M3), never looks at anybody's pods (M6), pauses over any value but an
opt-out (L22), and restores "true" for what it paused (M15). Defects: M13 (some failures leave `pending` and paused
operands, without a retry) and M14 (after its first success, a process no longer brings operands back when it fails).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import yaml

from tests.control_plane.actors import labels
from tests.control_plane.pod import Pod

CONFIG = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
PAUSED = ("device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm", "nvsm")
VALIDATOR = "nvidia-operator-validator"

Wanted = tuple[bool, dict[str, int]]
"""MIG mode, and instances per profile."""


class MigError(Exception):
    """The configuration could not be applied; `quiet` is a failure of the kind M13: no state is written."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        super().__init__(what)
        self.quiet = quiet


async def mig_manager(pod: Pod) -> None:
    """The program of the pod; `restored` is its package global (M14)."""
    await pod.sleep(pod.kubelets.pace.start)
    await pod.start()
    await pod.ready()
    restored = False
    wanted = ""
    while True:
        await pod.until(partial(_is_new, pod, wanted))
        wanted = pod.machine.label(CONFIG)
        await pod.sleep(pod.kubelets.pace.mig_notice)
        try:
            await _reconfigure(pod, wanted)
            restored = True
            await _restore(pod)
            await _state(pod, "success")
        except MigError as error:
            if not error.quiet:
                if not restored:
                    await _restore(pod)
                await _state(pod, "failed")


def _is_new(pod: Pod, old: str) -> bool:
    return pod.machine.label(CONFIG) not in {"", old}


async def _reconfigure(pod: Pod, name: str) -> None:
    machine, faults = pod.machine, pod.machine.faults
    config = yaml.safe_load(await pod.config("config.yaml"))["mig-configs"]
    if name not in config:
        raise MigError(f"there is no configuration {name}")
    wanted = asked(config[name], machine.device, machine.gpus)
    if wanted == (machine.mig_mode, machine.geometry):
        return
    rebooting = machine.label(STATE) == "rebooting"
    await _state(pod, "pending")
    before = await labels.components(pod, [*PAUSED, "client"])
    names = [*PAUSED, *(["client"] if before["client"] else [])]
    await labels.write(pod, {labels.DEPLOY + one: labels.paused_for_mig(before[one]) for one in names})
    if not await labels.wait_gone(pod, PAUSED) or faults.mig_wait_fails:
        raise MigError("timed out waiting for pods", quiet=True)
    await pod.until(lambda: not faults.mig_hangs)
    await pod.sleep(pod.kubelets.pace.mig)
    if faults.mig_needs_reboot and wanted[0] != machine.mig_mode and not rebooting:
        if pod.env("WITH_REBOOT") != "true":
            raise MigError("the change of the mode needs a reboot")
        machine.mig_mode = wanted[0]
        await _state(pod, "rebooting")
        await pod.kubelets.reboot_from_within(machine)
    if faults.mig_fails:
        machine.geometry = {}  # M11
        raise MigError("the configuration could not be applied")
    if not faults.mig_without_effect:
        machine.mig_mode, machine.geometry = wanted
        machine.changed()
    await _restart_validator(pod)


def asked(entry: list[dict[str, Any]], device: str, gpus: int) -> Wanted:
    """What an entry of the configuration asks of a machine with GPUs of one kind; later items win (M19)."""
    per_gpu: dict[int, Wanted] = {}
    for item in entry:
        filters = item.get("device-filter", [device])
        if device in ([filters] if isinstance(filters, str) else filters):
            for gpu in range(gpus) if item["devices"] == "all" else item["devices"]:
                per_gpu[gpu] = (item["mig-enabled"], item.get("mig-devices") or {})
    geometry: dict[str, int] = {}
    for _, profiles in per_gpu.values():
        for profile, count in profiles.items():
            geometry[profile] = geometry.get(profile, 0) + count
    return any(mode for mode, _ in per_gpu.values()), geometry


async def _state(pod: Pod, state: str) -> None:
    await labels.write(pod, {STATE: state})


async def _restore(pod: Pod) -> None:
    now = await labels.components(pod, [*PAUSED, "client"])
    back = {name: "true" for name, value in now.items() if value == labels.MIG_PAUSE}
    await labels.write(pod, {labels.DEPLOY + name: value for name, value in back.items()})


async def _restart_validator(pod: Pod) -> None:
    for one in pod.kubelets.on(pod.machine):
        if one.app == VALIDATOR and one.namespace == pod.namespace:
            await pod.kubelets.call(pod.kubelets.api.delete, "Pod", one.name, one.namespace, uid=one.uid)
