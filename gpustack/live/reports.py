"""What a person brings from nodes: what commands printed there, and outputs of `nvidia-smi -q -x`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalog import _data
from .nodes import Hit

if TYPE_CHECKING:
    from ..cluster.pool import Pool


@cache
def facts() -> Any:
    """The data file of preflight: texts of findings, programs of others, what a host tells."""
    return _data.read(Path(__file__).with_name("preflight.yaml"))


def asked_of(pool: Pool) -> Iterator[str]:
    """What has to be known of the hosts of POOL, by the names of the data file."""
    if pool.workload != "container":
        yield from ("iommu",) if pool.workload == "vm-passthrough" else ()
        return
    yield "mig-mode" if pool.said.sharing.mig is not None else "no-mig-mode"
    if pool.driver is not None:
        yield from ("nouveau",) if pool.driver.precompiled else ("nouveau", "secure-boot", "headers")
    elif pool.product is not None and pool.product.nvswitch:
        yield from ("fabric-manager", "fabric")


def signs(pool: Pool, node: str, text: str) -> Iterator[Hit]:
    """What TEXT, all that was brought from NODE of POOL, tells, and what it does not tell."""
    unknown = []
    for key in asked_of(pool):
        said = facts()["hosts"][key]
        if match := re.search(said["bad"], text, re.MULTILINE):
            yield Hit(said["id"], " ".join(match[0].split()), node, pool.path)
        elif not re.search(said["looked"], text, re.MULTILINE):
            unknown.append(said["called"])
    if unknown:
        yield Hit("PRE309", f"not looked at: {', '.join(unknown)}", node)


def told(text: str) -> dict[str, Any]:
    """What an output of nvidia-smi in TEXT tells, by the names of a pool's fields; `hostVersion` is the driver's, and
    `memory` is in GiB. Empty where there is none in it."""
    products = re.findall(r"<product_name>([^<]*)<", text)
    driver = re.search(r"<driver_version>([^<]*)<", text)
    memory = re.search(r"<fb_memory_usage>\s*<total>\s*(\d+) MiB", text)
    if not products or not driver:
        return {}
    known = {"gpuProduct": products[0].replace(" ", "-"), "gpusPerNode": len(products), "hostVersion": driver[1]}
    return known | ({"memory": int(memory[1]) / 1024} if memory else {})
