"""How long things take in a simulated node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Pace:
    """How long things take, in seconds: in life they take minutes."""

    start: float = 0.05
    stop: float = 0.05
    driver: float = 0.3
    """Building or loading the driver."""
    probe: float = 0.1
    crash_back_off: float = 0.3
    pod_wait: float = 20
    """How long driver-manager and mig-manager wait for a paused operand's pods to go; 5 min in life."""
    mig_notice: float = 0.2
    """From the change of nvidia.com/mig.config to the write of `pending` (M3: the old state is stale so long)."""
    mig: float = 0.3
    plugin_linger: float = 2
    """How long the kubelet remembers the resources of a plugin that is gone; 5 min in life."""
    nfd: float = 0.2
    """From a change of what GFD says to the change of the labels."""
    reboot: float = 0.5
