"""vGPU types, and the names under which virtual machines get GPUs."""

from __future__ import annotations

import re

import pytest
import yaml

from gpustack.catalog import gpus, releases, texts, vgpu

ADDED = (
    "B300X-1-34C B300X-1-34CME B300X-1-67C B300X-2-67C B300X-3-135C B300X-4-135C B300X-7-269C B300X-269C "
    "DC-1-16C DC-1-16Q DC-2-8C DC-2-8Q DC-2-32C DC-2-32Q 6000D-1-42CGFX 6000D-1-42QGFX 6000D-2-84CGFX 6000D-2-84QGFX "
    "DC-1-2QGFX DC-1-3QGFX DC-1-4QGFX DC-1-6QGFX DC-1-8CGFX DC-1-8QGFX DC-1-12CGFX DC-1-12QGFX DC-1-24CGFX DC-1-24QGFX "
    "DC-2-12CGFX DC-2-12QGFX DC-2-16CGFX DC-2-16QGFX DC-2-24CGFX DC-2-24QGFX DC-2-48CGFX DC-2-48QGFX DC-4-24CGFX "
    "DC-4-24QGFX DC-4-32CGFX DC-4-32QGFX DC-4-48CGFX DC-4-48QGFX DC-4-96CGFX DC-4-96QGFX"
).split()
"""Source: operator-releases.md 6.12, and the facts of case 23 of both releases."""


@pytest.mark.parametrize("name", releases.names())
def test_default_sets(name: str) -> None:
    """711 sets since v26.7, 667 before; each but `default` makes one type, called like the set (operator.md 9.4)."""
    found = yaml.safe_load(texts.vgpu_devices_config(name))
    assert found.keys() == {"version", "vgpu-configs"}
    sets = found["vgpu-configs"]
    new = releases.names().index(name) >= releases.names().index("v26.7.0")
    assert len(sets) == (711 if new else 667)
    assert len(sets.pop("default")) == (56 if new else 54)
    for vgpu_type, elements in sets.items():
        ((only),) = elements
        assert only.keys() == {"devices", "vgpu-devices"}
        assert list(only["vgpu-devices"]) == [vgpu_type]
        assert only["devices"] == "all"


def test_sets_are_those_of_the_text() -> None:
    """Reading one set at a time gives what reading the whole text gives."""
    whole = yaml.safe_load(texts.vgpu_devices_config("v26.7.0"))["vgpu-configs"]
    assert dict(vgpu.default_config("v26.7.0")) == whole
    assert len(vgpu.default_config("v26.7.0")) == len(whole)


def test_sets_that_v26_7_added() -> None:
    """44 sets are new in v26.7, and none was removed or changed (operator-releases.md 6.12)."""
    old, new = vgpu.default_config("v26.3.1"), vgpu.default_config("v26.7.0")
    assert set(new) - set(old) == set(ADDED)
    assert {name: new[name] for name in old if name != "default"} == {k: v for k, v in old.items() if k != "default"}
    assert new["default"][:54] == old["default"]


def test_no_mark_is_left_in_the_text() -> None:
    """The marks that say since when a line is there are not the ConfigMap's."""
    assert "since v" not in texts.vgpu_devices_config("v26.7.0")
    assert "since v" not in texts.vgpu_devices_config("v25.10.0")


def test_filters_are_text() -> None:
    """A device filter without quotes would be a number to YAML, and match nothing."""
    for element in vgpu.default_config("v26.7.0")["default"]:
        assert re.fullmatch(r"0x[0-9A-F]{4}10DE", element["device-filter"])


def test_types_of_a_set() -> None:
    """Elements for other GPUs don't count, and without a product a set for several says nothing."""
    default = vgpu.default_config("v26.7.0")["default"]
    assert vgpu.types(default, gpus.product("NVIDIA-A10")) == ["A10-12Q"]
    assert vgpu.types(default, None) == []
    assert vgpu.types(vgpu.default_config("v26.7.0")["A10-8Q"], None) == ["A10-8Q"]


def test_boards() -> None:
    """What a GPU's types begin with, as the default set tells; nothing for GPUs that it doesn't know."""
    assert vgpu.boards(gpus.product("NVIDIA-A100-SXM4-40GB"), "v26.7.0") == {"A100X"}
    assert vgpu.boards(gpus.product("Tesla-P40"), "v26.7.0") == frozenset()


@pytest.mark.parametrize("text", ["a: [", "just text", "version: v1", "vgpu-configs: 1"])
def test_no_configuration(text: str) -> None:
    """A text that is no configuration of the device manager has no sets."""
    assert vgpu.parsed(text) == {}


@pytest.mark.parametrize(
    ("device", "resource"),
    [
        ("2236", "nvidia.com/GA102GL_A10"),
        ("1EB8", "nvidia.com/TU104GL_TESLA_T4"),
        ("2330", "nvidia.com/GH100_H100_SXM5_80GB"),
        ("25b6", "nvidia.com/GA107GL_A2___A16"),
        ("3182", "nvidia.com/3182"),
        ("2E12", "nvidia.com/2e12"),
    ],
)
def test_resources_of_gpus(device: str, resource: str) -> None:
    """As the plugin forms them from its list; a GPU that the list lacks is called by its id in small letters."""
    assert vgpu.pci_resource(device) == resource
    assert vgpu.pci_selector(device) == f"10DE:{device.upper()}"


def test_every_resource_is_a_name_that_kubernetes_takes() -> None:
    """63 characters behind the domain at most, and the letters of a label."""
    for name in gpus.products():
        for device in gpus.product(name).pci_ids:
            assert re.fullmatch(r"nvidia\.com/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", vgpu.pci_resource(device))


@pytest.mark.parametrize(
    ("product", "vgpu_type", "name", "resource"),
    [
        ("NVIDIA-A10", "A10-24Q", "NVIDIA A10-24Q", "nvidia.com/NVIDIA_A10-24Q"),
        ("Tesla-T4", "T4-2Q", "GRID T4-2Q", "nvidia.com/GRID_T4-2Q"),
        ("Tesla-V100-PCIE-32GB", "V100D-16Q", "GRID V100D-16Q", "nvidia.com/GRID_V100D-16Q"),
        (None, "A40-8Q", "NVIDIA A40-8Q", "nvidia.com/NVIDIA_A40-8Q"),
        (
            "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
            "DC-1-24QGFX",
            "NVIDIA RTX Pro 6000 Blackwell DC-1-24Q",
            "nvidia.com/NVIDIA_RTX_Pro_6000_Blackwell_DC-1-24Q",
        ),
    ],
)
def test_names_of_vgpu_types(product: str | None, vgpu_type: str, name: str, resource: str) -> None:
    """GRID up to Turing and NVIDIA after, with the product where the driver says it; blanks become underscores."""
    assert vgpu.vgpu_name(vgpu_type, gpus.product(product) if product else None, {}) == name
    assert vgpu.vgpu_resource(name) == resource
    assert vgpu.vgpu_name(vgpu_type, None, {vgpu_type: "mine"}) == "mine"
