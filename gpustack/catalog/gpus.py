"""GPU products, by the name that GPU feature discovery writes into the label nvidia.com/gpu.product.

data/gpus/products.yaml groups products whose boards are alike; the group's key also names the board in
data/gpus/mig.yaml, which is read only when somebody asks for MIG.

A product that is not listed is not a mistake by itself: new boards appear before the catalogue knows them, and a vGPU
guest shows the name of its vGPU type.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpustack.catalog import _data, mig, releases
from gpustack.catalog._lookup import UnknownName, nearest
from gpustack.catalog.mig import MigProfile, ProfileName

VENDOR = "10DE"
VENDORS = ("nvidia", "tesla")
"""Words before a product's name, that tell no product from another."""
MOST_NEAREST = 5
"""How many products are named for a short name: no family has more common boards."""


class UnknownProduct(UnknownName):
    what = "GPU product"


@dataclass(frozen=True, slots=True)
class Product:
    """One product.

    `family` is the label nvidia.com/gpu.family, `memory_gb` nominal, `pci_ids` and `subsystem_ids` four hexadecimal
    digits. `mig` is the geometry's name, "unknown" where the board takes MIG but its placements are not known, None
    without MIG. `nvswitch`: the node's own base board has NVSwitch. `driver` is the entry of drivers.minimum, None
    where only the family counts. `arch`: the CPU that the board comes with (arm64), None where any may do.
    `nvlink_rack`: nodes of one rack can share memory over NVLink. `rare`: few have such a board."""

    name: str
    board: str
    group: str
    family: str
    compute_capability: str
    memory_gb: int
    pci_ids: tuple[str, ...]
    subsystem_ids: tuple[str, ...] = ()
    mig: str | None = None
    nvswitch: bool = False
    driver: str | None = None
    arch: str | None = None
    nvlink_rack: bool = False
    note: str | None = None
    uncertain: str | None = None
    rare: bool = False

    @property
    def mig_capable(self) -> bool:
        return self.mig is not None

    @property
    def device_filters(self) -> tuple[str, ...]:
        """The PCI ids as a MIG configuration writes them in device-filter: 0x233010DE."""
        return tuple(f"0x{device}{VENDOR}" for device in self.pci_ids)


def products() -> list[str]:
    """The names of all products, in alphabetical order."""
    return sorted(_products())


def product(name: str) -> Product:
    """The product called NAME; UnknownProduct names the nearest ones."""
    try:
        return _products()[name]
    except KeyError:
        raise UnknownProduct(name, nearest_products(name)) from None


def nearest_products(name: str) -> list[str]:
    """The products that NAME may mean, best first. A short name (h100, A100 80GB, h100 sxm) is in the names of several
    products or of their boards: those that have its words whole come first, then what most nodes have. A name that is
    in none is a misspelt one."""
    wanted = [word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in VENDORS]
    meant = []
    for position, known in enumerate(_products().values()):
        words = re.findall(r"[a-z0-9]+", f"{known.name} {known.board}".lower())
        if wanted and all(any(word in other for other in words) for word in wanted):
            meant.append((sum(word not in words for word in wanted), known.rare, position, known.name))
    return [each for *_, each in sorted(meant)[:MOST_NEAREST]] or nearest(name, products())


def mig_profiles(product_name: str | Product) -> tuple[MigProfile, ...]:
    """The MIG profiles of a product, smallest first; empty without MIG, and where they are not known."""
    return mig.board_profiles(_resolved(product_name).group)


def mig_profile(product_name: str | Product, profile: str | ProfileName) -> MigProfile:
    """One profile of a product, by the name that any driver gives it. UnknownProfile names the nearest ones."""
    return mig.find(_resolved(product_name).group, profile)


def fits(product_name: str | Product, layout: Mapping[str, int]) -> bool:
    """Whether LAYOUT (profile to count) can be placed on one GPU: see mig_solver.fits."""
    from gpustack.catalog import mig_solver

    return mig_solver.fits(_resolved(product_name).group, layout)


def default_mig_config(release: str) -> dict[str, Any]:
    """The content of ConfigMap default-mig-parted-config in RELEASE, parsed anew. UnknownRelease for any other. It is
    the same in all releases of the catalogue, so RELEASE is only checked. `texts` has it as text."""
    releases.release(release)
    config: dict[str, Any] = _data.copy(_data.load("mig/default-mig-parted-config"))
    return config


@functools.cache
def _products() -> dict[str, Product]:
    known = {}
    for key, group in _data.load("gpus/products").items():
        for name, facts in group["products"].items():
            ids = {"pci_ids": tuple(facts["pci"]), "subsystem_ids": tuple(facts.get("subsystems", ()))}
            more = {"name": name, "group": key, "compute_capability": group["capability"]}
            known[name] = _data.made(Product, {**group, **facts}, **more, **ids)
    return known


def _resolved(name: str | Product) -> Product:
    return name if isinstance(name, Product) else product(name)
