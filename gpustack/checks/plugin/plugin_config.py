"""Rules about the texts of device plugin configurations: keys that are ignored, values that are refused, names that no
node has; how the plugin hands GPUs to the runtime; and what MPS and time-slicing can't do, and don't keep apart. Which
configuration a node gets is in config_names.py.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...api import keys
from ...catalog import plugin_config
from ...catalog._lookup import nearest
from ...catalog.mig import IllegalProfile, ProfileName, resource_name
from ...cluster.mig_layouts import texts_of
from ...cluster.plugin_sharing import STRATEGY, environment, fails_always, strategy, wrong_settings
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...policy.configurations.plugin_keys import PREFIX
from ...policy.configurations.plugin_text import PluginConfig, Shared, read_plugin_config
from ...policy.language import images
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, meant, rule
from ..subjects import told

GPU = f"{PREFIX}gpu"
MIG = f"{PREFIX}mig-"
NAME = "DEVICE_LIST_STRATEGY"
STRATEGIES = ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri")
"""What the plugin knows (plugin-config.yaml)."""


class Named(NamedTuple):
    """A configuration of the policy: the path of its text, its name, and what the text says."""

    path: str
    name: str
    config: PluginConfig


def configs(cluster: Cluster) -> list[Named]:
    """The configurations that the device plugin and GPU feature discovery choose from, where the policy has them."""
    spec = cluster.spec
    if cluster.dra or (not spec.devicePlugin.enabled and not spec.gfd.enabled):
        return []
    texts = texts_of(spec, spec.devicePlugin.config, "devicePlugin.config")
    version = images.version(spec.devicePlugin)
    return [Named(one.path, one.key, read_plugin_config(one.text or "", version)) for one in texts]


@rule("GPU501", "error")
def ignored_key(cluster: Cluster) -> Iterator[Hit]:
    """A key in a configuration of the device plugin that has no effect."""
    for path, name, config in configs(cluster):
        yield from told(path, config.ignored, f"{name}: ")


@rule("GPU502", "error")
def refused_config(cluster: Cluster) -> Iterator[Hit]:
    """A configuration that the device plugin refuses."""
    spec = cluster.spec
    for path, name, config in configs(cluster):
        counting = [problem for flag, problem in config.wrong.items() if environment(spec, flag) is None]
        yield from told(path, [*config.refused, *counting], f"{name}: ")
    for wrong in wrong_settings(spec) if not cluster.dra and spec.devicePlugin.enabled else ():
        yield hit(wrong.path, wrong=wrong.name, value=repr(wrong.value), allowed=" or ".join(wrong.allowed[:4]))


@rule("GPU504", "error")
def nobody_offers(cluster: Cluster) -> Iterator[Hit]:
    """A resource in a configuration of the device plugin that no node has."""
    version = images.version(cluster.spec.devicePlugin)
    for path, name, config in configs(cluster):
        for entry in (entry for shared in config.sharing.values() for entry in shared.entries):
            if reason := _not_offered(entry.name, version):
                yield Hit(path, f"{name}: no node has {entry.name}", *reason, entry.place)


def _not_offered(name: str, version: str) -> tuple[str, str] | None:
    """Why no node offers NAME by the device plugin of VERSION, and what to write; None where one may."""
    if name == GPU:
        return None
    why = "the entry shares nothing: the device plugin knows the resources nvidia.com/gpu and nvidia.com/mig-<profile>"
    if name.endswith(".shared"):
        return why, f"write {name.removesuffix('.shared')}, and renameByDefault: true for the ending .shared"
    if not name.startswith(MIG):
        near = nearest(name, (GPU, f"{MIG}1g.10gb"), 1)
        return why, f"did you mean {near[0]}?" if near else f"write {GPU}"
    try:
        profile = ProfileName.parse(name.removeprefix(MIG).replace("gb.", "gb+", 1))
    except IllegalProfile as error:
        return f"{why}; {error}", "write nvidia.com/mig- and a profile that `gpustack mig list PRODUCT` prints"
    if not profile.exposed:
        return f"{why}, and parts of instances are not among them", f"write {MIG}{profile.instance}"
    right = resource_name(profile, version)
    why = f"the entry shares nothing: the device plugin {version} counts instances of {profile} as {right}"
    return (why, f"write {right}") if right != name else None


@rule("GPU509", "warning")
def overruled_flag(cluster: Cluster) -> Iterator[Hit]:
    """A flag, an entry, or a switch of MPS, that something stronger overrules."""
    spec, first = cluster.spec, plugin_config.MPS_FAILS_SETTABLE
    version = images.version(spec.devicePlugin)
    for named in configs(cluster):
        yield from _flags(spec, named)
        for shared in named.config.sharing.values():
            yield from _entries(spec, named, shared)
        mps = named.config.sharing.get("mps")
        if mps and mps.fails is False and fails_always(spec):
            yield hit(named.path, "mps", named=named.name, version=version, first=first, inside=mps.fails_place)


def _flags(spec: ClusterPolicySpec, named: Named) -> Iterator[Hit]:
    for path, (value, place) in named.config.flags.items():
        wins = environment(spec, path)
        if wins is None or _same(value) == _same(wins):
            continue
        name = plugin_config.flags()[path].env
        section = "gfd" if path.startswith("flags.gfd.") else "devicePlugin"
        why, remedy = f"the environment variable {name} wins, and it is {wins!r}", "leave out the flag"
        if path != STRATEGY:
            remedy = f"set {name} in spec.{section}.env, or {remedy}"
        elif spec.mig.strategy == wins:
            why = f"the environment variable {name} wins, which has mig.strategy: {wins}"
            if path not in named.config.wrong:
                remedy += f", or set spec.mig.strategy: {value}, which is for all nodes"
        yield hit(named.path, "env", why=why, remedy=remedy, named=named.name, section=path, value=value, inside=place)


def _entries(spec: ClusterPolicySpec, named: Named, shared: Shared) -> Iterator[Hit]:
    by, version = strategy(spec, named.config), images.version(spec.devicePlugin)
    for at, entry in enumerate(shared.entries):
        if by != "mixed" and entry.name.startswith(MIG) and not _not_offered(entry.name, version):
            yield hit(named.path, "strategy", named=named.name, entry=entry.name, by=by, inside=entry.place)
        most, first = shared.replicas(entry.name), shared.labelled(entry.name)
        why = f"nodes offer {most} shares of each, the larger number"
        if first != most:
            why += f", and GPU feature discovery writes {first}, the first one's, into gpu.replicas"
        if any(other.name == entry.name for other in shared.entries[:at]):
            yield hit(named.path, "second", why=why, named=named.name, entry=entry.name, most=most, inside=entry.place)


def _same(value: str) -> frozenset[str]:
    words = {"yes": "true", "on": "true", "no": "false", "off": "false"}
    return frozenset(words.get(part.strip().lower(), part.strip().lower()) for part in value.split(","))


def device_lists(spec: ClusterPolicySpec) -> tuple[str, str, list[str]]:
    """The path, the text and the elements of the device plugin's list; empty if the policy sets none."""
    for index, entry in reversed([*enumerate(spec.devicePlugin.env or ())]):
        if entry.name == NAME and spec.devicePlugin.enabled:
            return f"spec.devicePlugin.env[{index}]", entry.value or "", (entry.value or "").split(",")
    return "", "", []


