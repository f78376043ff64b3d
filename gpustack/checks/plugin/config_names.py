"""Rules about which configuration is meant: names of ConfigMaps and of their keys.

A ConfigMap that nobody reads, and a key that it doesn't have, are not errors to the API server: pods wait, or run
without.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...api import keys
from ...catalog import plugin_config
from ...catalog._lookup import nearest
from ...cluster.metrics import telemetry
from ...cluster.mig_layouts import texts_of
from ...cluster.node_labels import labels_of_rules
from ...cluster.resolve import Cluster, resolve
from ...policy.language.device_plugin import NamedConfigs
from ...policy.language.spec import ClusterPolicySpec
from ...policy.language.types import LABEL_VALUE
from ..rule import Hit, hit, meant, rule

DEFAULT = "spec.devicePlugin.config.default"


class Keys(NamedTuple):
    """The keys of the device plugin's ConfigMap, and the path of what says them."""

    path: str
    names: list[str]


def keys_of(spec: ClusterPolicySpec) -> Keys | None:
    """The keys that the device plugin's ConfigMap has, None where the policy doesn't say them."""
    config = spec.devicePlugin.config
    if resolve(spec).dra or not spec.devicePlugin.enabled or not (config.name or config.data):
        return None
    texts = texts_of(spec, config, "devicePlugin.config")
    if texts:
        ours = texts[0].path.startswith("spec.devicePlugin")
        where = "spec.devicePlugin.config.data" if ours else "the ConfigMap in spec.extraObjects"
        return Keys(where, [text.key for text in texts])
    for reference in spec.references:
        if (reference.kind, reference.name) == ("ConfigMap", config.name) and reference.keys is not None:
            return Keys("the ConfigMap in spec.references", list(reference.keys))
    return None


@rule("GPU505", "error")
def no_such_config(cluster: Cluster) -> Iterator[Hit]:
    """A configuration of the device plugin that is chosen by a name which its ConfigMap doesn't have."""
    spec = cluster.spec
    known = keys_of(spec)
    if known is None:
        return
    default = spec.devicePlugin.config.default
    asked = [(DEFAULT, default)] if default else []
    for index, pool in enumerate(spec.nodePools):
        if pool.nodeSelector.get(keys.PLUGIN_CONFIG):
            asked.append(
                (f'spec.nodePools[{index}].nodeSelector["{keys.PLUGIN_CONFIG}"]', pool.nodeSelector[keys.PLUGIN_CONFIG])
            )
    asked += [(path, value) for path, key, value in labels_of_rules(spec) if key == keys.PLUGIN_CONFIG]
    for path, name in asked:
        if name not in known.names:
            near = nearest(name, known.names, 1)
            listed = ", ".join(known.names) or "none"
            yield hit(
                path,
                "default" if path == DEFAULT else "label",
                remedy=meant(near),
                name=name,
                called=repr(name),
                where=known.path,
                listed=listed,
            )


@rule("GPU506", "warning")
def no_default_config(cluster: Cluster) -> Iterator[Hit]:
    """Configurations of the device plugin, and none for nodes without a label."""
    spec = cluster.spec
    known = keys_of(spec)
    if known is None or not known.names or spec.devicePlugin.config.default:
        return
    without = [pool.name for pool in spec.nodePools if not pool.nodeSelector.get(keys.PLUGIN_CONFIG)]
    labelled = any(key == keys.PLUGIN_CONFIG for _, key, _ in labels_of_rules(spec))
    if (without or not spec.nodePools) and not labelled:
        whose = f"nodes of {', '.join(without)}" if without else "nodes"
        yield hit("spec.devicePlugin.config", whose=whose, label=keys.PLUGIN_CONFIG, names=" or ".join(known.names[:4]))


@rule("GPU507", "error")
def contradictory_config(cluster: Cluster) -> Iterator[Hit]:
    """A ConfigMap that is given through the wrong fields."""
    spec = cluster.spec
    for path, config in named_configs(spec):
        if config.data and not config.create:
            yield hit(f"{path}.data", "create")
        if config.data and config.create and _brought(spec, config.name or ""):
            yield hit(f"{path}.data", "twice", config=config.name)
    config = spec.devicePlugin.config
    by_pools = any(pool.sharing.timeSlicing or pool.sharing.mps for pool in spec.nodePools)
    if config.default and not (config.name or config.data or cluster.dra or by_pools):
        yield hit("spec.devicePlugin.config.default", "default", quoted=repr(config.default), default=config.default)


@rule("GPU532", "warning")
def nothing_to_write(cluster: Cluster) -> Iterator[Hit]:
    """A ConfigMap that is to be written, and no data for it."""
    for path, config in named_configs(cluster.spec):
        if config.create and not config.data:
            yield hit(f"{path}.create", "empty" if config.name else "none", section=path)


def named_configs(spec: ClusterPolicySpec) -> Iterator[tuple[str, NamedConfigs]]:
    """The sections that name a ConfigMap or write one, of components that are on, with their paths."""
    if resolve(spec).dra:
        path, exporter, _ = telemetry(spec)
        if exporter.enabled:
            yield f"{path}dcgmExporter.config", exporter.config
        return
    if spec.devicePlugin.enabled:
        yield "spec.devicePlugin.config", spec.devicePlugin.config
    if resolve(spec).mig_manager:
        yield "spec.migManager.config", spec.migManager.config
        yield "spec.migManager.gpuClientsConfig", spec.migManager.gpuClientsConfig
    if spec.dcgmExporter.enabled:
        yield "spec.dcgmExporter.config", spec.dcgmExporter.config
    if resolve(spec).sandbox and spec.vgpuDeviceManager.enabled:
        yield "spec.vgpuDeviceManager.config", spec.vgpuDeviceManager.config


def _brought(spec: ClusterPolicySpec, name: str) -> bool:
    return any(body["kind"] == "ConfigMap" and body["metadata"]["name"] == name for body in spec.extraObjects)


@rule("GPU508", "error")
def no_label_value(cluster: Cluster) -> Iterator[Hit]:
    """A name of a configuration that no node can choose."""
    known = keys_of(cluster.spec)
    for name in known.names if known else ():
        most = plugin_config.max_name_length()
        if len(name) > most or not re.fullmatch(LABEL_VALUE.pattern, name):
            yield hit("spec.devicePlugin.config", name=repr(name), label=keys.PLUGIN_CONFIG, most=most)
