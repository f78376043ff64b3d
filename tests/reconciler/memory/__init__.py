"""An API server in memory, with faults: what the program's tests run it against.

`Server` holds the objects and follows the rules of the real one that the program depends on; tests move it on with its
harness methods (`put`, `edit`, `remove`, `finish`). `FakeCluster` is one client of it: what a fault does to one of two
leaders leaves the other alone. `drive` runs a coroutine to its end.
"""

from gpustack.reconciler.memory.eviction import BUDGETS

from .eviction import settle_budgets
from .fake import FakeCluster, Request, drive
from .server import Server, Write

__all__ = ["BUDGETS", "FakeCluster", "Request", "Server", "Write", "drive", "settle_budgets"]
