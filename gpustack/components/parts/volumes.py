"""What volumes are called that the operator calls after a ConfigMap of the user's."""

from __future__ import annotations

import re
from collections.abc import Container

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""What the API server takes for the name of a volume; that of a ConfigMap may be longer and have dots."""


def named_after(config_map: str, otherwise: str, taken: Container[str]) -> str:
    """The name of CONFIG_MAP's volume: its own, as the operator has it, so that a pod which runs stays as it is.

    OTHERWISE is for a ConfigMap after which no volume can be called, and for one that is called like a volume that is
    TAKEN: the API server refuses the operator's DaemonSet there.
    """
    return config_map if LABEL.fullmatch(config_map) and config_map not in taken else otherwise
