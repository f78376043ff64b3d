"""`gfd`: GPU feature discovery, which labels nodes with what their GPUs are."""

from __future__ import annotations

from .operand import Operand


class Gfd(Operand):
    """GPU feature discovery. It follows the configurations of `devicePlugin.config`, so that labels say what is
    offered."""
