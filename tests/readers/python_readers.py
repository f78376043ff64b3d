"""YAML as Python programs read it, and what it means for two readers to agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml
from ruamel.yaml import YAML

Reader = Callable[[str], Any]


def pyyaml_c(text: str) -> Any:
    """YAML 1.1 by libyaml."""
    return yaml.load(text, Loader=yaml.CSafeLoader)


def pyyaml(text: str) -> Any:
    """YAML 1.1 in pure Python: other code than libyaml, with limits of its own."""
    return yaml.load(text, Loader=yaml.SafeLoader)


def ruamel(text: str) -> Any:
    """YAML 1.2."""
    return YAML(typ="safe", pure=True).load(text)


PYTHON_READERS: dict[str, Reader] = {"pyyaml_c": pyyaml_c, "pyyaml": pyyaml, "ruamel": ruamel}


def same(read: Any, meant: Any) -> bool:
    """Whether READ is the JSON that was MEANT: "1", 1 and true differ; 1.0 and 1 and the order of keys don't.

    A float is the same as the number that becomes it (Go prints 4e18 as an integer of its shortest digits), an integer
    only as itself.
    """
    if isinstance(meant, dict):
        return isinstance(read, dict) and read.keys() == meant.keys() and all(same(read[k], meant[k]) for k in meant)
    if isinstance(meant, list):
        return isinstance(read, list) and len(read) == len(meant) and all(map(same, read, meant))
    if isinstance(meant, float):
        return isinstance(read, (int, float)) and not isinstance(read, bool) and float(read) == meant
    return type(read) is type(meant) and bool(read == meant)
