"""What somebody may have meant by a key that the language does not have.

Solves: "unknown key" sends people to the documentation; the fields of the models are known, so the message can name
the right one. Tried in this order: the name that the operator's chart uses, the same name in another spelling, a name
like it in the same section, the same name in another section, a name like it anywhere, and at last what the section
does have.
"""

import difflib
import functools
import re
import types
import typing
from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from gpustack.catalog import chart
from gpustack.catalog._lookup import squeezed
from gpustack.model import Path, dotted
from gpustack.policy.loading.envelope import closest

Model = type[BaseModel]

_INDEX = re.compile(r"\[[0-9]+\]")


ELSEWHERE = {
    "metricRelabelings": "leave it out: the operator's ServiceMonitor has none; to keep the exporter's labels pod, "
    "namespace and container, set honorLabels: true; for other rules set enabled: false and bring a ServiceMonitor of "
    "your own in spec.extraObjects",
}
"""What to do about keys that people know from the objects that are rendered, and that no field stands for."""


NUMBERS = (bool, int, float, type(None))
"""What takes no word."""
OF_PODS, OWN_PODS = ("tolerations", "priorityClassName"), ("reconciler", "gitops")  # said of components, and of others


def remedy(model: Model, path: Path, value: object = None, at: Path = ("spec",)) -> str:
    """What to do about the unknown key at PATH of MODEL's data, which stands AT a place; VALUE is what it holds."""
    section, key = path[:-1], str(path[-1])
    known = _where_nodes_are(path, value) or by_chart(path) or ELSEWHERE.get(key, "")
    if known:
        return known
    keys = list(keys_at(model, section))
    match = next((known for known in keys if squeezed(known) == squeezed(key)), "") or _below(model, section, key)
    if not match and sum(other.lower().endswith(key.lower()) for other in keys) < 2:  # manager is not a migManager
        fitting = [known for known in keys if _takes(model, _plain((*section, known)), value)]
        match = closest(key, fitting, 0.8) or _with_word(key, fitting) or closest(key, keys, 0.8)
    if match:
        return f"did you mean {dotted((*at, *section))}.{match}?"
    elsewhere = _elsewhere(model, section, key, value)
    if elsewhere:
        return f"did you mean {' or '.join(f'{dotted(at)}.{path}' for path in elsewhere)}?"
    if not keys:
        return f"delete {key}"
    listed = ", ".join(sorted(keys)[:12]) + (", ..." if len(keys) > 12 else "")
    return f"{dotted((*at, *section))} has {listed}"


def _where_nodes_are(path: Path, value: object) -> str:
    """Return what to do about a key that is said of nodes or of the cluster here, and of components elsewhere."""
    if len(path) == 2 and path[0] == "nfd" and path[1] in (*OF_PODS, "nodeSelector", "resources"):
        return f"did you mean spec.nfd.master.{path[1]} or spec.nfd.worker.{path[1]}?"
    if path[-1] == "nodeSelector" and path[0] not in ("operator", "nfd"):
        return "write it where nodes are described: spec.nodePools[].nodeSelector, or spec.drivers[].nodeSelector"
    if path == ("platform",) and isinstance(value, str):
        return f"write spec.cluster.platform: {value} instead"
    if path == ("platform",) and isinstance(value, dict) and isinstance(value.get("openshift"), bool):
        what = "write spec.cluster.platform: openshift instead" if value["openshift"] else "delete it"
        return f"{what}: spec.cluster.platform says what the cluster is"
    return ""


def by_chart(path: Path) -> str:
    """Return what to do about PATH if it is a value of the operator's chart that has another name here; else ""."""
    shown = dotted(path)
    if len(path) > 2 and path[0] == "drivers":
        inside = dotted(path[2:])
        new = next((new for old, new in chart.renamed("drivers").items() if old == inside), None)
        return f"did you mean {dotted(('spec', *path[:2]))}.{new}? (so in an NVIDIADriver)" if new else ""
    for old, new in chart.renamed().items():
        if shown == old or shown.startswith(f"{old}."):
            return f"did you mean spec.{new}{shown[len(old) :]}? ({old} is the name in the chart's values)"
        if old.startswith(f"{shown}."):
            return f"did you mean spec.{new}? ({old} is the name in the chart's values)"
    if len(path) == 1 and path[0] in chart.wrappers():
        return (
            f"move what stands below it up, to spec: in a values file, {path[0]} is the chart that the values are for"
        )
    why = chart.dropped().get(shown)
    return f"delete it: in the chart's values, it {why}" if why else ""


def nearest_paths(model: Model, wanted: str, count: int = 3) -> list[str]:
    """Return up to COUNT paths of MODEL that are like the dotted path WANTED, best first."""
    paths = all_paths(model)
    plain = wanted.replace("[]", "")
    exact = [path for path in paths if path.lower().replace("[]", "") == plain.lower()]
    ends = [path for path in paths if path.lower().endswith(f".{wanted.lower()}")]
    last = [path for path in paths if path.rpartition(".")[2].lower() == wanted.rpartition(".")[2].lower()]
    last = difflib.get_close_matches(wanted, last, n=count, cutoff=0.6)
    near = difflib.get_close_matches(wanted, paths, n=count, cutoff=0.6)
    return list(dict.fromkeys([*exact, *sorted(ends, key=len), *last, *near]))[:count]


def keys_at(model: Model, path: Path) -> Iterable[str]:
    """Return the keys of the section at PATH of MODEL; none where the keys are free."""
    return [name for inner in models_at(model, path) for name in inner.model_fields]


