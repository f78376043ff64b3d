"""GPU products, and the operator's default MIG configuration."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from gpustack.catalog import _data, gpus, plugin_config
from gpustack.catalog.gpus import UnknownProduct, product
from gpustack.catalog.mig import ProfileName, config_name
from gpustack.catalog.releases import UnknownRelease

ENTRIES = 81
FACTS = 319
DIGEST = "87265feda9dd279e6d6d86d9162aa1d430d276b0e17b65398af99489475ea752"
"""Of the operator's own ConfigMap (the same with v25.10.1, v26.3.1 and v26.7.0): its facts as lines, sorted."""


def facts(value: Any, path: str = "") -> Iterator[str]:
    """Plain data as lines `path = value`; empty maps and lists say nothing."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from facts(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from facts(item, f"{path}[{index}]")
    elif value != []:
        yield f"{path} = {json.dumps(value)}"


def test_products_have_the_names_of_the_node_label() -> None:
    """A name is what NVML reports with dashes for spaces, so it is a label value, and no two products share it."""
    names = gpus.products()
    assert names == sorted(set(names))
    assert len(names) >= 63, "one was lost"
    for name in names:
        assert len(name) <= 63
        assert name.startswith(("NVIDIA-", "Tesla-"))
        assert name.replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("name", "family", "capability", "memory", "pci", "mig", "nvswitch"),
    [
        ("NVIDIA-H100-80GB-HBM3", "hopper", "9.0", 80, "2330", "seven-slice", True),
        ("NVIDIA-H200", "hopper", "9.0", 141, "2335", "seven-slice", True),
        ("NVIDIA-H100-PCIe", "hopper", "9.0", 80, "2331", "seven-slice", False),
        ("NVIDIA-A100-SXM4-40GB", "ampere", "8.0", 40, "20B0", "seven-slice", True),
        ("NVIDIA-A30", "ampere", "8.0", 24, "20B7", "four-slice", False),
        ("NVIDIA-B200", "blackwell", "10.0", 180, "2901", "seven-slice", True),
        ("NVIDIA-GB300", "blackwell", "10.3", 278, "31C2", "seven-slice", False),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "blackwell", "12.0", 96, "2BB5", "rtx-pro-twelve-unit", False),
        ("NVIDIA-RTX-PRO-4500-Blackwell", "blackwell", "12.0", 32, "2C31", "unknown", False),
        ("NVIDIA-L40S", "ada-lovelace", "8.9", 48, "26B9", None, False),
        ("NVIDIA-A10G", "ampere", "8.6", 24, "2237", None, False),
        ("Tesla-T4", "turing", "7.5", 16, "1EB8", None, False),
        ("Tesla-V100-SXM2-32GB", "volta", "7.0", 32, "1DB5", None, False),
        ("Tesla-V100-SXM3-32GB", "volta", "7.0", 32, "1DB8", None, True),  # of DGX-2 and HGX-2 alone
    ],
)
def test_product_facts(
    name: str, family: str, capability: str, memory: int, pci: str, mig: str | None, nvswitch: bool
) -> None:
    """What is known of a product is what its vendor's tables say."""
    found = product(name)
    assert (found.family, found.compute_capability, found.memory_gb) == (family, capability, memory)
    assert (found.pci_ids, found.mig, found.nvswitch) == ((pci,), mig, nvswitch)
    assert found.mig_capable is (mig is not None)
    assert found.device_filters == (f"0x{pci}10DE",)


@pytest.mark.parametrize(
    "name", ["L4", "L40", "L40S", "A10", "A16", "A40", "A2", "RTX-6000-Ada-Generation", "RTX-A6000", "GB10"]
)
def test_boards_without_mig(name: str) -> None:
    """Boards that cannot be divided have no profiles, so a policy that tries can be refused."""
    assert not product(f"NVIDIA-{name}").mig_capable
    assert gpus.mig_profiles(f"NVIDIA-{name}") == ()


