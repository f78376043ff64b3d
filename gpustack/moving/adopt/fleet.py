"""Several clusters as layers and differences: what they share stands once, and what it is the values themselves tell.

A value may move to a layer only where no cluster's effective spec becomes another: parts merge by key, and lists with
names by item (policy/loading/layers.py). So a list moves whole where it is equal, and what most clusters say is
overridden only where it is replaced whole.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from gpustack.model import Path
from gpustack.policy.loading.lists import named

from . import Adopted
from .installation import Leaves, Said, at, leaves_of, nested
from .spec import NOWHERE
from .write import text_of

Values = dict[Path, Any]
"""Values by path: scalars, lists whole, and maps that are empty."""
COMMON = "common"
LEAST = 4
"""Lines that a layer of some clusters has to spare them."""


def files(clusters: Mapping[str, Adopted], head: str) -> dict[str, str]:
    """The texts of the layers and policies of CLUSTERS by the file that they go to; HEAD stands above a layer."""
    specs = {name: each.draft.spec for name, each in clusters.items()}
    layers, own = split(specs)
    texts: dict[str, str] = {}
    for layer, values in layers.items():
        leaves: Leaves = {}
        for path, value in values.items():
            source = next(name for name in specs if equal({path: value}, path, at(specs[name], path)))
            leaves |= {key: said for key, said in clusters[source].draft.leaves.items() if key[: len(path)] == path}
        lines = [head, f"for {', '.join(name for name, (extends, _) in own.items() if layer in extends)}"]
        texts[f"layers/{layer}.yaml"] = text_of(layer, tree(values), leaves, lines, "PolicyLayer")
    for name, (extends, values) in own.items():
        spec = {**({"extends": extends} if extends else {}), **tree(values)}
        texts[f"{name}.yaml"] = text_of(name, spec, clusters[name].draft.leaves, clusters[name].head)
    return texts


def tree(values: Values) -> dict[str, Any]:
    """VALUES as the spec that they are of."""
    return nested({path: Said(value, NOWHERE) for path, value in values.items()})


def split(specs: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Values], dict[str, tuple[list[str], Values]]]:
    """The layers of SPECS by name, and of each cluster which it extends, lowest first, and what it says itself."""
    every: dict[str, Values] = {name: dict(leaves_of(dict(spec))) for name, spec in specs.items()}
    common = shared(every)
    layers, extends = ({COMMON: common} if common else {}), {name: [COMMON] if common else [] for name in every}
    own = {
        name: {path: value for path, value in values.items() if not equal(common, path, value)}
        for name, values in every.items()
    }
    for members, values in groups(own):
        layer = called(members, values, layers)
        layers[layer] = values
        for name in members:
            extends[name].append(layer)
            own[name] = {path: value for path, value in own[name].items() if path not in values}
    return layers, {name: (extends[name], own[name]) for name in own}


def shared(own: Mapping[str, Values]) -> Values:
    """What all of OWN say, and where they differ what most say, if whoever says another thing replaces it whole."""
    every = list(own.values())
    common: Values = {}
    for path in every[0] if len(every) > 1 else ():
        if not all(path in values for values in every):
            continue
        said = Counter(json.dumps(values[path]) for values in every)
        text, count = said.most_common(1)[0]
        replaced = not any(isinstance(values[path], dict) or named(values[path], path) for values in every)
        if count == len(every) or (replaced and count > len(every) / 2):
            common[path] = json.loads(text)
    return common


def groups(own: Mapping[str, Values]) -> list[tuple[tuple[str, ...], Values]]:
    """Clusters of OWN that share enough for a layer, and what; two groups are apart, or the one is in the other."""
    found: dict[tuple[str, ...], Values] = defaultdict(dict)
    said: dict[tuple[Path, str], list[str]] = defaultdict(list)
    for name, values in own.items():
        for path, value in values.items():
            said[path, json.dumps(value)].append(name)
    for (path, text), names in said.items():
        if len(names) > 1:
            found[tuple(names)][path] = json.loads(text)
    taken: list[tuple[tuple[str, ...], Values]] = []
    for members, values in sorted(found.items(), key=lambda each: -spared(*each)):
        apart = all(
            not both or both in (set(members), set(known)) for known, _ in taken for both in [{*members} & {*known}]
        )
        if apart and spared(members, values) >= LEAST:
            taken.append((members, values))
    return sorted(taken, key=lambda each: -len(each[0]))


def spared(members: tuple[str, ...], values: Values) -> int:
    """How many lines a layer with VALUES spares its MEMBERS, but for one of them."""
    return (len(members) - 1) * sum(json.dumps(value).count(",") + 1 for value in values.values())


def equal(common: Values, path: Path, value: Any) -> bool:
    """Whether COMMON says VALUE at PATH; true and 1 are two things."""
    return path in common and json.dumps(common[path]) == json.dumps(value)


def called(members: tuple[str, ...], values: Values, known: Mapping[str, Values]) -> str:
    """A name for the layer of MEMBERS, none of KNOWN: their platform, else the names of two, else their number."""
    both = "-and-".join(members)
    few = both if len(members) == 2 and len(both) <= 50 else f"shared-by-{len(members)}"
    name = str(values.get(("cluster", "platform")) or few)
    return next(each for each in (name, *(f"{name}-{number}" for number in range(2, 999))) if each not in known)
