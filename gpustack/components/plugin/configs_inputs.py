"""ConfigMaps that gpustack writes: named configurations compiled from `nodePools[].sharing`, or given inline as
`config.data`.

Where the policy names a ConfigMap of its own (`config.name` without data), that stays what it is; both at once for one
component is refused, because one of them would be ignored.

`plugin_config_map`, `mig_config_map`, `gpu_clients_map`, `metrics_map` and `vgpu_config_map` say which ConfigMap is in
effect; the components that mount it ask them, `from_cluster` renders what is ours.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...api import keys
from ...catalog import gpus, mig, plugin_config
from ...cluster import metrics
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster, resolve
from ...model import FindingsError
from ...policy.configurations.mig_configs import Element
from ...policy.language import images, reconciler
from ...policy.language.device_plugin import NamedConfigs
from ...policy.language.node_pools import NodePool
from ...policy.language.spec import ClusterPolicySpec
from ...text.emit import emit_value
from ..parts.common_inputs import Inputs
from ..refusals import refused

PLUGIN, MIG, CLIENTS, METRICS, VGPU = (
    "gpustack-device-plugin-config",
    "gpustack-mig-parted-config",
    "gpustack-gpu-clients",
    "gpustack-dcgm-metrics",
    "gpustack-vgpu-devices-config",
)
MOST_BYTES = 1024 * 1024
"""What the values of a ConfigMap may have together (apimachinery's validation of ConfigMaps)."""
EXCLUSIVE = "exclusive"
"""The device-plugin configuration of pools that share nothing, and of nodes that no pool claims."""


class ConfigsInputs(Inputs):
    """Data of each ConfigMap, by its name."""

    namespace: str
    config_maps: dict[str, dict[str, str]]


class InEffect(NamedTuple):
    """The ConfigMap that a component reads: `name` is "" for none, `data` None where the content is not ours to know.

    `default` is the device plugin's entry for nodes without the label."""

    name: str
    data: dict[str, str] | None = None
    default: str = ""

    @property
    def digest(self) -> str:
        """Names the content, "" where it is not known. A pod that carries it restarts when the content changes: no
        program of the stack notices by itself (plugin-config.yaml, reload_on_config_map_change)."""
        return hashlib.sha256(json.dumps(self.data, sort_keys=True).encode()).hexdigest()[:16] if self.data else ""


def from_cluster(cluster: Cluster) -> ConfigsInputs | None:
    """The ConfigMaps that gpustack writes for CLUSTER, or None."""
    spec = cluster.spec
    every = {f"{cluster.at('dcgmExporter')}.config": metrics_map(cluster)}
    if not cluster.dra:
        every |= {
            "devicePlugin.config": plugin_config_map(spec),
            "migManager.config": mig_config_map(spec),
            "migManager.gpuClientsConfig": gpu_clients_map(spec),
        }
    every["vgpuDeviceManager.config"] = vgpu_config_map(spec)
    brought = {str(body["metadata"]["name"]) for body in spec.extraObjects if body["kind"] == "ConfigMap"}
    maps = {}
    for section, effective in every.items():
        if effective.data is not None and effective.name not in brought:
            refuse_large(effective.data, effective.name, f"{section}.data")
            maps[effective.name] = effective.data
    return ConfigsInputs(namespace=spec.cluster.namespace, config_maps=maps) if maps else None


def plugin_config_map(spec: ClusterPolicySpec) -> InEffect:
    """Named configurations of the device plugin: one key per pool that shares its GPUs in time or by MPS."""
    sharing = [pool for pool in spec.nodePools if pool.sharing.timeSlicing or pool.sharing.mps]
    if not spec.devicePlugin.enabled or not sharing:
        return inline(spec, spec.devicePlugin.config, PLUGIN)._replace(default=spec.devicePlugin.config.default or "")
    refuse_both(spec.devicePlugin.config, "devicePlugin.config", sharing[0], spec)
    if any(pool.name == EXCLUSIVE for pool in sharing):
        position = next(index for index, pool in enumerate(spec.nodePools) if pool.name == EXCLUSIVE)
        raise FindingsError(refused("GPU042", f"nodePools[{position}].name", "shares", pool=EXCLUSIVE))
    default = spec.devicePlugin.config.default or EXCLUSIVE
    if default != EXCLUSIVE and (default not in {pool.name for pool in sharing} or sharing != spec.nodePools):
        raise FindingsError(refused("GPU042", "devicePlugin.config.default", "default", pool=default))
    configs = {
        EXCLUSIVE: {"version": "v1"},
        **{pool.name: plugin_config_of(pool) for pool in resolve(spec).pools if pool.said in sharing},
    }
    return InEffect(PLUGIN, {name: emit_value(config) for name, config in configs.items()}, default)


def plugin_config_of(pool: Pool) -> dict[str, Any]:
    """The device plugin's configuration file for POOL (plugin-config.yaml)."""
    sharing = pool.said.sharing
    kind = "mps" if sharing.mps else "timeSlicing"
    how = sharing.mps or sharing.timeSlicing
    assert how is not None, "only pools that share get here"  # noqa: S101 - narrows the type
    options = how.model_dump(exclude_defaults=True, exclude={"replicas"})  # the plugin's own defaults are the policy's
    resources = [{"name": name, "replicas": how.replicas} for name in resources_of(pool)]
    return {"version": "v1", "sharing": {kind: {**options, "resources": resources}}}


def resources_of(pool: Pool) -> list[str]:
    """Names of the extended resources that a node of POOL advertises before sharing.

    A layout that depends on a board which is not known counts with every element that may be for it. Parts of
    instances (1c.3g.40gb) are advertised by no name of their own (gpus/mig.yaml); before
    v0.20.0 the device plugin counts them, and instances with media extensions, under the plain instance's."""
    layouts = layouts_of(pool)
    spec = pool.spec
    if spec.mig.strategy != "mixed" or not any(layouts):
        return [keys.GPU]
    version = images.version(spec.devicePlugin)
    anchored = not plugin_config.before(version, plugin_config.NAMES_ANCHORED)
    profiles = {profile for layout in layouts for profile in layout or ()}
    if anchored:
        profiles = {profile for profile in profiles if mig.ProfileName.parse(profile).exposed}
    whole = {keys.GPU} if not all(layout is not None for layout in layouts) else set()
    return sorted({mig.resource_name(profile, version) for profile in profiles} | whole)


def layouts_of(pool: Pool) -> list[Mapping[str, int] | None]:
    """The MIG layouts that GPUs of POOL get; None stands for GPUs that stay whole."""
    if pool.groups is not None:
        return [group.layout for group in pool.groups]
    elements = (pool.layout and pool.layout.elements) or ()
    return [element.layout if element.enabled else None for element in elements]


def mig_config_map(spec: ClusterPolicySpec) -> InEffect:
    """Named MIG layouts: the release's own and one per pool that has a layout of its own, under the pool's name."""
    own = own_layouts(resolve(spec))
    if not spec.migManager.enabled or not own:
        return inline(spec, spec.migManager.config, MIG)
    refuse_both(spec.migManager.config, "migManager.config", own[0].said, spec)
    config = gpus.default_mig_config(spec.release)
    for pool in own:
        if pool.name in config["mig-configs"]:
            raise FindingsError(refused("GPU042", f"nodePools[{pool.index}].name", "layout", pool=pool.name))
    layouts = {pool.name: elements(pool) for pool in own}
    return InEffect(MIG, {"config.yaml": emit_value({**config, "mig-configs": {**config["mig-configs"], **layouts}})})


def own_layouts(cluster: Cluster) -> list[Pool]:
    """The pools of CLUSTER that say a MIG layout, and not only the name of one."""
    return [pool for pool in cluster.pools if pool.said.sharing.mig and not pool.said.sharing.mig.config]


def kept_layouts(cluster: Cluster) -> str:
    """The layouts that the reconciler writes for the MIG manager under names that keep their content (core/layouts.py
    there): a JSON object of mig-parted entries by name, one a line. "" where the manager reads what is rendered: no
    reconciler runs, the content is not ours to know, or the manager finds the layouts itself."""
    spec, names = cluster.spec, cluster.layouts
    if not (cluster.mig_manager and reconciler.runs(spec)) or names.generated or names.kind == "unknown":
        return ""
    made = {name: [element_of(each) for each in entry] for name, entry in names.entries.items()}
    made |= {pool.name: elements(pool) for pool in own_layouts(cluster)}
    lines = (f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in sorted(made.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def layout_digests(cluster: Cluster) -> str:
    """Which contents of layouts the NodePolicies name: a JSON object of digests by layout. They and the layouts come
    one after the other, and the reconciler waits for both."""
    chosen = [(pool.said.sharing.mig, pool) for pool in cluster.nodes]
    named = {cut.config or pool.name: layout_digest(pool) for cut, pool in chosen if cut is not None}
    return json.dumps({name: digest for name, digest in named.items() if digest}, sort_keys=True)


def layout_digest(pool: Pool) -> str:
    """Names the content of the MIG layout of POOL where the policy or the release holds it, else ""; what the manager
    makes of the GPUs of a node (reconciler.md M26) only that node knows."""
    cut, chosen = pool.said.sharing.mig, pool.layout
    if cut is not None and not cut.config:
        return digest(elements(pool))
    known = chosen is not None and not pool.cluster.layouts.generated
    content = [str(element.effect) for element in chosen.elements or ()] if chosen and known else None
    return digest(content) if content else ""


def digest(content: Any) -> str:
    """Names CONTENT, which is plain data."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]


def element_of(said: Element) -> dict[str, Any]:
    """SAID as an element of a mig-parted entry."""
    made: dict[str, Any] = {"devices": "all" if said.devices is None else list(said.devices)}
    if said.filters:
        made["device-filter"] = list(said.filters)
    return made | {"mig-enabled": said.enabled} | ({"mig-devices": dict(said.layout)} if said.enabled else {})


def elements(pool: Pool) -> list[dict[str, Any]]:
    """The elements of a mig-parted entry for the layout that POOL has of its own.

    GPUs that no group lists stay whole, and are said to where their number is known."""
    made = [*(pool.layout.elements or ())] if pool.layout else []
    listed = {index for each in made for index in each.devices or ()}
    rest = set(range(pool.said.gpusPerNode or 0)) - listed if listed else ()
    made += [Element(tuple(sorted(rest)), False, {})] if rest else []
    return [element_of(each) for each in made]


def gpu_clients_map(spec: ClusterPolicySpec) -> InEffect:
    """Programs that the MIG manager stops while it changes a layout."""
    return inline(spec, spec.migManager.gpuClientsConfig, CLIENTS) if spec.migManager.enabled else InEffect("")


def metrics_map(cluster: Cluster) -> InEffect:
    """Counters of the DCGM exporter: the policy's list, else the image's with what alerts and dashboards read."""
    section = cluster.stack.dcgmExporter
    if not section.enabled:
        return InEffect("")
    more = metrics.added_counters(cluster)
    if not more:
        return inline(cluster.spec, section.config, METRICS)
    rows = [f"{each.name}, {each.type}, {each.use or each.unit or 'as DCGM counts it'}" for each in more]
    return InEffect(METRICS, {"dcgm-metrics.csv": "\n".join([*rows, ""])})


def vgpu_config_map(spec: ClusterPolicySpec) -> InEffect:
    """Named sets of vGPU devices."""
    on = resolve(spec).sandbox and spec.vgpuDeviceManager.enabled
    return inline(spec, spec.vgpuDeviceManager.config, VGPU) if on else InEffect("")


def refuse_large(data: Mapping[str, Any], name: str, path: str) -> None:
    """Refuse the DATA of the ConfigMap NAME, which comes from PATH, where the API server would."""
    size = sum(len(str(text).encode()) for text in data.values())
    if size > MOST_BYTES:
        raise FindingsError(refused("GPU044", path, name=name, size=f"{size:,}", most=f"{MOST_BYTES:,}"))


def inline(spec: ClusterPolicySpec, config: NamedConfigs, name: str) -> InEffect:
    """The ConfigMap of a component's `config`: from its data (called NAME unless it has a name), else by name. One that
    is to be created, and has a name and no data, is empty, as the chart's."""
    if config.create and (config.data or config.name):
        return InEffect(config.name or name, dict(config.data or {}))
    wanted = ("ConfigMap", config.name)
    known = (body.get("data") for body in spec.extraObjects if (body["kind"], body["metadata"]["name"]) == wanted)
    return InEffect(config.name or "", next(known, None))


def refuse_both(config: NamedConfigs, path: str, pool: NodePool, spec: ClusterPolicySpec) -> None:
    """Refuse a configuration that is given beside the sharing of POOL."""
    if config.name or config.data:
        position = [each.name for each in spec.nodePools].index(pool.name)
        raise FindingsError(refused("GPU041", path, pool=pool.name, position=position))
