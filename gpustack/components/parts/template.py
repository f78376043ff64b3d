"""Objects of which only values differ are written as Kubernetes has them, in a data file beside the module that makes
them: who knows a manifest can read it.

Values are put into what was read and never into text, so nothing that a policy says can become anything else.
"""

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from ...catalog import _data
from ...model import Body
from .pod import sparse


def template(module: str, key: str, /, **words: Any) -> Body:
    """The object KEY of the data file of MODULE (its `__file__`), with WORDS for its `$name`s."""
    made: Body = filled(data(module, key), words)
    return made


def data(module: str, key: str) -> Any:
    """What KEY is in that file, as it is."""
    return _data.read(Path(module).with_suffix(".yaml"))[key]


def filled(value: Any, words: Mapping[str, Any]) -> Any:
    """A copy of VALUE with WORDS for its `$name`s: in texts and keys as text, and where one is a whole value as it is.
    An entry with such a word that is empty is left out, as by `sparse`; False and 0 stay."""
    if isinstance(value, str):
        return _plain(words[value[1:]]) if _lone(value) else Template(value).substitute(words)
    if isinstance(value, list):
        return [filled(item, words) for item in value]
    if not isinstance(value, dict):
        return value
    made = ((Template(key).substitute(words), filled(item, words), _lone(item)) for key, item in value.items())
    return {key: item for key, item, lone in made if not lone or sparse(item=item)}


def _lone(value: Any) -> bool:
    return isinstance(value, str) and value[:1] == "$" and value[1:].isidentifier()


def _plain(value: Any) -> Any:
    """A copy of VALUE as YAML has it: tuples are lists there."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
