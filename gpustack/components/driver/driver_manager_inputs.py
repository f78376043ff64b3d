"""The init container that clears a node of its old driver, as the policy's `driverManager` sections describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..parts.common_inputs import image, pairs
from .driver_settings_inputs import Manager

if TYPE_CHECKING:
    from ...policy.language.operand import DriverManager
    from ...policy.language.spec import ClusterPolicySpec


def driver_manager(spec: ClusterPolicySpec, section: DriverManager, path: str) -> Manager:
    """The manager that SECTION at PATH ("vfioManager.driverManager") describes."""
    return Manager(image=image(spec, section, path), pull_policy=section.imagePullPolicy or "", env=pairs(section.env))
