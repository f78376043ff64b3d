"""Pushes random strings, keys and nestings through the YAML readers and counts what they misread; measures the emitter.

By hand, in the repository: python -m tests.bench.emit_soak [--count 100000] [--seed 1]. Ends with 1 on any misread.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from gpustack.text import emit as emitter
from gpustack.text.emit import emit, emit_value
from tests.readers.go_reader import GoReader, go_reader
from tests.readers.python_readers import PYTHON_READERS, same
from tests.readers.traps import ALPHABET, TRAPS

BATCH = 2000
SLOW = {"pyyaml": 20, "ruamel": 20}
"""The readers in pure Python take a thousand times Go's time: they see one document in so many."""


def text(rng: random.Random) -> str:
    """A string that is likely to mean something to a reader."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(TRAPS)
    if kind == 1:
        trap = rng.choice(TRAPS)
        at = rng.randint(0, len(trap))
        return trap[:at] + rng.choice(ALPHABET) + trap[at + rng.randint(0, 1) :]
    if kind == 2:
        return rng.choice(TRAPS) + rng.choice((" ", "", ": ", "\n", " #", "-")) + rng.choice(TRAPS)
    if kind == 3:
        return "".join(rng.choices("0123456789" * 3 + "+-._:eExXoObBaAfFiInNtTzZ gGmM", k=rng.randint(1, 12)))
    if kind == 4:
        return "\n".join(
            "".join(rng.choices("ab \t#:-'\"|>\u00e9", k=rng.randint(0, 6))) for _ in range(rng.randint(1, 6))
        )
    if kind == 5:
        return "".join(chr(rng.choice((rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)))) for _ in range(4))
    return "".join(rng.choices(ALPHABET, k=rng.randint(0, 14)))


def number(rng: random.Random) -> int | float:
    """Integers of 64 bits and finite floats, the edges more often than chance would."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randint(-(2**63), 2**64 - 1)
    if kind == 1:
        return rng.choice((0, 1, -1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 2**53, 2**53 + 1))
    if kind == 2:
        value: float = struct.unpack("<d", rng.randbytes(8))[0]
        return value if value - value == 0 else 0.5
    return rng.choice((1.0, -0.0, 1e16, 1e15, 2.0**53, 1e-5, 1e-7, 5e-324, 1.7e308, rng.random(), 1e21, -1e22))


def nesting(rng: random.Random, depth: int = 0) -> Any:
    """Mappings and lists in each other, down to six levels."""
    kind = rng.randrange(3 if depth == 0 else 8)
    if kind < 2 and depth < 6:
        return {text(rng): nesting(rng, depth + 1) for _ in range(rng.randint(0, 4))}
    if kind == 2 and depth < 6:
        return [nesting(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    return rng.choice((text(rng), text(rng), number(rng), True, False))


def strings(rng: random.Random) -> Any:
    """A string at each place where one can stand."""
    value = text(rng)
    return rng.choice((value, [value], {"data": value}, {"a": [value], "b": "c"}, [[value, "a"], {"name": value}]))


def keys(rng: random.Random) -> Any:
    """A key before each sort of value."""
    key = text(rng)
    return rng.choice(({key: "a"}, {key: {key: 1}}, [{key: [True], "name": "a"}], {key: [key]}, {"a": "b", key: {}}))


KINDS: dict[str, Callable[[random.Random], Any]] = {"strings": strings, "keys": keys, "nestings": nesting}


def misread(values: list[Any], texts: list[str], go: GoReader) -> dict[str, list[int]]:
    """For each reader the indexes of the documents that it took for something else."""
    found = {
        "go": [n for n, value in enumerate(go.read(texts)) if not same(value, values[n])],
        "go-yaml v3": [n for n, value in enumerate(go.read(texts, v3=True)) if not same(value, values[n])],
    }
    for name, read in PYTHON_READERS.items():
        found[name] = []
        for n in range(0, len(texts), SLOW.get(name, 1)):
            try:
                good = same(read(texts[n]), values[n])
            except Exception:  # noqa: BLE001 - whatever a reader throws is a misread
                good = False
            if not good:
                found[name].append(n)
    return found


def soak(count: int, seed: int) -> int:
    """Print what was read and misread of COUNT random values; return how many were misread."""
    rng = random.Random(seed)
    go = go_reader()
    seen: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    done = 0
    for name, make in KINDS.items():
        left = count // len(KINDS) + (name == "strings") * (count % len(KINDS))
        done += left
        while left > 0:
            values = [make(rng) for _ in range(min(BATCH, left))]
            texts = [emit_value(value) for value in values]
            for reader, indexes in misread(values, texts, go).items():
                seen[reader] += -(-len(values) // SLOW.get(reader, 1))
                bad[reader] += len(indexes)
                for n in indexes[:3]:
                    print(f"MISREAD by {reader}: {values[n]!r}\n{texts[n]}", file=sys.stderr)
            left -= len(values)
    print(f"{done} random {', '.join(KINDS)} (seed {seed})")
    for reader in seen:
        print(f"  {reader:<11} {seen[reader]:>7} read  {bad[reader]} misread")
    return sum(bad.values())


def daemon_set() -> dict[str, Any]:
    """An operand's DaemonSet as large as the driver's."""
    mounts = [{"name": f"host-{n}", "mountPath": f"/run/nvidia/path-{n}", "readOnly": n % 2 == 0} for n in range(12)]
    values = ("true", "all", "1", "0x1F")
    env: list[Any] = [{"name": f"NVIDIA_SETTING_{n}", "value": values[n % 4]} for n in range(16)]
    env.append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    image = "nvcr.io/nvidia/driver:580.105.08-ubuntu22.04"
    containers = [
        {
            "name": f"container-{n}",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c"],
            "args": ["set -e\nuntil nvidia-smi; do\n  echo waiting for the driver\n  sleep 5\ndone\n"],
            "env": env,
            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
            "securityContext": {"privileged": True, "seLinuxOptions": {"level": "s0"}},
            "volumeMounts": mounts,
        }
        for n in range(4)
    ]
    labels = {"app": "nvidia-driver-daemonset", "app.kubernetes.io/component": "nvidia-driver"}
    pod = {
        "containers": containers[:2],
        "initContainers": containers[2:],
        "hostPID": True,
        "nodeSelector": {"nvidia.com/gpu.deploy.driver": "true"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [{"name": f"host-{n}", "hostPath": {"path": f"/run/{n}", "type": "Directory"}} for n in range(12)],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-driver-daemonset", "namespace": "gpu-operator", "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": "nvidia-driver-daemonset"}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "updateStrategy": {"type": "OnDelete"},
        },
    }


def speed() -> None:
    """Print megabytes a second, with the caches of the emitter empty and full; best of several."""
    body = daemon_set()
    size = len(emit(body))
    cold: list[float] = []
    warm: list[float] = []
    for _ in range(200):
        emitter._SCALARS.clear()
        emitter._KEYS.clear()
        for times in (cold, warm):
            start = time.perf_counter()
            emit(body)
            times.append(time.perf_counter() - start)
    print(f"DaemonSet of {size} bytes: {size / min(cold) / 1e6:.1f} MB/s cold, {size / min(warm) / 1e6:.1f} MB/s warm")


def main() -> int:
    """Soak, then measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    start = time.perf_counter()
    bad = soak(arguments.count, arguments.seed)
    print(f"  {time.perf_counter() - start:.0f} s")
    speed()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
