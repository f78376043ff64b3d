"""A configuration of the device plugin and of GPU feature discovery, read from the text below a key of a ConfigMap.

Solves: the plugin takes any key and ignores those that it doesn't know, so that sharing which is misspelt or stands at
the wrong level is off, and nobody says so; and it exits for a value that it refuses. Here the schema is closed. Keys
and limits are the catalogue's (plugin_config.py), what is refused is NVIDIA/k8s-device-plugin's api/config/v1.

This is the only reader of such a text: what a node offers and is labelled with is said by `plugin_sharing.py` on top of
it. tests/hardware holds it against what the real programs did with some 250 texts.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpustack.catalog import plugin_config
from gpustack.policy.configurations.embedded import START, Pairs, Place, Problem, place_of
from gpustack.policy.configurations.plugin_keys import ITEMS, PREFIX, PROGRAM, KeyReader
from gpustack.text.go_scalars import folded, is_null, octal, scalar, whole

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_UUID = r"(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32})"
_DEVICE = re.compile(rf"[0-9]+(?::[0-9]+)?|(?:GPU|MIG)-{_UUID}|MIG-GPU-{_UUID}/[0-9]+/[0-9]+")
_DIRECTIVE = re.compile(r"\ufeff?(?:[ \t]*(?:#.*)?\r?\n)*%YAML[ \t]+(?!1\.1\s)")
_NOTHING = re.compile(r"\ufeff?(?:[ \t]*(?:---|\.\.\.)?[ \t]*(?:#.*)?(?:\r?\n|\Z))*")
_BLANKS = r"(?:[ \t]*(?:#.*)?\r?\n)*"
_EMPTY_FIRST = re.compile(rf"\ufeff?{_BLANKS}---[ \t]*(?:#.*)?\r?\n{_BLANKS}---(?=\s)")
"""A first document without anything in it, which is the one that counts."""


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
    Of several entries for one resource the plugin makes as many shares as the largest says, whatever their order, and
    GPU feature discovery writes the first one's number into gpu.replicas (seen on a GPU, tests/hardware)."""

    place: Place
    entries: tuple[Entry, ...] = ()
    renamed: bool = False
    fails: bool | None = None
    fails_place: Place | None = None

    def replicas(self, name: str) -> int:
        """How many shares of one device of the resource NAME a node offers; 1 where it isn't shared."""
        return max((entry.replicas for entry in self.entries if entry.name == name), default=1)

    def labelled(self, name: str) -> int:
        """The number that GPU feature discovery writes for the resource NAME; 1 where it isn't shared."""
        return next((entry.replicas for entry in self.entries if entry.name == name), 1)


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """What a text says. `refused` makes the plugin exit, `ignored` has no effect; what has a problem is left out.

    `sharing` has the kinds that are there, timeSlicing and mps; `flags` each flag's value as it stands, by its path.
    `wrong` has the flags whose value makes the plugin exit, unless its environment or its arguments have another one.
    `ambiguous`: a key stands twice, and which of the two counts depends on how they are spelt. `lacking`: a key that
    has to be there isn't, though one is that is spelt like it (it is among the ignored), so that the plugin exits."""

    refused: tuple[Problem, ...] = ()
    ignored: tuple[Problem, ...] = ()
    sharing: Mapping[str, Shared] = field(default_factory=dict)
    flags: Mapping[str, tuple[str, Place]] = field(default_factory=dict)
    wrong: Mapping[str, Problem] = field(default_factory=dict)
    ambiguous: bool = False
    lacking: bool = False

    @property
    def kind(self) -> str:
        """The kind of sharing that counts: mps where it is there, else timeSlicing, "" for none."""
        return next((kind for kind in ("mps", "timeSlicing") if kind in self.sharing), "")


@functools.lru_cache(maxsize=128)
def read_plugin_config(text: str, version: str = "") -> PluginConfig:
    """Read TEXT for the plugin of VERSION, "" for the newest. Never raises: what is wrong is among the problems."""
    return _Config(version).read(text)


