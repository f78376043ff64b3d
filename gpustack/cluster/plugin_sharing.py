"""How the GPUs of a pool's nodes are shared, and which flags of the device plugin count there.

Solves: a pool says it itself, or by a configuration of the device plugin that its nodes choose, and flags in such a
text yield to the environment of the pods. Capacity, the offer to tenants, NodePolicies and rules all ask here, so that
none of them reads the text by itself and says another number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ..api import keys
from ..catalog import plugin_config
from ..policy.configurations.plugin_text import PluginConfig, Shared, read_plugin_config
from ..policy.language import images
from .mig_layouts import texts_of

if TYPE_CHECKING:
    from ..policy.language.device_plugin import DevicePluginConfig
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec

STRATEGY = "flags.migStrategy"
_BOOLS = ("true", "false", "True", "False", "TRUE", "FALSE", "1", "0", "t", "f", "T", "F")
"""What Go's strconv.ParseBool takes."""


class UnknownSharing(Exception):  # noqa: N818  # the reason is the value
    """What the device plugin makes of a pool's nodes isn't known, or it makes nothing: the text says why."""


@dataclass(frozen=True, slots=True)
class PoolSharing:
    """How a pool's resources are shared. `kind` is timeSlicing, mps, or "" for exclusive.

    `everything` is the number of shares of each resource where the pool itself says it; `text` holds the entries where
    a configuration does. `refuses_more`: a container gets one share at most."""

    kind: str = ""
    renamed: bool = False
    refuses_more: bool = False
    everything: int = 1
    text: Shared | None = field(default=None, compare=False)

    def replicas(self, name: str) -> int:
        """How many shares of one device of the resource NAME a node offers; 1 where it isn't shared."""
        return self.text.replicas(name) if self.text is not None else self.everything

    def labelled(self, name: str) -> int:
        """The number that GPU feature discovery writes for the resource NAME."""
        return self.text.labelled(name) if self.text is not None else self.everything

    def shown(self, name: str) -> str:
        """What a node calls the resource NAME once it is shared."""
        return f"{name}.shared" if self.renamed and self.replicas(name) > 1 else name


def pool_sharing(spec: ClusterPolicySpec, pool: NodePool) -> PoolSharing:
    """How the device plugin shares the resources of nodes of POOL. UnknownSharing where it can't be said."""
    for wrong in wrong_settings(spec):
        raise UnknownSharing(f"the device plugin refuses {wrong.name}={wrong.value}, and exits")
    if pool.sharing.mps is not None:
        how = pool.sharing.mps
        fails = how.failRequestsGreaterThanOne or fails_always(spec)
        return PoolSharing("mps", how.renameByDefault, fails, how.replicas)
    if pool.sharing.timeSlicing is not None:
        sliced = pool.sharing.timeSlicing
        return PoolSharing("timeSlicing", sliced.renameByDefault, sliced.failRequestsGreaterThanOne, sliced.replicas)
    config = configuration(spec, pool)
    if config is None or not config.kind:
        return PoolSharing()
    shared = config.sharing[config.kind]
    refuses = bool(shared.fails)
    if config.kind == "mps" and (shared.fails is None or fails_always(spec)):
        refuses = bool(plugin_config.sharing()["mps_fail_requests_default"])
    return PoolSharing(config.kind, shared.renamed, refuses, text=shared)


def configuration(spec: ClusterPolicySpec, pool: NodePool) -> PluginConfig | None:
    """The configuration that nodes of POOL choose, None where they have none. UnknownSharing where the policy doesn't
    hold it, where the device plugin refuses it, or where a key stands twice in it."""
    config = spec.devicePlugin.config
    own = any(other.sharing.mps or other.sharing.timeSlicing for other in spec.nodePools)
    if own or not (config.name or config.data):
        return None
    name = pool.nodeSelector.get(keys.PLUGIN_CONFIG) or config.default
    if not name:
        return None  # the config manager falls back to an empty configuration (operator.md 7.4)
    chosen = _named(spec, config, name)
    if chosen.refused or chosen.lacking or [path for path in chosen.wrong if environment(spec, path) is None]:
        raise UnknownSharing(f"the device plugin refuses its configuration {name}, and exits")
    if chosen.ambiguous:
        raise UnknownSharing(f"a key stands twice in the device plugin's configuration {name}")
    return chosen


