"""`toolkit`: the container toolkit, which teaches the container runtime to hand out GPUs."""

from __future__ import annotations

from .operand import Operand
from .types import HostPath


class Toolkit(Operand):
    """The container toolkit. Its `env` also says where the runtime's files and sockets are."""

    installDir: HostPath | None = None
    """Folder on the node that the toolkit is installed into. Absent or empty: /usr/local/nvidia."""
