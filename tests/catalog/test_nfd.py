"""What rules of node feature discovery can ask about, and labels that programs set."""

from __future__ import annotations

import pytest

from gpustack.catalog import nfd, node_labels
from gpustack.components.crds import crd


def test_operators_are_those_of_the_crd() -> None:
    """Every operator that the API takes has a number of values, and no other."""
    rules = crd("nodefeaturerules.nfd.k8s-sigs.io")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][
        "spec"
    ]
    term = rules["properties"]["rules"]["items"]["properties"]["matchFeatures"]["items"]["properties"]
    operators = term["matchName"]["properties"]["op"]["enum"]
    assert all(nfd.values_of(operator) is not None for operator in operators)
    assert nfd.values_of("Like") is None


@pytest.mark.parametrize(
    ("operator", "takes"), [("In", (1, None)), ("Exists", (0, 0)), ("IsTrue", (0, 0)), ("Gt", (1, 1)), ("GtLt", (2, 2))]
)
def test_values(operator: str, takes: tuple[int, int | None]) -> None:
    """How many values an operator takes (NFD, customization guide)."""
    assert nfd.values_of(operator) == takes


def test_features() -> None:
    """Features that rules of this repository and of others use are known; attributes only where they are fixed."""
    assert {"pci.device", "kernel.loadedmodule", "system.osrelease", "local.label", "rule.matched"} <= set(
        nfd.features()
    )
    assert "vendor" in (nfd.attributes("pci.device") or ())
    assert nfd.attributes("kernel.config") is None
    assert nfd.in_hex("pci.device", "vendor")
    assert not nfd.in_hex("usb.device", "vendor")


@pytest.mark.parametrize(
    ("key", "known", "discovered"),
    [
        ("nvidia.com/gpu.product", True, True),
        ("nvidia.com/mig-1g.10gb.count", True, True),
        ("nvidia.com/mig-1g.10gb.size", False, False),
        ("nvidia.com/mig.config", True, False),
        ("nvidia.com/gpu.deploy.driver", True, False),
        ("nvidia.com/gpu.produkt", False, False),
    ],
)
def test_labels_of_nodes(key: str, known: bool, discovered: bool) -> None:
    """Families of labels are known by their form (node-labels.yaml, operator.md 2)."""
    assert (node_labels.known(key), node_labels.by_discovery(key)) == (known, discovered)


def test_labels_stand_once() -> None:
    """Each label has one program that sets it."""
    assert len(set(node_labels.all_known())) == len(node_labels.all_known())
