"""A configuration of the device plugin and of GPU feature discovery, read from the text below a key of a ConfigMap.

Solves: the plugin takes any key and ignores those that it doesn't know, so that sharing which is misspelt or stands at
the wrong level is off, and nobody says so; and it exits for a value that it refuses. Here the schema is closed. Keys
and limits are the catalogue's (plugin_config.py), what is refused is NVIDIA/k8s-device-plugin's api/config/v1.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpustack.catalog import _versions, plugin_config
from gpustack.catalog._lookup import nearest
from gpustack.policy.embedded import Pairs, Place, Problem, Reader, place_of
from gpustack.policy.yaml12 import PLAIN

PROGRAM = "the device plugin"
PREFIX = "nvidia.com/"
IGNORED = "the device plugin takes any key and ignores what it doesn't know, without a word"

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_DURATION = re.compile(r"infinite|0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|[0-9]+")
_ITEMS = {"resources": ("gpus", "mig"), "imex": ("channelIDs", "required")}
_MORE = (
    *(f"resources.{kind}[].{key}" for kind in _ITEMS["resources"] for key in ("pattern", "name")),
    *(f"imex.{key}" for key in _ITEMS["imex"]),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A resource that is shared: its name with the prefix, and where name and number stand."""

    name: str
    replicas: int
    place: Place
    replicas_place: Place


@dataclass(frozen=True, slots=True)
class Shared:
    """One way of sharing, timeSlicing or mps: its entries, and what it says about names and requests.

    `fails` (failRequestsGreaterThanOne) is None where it isn't said; `place` is that of the key, `fails_place` of it.
    """

    place: Place
    entries: tuple[Entry, ...] = ()
    renamed: bool = False
    fails: bool | None = None
    fails_place: Place | None = None


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """What a text says. `refused` makes the plugin exit, `ignored` has no effect; what has a problem is left out.

    `sharing` has the kinds that are there, timeSlicing and mps; `flags` each flag's value as it stands, by its path.
    """

    refused: tuple[Problem, ...] = ()
    ignored: tuple[Problem, ...] = ()
    sharing: Mapping[str, Shared] = field(default_factory=dict)
    flags: Mapping[str, tuple[str, Place]] = field(default_factory=dict)


@functools.lru_cache(maxsize=128)
def read_plugin_config(text: str, version: str = "") -> PluginConfig:
    """Read TEXT for the plugin of VERSION, "" for the newest. Never raises: what is wrong is among the problems."""
    return _Config(version).read(text)


@functools.cache
def known_paths() -> tuple[str, ...]:
    """Every key that the plugin knows, by its path from the root: sharing.timeSlicing.resources[].replicas."""
    sharing = plugin_config.sharing()
    paths = [*plugin_config.flags(), *_MORE]
    for kind in sharing["strategies"]:
        paths += [f"sharing.{kind}.{key}" for key in sharing["keys"]]
        paths += [f"sharing.{kind}.resources[].{key}" for key in sharing["resource_keys"]]
    return tuple(paths)


