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
from ...cluster.mig_layouts import config_map, texts_of
from ...cluster.node_labels import labels_of_rules
from ...cluster.resolve import Cluster
from ...policy.language.device_plugin import NamedConfigs
from ...policy.language.types import LABEL_VALUE
from ..rule import Hit, hit, meant, rule

DEFAULT = "spec.devicePlugin.config.default"


class Keys(NamedTuple):
    """The keys of the device plugin's ConfigMap, and the path of what says them."""

    path: str
    names: list[str]


def keys_of(cluster: Cluster) -> Keys | None:
    """The keys that the device plugin's ConfigMap has, None where the policy doesn't say them."""
    spec, config = cluster.spec, cluster.spec.devicePlugin.config
    if cluster.dra or not spec.devicePlugin.enabled or not (config.name or config.data):
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
    if (known := keys_of(cluster)) is None:
        return
    label, (where, names) = keys.PLUGIN_CONFIG, known
    has = ", ".join(names) or "none"
    asked = [(DEFAULT, cluster.spec.devicePlugin.config.default)]
    asked += [(f'{pool.path}.nodeSelector["{label}"]', pool.said.nodeSelector.get(label)) for pool in cluster.pools]
    asked += [(path, value) for path, key, value in labels_of_rules(cluster.spec) if key == label]
    for path, name in asked:
        if name and name not in names:
            near, called, own = meant(nearest(name, names, 1)), repr(name), path == DEFAULT
            yield hit(path, "default" if own else "label", remedy=near, name=name, called=called, where=where, has=has)


@rule("GPU506", "warning")
def no_default_config(cluster: Cluster) -> Iterator[Hit]:
    """Configurations of the device plugin, and none for nodes without a label."""
    spec, known = cluster.spec, keys_of(cluster)
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
    for path, config in named_configs(cluster):
        if config.data and not config.create:
            yield hit(f"{path}.data", "create")
        if config.data and config.create and config_map(spec, config.name):
            yield hit(f"{path}.data", "twice", config=config.name)
    config = spec.devicePlugin.config
    by_pools = any(pool.sharing.timeSlicing or pool.sharing.mps for pool in spec.nodePools)
    if config.default and not (config.name or config.data or cluster.dra or by_pools):
        yield hit("spec.devicePlugin.config.default", "default", quoted=repr(config.default), default=config.default)


@rule("GPU532", "warning")
def nothing_to_write(cluster: Cluster) -> Iterator[Hit]:
    """A ConfigMap that is to be written, and no data for it."""
    for path, config in named_configs(cluster):
        if config.create and not config.data:
            yield hit(f"{path}.create", "empty" if config.name else "none", section=path)


def named_configs(cluster: Cluster) -> Iterator[tuple[str, NamedConfigs]]:
    """The sections that name a ConfigMap or write one, of components that are on, with their paths."""
    spec, (path, exporter, _) = cluster.spec, telemetry(cluster.spec)
    if spec.devicePlugin.enabled and not cluster.dra:
        yield "spec.devicePlugin.config", spec.devicePlugin.config
    if cluster.mig_manager:
        yield "spec.migManager.config", spec.migManager.config
        yield "spec.migManager.gpuClientsConfig", spec.migManager.gpuClientsConfig
    if exporter.enabled:
        yield f"{path}dcgmExporter.config", exporter.config
    if cluster.sandbox and spec.vgpuDeviceManager.enabled and not cluster.dra:
        yield "spec.vgpuDeviceManager.config", spec.vgpuDeviceManager.config


@rule("GPU508", "error")
def no_label_value(cluster: Cluster) -> Iterator[Hit]:
    """A name of a configuration that no node can choose."""
    known = keys_of(cluster)
    for name in known.names if known else ():
        most = plugin_config.max_name_length()
        if len(name) > most or not re.fullmatch(LABEL_VALUE.pattern, name):
            yield hit("spec.devicePlugin.config", name=repr(name), label=keys.PLUGIN_CONFIG, most=most)