def strategy(spec: ClusterPolicySpec, config: PluginConfig | None) -> str:
    """The MIG strategy of a device plugin that reads CONFIG: its environment wins, then the text, then none."""
    return environment(spec, STRATEGY) or (config.flags.get(STRATEGY, ("",))[0] if config else "") or "none"


def environment(spec: ClusterPolicySpec, path: str) -> str | None:
    """What the stack's pods say for the flag PATH (flags.migStrategy) in their environment, or in the arguments that a
    policy gives them, which win over that; None where it isn't set."""
    name = plugin_config.flags()[path].env
    section = spec.gfd if path.startswith("flags.gfd.") else spec.devicePlugin
    argument = f"--{name.lower().replace('_', '-')}="
    given = [entry.removeprefix(argument) for entry in section.args if entry.startswith(argument)]
    given = given or [entry.value or "" for entry in section.env if entry.name == name]
    if given:
        return given[-1]
    if path == STRATEGY:
        return spec.mig.strategy
    if path == "flags.plugin.deviceListStrategy":
        return "cdi-annotations,cdi-cri" if spec.cdi.enabled else "envvar"
    if path == "flags.mpsRoot":
        return spec.devicePlugin.mps.root
    return plugin_config.set_in_environment().get(path)


class WrongSetting(NamedTuple):
    """A variable or an argument of the policy's own that makes the device plugin exit: its path, and what it may be."""

    path: str
    name: str
    value: str
    allowed: tuple[str, ...]


def wrong_settings(spec: ClusterPolicySpec) -> list[WrongSetting]:
    """What devicePlugin.env and devicePlugin.args say for flags that the device plugin refuses, and so exits."""
    wrong = []
    for flag in plugin_config.flags().values():
        if flag.path.startswith("flags.gfd.") or flag.type not in {"bool", "enum", "list"}:
            continue
        allowed = _BOOLS if flag.type == "bool" else plugin_config.taken(flag)
        for path, value in _said(spec, flag.env):
            parts = value.split(",") if flag.type == "list" else [value]
            if any(part.strip() not in allowed for part in parts) and not (value == "" and flag.type == "bool"):
                wrong.append(WrongSetting(path, flag.env, value, allowed))
    return wrong


def _said(spec: ClusterPolicySpec, name: str) -> Iterator[tuple[str, str]]:
    """The path and the value of what counts in devicePlugin.env for the variable NAME, and of its argument."""
    section, argument = spec.devicePlugin, f"--{name.lower().replace('_', '-')}="
    for at, text in enumerate(section.args):
        if text.startswith(argument):
            yield f"spec.devicePlugin.args[{at}]", text.removeprefix(argument)
    given = [at for at, entry in enumerate(section.env) if entry.name == name and entry.value is not None]
    if given:
        yield f"spec.devicePlugin.env[{given[-1]}].value", section.env[given[-1]].value or ""


def fails_always(spec: ClusterPolicySpec) -> bool:
    """Whether the device plugin refuses requests for more than one share of MPS whatever its configuration says."""
    return plugin_config.before(images.version(spec.devicePlugin), plugin_config.MPS_FAILS_SETTABLE)


def _named(spec: ClusterPolicySpec, config: DevicePluginConfig, name: str) -> PluginConfig:
    texts: Mapping[str, str] = {text.key: text.text or "" for text in texts_of(spec, config, "devicePlugin.config")}
    if not texts:
        raise UnknownSharing(f"the device plugin's configuration {name} isn't in the policy")
    if config.default and config.default not in texts:
        # The init container reads no label, though it should: it takes the default on every node (tests/control_plane).
        raise UnknownSharing(f"the device plugin has no configuration {config.default}, its default, and waits for one")
    if name not in texts:
        raise UnknownSharing(f"the device plugin has no configuration {name}: its config manager fails on such a node")
    return read_plugin_config(texts[name], images.version(spec.devicePlugin))
