"""gpustack explain: what a field's value is, and who wrote it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..model import Location, dotted
from ..policy.loading.layers import Origin
from ..text.read import read
from . import common
from .text import Code, answer

if TYPE_CHECKING:
    from ..policy.help.explain import Explained


def run(options: argparse.Namespace) -> int:
    from ..policy.help.explain import NotSetError, explain
    from ..policy.loading.load import load

    path = common.select_one(options.cluster)
    if options.path == "gpustack":
        version = renderer(path)
        line = Code("gpustack: {value}  {origin}: {where}".format(**version))
        return answer(options.format, 0, {"values": [version]}, [line])
    loaded = load(path, root=Path.cwd())
    try:
        told = explain(loaded, options.path)
    except NotSetError as error:
        return answer(options.format, 0, {"values": []}, [error.findings[0].what])
    data = []
    for row in told:
        below = {"overrides": [_row(*each) for each in row.overrides]} if row.overrides else {}
        data.append({"path": dotted(row.path), **_row(row.value, row.origin, row.location), **below})
    return answer(options.format, 0, {"values": data}, map(Code, lines(told, loaded.name)))


def renderer(path: Path) -> dict[str, Any]:
    """Which version of gpustack renders the cluster of the policy PATH, and what says so."""
    from ..policy.loading import brought, envelope, load, rings, versions

    listed, made = versions.versions_of(Path.cwd()), {"path": "gpustack", "value": __version__}
    if not listed:
        return {**made, "origin": "whatever runs", "where": "no gpustack.lock"}
    beside = rings.rings_of(path.parent.absolute(), lambda file: load.display(file, Path.cwd()))
    by, change = versions.renderer(listed, beside, envelope.open_policy(read(path, str(path))))
    said = {"origin": "change", "where": change.document.file, "ring": change.rollout.ring} if change else {}
    return {**made, "value": by.version, **(said or {"origin": "lock", "where": brought.LOCK})}


def lines(told: Sequence[Explained], cluster: str) -> Iterator[str]:
    """What is TOLD of CLUSTER, for people: a value, who wrote it, and what it took the place of, of a list once."""
    from ..policy.language.repository import CLUSTER

    rows = [(f"{dotted(row.path)}: {shown(row.value)}", row) for row in told]
    width = max((len(left) for left, _ in rows), default=0)
    said: set[str] = set()
    for left, row in rows:
        where = str(row.location)
        yield f"{left:<{min(width, 90) + 2}}  {_kind(row.origin)}: {where}" if where else left
        if row.path == ("gitops", "repository", "url") and CLUSTER in str(row.value):
            yield f"    which is {str(row.value).replace(CLUSTER, cluster)}"
        for value, origin, location in row.overrides:
            line = f"    overrides {_kind(origin)}: {location}  {shown(value)}"
            if (origin.kind in {"layer", "change"} or isinstance(value, list | dict)) and line not in said:
                said.add(line)
                yield line


def shown(value: Any) -> str:
    """VALUE on one line; of a list or an object that is replaced whole, only how much it held."""
    if isinstance(value, list) and value:
        return f"a list of {len(value)}"
    if isinstance(value, dict) and value:
        return "an object"
    return json.dumps(value, ensure_ascii=False)


def _row(value: Any, origin: Origin, location: Location) -> dict[str, Any]:
    ring = {"ring": origin.ring} if origin.kind == "change" else {}
    return {"value": value, "origin": origin.kind, "where": str(location), **ring}


def _kind(origin: Origin) -> str:
    """The sort of part that wrote a value; of a change with the ring that it has come to."""
    return f"change up to the ring {origin.ring}" if origin.ring else origin.kind
