"""The keys and the flags of the device plugin's configuration: what the plugin takes, ignores and refuses of them.

Solves: the plugin reads with encoding/json, which ignores unknown keys and the case of letters where a section is a
plain struct, and with code of its own, which heeds the case, inside of sharing. `plugin_text.py` reads the sections.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any

import yaml

from gpustack.catalog import plugin_config
from gpustack.catalog._lookup import nearest
from gpustack.policy.configurations.embedded import Pairs, Place, Problem, Reader, place_of
from gpustack.text.go_scalars import folded, is_null, scalar
from gpustack.text.yaml12 import PLAIN

PROGRAM = "the device plugin"
PREFIX = "nvidia.com/"
IGNORED = "the device plugin takes any key and ignores what it doesn't know, without a word"

_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
ITEMS = {"resources": ("gpus", "mig"), "imex": ("channelIDs", "required")}
_MORE = (
    *(f"resources.{kind}[].{key}" for kind in ITEMS["resources"] for key in ("pattern", "name")),
    *(f"imex.{key}" for key in ITEMS["imex"]),
)


@functools.cache
def known_paths() -> tuple[str, ...]:
    """Every key that the plugin knows, by its path from the root: sharing.timeSlicing.resources[].replicas."""
    sharing = plugin_config.sharing()
    paths = [*plugin_config.flags(), *_MORE]
    for kind in sharing["strategies"]:
        paths += [f"sharing.{kind}.{key}" for key in sharing["keys"]]
        paths += [f"sharing.{kind}.resources[].{key}" for key in sharing["resource_keys"]]
    return tuple(paths)


class KeyReader(Reader):
    """Reads keys and flags. `problems` are those that are refused, `ignored` those without effect.

    `flags` has each flag's value by its path, `wrong` those that make the plugin exit unless something overrules them.
    `ambiguous`: a key stands twice; `lacking`: one that has to be there is misspelt."""

    def __init__(self, version: str) -> None:
        super().__init__(PROGRAM)
        self.refuses = "the device plugin exits, and the node offers no GPUs"
        self.version_of_plugin = version
        self.ignored: list[Problem] = []
        self.flags: dict[str, tuple[str, Place]] = {}
        self.wrong: dict[str, Problem] = {}
        self.ambiguous = False
        self.lacking = False

    def section(self, node: Any, path: str, keys: tuple[str, ...], *, exact: bool = False) -> Pairs:
        """The pairs of the mapping NODE at PATH by their KEYS, in any case unless EXACT; others are ignored."""
        if not isinstance(node, yaml.MappingNode):
            self.problem(node, f"{path or 'the configuration'} is not a mapping", "write key: value below it")
            return {}
        spelt = {key if exact else folded(key): key for key in keys}
        pairs: Pairs = {}
        for key, value in self.pairs(node):
            name = str(key.value)
            known = spelt.get(name if exact else folded(name))
            if known is None:
                self.ignore(key, f"{path}.{name}" if path else name, keys)
            elif known in pairs:
                remedy = f"delete one of the two; the other is on line {place_of(pairs[known][0])[0]}"
                self.drop(key, f"{known} stands twice", "one of the two is lost", remedy)
                self.ambiguous = True
            else:
                pairs[known] = key, value
        return pairs

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
            others = [parent for parent in parents if "mps" not in parent] or parents  # most mean time-slicing
            where = " or ".join(parents[:1] if parents[0].startswith("flags") else others)
            remedy = f"it belongs to {where}: move it there"
        elif near:
            remedy = f"did you mean {near[0]}?"
        else:
            close = nearest(name, [known.rpartition(".")[2] for known in known_paths()], 1)
            others = [known for known in known_paths() if known.rpartition(".")[2] in close]
            remedy = f"did you mean {others[0]}?" if others else f"known here are {', '.join(keys)}"
        self.drop(key, f"{path} is unknown", IGNORED, remedy)

    def drop(self, where: Any, what: str, why: str, remedy: str) -> None:
        """Add a problem without effect at WHERE, a node or a place."""
        self.ignored.append(Problem(where if isinstance(where, tuple) else place_of(where), what, why, remedy))

    def read_flags(self, node: Any, path: str = "flags") -> None:
        below = [known for known in plugin_config.flags() if known.startswith(f"{path}.")]
        inner = {known[len(path) + 1 :].partition(".")[0] for known in below}
        for name, (key, value) in self.section(node, path, tuple(sorted(inner))).items():
            where = f"{path}.{name}"
            flag = plugin_config.flags().get(where)
            if is_null(value):
                continue
            if flag is None:
                self.read_flags(value, where)
                continue
            if flag.since and plugin_config.before(self.version_of_plugin, flag.since):
                why = f"the device plugin {self.version_of_plugin} ignores it"
                what, remedy = f"{where} is known from {flag.since} on", "leave it out, or take a newer device plugin"
                self.drop(key, what, why, remedy)
            self.read_flag(where, flag, value)

    def read_flag(self, path: str, flag: plugin_config.Flag, node: Any) -> None:
        items = node.value if flag.type == "list" and isinstance(node, yaml.SequenceNode) else [node]
        self.flags[path] = ",".join(str(getattr(item, "value", "")) for item in items), place_of(node)
        if flag.type == "bool":
            self.boolean(node, path)
        elif flag.type == "duration":
            self.duration(node, path)
        elif not all(isinstance(item, yaml.ScalarNode) and isinstance(scalar(item), str) for item in items):
            single = "write one value, in quotes if it is a number or a word such as yes"
            remedy = single if flag.type == "string" else f"write {' or '.join(flag.values)}"
            self.problem(node, f"{path} is not text", remedy)
        elif flag.type in {"list", "enum"}:
            for item in items:
                self.choice(path, flag, item)

    def duration(self, node: Any, path: str) -> None:
        """How long; a bare number is one of nanoseconds."""
        value = scalar(node) if isinstance(node, yaml.ScalarNode) else None
        known = not plugin_config.before(self.version_of_plugin, plugin_config.INFINITE_SLEEP)
        endless = value == "infinite" and known
        if type(value) in {int, float} or endless or (isinstance(value, str) and _DURATION.fullmatch(value)):
            return
        what = f"{path} is {getattr(node, 'value', '')!r}, which is not a duration"
        if value == "infinite":
            what = f"{path} is infinite, which the device plugin {self.version_of_plugin} doesn't know"
        self.problem(node, what, "write a duration such as 60s")

    def choice(self, path: str, flag: plugin_config.Flag, node: Any) -> None:
        """A value that is one of several. Another one is wrong where nothing overrules it: the plugin looks at the
        value that counts, after its environment and arguments."""
        value = str(node.value)
        values = plugin_config.taken(flag)  # both programs read this file, so what one of them refuses is wrong
        if value not in values:
            near = nearest(value, values, 1)
            remedy = f"did you mean {near[0]}?" if near else f"write {' or '.join(values)}"
            if flag.type == "list" and "," in value:
                remedy = f"write a list: [{', '.join(part.strip() for part in value.split(','))}]"
            self.wrong.setdefault(path, Problem(place_of(node), f"{path} is {value!r}", self.refuses, remedy))

    def boolean(self, node: Any, what: str) -> bool | None:
        """A boolean, as Go has it; nothing is false."""
        value = scalar(node) if isinstance(node, yaml.ScalarNode) else ""
        if value is None or isinstance(value, bool):
            return bool(value)
        self.problem(node, f"{what} is neither true nor false", "write true or false, without quotes")
        return None

    def text(self, node: Any, what: str) -> str | None:
        """A text, as Go has it."""
        value = scalar(node) if isinstance(node, yaml.ScalarNode) else ""
        if isinstance(value, str) and isinstance(node, yaml.ScalarNode):
            return value
        shown = getattr(node, "value", "") if isinstance(node, yaml.ScalarNode) else "no single value"
        self.problem(node, f"{what} is {shown or 'empty'}, which is not text", "put it in quotes")
        return None
