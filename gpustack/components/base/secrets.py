"""Objects by which other programs make the stack's Secrets: External Secrets Operator, and Sealed Secrets."""

from __future__ import annotations

from typing import ClassVar

from ...model import Stage
from ..component import Given


class Secrets(Given):
    """With the base: pods of every later stage name them."""

    stage: ClassVar[Stage] = "base"
