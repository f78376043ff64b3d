"""What NVIDIA's own programs did on a real GPU, as tests read it, and the policy that a case stands for."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.hardware.pack.pack import cases

FOLDER = Path(__file__).resolve().parent / "measured"
UUID = "GPU-00000000-0000-0000-0000-000000000000"
ENVIRONMENT = {"MIG_STRATEGY", "DEVICE_LIST_STRATEGY", "DEVICE_ID_STRATEGY", "PASS_DEVICE_SPECS", "FAIL_ON_INIT_ERROR"}
"""Variables of a case that a policy can say in devicePlugin.env; a case that removes one has no policy like it."""


class Measured(NamedTuple):
    """One case on one machine: the programs' version, its card's name in labels, how many, and what came out of it."""

    file: str
    version: str
    product: str
    cards: int
    name: str
    found: dict[str, Any]
    labels: dict[str, str | None]

    @property
    def ends(self) -> bool:
        """Whether the device plugin exits."""
        return "ends" in self.found

    @property
    def waits(self) -> bool:
        """Whether it runs and offers nothing yet: for the MPS daemon, which is never started in a trial."""
        return "waits" in self.found


def files() -> list[Path]:
    """The results of each version on each card."""
    return sorted(path for path in FOLDER.glob("*-v*.json"))


@functools.cache
def load(file: Path) -> dict[str, Any]:
    """The facts in FILE."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def measured() -> list[Measured]:
    """Every case on every card, with all of its labels."""
    rows = []
    for file in files():
        body = load(file)
        product = body["labels"]["nvidia.com/gpu.product"]
        for name, found in body["cases"].items():
            labels = {**body["labels"], **found.get("labels", {})} if "discovery" not in found else {}
            rows.append(Measured(file.stem, body["plugin"], product, len(body["gpus"]), name, found, labels))
    return rows


def text_of(name: str) -> str | None:
    """The text of the case NAME, None where it has no file or its environment is none that a policy writes."""
    case = cases()[name]
    env = case.get("env", {})
    if case["text"] is None or case.get("args") or not set(env) <= ENVIRONMENT or None in env.values():
        return None
    return str(case["text"]).replace("GPU_UUID", UUID)


def policy_of(version: str, product: str, cards: int, env: dict[str, str]) -> dict[str, Any]:
    """The sections of a policy whose nodes have so many CARDS, and a device plugin of VERSION with ENV, which reads the
    configuration `one`."""
    return {
        "mig": {"strategy": "single"},
        "cdi": {"enabled": False},
        "nodePools": [{"name": "a", "os": "ubuntu22.04", "gpuProduct": product, "gpusPerNode": cards}],
        "devicePlugin": {
            "version": version,
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "config": {"name": "c", "default": "one", "data": {"one": "version: v1"}},
        },
    }
