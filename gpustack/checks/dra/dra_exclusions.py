"""Rules over what stands beside `gpuCluster` in a policy and has no effect there.

A `gpuCluster` excludes the device plugin and all that stands on it (operator.md 11.1). A field about that stack would
be ignored, so it is refused; what a release or a platform says by default asks for nothing. Rejected: a note. Layers
are shared by clusters of both kinds, and a cluster that lost its MIG layout or its time-slicing to a note is found by
its users.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from ...cluster.resolve import Cluster
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule

PLUGIN_STACK = ("toolkit", "devicePlugin", "gfd", "mig", "migManager", "nodeStatusExporter")
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "cdi": ("nriPluginEnabled",),
    "operator": ("runtimeClass",),
    "hostPaths": ("rootFS",),
    "sandboxWorkloads": ("enabled", "mode", "defaultWorkload"),
    "validator": (
        *("args", "env", "resources", "imagePullPolicy", "hostNetwork"),
        *("driver", "toolkit", "cuda", "plugin", "vfioPCI", "vgpuManager", "vgpuDevices"),
    ),
}
"""Fields of other sections that only components of the device plugin's stack read."""
REPLACED = ("driver", "gds", "gdrcopy")


@rule("GPU175", "error")
def nothing_of_the_plugin_stack(cluster: Cluster) -> Iterator[Hit]:
    """A field about the device plugin's stack, beside `gpuCluster`."""
    spec = cluster.spec
    if not cluster.dra:
        return
    default = defaults_of(spec)
    for section in PLUGIN_STACK:
        mine = getattr(spec, section)
        if getattr(mine, "enabled", True) and not (section == "mig" and sharing(spec)):
            yield from ignored(changes(plain(mine), plain(getattr(default, section)), section), section)
    for section, fields in ELSEWHERE.items():
        mine, theirs = plain(getattr(spec, section)), plain(getattr(default, section))
        for field in fields:
            yield from ignored(changes(mine.get(field), theirs.get(field), f"{section}.{field}"), f"{section}.{field}")
    for index in sharing(spec):
        yield hit(f"spec.nodePools[{index}].sharing", "sharing", pool_name=spec.nodePools[index].name)


@rule("GPU176", "warning")
def driver_section_is_replaced(cluster: Cluster) -> Iterator[Hit]:
    """A field about the one driver of all nodes, beside `gpuCluster`."""
    spec = cluster.spec
    if not cluster.dra:
        return
    default = defaults_of(spec)
    for section in REPLACED:
        for path in changes(plain(getattr(spec, section)), plain(getattr(default, section)), section):
            if path not in {"driver.enabled", "driver.useNvidiaDriverCRD"}:
                yield hit(f"spec.{path}")


def sharing(spec: ClusterPolicySpec) -> list[int]:
    """The positions of the pools that share or cut their GPUs."""
    shares = [pool.sharing.mig or pool.sharing.timeSlicing or pool.sharing.mps for pool in spec.nodePools]
    return [index for index, shared in enumerate(shares) if shared]


def defaults_of(spec: ClusterPolicySpec) -> Any:
    """What a policy for a cluster like SPEC's says that says nothing itself: the defaults of release and platform."""
    from ...policy.language.spec import PolicySpec
    from ...policy.loading.defaults import assemble
    from ...policy.loading.layers import Part

    cluster = spec.cluster.model_dump(exclude_none=True)
    facts = {"release": spec.release, "defaults": spec.defaults, "cluster": cluster}
    return PolicySpec.model_validate(assemble([Part("policy", "", facts)])[0].spec)


def plain(section: BaseModel) -> dict[str, Any]:
    """SECTION as data, without what is absent."""
    return section.model_dump(exclude_none=True)


def changes(mine: Any, default: Any, path: str) -> Iterator[str]:
    """The paths at and below PATH at which MINE says something that DEFAULT doesn't."""
    if isinstance(mine, dict):
        below = default if isinstance(default, dict) else {}
        for key, value in mine.items():
            yield from changes(value, below.get(key), f"{path}.{key}")
    elif mine not in (default, "") and not (default is None and mine == []):
        yield path


def ignored(paths: Iterator[str], section: str) -> Iterator[Hit]:
    """Refusals of PATHS, which are in SECTION."""
    name = section.partition(".")[0]
    off = f", or set spec.{name}.enabled: false" if name in PLUGIN_STACK and name != "mig" else ""
    for path in paths:
        yield hit(f"spec.{path}", "ignored", off=off)
