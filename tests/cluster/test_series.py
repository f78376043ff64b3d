"""How many series the exporters serve: the default list has 25 rows that are no labels (dcgm.yaml,
operator_default_csv_facts: 26 enabled rows, of which DCGM_FI_DRIVER_VERSION is a label).
"""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.metrics import Series, series
from gpustack.cluster.resolve import resolve
from tests.components.common import spec

H100 = {"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}
TWO = "DCGM_FI_DEV_GPU_TEMP, gauge, t\nDCGM_EXP_P2P_STATUS, gauge, p\nDCGM_FI_DRIVER_VERSION, label, v\n"


def mig(**said: Any) -> dict[str, Any]:
    """A pool of which GPUs are cut."""
    return {**H100, "sharing": {"mig": said}}


def config(text: str) -> dict[str, Any]:
    """A list of the policy's own."""
    return {"dcgmExporter": {"enabled": True, "config": {"data": text}}}


@pytest.mark.parametrize(
    ("pool", "sections", "wanted"),
    [
        ({**H100, "count": 4}, {}, Series(25, 200, (800, 800))),
        ({**H100, "count": {"min": 0, "max": 3}}, {}, Series(25, 200, (0, 600))),
        (H100, {}, Series(25, 200)),
        ({"name": "a", "os": "ubuntu22.04"}, {}, Series(25)),
        # Each GPU in three instances: 24 of them, and no GPU beside.
        (mig(layout={"3g.40gb": 1, "2g.20gb": 2}), {}, Series(25, 600)),
        # Two GPUs in seven instances each, six whole: 14 + 6.
        (mig(devices=[{"indices": [0, 1], "layout": {"1g.10gb": 7}}]), {}, Series(25, 500)),
        # Shares are no devices.
        ({**H100, "sharing": {"timeSlicing": {"replicas": 4}}}, {}, Series(25, 200)),
        # One row a GPU, and one for each of the 8 x 7 pairs; a label is in all of them. What is cut has no pairs.
        (H100, config(TWO), Series(1, 8 + 56)),
        (mig(layout={"3g.40gb": 2}), config(TWO), Series(1, 16)),
        (H100, {"dcgmExporter": {"enabled": False}}, Series(0, 0, (0, 0))),
        (H100, {"dcgmExporter": {"enabled": True, "config": {"name": "made-by-others"}}}, Series(None)),
    ],
)
def test_series(pool: dict[str, Any], sections: dict[str, Any], wanted: Series) -> None:
    """A series for each row and device; none without an exporter, and no guess where the list or GPUs aren't known."""
    (only,) = resolve(spec(nodePools=[pool], **sections)).pools
    assert series(only) == wanted


def test_what_alerts_and_dashboards_add() -> None:
    """Their rows count: 7 that the image's list lacks with dashboards, on boards without NVSwitch."""
    (only,) = resolve(spec(nodePools=[{**H100, "gpuProduct": "NVIDIA-L4", "gpusPerNode": 2}], dashboards={})).pools
    assert series(only).node == 2 * (25 + 7)
