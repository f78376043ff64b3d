"""The init container that clears a node of its old driver, as the policy's `driverManager` sections describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .common import image, pairs
from .driver_settings import Manager

if TYPE_CHECKING:
    from ...policy.operand import DriverManager
    from ...policy.spec import ClusterPolicySpec


def driver_manager(spec: ClusterPolicySpec, section: DriverManager, path: str) -> Manager:
    """The manager that SECTION at PATH ("vfioManager.driverManager") describes."""
    return Manager(image=image(spec, section, path), pull_policy=section.imagePullPolicy or "", env=pairs(section.env))