def models_at(model: Model, path: Path) -> list[Model]:
    """The models that the section at PATH of MODEL may be of; none where the keys are free."""
    current: list[typing.Any] = [model]
    for step in path:
        current = [inner for outer in current for inner in _into(outer, step)]
    return [inner for inner in current if _is_model(inner)]


@functools.cache
def all_paths(model: Model) -> tuple[str, ...]:
    """Return all paths of MODEL, sections too, with [] for any item of a list: nodePools[].sharing.mig.layout."""
    return tuple(dict.fromkeys(_paths(model, "")))


def _paths(annotation: typing.Any, prefix: str) -> Iterator[str]:
    for option in _options(annotation):
        if _is_model(option):
            for name, info in option.model_fields.items():
                yield (path := f"{prefix}.{name}" if prefix else name)
                yield from _paths(info.annotation, path)
        elif typing.get_origin(option) is list:
            yield from _paths(typing.get_args(option)[0], f"{prefix}[]")


def _into(annotation: typing.Any, step: str | int) -> list[typing.Any]:
    """Return the types that a value may have at STEP of a value of ANNOTATION."""
    if _is_model(annotation):
        info = annotation.model_fields.get(str(step))
        return _options(info.annotation) if info else []
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and isinstance(step, int):
        return _options(arguments[0])
    if origin is dict:
        return _options(arguments[1])
    return []


def _options(annotation: typing.Any) -> list[typing.Any]:
    """Return the alternatives of ANNOTATION: unions taken apart, annotations peeled off."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _options(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return [option for argument in typing.get_args(annotation) for option in _options(argument)]
    return [annotation]


def _is_model(annotation: typing.Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _elsewhere(model: Model, section: Path, key: str, value: object) -> list[str]:
    """Return up to two paths in other sections that end like KEY: rdma, rdmaEnabled, rdma.enabled, and at last rdmaa.

    Best are those that have the keys in VALUE below them, then those near SECTION, then those that hold for the most:
    few steps, no list. Where more than two are best (image, enabled), the name says nothing: nothing is returned."""
    avoided = OWN_PODS if key in (*OF_PODS, "serviceAccount") else ()
    paths = [path for path in all_paths(model) if path.partition(".")[0] not in avoided]
    here, wanted = _plain(section), squeezed(key)
    inner = set(value) if isinstance(value, dict) else set()
    similar = [path for path in paths if wanted in (squeezed(tail) for tail in _tails(path))]
    if not similar:
        names = sorted({path.rpartition(".")[2] for path in paths})
        near = closest(key, names, 0.85) if len(key) > 5 else ""  # short names are all alike
        similar = [path for path in paths if near and path.rpartition(".")[2] == near]

    def rank(path: str) -> tuple[int, int, int, int]:
        parent = path.rpartition(".")[0]
        children = {other[len(path) + 1 :] for other in paths if other.startswith(f"{path}.")}
        return -len(inner & children), -_shared(parent, here), path.count("[]"), path.count(".")

    ours, in_list, _ = here.rpartition("[]")
    if in_list:  # what is said of one of a list stands in no other list, and not far from a list within a section
        near = ours.rpartition(".")[0]
        similar = [path for path in similar if path.startswith(near if "[]" not in path else f"{ours}[]")]
    similar = [path for path in similar if _takes(model, path, value)]
    ranks = {path: rank(path) for path in similar}
    best = [path for path in similar if ranks[path] == min(ranks.values())]
    return best if len(best) <= 2 else []


def _takes(model: Model, path: str, value: object) -> bool:
    """Whether the field at PATH of MODEL may hold something like VALUE: a map, or a single value."""
    annotations: list[typing.Any] = [model]
    for step in path.replace("[]", ".[]").split("."):
        annotations = [inner for outer in annotations for inner in _into(outer, 0 if step == "[]" else step)]
    plain = [each for each in annotations if not _is_model(each) and typing.get_origin(each) in (None, typing.Literal)]
    single = any(each not in (NUMBERS if isinstance(value, str) else (type(None),)) for each in plain)
    several = any(_is_model(each) or typing.get_origin(each) is not None for each in annotations)
    return several if isinstance(value, dict) else single or not isinstance(value, str | int | float)


def _below(model: Model, section: Path, key: str) -> str:
    """Return the path below SECTION that KEY runs together: rdma.enabled for rdmaEnabled, driver.version for itself."""
    prefix = f"{_plain(section)}." if section else ""
    inner = [path[len(prefix) :] for path in all_paths(model) if path.startswith(prefix)]
    return min((path for path in inner if squeezed(path) == squeezed(key)), key=len, default="")


def _plain(path: Path) -> str:
    """PATH, with [] for any item of a list."""
    return _INDEX.sub("[]", dotted(path))


def _with_word(key: str, keys: Iterable[str]) -> str:
    """The one of KEYS that has KEY among its words, as kubernetesVersion has version; "" for none, or several."""
    having = [known for known in keys if key.lower() in re.findall("[a-z]+", re.sub("([A-Z])", r" \1", known).lower())]
    return having[0] if len(having) == 1 else ""


def _tails(path: str) -> list[str]:
    steps = path.replace("[]", "").split(".")
    return [".".join(steps[-length:]) for length in range(1, min(len(steps), 4) + 1)]


def _shared(one: str, other: str) -> int:
    pairs = zip(one.split("."), other.split("."), strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(one.count("."), other.count(".")) + 1)
