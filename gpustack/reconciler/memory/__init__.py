"""An API server in memory, for looks at files instead of a cluster.

`Server` holds the objects, `Stored` is a client that lists them and tries evictions. What requests do to them, and
faults, are in tests/reconciler/memory.
"""

from .eviction import BUDGETS, Stored
from .server import Server

__all__ = ["BUDGETS", "Server", "Stored"]
