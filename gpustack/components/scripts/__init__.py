"""Shell scripts that containers run, one file each beside this module, and how they are mounted.

All of them are POSIX sh, because the images that run them have no other shell for sure.
"""

from functools import cache
from pathlib import Path

from ...catalog import _data
from ..parts.pod import Volume


@cache
def script(name: str) -> str:
    """The text of NAME.sh."""
    return Path(__file__).with_name(f"{name}.sh").read_text(encoding="utf-8")


def argument(name: str) -> str:
    """The short script NAME of arguments.yaml."""
    return str(_data.read(Path(__file__).with_name("arguments.yaml"))[name])


def entrypoint(config_map: str) -> Volume:
    """The volume of an entry point, executable by its owner alone (operator.md 9.4)."""
    return Volume.config_map(config_map, config_map, mode=0o700)