class _Config(Reader):
    """Reads the parts of a configuration. `problems` are those that are refused."""

    def __init__(self, version: str) -> None:
        super().__init__(PROGRAM)
        self.refuses = "the device plugin exits, and the node offers no GPUs"
        self.version_of_plugin = version
        self.ignored: list[Problem] = []
        self.flags: dict[str, tuple[str, Place]] = {}

    def read(self, text: str) -> PluginConfig:
        if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
            return PluginConfig()  # as good as version: v1 alone
        root = self.document(text)
        top = self.section(root, "", plugin_config.top_level()) if root is not None else {}
        if top:
            self.version(top, "v1", required=False)
        for name in ("flags", "sharing", "resources", "imex"):
            if name in top and not _null(top[name][1]):
                getattr(self, f"read_{name}")(top[name][1])
        sharing = self.read_kinds(top["sharing"][1]) if "sharing" in top else {}
        return PluginConfig(tuple(self.problems), tuple(self.ignored), sharing, self.flags)

    def section(self, node: Any, path: str, keys: tuple[str, ...], *, exact: bool = False) -> Pairs:
        """The pairs of the mapping NODE at PATH by their KEYS. Others are ignored, as the plugin does; so is the case
        of a key's letters, unless EXACT.
        """
        if not isinstance(node, yaml.MappingNode):
            self.problem(node, f"{path or 'the configuration'} is no mapping", "write key: value below it")
            return {}
        spelt = {key if exact else key.lower(): key for key in keys}
        found: Pairs = {}
        for key, value in self.pairs(node):
            name = str(key.value)
            known = spelt.get(name if exact else name.lower())
            if known is None:
                self.ignore(key, f"{path}.{name}" if path else name, keys)
            elif known in found:
                line = place_of(found[known][0])[0]
                remedy = f"delete one of the two; the other is on line {line}"
                self.ignored.append(Problem(place_of(key), f"{known} stands twice", "one of the two is lost", remedy))
            else:
                found[known] = key, value
        return found

    def pairs(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """The pairs of NODE, with those that it takes over by `<<` and has none of its own of."""
        own = {str(key.value) for key, _ in node.value}
        for key, value in node.value:
            if key.tag == PLAIN and key.value == "<<":
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    inner = self.pairs(part) if isinstance(part, yaml.MappingNode) else ()
                    yield from ((name, item) for name, item in inner if str(name.value) not in own)
            else:
                yield key, value

    def ignore(self, key: Any, path: str, keys: tuple[str, ...]) -> None:
        """Say that PATH is unknown, and what may have been meant."""
        name = path.rpartition(".")[2]
        parents = sorted({known.rpartition(".")[0] for known in known_paths() if known.rpartition(".")[2] == name})
        near = nearest(name, keys, 1)
        if parents:
            where = " or ".join(parents[:1] if parents[0].startswith("flags") else _by_sharing(parents))
            remedy = f"it belongs to {where}: move it there"
        elif near:
            remedy = f"did you mean {near[0]}?"
        else:
            close = nearest(name, [known.rpartition(".")[2] for known in known_paths()], 1)
            others = [known for known in known_paths() if known.rpartition(".")[2] in close]
            remedy = f"did you mean {others[0]}?" if others else f"known here are {', '.join(keys)}"
        self.ignored.append(Problem(place_of(key), f"{path} is unknown", IGNORED, remedy))

    def read_flags(self, node: Any, path: str = "flags") -> None:
        """Flags, in their groups."""
        inner = {known[len(path) + 1 :].partition(".")[0] for known in plugin_config.flags() if _below(known, path)}
        for name, (key, value) in self.section(node, path, tuple(sorted(inner))).items():
            where = f"{path}.{name}"
            flag = plugin_config.flags().get(where)
            if _null(value):
                continue
            if flag is None:
                self.read_flags(value, where)
                continue
            if flag.since and self.version_of_plugin and _older(self.version_of_plugin, flag.since):
                why = f"the device plugin {self.version_of_plugin} ignores it"
                what, remedy = f"{where} is known from {flag.since} on", "leave it out, or take a newer device plugin"
                self.ignored.append(Problem(place_of(key), what, why, remedy))
            self.read_flag(where, flag, value)

    def read_flag(self, path: str, flag: plugin_config.Flag, node: Any) -> None:
        """One flag."""
        items = node.value if flag.type == "list" and isinstance(node, yaml.SequenceNode) else [node]
        self.flags[path] = ",".join(str(getattr(item, "value", "")) for item in items), place_of(node)
        if flag.type == "list":
            for item in items:
                self.choice(path, flag, item)
        elif not isinstance(node, yaml.ScalarNode):
            self.problem(node, f"{path} is no {'text' if flag.type == 'string' else flag.type}", "write one value")
        elif flag.type == "bool":
            self.boolean(node, path)
        elif flag.type == "enum":
            self.choice(path, flag, node)
        elif flag.type == "duration" and not _DURATION.fullmatch(node.value):
            self.problem(node, f"{path} is {node.value!r}, which is no duration", "write a duration such as 60s")

    def choice(self, path: str, flag: plugin_config.Flag, node: Any) -> None:
        """A value that is one of several."""
        value = str(getattr(node, "value", ""))
        if not isinstance(node, yaml.ScalarNode) or value not in flag.values:
            near = nearest(value, flag.values, 1) if isinstance(node, yaml.ScalarNode) else []
            remedy = f"did you mean {near[0]}?" if near else f"write {' or '.join(flag.values)}"
            if flag.type == "list" and "," in value:
                remedy = f"write a list: [{', '.join(part.strip() for part in value.split(','))}]"
            self.problem(node, f"{path} is {value!r}", remedy)

    def read_resources(self, node: Any) -> None:
        """Names for resources, which nothing honours."""
        for name, (key, value) in self.section(node, "resources", _ITEMS["resources"]).items():
            if isinstance(value, yaml.SequenceNode) and value.value:
                why = "the device plugin drops resource names of your own; nodes offer nvidia.com/gpu and MIG instances"
                remedy = "leave it out"
                self.ignored.append(Problem(place_of(key), f"resources.{name} is not honoured", why, remedy))

    def read_imex(self, node: Any) -> None:
        """Channels between nodes."""
        found = self.section(node, "imex", _ITEMS["imex"])
        if "required" in found:
            self.boolean(found["required"][1], "imex.required")
        if "channelIDs" in found:
            items = self.items(found["channelIDs"][1], "imex.channelIDs", empty=True)
            if [getattr(item, "value", "") for item in items] not in ([], ["0"]):
                self.problem(
                    found["channelIDs"][1], "imex.channelIDs is neither [] nor [0]", "write [0], or leave it out"
                )

    def read_sharing(self, node: Any) -> None:
        """Only the keys; `read_kinds` reads what is below them."""
        self.section(node, "sharing", tuple(plugin_config.sharing()["strategies"]))

    def read_kinds(self, node: Any) -> dict[str, Shared]:
        """How resources are shared, by kind."""
        if not isinstance(node, yaml.MappingNode):
            return {}
        kinds = {kind.lower(): kind for kind in plugin_config.sharing()["strategies"]}
        found: dict[str, Shared] = {}
        for key, value in self.pairs(node):
            kind = kinds.get(str(key.value).lower())
            if kind and not (kind == "mps" and _null(value)):
                found[kind] = self.shared(kind, key, value)
        return found

    def shared(self, kind: str, key: Any, node: Any) -> Shared:
        """One way of sharing."""
        path, place = f"sharing.{kind}", place_of(key)
        if _null(node):
            self.problem(key, f"{path} is empty", f"add {path}.resources, or delete {kind}")
            return Shared(place)
        before = len(self.ignored)
        pairs = self.section(node, path, tuple(plugin_config.sharing()["keys"]), exact=True)
        renamed = self.boolean(pairs["renameByDefault"][1], "renameByDefault") if "renameByDefault" in pairs else None
        fails, fails_place = None, None
        if "failRequestsGreaterThanOne" in pairs:
            fails_place = place_of(pairs["failRequestsGreaterThanOne"][0])
            fails = self.boolean(pairs["failRequestsGreaterThanOne"][1], "failRequestsGreaterThanOne")
        entries: list[Entry] = []
        if "resources" in pairs:
            items = self.items(pairs["resources"][1], f"{path}.resources")
            entries = [entry for item in items if (entry := self.entry(path, item)) is not None]
        elif len(self.ignored) == before:  # what is missing may only be misspelt
            remedy = f"add {path}.resources: [{{name: nvidia.com/gpu, replicas: 4}}]"
            self.problem(key, f"{path} has no resources", remedy)
        return Shared(place, tuple(entries), bool(renamed), fails, fails_place)

    def entry(self, path: str, node: Any) -> Entry | None:
        """A resource that is shared."""
        before, path = len(self.ignored), f"{path}.resources[]"
        pairs = self.section(node, path, tuple(plugin_config.sharing()["resource_keys"]), exact=True)
        self.ignored_keys(path, pairs)
        complete = len(self.ignored) == before and isinstance(node, yaml.MappingNode)
        for key, remedy in (("name", "add name: nvidia.com/gpu"), ("replicas", "add replicas: 2 or more")):
            if complete and key not in pairs:
                self.problem(node, f"an entry of {path.removesuffix('[]')} has no {key}", remedy)
        name = self.resource(pairs["name"][1]) if "name" in pairs else None
        number = self.replicas(pairs["replicas"][1]) if "replicas" in pairs else None
        if name is None or number is None:
            return None
        return Entry(name, number, place_of(pairs["name"][1]), place_of(pairs["replicas"][1]))

    def ignored_keys(self, path: str, pairs: Pairs) -> None:
        """Keys that the plugin reads and then drops."""
        for key, why, remedy in (
            ("rename", "the device plugin drops names of your own", "leave it out; renameByDefault: true adds .shared"),
            ("devices", "the device plugin shares all devices of the resource", "leave it out, or write devices: all"),
        ):
            value = getattr(pairs[key][1], "value", "") if key in pairs else "all"
            if value != "all":
                self.ignored.append(Problem(place_of(pairs[key][0]), f"{path}.{key} is not honoured", why, remedy))

    def resource(self, node: Any) -> str | None:
        """The name of a resource, with its prefix."""
        found = self.text(node, "the name of a resource")
        if found is None:
            return None
        name = found if found.startswith(PREFIX) else PREFIX + found
        if len(name) > 63 or not _NAME.fullmatch(name.removeprefix(PREFIX)):
            self.problem(node, f"{found!r} is no name of a resource", "write nvidia.com/gpu or nvidia.com/mig-1g.10gb")
            return None
        return name

    def replicas(self, node: Any) -> int | None:
        """How many share one."""
        least = plugin_config.min_replicas()
        value = node.value if isinstance(node, yaml.ScalarNode) else ""
        if value.startswith("${"):
            self.problem(node, f"replicas is {value}, which nothing replaces", f"write a number, {least} or more")
            return None
        number = -1 if value[:1] == "-" and value[1:].isdigit() else self.integer(node, "replicas")
        if number is not None and number < least:
            self.problem(node, f"replicas is {value}", f"write {least} or more; leave out sharing to turn it off")
            return None
        return number


def _by_sharing(parents: list[str]) -> list[str]:
    """Of the PARENTS in sharing those of time-slicing, which is what most mean; the other kind has the same keys."""
    return [parent for parent in parents if "mps" not in parent] or parents


def _below(path: str, group: str) -> bool:
    return path.startswith(f"{group}.")


def _older(version: str, than: str) -> bool:
    try:
        return _versions.key(version) < _versions.key(than)
    except ValueError:  # a digest or a tag of their own
        return False


def _null(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == PLAIN and node.value in {"", "~", "null", "Null", "NULL"}