class _Config(KeyReader):
    def read(self, text: str) -> PluginConfig:
        if _NOTHING.fullmatch(text):
            return PluginConfig()  # as good as version: v1 alone
        if first := _EMPTY_FIRST.match(text):
            self.second_document((text.count("\n", 0, first.end()) + 1, 1))
            return PluginConfig(ignored=tuple(self.ignored))
        if _DIRECTIVE.match(text):
            self.problem(START, "the text isn't YAML 1.1", "delete the line that begins with %YAML")
        root = self.document(text)
        top = self.section(root, "", plugin_config.top_level()) if root is not None and not is_null(root) else {}
        if "version" in top and not (is_null(top["version"][1]) or getattr(top["version"][1], "value", None) == ""):
            self.version(top, "v1", required=False)
        for name in ("flags", "sharing", "resources", "imex"):
            if name in top and not is_null(top[name][1]):
                getattr(self, f"read_{name}")(top[name][1])
        sharing = self.read_kinds(top["sharing"][1]) if "sharing" in top else {}
        told = tuple(self.problems), tuple(self.ignored)
        return PluginConfig(*told, sharing, self.flags, self.wrong, self.ambiguous, self.lacking)

    def second_document(self, node: Any) -> None:
        """It has no effect."""
        why = f"{PROGRAM} reads the first one only, without a word"
        self.drop(node, "the text holds a second document", why, "join the two, or delete one")

    def read_resources(self, node: Any) -> None:
        """Names for resources, which nothing honours, and which have to be right all the same."""
        for name, (key, value) in self.section(node, "resources", ITEMS["resources"]).items():
            items = [] if is_null(value) else self.items(value, f"resources.{name}", empty=True)
            before = len(self.problems)
            for item in items:
                pairs = self.section(item, f"resources.{name}[]", ("pattern", "name"), exact=True)
                for part in ("pattern", "name"):
                    if isinstance(item, yaml.MappingNode) and part not in pairs:
                        self.problem(item, f"an entry of resources.{name} has no {part}", "delete the section")
                if "name" in pairs:
                    self.resource(pairs["name"][1])
                if "pattern" in pairs and not is_null(pairs["pattern"][1]):
                    self.text(pairs["pattern"][1], f"resources.{name}[].pattern")
            if items and len(self.problems) == before:
                why = "the device plugin drops resource names of your own; nodes offer nvidia.com/gpu and MIG instances"
                self.drop(key, f"resources.{name} is not honoured", why, "leave it out")

    def read_imex(self, node: Any) -> None:
        pairs = self.section(node, "imex", ITEMS["imex"])
        if "required" in pairs:
            self.boolean(pairs["required"][1], "imex.required")
        if "channelIDs" in pairs and not is_null(pairs["channelIDs"][1]):
            items = self.items(pairs["channelIDs"][1], "imex.channelIDs", empty=True)
            if [whole(item) for item in items] not in ([], [0]):
                what = "imex.channelIDs is neither [] nor [0]"
                self.problem(pairs["channelIDs"][1], what, "write [0], or leave it out")

    def read_sharing(self, node: Any) -> None:
        """Only the keys; `read_kinds` reads what is below them."""
        self.section(node, "sharing", tuple(plugin_config.sharing()["strategies"]))

    def read_kinds(self, node: Any) -> dict[str, Shared]:
        """How resources are shared, by kind."""
        if not isinstance(node, yaml.MappingNode):
            return {}
        kinds = {folded(kind): kind for kind in plugin_config.sharing()["strategies"]}
        by_kind: dict[str, Shared] = {}
        for key, value in self.pairs(node):
            kind = kinds.get(folded(str(key.value)))
            if kind and not (kind == "mps" and is_null(value)):
                by_kind[kind] = self.shared(kind, key, value)
        return by_kind

    def shared(self, kind: str, key: Any, node: Any) -> Shared:
        path, place = f"sharing.{kind}", place_of(key)
        if is_null(node):
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
            entries = [entry for item in items if (entry := self.entry(path, item, bool(renamed))) is not None]
        elif len(self.ignored) != before:  # what is missing may only be misspelt
            self.lacking = True
        else:
            remedy = f"add {path}.resources: [{{name: nvidia.com/gpu, replicas: 4}}]"
            self.problem(key, f"{path} has no resources", remedy)
        return Shared(place, tuple(entries), bool(renamed), fails, fails_place)

    def entry(self, path: str, node: Any, renamed: bool) -> Entry | None:
        before, path = len(self.ignored), f"{path}.resources[]"
        pairs = self.section(node, path, tuple(plugin_config.sharing()["resource_keys"]), exact=True)
        complete = len(self.ignored) == before and isinstance(node, yaml.MappingNode)
        for key, remedy in (("name", "add name: nvidia.com/gpu"), ("replicas", "add replicas: 2 or more")):
            self.lacking = self.lacking or key not in pairs
            if complete and key not in pairs:
                self.problem(node, f"an entry of {path.removesuffix('[]')} has no {key}", remedy)
        name = self.resource(pairs["name"][1]) if "name" in pairs else None
        number = self.replicas(pairs["replicas"][1]) if "replicas" in pairs else None
        self.renaming(path, pairs, f"{name}.shared" if renamed else None)
        self.devices(path, pairs)
        if name is None or number is None:
            return None
        return Entry(name, number, place_of(pairs["name"][1]), place_of(pairs["replicas"][1]))

    def renaming(self, path: str, pairs: Pairs, default: str | None) -> None:
        """A name for the shares, which is dropped, but where it is the one that renameByDefault gives: DEFAULT."""
        name = self.resource(pairs["rename"][1]) if "rename" in pairs else None
        if name is not None and name != default:
            why, remedy = f"{PROGRAM} drops names of your own", "leave it out; renameByDefault: true adds .shared"
            self.drop(pairs["rename"][0], f"{path}.rename is not honoured", why, remedy)

    def devices(self, path: str, pairs: Pairs) -> None:
        """Which devices are shared: always all. What is neither all, nor a number, nor a list of devices is refused."""
        if "devices" not in pairs:
            return
        key, node = pairs["devices"]
        if isinstance(node, yaml.ScalarNode):
            if scalar(node) == "all":
                return
            right = (whole(node) or 0) > 0
        else:
            right = isinstance(node, yaml.SequenceNode) and all(_device(item) for item in node.value)
        remedy = "leave it out, or write devices: all"
        if right:
            why = "the device plugin shares all devices of the resource"
            self.drop(key, f"{path}.devices is not honoured", why, remedy)
        else:
            self.problem(node, f"{path}.devices is neither all nor a number nor a list of devices", remedy)

    def resource(self, node: Any) -> str | None:
        """The name of a resource, with its prefix."""
        text = self.text(node, "the name of a resource")
        if text is None:
            return None
        name = text if text.startswith(PREFIX) else PREFIX + text
        if len(name) > 63 or not _NAME.fullmatch(name.removeprefix(PREFIX)):
            self.problem(node, f"{text!r} isn't a resource's name", "write nvidia.com/gpu or nvidia.com/mig-1g.10gb")
            return None
        return name

    def replicas(self, node: Any) -> int | None:
        """How many share one."""
        least = plugin_config.min_replicas()
        value = node.value if isinstance(node, yaml.ScalarNode) else ""
        if value.startswith("${"):
            self.problem(node, f"replicas is {value}, which nothing replaces", f"write a number, {least} or more")
            return None
        number = whole(node)
        if number is None:
            self.problem(node, "replicas is not a whole number", f"write a number such as {least}, without quotes")
        elif number < least:
            self.problem(node, f"replicas is {value}", f"write {least} or more; leave out sharing to turn it off")
        elif octal(node):
            why = f"the device plugin reads a number that begins with 0 by eights, and this one as {number}"
            numbers = sorted({number, int(float(value.replace("_", "")))})
            self.problem(node, f"replicas is {value}", f"write {' or '.join(map(str, numbers))}", why)
        else:
            return number
        return None


def _device(node: Any) -> bool:
    """Whether NODE names a device: by an index, by that of a MIG instance, or by a UUID."""
    value = scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if isinstance(value, str):
        return _DEVICE.fullmatch(value) is not None
    return (whole(node) if isinstance(node, yaml.ScalarNode) else -1) in range(2**63)