@pytest.mark.parametrize("name", gpus.products())
def test_family_follows_from_the_compute_capability(name: str) -> None:
    """The family is what GPU feature discovery writes for the compute capability, as far back as its table goes."""
    found = product(name)
    assert plugin_config.family(found.compute_capability) in {found.family, None}
    assert (plugin_config.family(found.compute_capability) is None) == (found.family in {"pascal", "maxwell"})


def test_pci_ids_tell_products_apart() -> None:
    """Two products with the same device id and subsystem could not be told apart by a device filter."""
    shared = {
        pci: [name for name in gpus.products() if pci in product(name).pci_ids]
        for pci, count in Counter(pci for name in gpus.products() for pci in product(name).pci_ids).items()
        if count > 1
    }
    assert shared == {
        "2342": ["NVIDIA-GH200-120GB", "NVIDIA-GH200-480GB"],  # one board, two sizes of CPU memory
        "25B6": ["NVIDIA-A16", "NVIDIA-A2"],  # told apart by the subsystem
        "2BB3": ["NVIDIA-RTX-PRO-5000-72GB-Blackwell", "NVIDIA-RTX-PRO-5000-Blackwell"],  # as well
    }


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA H200", "NVIDIA-H200"),
        ("nvidia-a100-sxm4-80gb", "NVIDIA-A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-40GB-SHARED", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-Tesla-T4", "Tesla-T4"),
        ("l40s", "NVIDIA-L40S"),
    ],
)
def test_unknown_product_names_the_nearest(written: str, nearest: str) -> None:
    """Spaces, case, a missing vendor and the suffixes of sharing lead back to the product."""
    with pytest.raises(UnknownProduct) as caught:
        product(written)
    assert caught.value.nearest[0] == nearest


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("H100", "NVIDIA-H100-80GB-HBM3 NVIDIA-H100-PCIe NVIDIA-H100-NVL NVIDIA-H100-96GB NVIDIA-H100"),
        ("a100", "NVIDIA-A100-SXM4-40GB NVIDIA-A100-PCIE-40GB NVIDIA-A100-SXM4-80GB NVIDIA-A100-80GB-PCIe"),
        ("Tesla A100 80GB", "NVIDIA-A100-SXM4-80GB NVIDIA-A100-80GB-PCIe"),
        ("H100 SXM", "NVIDIA-H100-80GB-HBM3"),
        ("L4", "NVIDIA-L4 NVIDIA-L40 NVIDIA-L40S"),
        ("B200", "NVIDIA-B200 NVIDIA-GB200"),
    ],
)
def test_a_short_name_means_the_common_boards_first(written: str, meant: str) -> None:
    """What data centres have (SXM, PCIe) comes before boards made for one customer, and all of it is named."""
    with pytest.raises(UnknownProduct) as caught:
        product(written)
    assert list(caught.value.nearest)[: len(meant.split())] == meant.split()


def test_default_mig_config_is_the_operators() -> None:
    """The parsed default configuration equals the one that the operator creates, entry by entry."""
    config = gpus.default_mig_config("v26.7.0")
    assert len(config["mig-configs"]) == ENTRIES
    lines = sorted(facts(config))
    assert len(lines) == FACTS
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == DIGEST
    assert gpus.default_mig_config("v25.10.0") == config


def test_default_mig_config_spells_out_what_a_digest_hides() -> None:
    """MIG off, MIG on without instances, and one board by one, in the format of the MIG manager."""
    configs = gpus.default_mig_config("v26.7.0")["mig-configs"]
    assert configs["all-disabled"] == [{"devices": "all", "mig-enabled": False}]
    assert configs["all-enabled"] == [{"devices": "all", "mig-enabled": True, "mig-devices": {}}]
    assert configs["all-3g.40gb"] == [{"devices": "all", "mig-enabled": True, "mig-devices": {"3g.40gb": 2}}]
    assert [element["mig-devices"] for element in configs["all-1g.10gb"]] == [{"1g.10gb": 7}, {"1g.10gb": 4}]
    assert len(configs["all-balanced"]) == 12


