"""Rules about how the device plugin hands GPUs to the runtime (DEVICE_LIST_STRATEGY)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog._lookup import nearest
from ..rule import Hit, hit, meant, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster
    from ...policy.language.spec import ClusterPolicySpec

NAME = "DEVICE_LIST_STRATEGY"
STRATEGIES = ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri")
"""What the plugin knows (device-plugin-config.yaml)."""


def given(spec: ClusterPolicySpec) -> tuple[str, str, list[str]] | None:
    """The path, the text and the elements of the device plugin's list, where the policy sets one."""
    for index, entry in reversed([*enumerate(spec.devicePlugin.env or ())]):
        if entry.name == NAME and spec.devicePlugin.enabled:
            return f"spec.devicePlugin.env[{index}]", entry.value or "", (entry.value or "").split(",")
    return None


@rule("GPU464", "error")
def no_such_strategy(cluster: Cluster) -> Iterator[Hit]:
    """The device plugin's list of strategies has one that doesn't exist, or one that can't work here."""
    spec = cluster.spec
    path, _, elements = given(spec) or ("", "", [])
    for element in (text.strip() for text in elements):
        if element not in STRATEGIES:
            near = nearest(element, STRATEGIES)
            yield hit(path, "unknown", remedy=meant(near), element=repr(element), known=", ".join(STRATEGIES))
        elif element.startswith("cdi-") and not spec.cdi.enabled:
            yield hit(path, "cdi", element=element)


@rule("GPU465", "warning")
def strategies_that_contradict(cluster: Cluster) -> Iterator[Hit]:
    """The device plugin's list of strategies contradicts itself, or `cdi.enabled`."""
    spec = cluster.spec
    path, text, elements = given(spec) or ("", "", [])
    names = [element.strip() for element in elements]
    legacy = [name for name in names if name in {"envvar", "volume-mounts"}]
    default = "cdi-annotations,cdi-cri" if spec.cdi.enabled else "envvar"
    remedy = f"leave it out: the default here is {default}"
    if legacy and any(name.startswith("cdi-") for name in names):
        why = "NVIDIA_VISIBLE_DEVICES becomes void, or names of CDI devices can't be resolved"
        yield hit(path, "mixed", why=why, remedy=remedy, name=NAME, legacy=legacy[0], text=text)
    elif legacy and spec.cdi.enabled:
        why = "with CDI the runtime is set up for cdi-annotations and cdi-cri; this is a setting from before v25.10"
        yield hit(path, "legacy", why=why, name=NAME, text=text, advice=remedy)
