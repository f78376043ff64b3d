"""Looking at clusters, read-only: what runs, held against what the policy says.

A `State` is what was seen of a cluster, whoever looked: a person's login, or a dump. Everything here is a pure function
of a state and of the resolved cluster; nothing writes, and nothing asks for more than lists.
"""

from .state import State, look, of_files
from .verify import Expected, verify

__all__ = ["Expected", "State", "look", "of_files", "verify"]
