"""Run NVIDIA's device plugin and GPU feature discovery on a machine with a GPU, once a case, and write what they said.

Solves: such a machine is lent for minutes, has no network and nothing of this project. So this file needs Python's
standard library alone (and nvidia-ml-py for the card's own limits, where it is there), and lies beside the programs
that tools/hardware.sh packs. Every case gets a mount namespace of its own, so that many plugins run side by side,
although the kubelet's folder is fixed in them. Only reading calls are made: nothing on the card changes, and no daemon
is started.

    python3 run.py OUT [VERSION...]
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PLUGINS = "/var/lib/kubelet/device-plugins"
RENDERED = {
    "MIG_STRATEGY": "single",
    "PASS_DEVICE_SPECS": "true",
    "FAIL_ON_INIT_ERROR": "true",
    "DEVICE_LIST_STRATEGY": "envvar",
    "DEVICE_ID_STRATEGY": "uuid",
    "MPS_ROOT": "/run/nvidia/mps",
    "NVIDIA_VISIBLE_DEVICES": "all",
}
"""What the rendered DaemonSet of the device plugin has in its environment, on a release without CDI."""
DISCOVERY = {"GFD_ONESHOT": "true", "GFD_USE_NODE_FEATURE_API": "false", "GFD_SLEEP_INTERVAL": "60s"}
UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
STAMP = re.compile(r"^[EIWF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [\w.-]+:\d+\] ", re.MULTILINE)


def main(arguments: list[str]) -> None:
    """Write plugin-VERSION.json for each version, nvml.json and nvidia-smi.xml into the folder OUT."""
    out = Path(arguments[0])
    versions = arguments[1:] or sorted(path.name for path in HERE.glob("v*") if path.is_dir())
    cases = json.loads((HERE / "cases.json").read_text())
    uuids = UUID.findall(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout)
    machine = card(out)
    for version in versions:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 4) as pool:
            jobs = {name: pool.submit(case, version, wanted, uuids) for name, wanted in cases.items()}
            found = {name: job.result() for name, job in jobs.items()}
        body = {**machine, "plugin": version, "environment": RENDERED, "discovery": DISCOVERY, "cases": found}
        (out / f"plugin-{version}.json").write_text(json.dumps(body, indent=1, sort_keys=True) + "\n")
        sys.stdout.write(f"{version}: {len(found)} cases\n")


def case(version: str, wanted: dict[str, Any], uuids: list[str]) -> dict[str, Any]:
    """What both programs of VERSION make of one case."""
    with tempfile.TemporaryDirectory() as folder:
        env = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in os.environ} | RENDERED
        text = wanted["text"]
        if text is not None:
            file = Path(folder, "config.yaml")
            file.write_bytes(text.replace("GPU_UUID", uuids[0]).encode())
            env["CONFIG_FILE"] = str(file)
        for name, value in wanted.get("env", {}).items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        hide = env.pop("HIDE_NVML", "") == "true"
        plugin = [str(HERE / "kubelet"), "--", str(HERE / version / "nvidia-device-plugin"), *wanted.get("args", [])]
        done = run(apart(plugin, hide=hide), env)
        try:
            result = json.loads(done.stdout)
        except ValueError:
            result = {"exit": done.returncode, "resources": {}, "log": done.stdout + done.stderr}
        result["log"] = words(result["log"])
        labels = Path(folder, "labels")
        defaults = DISCOVERY | {"GFD_OUTPUT_FILE": str(labels)}
        changed = wanted.get("env", {})
        own = {name: value for name, value in defaults.items() if changed.get(name, value) is not None}
        discovery = run(apart([str(HERE / version / "gpu-feature-discovery")], hide=hide), env | own)
        lines = labels.read_text().split() if labels.is_file() else []
        result["gfd"] = {
            "exit": discovery.returncode,
            "labels": dict(sorted(line.split("=", 1) for line in lines if "timestamp" not in line)),
            "log": words(discovery.stderr) if discovery.returncode else "",
        }
        anonymous: dict[str, Any] = json.loads(nameless(json.dumps(result), uuids).replace(folder, "FOLDER"))
        return anonymous


def apart(command: list[str], *, hide: bool) -> list[str]:
    """COMMAND in a mount namespace of its own, with an empty folder of the kubelet's; with HIDE, without NVML."""
    script = f"mkdir -p {PLUGINS} && mount -t tmpfs none {PLUGINS}"
    if hide:
        script += (
            '; for lib in $(find /usr -name "libnvidia-ml.so*" 2>/dev/null); do mount --bind /dev/null "$lib"; done'
        )
    return ["unshare", "-m", "sh", "-c", f'{script}; exec "$@"', "sh", *command]


def run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What COMMAND said, with ENV alone in its environment; 124 where it took a minute."""
    try:
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(command, 124, "", str(late))


def words(log: str) -> str:
    """The last words of LOG that aren't the configuration it prints: errors and warnings, without their times."""
    told = [line for line in log.splitlines() if line[:1] in "EWF" and STAMP.match(line)]
    told = told or [line for line in log.splitlines() if line[:1] == "I"][-1:] or log.splitlines()[-1:]
    return STAMP.sub("", "\n".join(told[-4:]))[:600]


