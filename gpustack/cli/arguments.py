"""The arguments of verbs, which are data: `arguments/<verb>.yaml` lists those of a verb, and `arguments/shared.yaml`
what several have, by name.

An entry is one of these::

    - today                                          # what shared.yaml lists under the name
    - --no-commit: leave what is written uncommitted # a switch, and what it does
    - -n --namespace: {metavar: NAME, ...}           # what argparse takes; `type` and `choices` may be of a module here
    - one of: {required: true, options: [...]}       #   (common:named), `completes` is for names of clusters
    - defaults: {out: dist}                          # what a verb has and nobody can say
    - actions: {required: true, of: {list: {help: ..., options: [...]}}}
"""

import pkgutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..catalog import _data

FILES = Path(__file__).with_suffix("")


def add(parser: Any, verb: str) -> None:
    """Give PARSER the arguments of VERB."""
    _add(parser, _data.read(FILES / f"{verb}.yaml"))


def _add(parser: Any, entries: Iterable[str | Mapping[str, Any]]) -> None:
    for each in entries:
        if isinstance(each, str):
            _add(parser, _data.read(FILES / "shared.yaml")[each])
            continue
        ((name, said),) = each.items()
        if name == "defaults":
            parser.set_defaults(**said)
        elif name == "one of":
            _add(parser.add_mutually_exclusive_group(required=said["required"]), said["options"])
        elif name == "actions":
            actions = parser.add_subparsers(dest="action", metavar="ACTION", required=said["required"])
            for action, told in said["of"].items():
                what = told["help"]
                below = actions.add_parser(action, help=what, description=f"{what[0].upper()}{what[1:]}.")
                _add(below, told.get("options", ()))
        else:
            _argument(parser, name.split(), {"action": "store_true", "help": said} if isinstance(said, str) else said)


def _argument(parser: Any, names: Iterable[str], said: Mapping[str, Any]) -> None:
    settings = {
        key: pkgutil.resolve_name(value if value.startswith("gpustack.") else f"{__package__}.{value}")
        if key in {"type", "choices"} and isinstance(value, str)
        else value
        for key, value in said.items()
        if key != "completes"
    }
    made = parser.add_argument(*names, **settings)
    if "completes" in said:
        made.completer = clusters


def clusters(**_: object) -> list[str]:
    """The names of clusters, for shells that complete them."""
    from .common import POLICIES

    return sorted(path.stem for path in Path(POLICIES).glob("*.y*ml") if path.name != "fleet.yaml")
