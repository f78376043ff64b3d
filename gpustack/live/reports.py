"""What a person brings from nodes: what commands printed there, and outputs of `nvidia-smi -q -x`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalog import _data, gpus
from ..model import Body, InputError
from .nodes import Hit, labels
from .state import State

if TYPE_CHECKING:
    from ..cluster.pool import Pool

SHARE = 0.1
"""How much of a GPU's nominal memory may be missing: error correction takes 6 % where it is kept in memory (L4)."""
NFD_NODE = "nfd.node.kubernetes.io/node-name"
MODULES = "kernel.loadedmodule"


@cache
def facts() -> Any:
    """The data file of preflight: texts of findings, programs of others, what a host tells."""
    return _data.read(Path(__file__).with_name("preflight.yaml"))


def asked_of(pool: Pool) -> Iterator[str]:
    """What has to be known of the hosts of POOL, by the names of the data file."""
    if pool.driver is not None and pool.driver.for_containers:
        yield "nouveau"
        if not pool.driver.precompiled:
            yield from (
                ("secure-boot", "headers") if pool.system is None or pool.system.id != "rhcos" else ("secure-boot",)
            )
    elif pool.workload == "vm-passthrough":
        yield "iommu"
    elif pool.workload == "container" and pool.product is not None and pool.product.nvswitch:
        yield "fabric-manager"


def of_hosts(pool: Pool, members: Sequence[Body], state: State, hosts: Mapping[str, str]) -> Iterator[Hit]:
    """What HOSTS, by the names of nodes, and node feature discovery tell of MEMBERS of POOL, and what nobody tells."""
    loaded = {}
    for body in state.of("NodeFeature"):
        flags = ((body.get("spec") or {}).get("features") or {}).get("flags") or {}
        loaded[labels(body).get(NFD_NODE) or body["metadata"]["name"]] = flags.get(MODULES)
    for node in members:
        name, unknown = node["metadata"]["name"], []
        for key in asked_of(pool):
            said, text = facts()["hosts"][key], hosts.get(name, "")
            if key == "nouveau" and not text and (modules := loaded.get(name)):
                text = "\n".join(["Module Size", *(f"{module} " for module in modules.get("elements") or {})])
            if match := re.search(said["bad"], text, re.MULTILINE):
                yield Hit(said["id"], " ".join(match[0].split()), name)
            elif not re.search(said["looked"], text, re.MULTILINE):
                unknown.append(said["called"])
        if unknown:
            yield Hit("PRE309", f"not looked at: {', '.join(unknown)}", name)


def of_smi(
    name: str, text: str, of_node: Pool | None, pools: Sequence[Pool]
) -> tuple[list[Hit], list[tuple[Pool, dict[str, Any]]]]:
    """What TEXT, of a file called NAME, tells that no field of a pool says, and the fields, by the pool: OF_NODE, else
    those with its product, else the only one. InputError where it is no output of nvidia-smi."""
    driver, boards = _tag(text, "driver_version"), text.split("<gpu id=")[1:]
    if not driver or not boards:
        what = f"{name} is no output of nvidia-smi: it has no driver_version, or no GPU"
        raise InputError.of("GPU936", what, remedy="write it on the node: nvidia-smi -q -x > NODE.xml")
    products = [_tag(board, "product_name").replace(" ", "-") for board in boards]
    own = [of_node] if of_node else [pool for pool in pools if pool.said.gpuProduct == products[0]]
    own = own or (list(pools) if len(pools) == 1 else [])
    hits = [] if own else [Hit("PRE401", f"no pool has {products[0]}", name, "spec.nodePools")]
    found = []
    for pool in own:
        has: dict[str, Any] = {"gpusPerNode": len(boards), "gpuProduct": products[0]}
        if pool.driver is not None:
            hits.append(Hit("PRE405", f"has driver {driver}; the policy installs one", name, pool.driver.path))
        else:
            has["hostVersion"] = driver
            what = f"has driver {driver}, which the policy doesn't say"
            hits += [] if pool.runs else [Hit("PRE406", what, name, pool.path)]
        for product, board in zip(products, boards, strict=True):
            hits += _of_board(name, pool, product, board)
        found.append((pool, has))
    return [*dict.fromkeys(hits)], found


def _tag(text: str, key: str) -> str:
    match = re.search(rf"<{key}>\s*([^<]*?)\s*</{key}>", text)
    return match[1] if match else ""


def _of_board(name: str, pool: Pool, product: str, board: str) -> Iterator[Hit]:
    """What is amiss with a BOARD of the node NAME: memory, MIG mode, fabric."""
    total = re.search(r"<fb_memory_usage>\s*<total>\s*(\d+) MiB", board)
    nominal = gpus.product(product).memory_gb if product in gpus.products() else 0
    if total and nominal and abs(int(total[1]) / 1024 - nominal) > SHARE * nominal:
        what = f"{product} has {int(total[1]) / 1024:.0f} GiB, and boards of that name have {nominal}"
        yield Hit("PRE403", what, name, f"{pool.path}.gpuProduct")
    mode, cut = _tag(board, "current_mig"), pool.said.sharing.mig is not None
    if (cut and mode not in {"Enabled", "Disabled"}) or (not cut and mode == "Enabled"):
        what = f"the MIG mode is {mode}; the pool {pool.name} {'cuts' if cut else 'does not cut'} its GPUs"
        yield Hit("PRE404", what, name, f"{pool.path}.sharing")
    state = _tag(board.partition("<fabric>")[2], "state")
    if pool.product is not None and pool.product.nvswitch and state not in {"N/A", "Completed", ""}:
        yield Hit("PRE304", f"the state of the fabric is {state}", name)