def nameless(text: str, uuids: list[str]) -> str:
    """TEXT without what names one card: its UUIDs are GPU-0, GPU-1..."""
    for index, uuid in enumerate(uuids):
        text = text.replace(uuid, f"GPU-{index}")
    return text


def card(out: Path) -> dict[str, Any]:
    """What the machine is; writes what NVML and nvidia-smi say of its cards."""
    smi = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True).stdout
    private = "serial|uuid|gsn|pdi|chassis_serial_number|board_id|board_part_number|cluster_uuid|[a-z_]*uid"
    kept = re.sub(rf"(?<=<)({private})>(?!N/A)([^<]*)", lambda found: f"{found[1]}>{zeros(found[2])}", smi)
    (out / "nvidia-smi.xml").write_text(kept)
    driver = re.search(r"<driver_version>([^<]*)", smi)
    machine = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "driver": driver[1] if driver else "",
        "gpus": re.findall(r"<product_name>([^<]*)", smi),
        "kernel": os.uname().release,
    }
    try:
        cards = limits()
    except Exception as error:  # noqa: BLE001 - what the programs say is worth having without it
        cards = [{"error": repr(error)}]
    (out / "nvml.json").write_text(json.dumps({**machine, "cards": cards}, indent=1, sort_keys=True) + "\n")
    return machine


def zeros(value: str) -> str:
    """VALUE with a zero for each digit: an id that names no card, and is read like one."""
    return re.sub(r"[0-9a-f]", "0", value)


def limits() -> list[dict[str, Any]]:
    """Each card's names, memory, MIG profiles with placements, and the limits of power, clocks and temperature."""
    import pynvml as nvml  # type: ignore[import-not-found,import-untyped,unused-ignore]

    nvml.nvmlInit()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    found = [one_card(nvml, handle) for handle in handles]
    nvml.nvmlShutdown()
    return found


def one_card(nvml: Any, device: Any) -> dict[str, Any]:
    """What NVML says of one card, in MiB, mW, MHz and degrees Celsius."""
    pci = nvml.nvmlDeviceGetPciInfo(device)
    clocks = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}
    thresholds = {"shutdown": 0, "slowdown": 1, "memory_max": 2, "gpu_max": 3}
    return {
        "name": nvml.nvmlDeviceGetName(device),
        "memory_mib": nvml.nvmlDeviceGetMemoryInfo(device).total // 2**20,
        "pci_device": f"0x{pci.pciDeviceId:08X}",
        "pci_subsystem": f"0x{pci.pciSubSystemId:08X}",
        "compute": list(nvml.nvmlDeviceGetCudaComputeCapability(device)),
        "mig": asked(nvml.nvmlDeviceGetMigMode, device),
        "power_mw": {
            "range": asked(nvml.nvmlDeviceGetPowerManagementLimitConstraints, device),
            "default": asked(nvml.nvmlDeviceGetPowerManagementDefaultLimit, device),
            "enforced": asked(nvml.nvmlDeviceGetEnforcedPowerLimit, device),
        },
        "max_clocks_mhz": {name: asked(nvml.nvmlDeviceGetMaxClockInfo, device, kind) for name, kind in clocks.items()},
        "temperature_c": {
            name: asked(nvml.nvmlDeviceGetTemperatureThreshold, device, kind) for name, kind in thresholds.items()
        },
        "profiles": profiles(nvml, device),
    }


def asked(question: Any, *arguments: Any) -> Any:
    """The answer, or NVML's word where it has none."""
    try:
        return question(*arguments)
    except Exception as error:  # noqa: BLE001 - recorded as what NVML said
        return str(error)


def profiles(nvml: Any, device: Any) -> list[dict[str, Any]]:
    """The MIG profiles of a card by NVML's numbers for them, each with where its instances may stand."""
    found = []
    for kind in range(24):
        info = asked(lambda number=kind: nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, number, version=2))
        if isinstance(info, str):
            continue  # this card doesn't have it
        name = info.name.decode() if isinstance(info.name, bytes) else info.name
        row = {"kind": kind, "name": name.removeprefix("MIG "), "id": info.id, "max": info.instanceCount}
        row |= {"memory_mib": info.memorySizeMB, "sm": info.multiprocessorCount, "slices": info.sliceCount}
        row |= {"ce": info.copyEngineCount, "dec": info.decoderCount, "enc": info.encoderCount}
        row |= {"jpeg": info.jpegCount, "ofa": info.ofaCount, "placements": asked(placements, nvml, device, info.id)}
        found.append(row)
    return found


def placements(nvml: Any, device: Any, profile: int) -> list[list[int]]:
    """Where instances of PROFILE may stand: start and size, in memory slices."""
    count = ctypes.c_uint(0)
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(device, profile, None, ctypes.byref(count))
    rows = (nvml.c_nvmlGpuInstancePlacement_t * count.value)()
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(device, profile, rows, ctypes.byref(count))
    return [[row.start, row.size] for row in rows[: count.value]]


if __name__ == "__main__":
    main(sys.argv[1:])
