"""Labels that NVIDIA's programs put on nodes: which there are, who sets them, and which operands a node is to run.

A pod that selects nodes by a label which nobody sets stays pending without an error.
"""

import functools
from typing import Literal

from gpustack.catalog import _data, _versions

_facts = functools.partial(_data.load, "node-labels")

PREFIX = "nvidia.com/"
MIG = f"{PREFIX}mig-"
DEPLOY = f"{PREFIX}gpu.deploy."
Serving = Literal["container", "vm-passthrough", "kata", "vm-vgpu", "dra"]


def by_discovery(key: str) -> bool:
    """Whether GPU feature discovery sets the label KEY."""
    if key.startswith(MIG):
        return key.endswith(tuple(f".{suffix}" for suffix in _facts()["discovery_of_profiles"]))
    return key in _facts()["discovery"]


def known(key: str) -> bool:
    """Whether the label KEY, of NVIDIA's, is one that some program sets or reads."""
    facts = _facts()
    return by_discovery(key) or key in facts["management"] or key.startswith(tuple(facts["families"]))


def all_known() -> tuple[str, ...]:
    """Every label whose name depends on nothing."""
    return (*_facts()["discovery"], *_facts()["management"])


def components(serving: Serving, release: str) -> tuple[str, ...]:
    """The ends of the labels that the operator of RELEASE gives a node that serves SERVING, sorted."""
    since, own = _data.table("deploy-labels", "since"), _versions.key(release)
    every = _data.words("deploy-labels", "sets", serving)
    return tuple(sorted(name for name in every if _versions.key(since.get(name, "v0")) <= own))
