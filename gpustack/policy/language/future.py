"""Sections that the language has and no release of gpustack renders yet: a rule refuses them as soon as one is set.

They have a shape already, as far as it is decided, so that a policy with a typing error is told so and not "not yet".
"""

from __future__ import annotations

from typing import Any

Undecided = dict[str, Any]
"""A map whose keys are not decided yet."""
