"""The pages of platforms and GPUs are made from the catalogue, and say what it says."""

from __future__ import annotations

import pytest

from tools.catalogue_pages import catalogue_pages, changes, gpus_page, platforms_page

PAGES = {path.name: (path, wanted) for path, wanted in catalogue_pages()}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_current(name: str) -> None:
    """docs/platforms.md and docs/gpus.md are what python tools/make_docs.py writes."""
    path, wanted = PAGES[name]
    assert path.read_text(encoding="utf-8") == wanted


def test_a_platform_shows_what_it_changes() -> None:
    """Defaults are dotted paths, environment variables stand by name (NVIDIA's documentation of GKE)."""
    assert {
        "driver.enabled: false",
        "hostPaths.driverInstallDir: /home/kubernetes/bin/nvidia",
        "toolkit.env: RUNTIME_CONFIG_SOURCE=file",
    } <= set(changes("gke-cos"))
    assert changes("generic") == []


def test_a_platform_shows_what_it_needs() -> None:
    """What no manifest can do is on the page, in the platform's section."""
    section = platforms_page().partition("\n## gke-cos\n")[2].partition("\n## ")[0]
    assert "gpu-driver-version=disabled" in section
    assert "Autopilot is not supported." in section


@pytest.mark.parametrize(
    ("product", "mig"), [("NVIDIA-H100-80GB-HBM3", "yes"), ("NVIDIA-L4", "no"), ("Tesla-T4", "no")]
)
def test_mig_or_not(product: str, mig: str) -> None:
    """The table says which GPUs take MIG (NVIDIA's MIG user guide)."""
    (row,) = (line for line in gpus_page().splitlines() if line.startswith(f"| `{product}` |"))
    assert row.endswith(f"| {mig} |")