@rule("GPU464", "error")
def no_such_strategy(cluster: Cluster) -> Iterator[Hit]:
    """The device plugin's list of strategies has one that doesn't exist, or one that can't work here."""
    spec = cluster.spec
    path, _, elements = device_lists(spec)
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
    path, text, elements = device_lists(spec)
    names = [element.strip() for element in elements]
    legacy = [name for name in names if name in {"envvar", "volume-mounts"}]
    default = "cdi-annotations,cdi-cri" if spec.cdi.enabled else "envvar"
    if legacy and any(name.startswith("cdi-") for name in names):
        yield hit(path, "mixed", name=NAME, legacy=legacy[0], text=text, default=default)
    elif legacy and spec.cdi.enabled:
        yield hit(path, "legacy", name=NAME, text=text, default=default)


@rule("GPU503", "error")
def sharing_that_fails(cluster: Cluster) -> Iterator[Hit]:
    """Sharing that the device plugin or MPS can't do."""
    for named in configs(cluster):
        mps, sliced = named.config.sharing.get("mps"), named.config.sharing.get("timeSlicing")
        if mps and sliced:
            yield hit(named.path, "both", named=named.name, inside=sliced.place)
        yield from _mps(cluster, named, mps) if mps else ()
    for pool in cluster.pools if not cluster.dra else ():
        if how := pool.said.sharing.mps:
            path, most = f"{pool.path}.sharing.mps", _most_clients([pool])
            if strategy(cluster.spec, None) == "mixed":
                yield hit(path, "mixed", whose=f"node pool {pool.name} shares by MPS")
            if how.replicas > most:
                on = f", on {pool.said.gpuProduct}" if pool.said.gpuProduct else ""
                yield hit(f"{path}.replicas", "pool", number=how.replicas, most=most, on=on)


def _mps(cluster: Cluster, named: Named, mps: Shared) -> Iterator[Hit]:
    spec, default = cluster.spec, cluster.spec.devicePlugin.config.default or ""
    if strategy(spec, named.config) == "mixed":
        own = None if environment(spec, STRATEGY) else named.config.flags.get(STRATEGY)
        yield hit(named.path, "mixed", whose=f"{named.name}: sharing by MPS", inside=own[1] if own else mps.place)
    chosen = [(pool, pool.said.nodeSelector.get(keys.PLUGIN_CONFIG) or default) for pool in cluster.pools]
    pools = [pool for pool, name in chosen if name == named.name]
    most = _most_clients(pools)
    products = sorted({pool.said.gpuProduct or "" for pool in pools if _most_clients([pool]) == most} - {""})
    on = f", on {', '.join(products)}" if products else ""
    for entry in mps.entries:
        if entry.name.startswith(MIG):
            yield hit(named.path, "instances", named=named.name, entry=entry.name, inside=entry.place)
        if entry.replicas > most:
            at, number = entry.replicas_place, entry.replicas
            yield hit(named.path, "config", named=named.name, number=number, most=most, on=on, inside=at)


def _most_clients(pools: Iterable[Pool]) -> int:
    """The most clients that MPS serves on every GPU of POOLS."""
    limits = [plugin_config.max_mps_replicas(pool.product.compute_capability) for pool in pools if pool.product]
    return min(limits, default=max(limit["replicas"] for limit in plugin_config.sharing()["mps_max_replicas"]))


@rule("GPU510", "note")
def what_sharing_isolates(cluster: Cluster) -> Iterator[Hit]:
    """Pods that share a GPU, and what that does not keep apart."""
    for pool in cluster.pools:
        for kind in ("timeSlicing", "mps"):
            if getattr(pool.said.sharing, kind) is not None:
                part, whose = "one MIG instance" if pool.said.sharing.mig else "one GPU", f"node pool {pool.name}"
                yield hit(f"{pool.path}.sharing.{kind}", "mps" if kind == "mps" else "sliced", whose=whose, part=part)
    for path, name, config in configs(cluster):
        if config.kind and (shared := config.sharing[config.kind]).entries:
            whose, case = f"nodes with {name}", "mps" if config.kind == "mps" else "sliced"
            yield hit(path, case, whose=whose, part="one GPU", inside=shared.place)
