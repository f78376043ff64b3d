"""Both engines sync each example cluster from Git, as a user has it done, and then leave it alone."""

from __future__ import annotations

import pytest

from tests.engines.world import World


@pytest.mark.ci
def test_sync(life: World) -> None:
    """From `gpustack init` to `bootstrap | kubectl apply`: Synced and Healthy, or every Kustomization Ready, in time; a
    further round changes nothing, and no field has two owners."""
    life.settled()
