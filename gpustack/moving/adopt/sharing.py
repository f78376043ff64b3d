"""How GPUs are shared, said by a pool in place of the device plugin's text, where nothing else becomes of it.

Nodes choose a configuration by a label that people set, and nodes without it get the default. So a text is a pool's
sharing only where it is the one that there is to choose, and the default: then the pool is called as that is, and the
labels of nodes mean what they meant.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gpustack.components.plugin.configs_inputs import EXCLUSIVE, PLUGIN, InEffect, plugin_config_map
from gpustack.model import Body, GpustackError, Path
from gpustack.policy.configurations.plugin_text import read_plugin_config
from gpustack.policy.language import images
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.load import load_values

from .installation import Said
from .spec import ANSWER, NOWHERE, Draft

CONFIG = ("devicePlugin", "config")
NAME: Path = ("nodePools", 0, "name")


class Kept(Exception):  # noqa: N818  # the reason is the value
    """The text stays: why."""


def shared(made: Draft) -> Draft | None:
    """MADE with a pool's sharing in place of the text; None where there is no text. Raises Kept."""
    config = in_effect(made)
    if config is None or not config.data or not config.default:
        return None
    meant, name = meaning(made, config), config.default
    if len(config.data) > 1 or name not in config.data or name == EXCLUSIVE:
        raise Kept("nodes choose among several configurations by their labels")
    if meant is None or len({replicas for _, replicas in meant[1]}) != 1:
        raise Kept(f"{name} says more than how GPUs are shared, or what no pool can say")
    pools = {path[1] for path in made.leaves if path[0] == "nodePools"}
    called = made.leaves.get(NAME, Said(name, NOWHERE))
    if len(pools) > 1 or (called.where == ANSWER and called.value != name):
        raise Kept(f"the one pool of all nodes would have to be called {name}, as labels of nodes may say")
    kind, entries, renamed, fails = meant
    where = next((said.where for path, said in made.leaves.items() if path[:2] == CONFIG), NOWHERE)
    leaves = {path: said for path, said in made.leaves.items() if path[:2] != CONFIG}
    brought = [each for each in made.spec.get("extraObjects", []) if each["metadata"]["name"] != config.name]
    if ("extraObjects",) in leaves:
        leaves["extraObjects",] = Said(brought, leaves["extraObjects",].where)
    how = {"replicas": entries[0][1], "renameByDefault": renamed, "failRequestsGreaterThanOne": fails}
    at, usual = (
        ("nodePools", 0, "sharing", kind),
        {"renameByDefault": False, "failRequestsGreaterThanOne": kind == "mps"},
    )
    leaves |= {(*at, key): Said(each, where) for key, each in how.items() if each != usual.get(key)}
    leaves |= {NAME: Said(name, where), (*CONFIG, "default"): Said(name, where)}
    other = replace(made, leaves=leaves, carried=[])
    after = in_effect(other)
    if after is None or meaning(other, after) != meant:
        raise Kept("a pool would share other resources")
    return other


def in_effect(made: Draft, which: Callable[[ClusterPolicySpec], InEffect] = plugin_config_map) -> InEffect | None:
    """The configuration WHICH has by MADE, the device plugin's or the MIG manager's, None where there can't be one."""
    try:
        return which(load_values(made.spec))
    except GpustackError:
        return None


def meaning(made: Draft, config: InEffect) -> tuple[str, list[tuple[str, int]], bool, bool] | None:
    """The kind of sharing, what is shared in how many parts, whether it is renamed, and whether requests for more fail,
    by the default of CONFIG; None where it says anything else, or nothing. What it leaves out is the plugin's own."""
    version = images.version(load_values(made.spec).devicePlugin) or ""
    said = read_plugin_config((config.data or {}).get(config.default, ""), version)
    if said.refused or said.ignored or said.flags or said.ambiguous or len(said.sharing) != 1:
        return None
    how = said.sharing[said.kind]
    fails = said.kind == "mps" if how.fails is None else how.fails
    return said.kind, [(each.name, each.replicas) for each in how.entries], how.renamed, fails


def apart(before: Iterable[Body], after: Iterable[Body], name: str) -> set[str]:
    """The objects that aren't the same BEFORE and AFTER, but for the ConfigMaps, NAME and ours, and who reads them."""

    def others(bodies: Iterable[Body]) -> dict[tuple[Any, ...], str]:
        texts = {(body["kind"], body["metadata"]["name"]): json.dumps(body, sort_keys=True) for body in bodies}
        return {key: text for key, text in texts.items() if not any(f'"{each}"' in text for each in (name, PLUGIN))}

    mine, theirs = others(before), others(after)
    return {" ".join(key) for key in {*mine, *theirs} if mine.get(key) != theirs.get(key)}
