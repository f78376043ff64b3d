"""Plain data of YAML from libyaml's events.

Solves: a render reads some 14,000 values of data files. PyYAML's own way, by a graph of nodes, also finds keys said
twice, merges and data that holds itself, which no file of ours has, and takes 2.6 times as long.
"""

import functools
from typing import IO, Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def plain(file: IO[bytes]) -> Any:
    """What the one document in FILE says."""
    reader = _Reader(_LOADER(file))
    reader.following(), reader.following()  # the stream and the document begin
    return reader.value(reader.following())


class _Reader:
    """Reads one file: `following` is its next event, `anchors` what stands at its anchors."""

    def __init__(self, loader: Any) -> None:
        self.following = loader.get_event
        self.anchors: dict[str, Any] = {}

    def value(self, event: Any) -> Any:
        """What begins with EVENT, read to its end."""
        kind, following, value = type(event), self.following, self.value
        made: Any
        if kind is yaml.ScalarEvent:
            made = _scalar(event.value) if event.implicit[0] else event.value
        elif kind is yaml.MappingStartEvent:
            made = {}
            while type(key := following()) is not yaml.MappingEndEvent:
                made[value(key)] = value(following())
        elif kind is yaml.SequenceStartEvent:
            made = []
            while type(each := following()) is not yaml.SequenceEndEvent:
                made.append(value(each))
        else:
            return self.anchors[event.anchor]
        if event.anchor:
            self.anchors[event.anchor] = made
        return made


_WORDS: Any = yaml.SafeLoader("")


@functools.cache
def _scalar(text: str) -> Any:
    """What TEXT, written without quotes, stands for."""
    if text[:1] not in _WORDS.yaml_implicit_resolvers:
        return text
    tag = _WORDS.resolve(yaml.ScalarNode, text, (True, False))
    return _WORDS.construct_object(yaml.ScalarNode(tag, text))
