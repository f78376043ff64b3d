"""Drops what a policy need not say: each value without which its effective spec is the same.

Values are judged by the effective spec, not one by one against a list of defaults: what a default is depends on the
release, on the platform, on who filled in the custom resource and on what else the policy says.
"""

from collections.abc import Sequence
from typing import Any

from gpustack.model import InputError, Location, Path
from gpustack.policy.loading.load import load_values

from .installation import Leaves, Said, at, leaves_of
from .spec import Draft, effective

ALWAYS = {("release",), ("cluster", "kubernetesVersion")}
"""What a policy says in any case."""


def shorten(made: Draft) -> int:
    """Drop from MADE what follows from the rest; how many values that were."""
    before = len(made.leaves)
    wanted = meaning(made)
    if any(path[0] == "gpuCluster" for path in made.leaves):
        made.leaves |= {("gpuCluster",): Said({}, Location(""))}  # that there is one decides, whatever it says
    may = [path for path in sorted(made.leaves, key=repr) if path not in ALWAYS and not names(path)]
    drop(made, may, wanted)
    return before - len(made.leaves)


def names(path: Path) -> bool:
    """Whether the value at PATH is the name of an item of a list."""
    return len(path) == 3 and isinstance(path[1], int) and path[2] == "name"


def drop(made: Draft, paths: Sequence[Path], wanted: dict[str, Any]) -> None:
    """Drop those of PATHS without which MADE still means what is WANTED: all at once where that is possible."""
    if not paths:
        return
    kept: Leaves = {path: made.leaves.pop(path) for path in paths}
    if meaning(made) == wanted:
        return
    made.leaves.update(kept)
    if len(paths) > 1:
        half = len(paths) // 2
        drop(made, paths[:half], wanted)
        drop(made, paths[half:], wanted)


def meaning(made: Draft) -> dict[str, Any]:
    """The effective spec of MADE; {} where it has none."""
    try:
        values: dict[str, Any] = load_values(made.spec).model_dump()
    except InputError:
        return {}
    return values


def fit(made: Draft) -> None:
    """Write out what the platform of MADE would make another than it is where the policy was read from."""
    generic = {**made.spec, "cluster": {key: value for key, value in made.spec["cluster"].items() if key != "platform"}}
    have, runs = effective(made.spec).spec, effective(generic).spec
    lists: list[tuple[Path, Any]] = [(path, []) for path, value in leaves_of(have) if isinstance(value, list)]
    for path, value in [*leaves_of(runs), *(each for each in lists if at(runs, each[0]) is None)]:
        if path not in made.leaves and path[0] not in {"cluster", "nodePools"} and at(have, path) != value:
            made.leaves[path] = Said(value, Location("what runs"))
