"""Sections that the language has and no release of gpustack renders yet: a rule refuses them as soon as one is set.

They have a shape already, as far as it is decided, so that a policy with a typing error is told so and not "not yet".
"""

from __future__ import annotations

from typing import Any

from .base import Section

Undecided = dict[str, Any]
"""A map whose keys are not decided yet."""


class Tenancy(Section):
    """What keeps tenants of a cluster apart."""

    priorityClass: Undecided | None = None
    """PriorityClass for GPU workloads. Absent: none."""
    resourceQuota: Undecided | None = None
    """ResourceQuota for GPUs per namespace. Absent: none."""
