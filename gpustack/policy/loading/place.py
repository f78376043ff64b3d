"""Where a finding of a rule was caused: from a policy path to a line in the file that wrote the value.

Rules work on the effective spec and name a path ("spec.nodePools[0].kernel"). The value may come from the cluster's
file, a layer or a default; a missing one has no place of its own, so its nearest written parent is shown. Where the
value is a text with a configuration in it, the finding may name a line of that text (`inside`).
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING

from gpustack.model import Finding, Location, Path, dotted
from gpustack.text.positions import inside_scalar

if TYPE_CHECKING:
    from gpustack.policy.loading.load import Loaded

_STEP = re.compile(r'\["([^"]*)"\]|\[(\d{1,9})\]|([^.\[]+)')


@functools.lru_cache(maxsize=4096)
def parse(path: str) -> Path:
    """The steps of a dotted path: the reverse of model.dotted."""
    return tuple(int(index) if index else quoted or plain for quoted, index, plain in _STEP.findall(path))


def place(loaded: Loaded, finding: Finding) -> Finding:
    """FINDING with the location of its path in the files of LOADED; as it is where nobody wrote the path or a parent
    of it. About a default, it also says whose it is: the line that it shows doesn't."""
    path = parse(finding.path)
    if path[:1] != ("spec",):
        return finding
    path = path[1:]
    writer = loaded.merged.writer(path)
    exact = writer is not None
    writer = writer or loaded.merged.nearest_writer(path[:-1])
    if writer is None:
        return finding
    part, own = writer
    if part.text is None:
        why = finding.why
        if exact and node(loaded.merged.spec, path) not in ("", [], {}):
            others = f"a default of {part.file}"
            whose = {"derived": part.file, "gpustack": "a default of gpustack"}.get(part.kind, others)
            why = f"{why}; nobody set {dotted(path)}: it is {whose}".removeprefix("; ")
        where = loaded.merged.cause(part) if part.because and part.kind != "release" else settable(loaded, path)
        return dataclasses.replace(finding, why=why, location=where)
    value = node(part.clean, own)
    if finding.inside is not None and isinstance(value, str):  # perhaps without the one key that a map may have
        where = inside_scalar(part.text, part.file, part.at + own, *finding.inside)
    else:
        where = part.locate(own, key=finding.key or not exact or isinstance(value, (dict, list)))
    return dataclasses.replace(finding, location=where)


def settable(loaded: Loaded, path: Path) -> Location:
    """Where the value at PATH, which nobody wrote, can be set: the nearest section of a file, or `spec` itself."""
    while path:
        path = path[:-1]
        writer = loaded.merged.writer(path)
        if writer is not None and writer[0].text is not None:
            return writer[0].locate(writer[1], key=True)
    return Location(loaded.file)


def node(data: object, path: Path) -> object:
    """What stands at PATH in DATA, or None."""
    for step in path:
        if isinstance(data, dict):
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            return None
    return data