def test_default_mig_config_is_a_fresh_copy() -> None:
    """A caller may add its own layouts to what it gets."""
    gpus.default_mig_config("v26.7.0")["mig-configs"].clear()
    assert len(gpus.default_mig_config("v26.7.0")["mig-configs"]) == ENTRIES


def test_default_mig_config_of_an_unknown_release() -> None:
    """A release that is not known has no configuration."""
    with pytest.raises(UnknownRelease):
        gpus.default_mig_config("v26.7")


def elements() -> Iterator[tuple[str, dict[str, Any]]]:
    """All elements of the default configuration that make instances."""
    for name, entry in gpus.default_mig_config("v26.7.0")["mig-configs"].items():
        yield from ((name, element) for element in entry if element.get("mig-devices"))


def filters(element: dict[str, Any]) -> set[str]:
    """The device filter of an element, which may be one text or a list."""
    found = element.get("device-filter", [])
    return {found} if isinstance(found, str) else set(found)


def test_every_profile_of_the_default_config_resolves() -> None:
    """Each profile that a layout uses exists on a product, under its name or the one that older drivers give it."""
    known = {
        name
        for item in gpus.products()
        for profile in gpus.mig_profiles(item)
        for name in (profile.name, profile.alias)
    }
    used = {profile for _, element in elements() for profile in element["mig-devices"]}
    assert used <= known


def test_every_layout_of_the_default_config_fits_where_it_applies() -> None:
    """A layout fits on each product that its filter names, or on at least one where it has no filter."""
    for name, element in elements():
        layout = element["mig-devices"]
        ids = filters(element)
        found = [product(item) for item in gpus.products() if product(item).mig not in {None, "unknown"}]
        found = [item for item in found if not ids or ids & set(item.device_filters)]
        fitting = {item.name for item in found if has_profiles(item, layout) and gpus.fits(item, layout)}
        if (name, sorted(ids)) == ("all-1g.35gb", ["0x31C210DE"]):
            assert fitting == {"NVIDIA-GB300"}
        elif ids:
            assert fitting == {item.name for item in found}, name
        else:
            assert fitting, name


def has_profiles(item: gpus.Product, layout: dict[str, int]) -> bool:
    """Whether a product has all profiles of a layout."""
    names = {name for profile in gpus.mig_profiles(item) for name in (profile.name, profile.alias)}
    return set(layout) <= names


def test_filters_of_the_default_config_name_known_products() -> None:
    """Each PCI id that the default configuration filters by is a product's, and those products know it."""
    used = {text for _, element in elements() for text in filters(element)}
    filtered = {item for item in gpus.products() if set(product(item).device_filters) & used}
    assert {text for item in filtered for text in product(item).device_filters} == used
    groups = [group["products"] for group in _data.load("gpus/products").values() if "mig" in group]
    assert filtered == {item for group in groups for item, facts in group.items() if facts.get("in_default", True)}


def test_ordinary_entries_are_called_after_their_profile() -> None:
    """all-<profile> holds that profile, so config_name finds the layout of a profile."""
    for name, entry in gpus.default_mig_config("v26.7.0")["mig-configs"].items():
        if name in {"all-disabled", "all-enabled", "all-balanced"}:
            continue
        (profile,) = {profile for element in entry for profile in element["mig-devices"]}
        assert config_name(ProfileName.parse(profile)) == name


def test_products_do_not_read_mig_data(files_read: list[str]) -> None:
    """Looking at a product is cheap: its MIG profiles are read when somebody asks for them."""
    gpus._products.cache_clear()
    assert product("Tesla-T4").memory_gb == 16
    assert files_read == ["gpus/products"]
