"""Who wrote a value of the effective spec: for `gpustack explain CLUSTER PATH`.

Solves: what a cluster gets comes from up to five places, and `git grep` finds only three of them. A path is written as
people say it: driver.version, spec.driver.version, nodePools[0].os, nodePools[training].os or, as `diff` prints it,
spec.nodePools.training.os; "" is the whole spec. What nobody wrote and the language fills in is told as gpustack's own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpustack.model import InputError, Location, Path, children, dotted, whole
from gpustack.policy.loading.defaults import OWN
from gpustack.policy.loading.layers import Origin, has
from gpustack.policy.loading.load import Loaded
from gpustack.policy.loading.place import node

# A step is a name, a quoted name or something in brackets; a dot stands before a name unless it is the first, and may
# stand before a bracket.
_STEP = re.compile(
    r"""(?:\A|(?<!\A)\.)(?P<name>[^.\[\]"']+)|(?:(?<!\A)\.)?\[(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bracket>[^\]"']+))\]"""
)


class NotSetError(InputError):
    """A field that the language has and that nobody gives a value."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A leaf of the effective spec. `path` is without "spec"; `location` has no line where the origin is not a file.

    `overrides`: what it took the place of, lowest first: the leaf itself in lower parts, or a list or an object that is
    replaced whole, each with its value, its origin and its place."""

    path: Path
    value: Any
    origin: Origin
    location: Location
    overrides: tuple[tuple[Any, Origin, Location], ...] = ()


def explain(loaded: Loaded, path_text: str) -> list[Explained]:
    """Return every value at and below PATH_TEXT, in the order of the effective spec, then the language's defaults.

    Raises InputError (GPU019) for a path that can't be read, that the language does not have, or that is not set."""
    path = _resolve(loaded, parse(path_text))
    merged = loaded.merged
    leaves = [(leaf, origin) for leaf, origin in merged.origins.items() if leaf[: len(path)] == path]
    written = []
    for leaf, origin in leaves:
        below = merged.overridden(leaf)
        over = tuple((node(part.clean, own), part.origin(own), part.locate(own)) for part, own in below)
        writer = merged.writer(leaf)
        where = writer[0].locate(writer[1]) if writer else Location(loaded.file)
        written.append(Explained(leaf, node(merged.spec, leaf), origin, where, over))
    return [*written, *(each for each in _filled(loaded) if each.path[: len(path)] == path)]


def _filled(loaded: Loaded) -> Iterator[Explained]:
    """What no part says and the models of the language fill in."""

    def below(value: Any, path: Path) -> Iterator[Explained]:
        if path in loaded.merged.origins:
            return
        if isinstance(value, dict | list):
            for step, inner in children(value):
                yield from below(inner, (*path, step))
        else:
            yield Explained(path, value, Origin("gpustack", OWN, path), Location(OWN))

    return below(loaded.spec.model_dump(mode="json", exclude_none=True), ())


def parse(text: str) -> list[str | int]:
    """Split TEXT into steps. What stands in brackets without quotes is an index if it is a number, else a name."""
    text = text.strip()
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            why = f"it can't be read from character {position + 1} on: {text[position:]!r}"
            remedy = 'write it like driver.version, nodePools[0].os, nodePools[training].os or nodeSelector["a.b/c"]'
            raise InputError.of("GPU019", f"{text!r} is not a path of a policy", path=text, why=why, remedy=remedy)
        bracket = match["bracket"]
        if bracket is not None:
            steps.append(bracket if (index := whole(bracket)) is None else index)
        else:
            steps.append(match["name"] or match["double"] or match["single"] or "")
        position = match.end()
    return steps[1:] if steps[:1] == ["spec"] else steps


def _resolve(loaded: Loaded, steps: list[str | int]) -> Path:
    """Return the path of the spec that STEPS mean: a name in a list stands for the item of that name."""
    here: Any = loaded.merged.spec
    path: Path = ()
    for index, written in enumerate(steps):
        step = written
        if isinstance(here, list) and isinstance(written, str):
            names = [item.get("name") if isinstance(item, dict) else None for item in here]
            if written not in names:
                raise _no_item(path, written, [name for name in names if isinstance(name, str)], len(here))
            step = names.index(written)
        if has(here, step):
            here = here[step]
            path = (*path, step)
        elif isinstance(here, list):
            raise _no_item(path, step, [], len(here))
        else:
            asked = (*path, *steps[index:])
            if any(each.path[: len(asked)] == asked for each in _filled(loaded)):
                return asked
            error = _unset(loaded, asked)
            if isinstance(error, NotSetError) and path and not isinstance(here, dict):
                return path  # said in a short form, such as a number for its least and its most
            raise error
    return path


def _no_item(path: Path, step: str | int, names: list[str], length: int) -> InputError:
    name = dotted(("spec", *path))
    remedy = f"there are {', '.join(names)}" if names else f"it has {length} items, numbered from 0"
    return InputError.of("GPU019", f"{name} has no item {step}", path=f"{name}[{step}]", remedy=remedy)


def _unset(loaded: Loaded, path: Path) -> InputError:
    """PATH is not in the effective spec: it is either not set, or there is no such thing."""
    from gpustack.policy.help.describe import descriptions
    from gpustack.policy.language.base import Section
    from gpustack.policy.language.spec import ClusterPolicySpec
    from gpustack.policy.loading.suggest import by_chart, models_at, nearest_paths

    shown = dotted(path)
    models = [model for model in models_at(ClusterPolicySpec, path[:-1]) if issubclass(model, Section)]
    if text := next((texts[path[-1]] for texts in map(descriptions, models) if path[-1] in texts), ""):
        absent = re.search(r"Absent.*", text)
        what, remedy = f"spec.{shown} is not set", "set it in the policy if you need it"
        what = f"{what}. {absent[0]}" if absent else what
        why = f"neither {loaded.file} nor its layers, platform and release give it a value"
        return NotSetError.of("GPU019", what, path=f"spec.{shown}", why=why, remedy=remedy)
    near = nearest_paths(ClusterPolicySpec, re.sub(r"\[[^\]]*\]", "[]", shown))
    remedy = by_chart(path) or (
        f"did you mean {' or '.join(near)}?" if near else "call it with a section, such as driver"
    )
    return InputError.of("GPU019", f"there is no spec.{shown}", path=f"spec.{shown}", remedy=remedy)
