"""What a chart of the operator has that the catalogue doesn't know: images, defaults, fields, values.

Solves: a new release of the operator becomes data here. Somebody has to see what it brings, and nothing of it may be
overlooked. So the chart's own files are held against a release of the catalogue: what differs is what the new data file
has to say (`as_data`), and what the language and the components may have to learn.

Nothing of a chart is run, and nothing of it is written to disk.
"""

import functools
import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

from ..catalog import _data, chart, releases
from ..catalog import fields as catalogue
from .releases import Change, changed, newer, without_images

LARGEST, MOST_FILES = 8 * 1024 * 1024, 500
"""Bytes of a chart's file, unpacked, and how many files are read. The operator's has 60 of 300 KB at most."""
ABSENT: tuple[Any, ...] = ("", None, {}, [], False)
"""Values that charts write for nothing."""
ELSEWHERE = frozenset(_data.load(chart.DATA)["elsewhere"])
"""Values that are no field of a custom resource, and that policies say in their own way (adopt reads them)."""
_READ = re.compile(r"\.Values((?:\.[A-Za-z]\w*)+)")


class ChartError(ValueError):
    """Why a file is not a chart of the operator."""


@dataclass(frozen=True)
class Chart:
    """The files of a chart that say what it installs: its values, the fields of its CRDs, what templates read; and what
    it lacks of its parts, among which are the charts that it depends on."""

    version: str
    nfd: str
    values: Mapping[str, Any]
    fields: Mapping[str, Mapping[str, str]] = field(repr=False)
    read: frozenset[str] = field(repr=False)
    templates: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


def opened(packed: bytes) -> Chart:
    """The chart PACKED as a .tgz. Raises ChartError."""
    files = dict(_files(packed))
    (head,), (values,) = (_read(name, files.get(name)) for name in ("Chart.yaml", "values.yaml"))
    bodies = [(name, body) for name, text in files.items() if name.startswith("crds/") for body in _read(name, text)]
    part, known = "Chart.yaml", dict[str, dict[str, str]]()
    try:
        version, listed = str(head["version"]), head.get("dependencies") or []
        needs = {str(each["name"]): str(each["version"]) for each in listed}
        for part, body in bodies:  # noqa: B007 - the last one is told
            if (kind := body["spec"]["names"]["kind"]) in catalogue.kinds():
                schema = body["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]
                known[kind] = dict(_leaves_of(schema["properties"]["spec"]))
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise ChartError(f"its {part} doesn't say what that of a chart of the GPU operator says") from None
    texts = {name: text for name, text in files.items() if name.startswith("templates/")}
    read = {match[1:] for text in texts.values() for match in _READ.findall(text)}
    parts = (*(f"charts/{each}" for each in needs), "templates")
    lacks = [part for part in parts if not any(name.startswith((f"{part}/", f"{part}-")) for name in files)]
    nfd = needs.get("node-feature-discovery", "").removeprefix("v")
    return Chart(version, f"v{nfd}" if nfd else "", values, known, frozenset(read), tuple(sorted(texts)), tuple(lacks))


def _read(name: str, text: str | None) -> list[Any]:
    """The mappings in the file NAME of a chart, which has TEXT; a file of values has one. Raises ChartError."""
    import yaml

    if text is None:
        raise ChartError(f"it has no gpu-operator/{name}")
    try:
        found = [each for each in yaml.safe_load_all(text) if each is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise ChartError(f"its {name}{where} isn't YAML") from None
    if not all(isinstance(each, dict) for each in found) or (len(found) != 1 and not name.startswith("crds/")):
        raise ChartError(f"its {name} holds no mapping, or several")
    return found


def _files(packed: bytes) -> Iterator[tuple[str, str]]:
    """The text files of a chart by name; of those of the charts in it the names alone."""
    try:
        with tarfile.open(fileobj=BytesIO(packed), mode="r:gz") as tar:
            for number, entry in enumerate(tar):
                if number >= MOST_FILES or entry.size > LARGEST:
                    raise ChartError(f"it has more than {MOST_FILES} files, or one of more than {LARGEST} bytes")
                file = tar.extractfile(entry) if entry.isfile() else None
                chart, _, name = str(PurePosixPath(entry.name)).partition("/")
                if file and chart == "gpu-operator":
                    yield name, "" if name.startswith("charts/") else file.read().decode("utf-8", "replace")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ChartError(f"it isn't a chart as `helm package` makes it: {error}") from None


def _leaves_of(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """The fields below SCHEMA with their types, by path as the catalogue writes it."""
    for name, below in (schema.get("properties") or {}).items():
        where = f"{path}.{name}" if path else name
        yield where, str(below.get("type", "int-or-string"))
        yield from _leaves_of(below, where)
        yield from _leaves_of(below.get("items") or {}, f"{where}[]")


@dataclass(frozen=True)
class Vendor:
    """What a chart has otherwise than the release `base`: fields by kind, values that no name here stands for, parts
    that it lacks."""

    chart: Chart
    base: str
    images: tuple[Change, ...]
    defaults: tuple[Change, ...]
    fields: Mapping[str, tuple[Change, ...]]
    unknown: tuple[str, ...]
    nfd: tuple[Change, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether the catalogue lacks anything of the chart, or the chart a part."""
        return any((self.images, self.defaults, self.unknown, self.nfd, self.missing, *self.fields.values()))


def compared(found: Chart, base: str) -> Vendor:
    """FOUND beside the release BASE of the catalogue."""
    known = releases.release(base)
    then = {section: image.reference for section, image in known.images.items()}
    images = changed(then, dict(_images(found.values, found.version)))
    old = dict(_leaves(without_images({**known.default_spec(), "gpuCluster": dict(known.gpu_cluster)})))
    new = dict(_leaves(without_images(_as_spec(found.values))))
    read = {_renamed(path) for path in found.read}
    told = (each for each in changed(old, new) if each.before not in ABSENT or each.after not in ABSENT)
    # Some of what charts write stands in templates alone, and is no value of the chart.
    defaults = tuple(each for each in told if each.path in new or _below(each.path, read))
    fields = {kind: _fields(kind, found.fields.get(kind, {}), base) for kind in catalogue.kinds()}
    nfd = (Change("nfd", known.nfd_version, found.nfd or None),) if found.nfd != known.nfd_version else ()
    gone = [f"the definition of {kind} in crds" for kind in fields if kind not in found.fields and _known(kind, base)]
    return Vendor(found, base, images, defaults, fields, tuple(_unknown(found)), nfd, (*found.lacks, *gone))


def _below(path: str, above: Iterable[str]) -> bool:
    """Whether PATH is one of those ABOVE, or below it."""
    return any(f"{path}.".startswith(f"{each}.") for each in above)


def _fields(kind: str, found: Mapping[str, str], base: str) -> tuple[Change, ...]:
    """Fields of KIND that came, went or have another type since BASE."""
    return changed(_known(kind, base), found) if found else ()


def _known(kind: str, base: str) -> dict[str, str]:
    """The fields of KIND in the release BASE, with their types."""
    every = catalogue.fields(kind).items()
    return {path: facts.type for path, facts in every if not (facts.since and newer(facts.since, base))}


def _unknown(found: Chart) -> Iterator[str]:
    """Values that templates read and that are no field of a custom resource, nor among what is known to be dropped."""
    known = {*catalogue.fields("ClusterPolicy"), *(f"gpuCluster.{path}" for path in catalogue.fields("GPUCluster"))}
    fine = {*chart.dropped(), *chart.unread(), *chart.renamed(), *ELSEWHERE}
    for path in sorted(found.read):
        below = any(each.startswith(f"{path}.") for each in (*known, *fine))
        if not _below(path, fine) and _renamed(path) not in known and not below:
            yield path


def _renamed(path: str) -> str:
    """What a value at PATH is called in the spec."""
    renamed = (spec + path[len(values) :] for values, spec in chart.renamed().items() if _below(path, [values]))
    return next(renamed, path)


def _as_spec(values: Mapping[str, Any]) -> dict[str, Any]:
    """VALUES by the names of the spec, less what becomes no field."""
    spec: dict[str, Any] = {}
    fine = (*chart.dropped(), *chart.unread(), *ELSEWHERE)
    for path, value in _leaves(values):
        if not _below(path, fine):
            _data.merge(spec, _nested(_renamed(path), value))
    return spec


def _leaves(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What SPEC says, by path; lists are one value, and when images are pulled is what all charts say."""
    return ((path, value) for path, value in _data.leaves(spec) if not path.endswith("imagePullPolicy"))


def _nested(path: str, value: Any) -> dict[str, Any]:
    """VALUE in maps on the way to the dotted PATH."""
    *above, last = path.split(".")
    return functools.reduce(lambda inner, step: {step: inner}, reversed(above), {last: value})


def _reference(said: Mapping[str, Any], version: str) -> str:
    """The image that SAID names; where it names a registry and no version, the chart's own VERSION counts."""
    repository = said.get("repository") or None
    tag = said.get("version") or (version if repository else None)
    return releases.Image(repository, str(said.get("image", "")), None if tag is None else str(tag)).reference


def _images(values: Mapping[str, Any], version: str, path: str = "") -> Iterator[tuple[str, str]]:
    """The images of a chart of VERSION by their sections of the spec: maps that name one."""
    for key, value in values.items():
        where = f"{path}.{key}" if path else str(key)
        if not isinstance(value, Mapping) or where in ELSEWHERE:
            continue
        if where != "operator" and "image" in value and not isinstance(value["image"], Mapping):
            yield _renamed(where), _reference(value, version)
        yield from _images(value, version, where)


def as_data(found: Vendor) -> str:
    """The beginnings of the data file of the chart's release, as the difference to the base. What documents alone say
    (date, ranges, notes) is left to whoever looks at each line."""
    version, known = found.chart.version, releases.written(found.base)["images"].items()
    entries = {section: str(name) for name, entry in known for section in entry["in"]}
    images: dict[str, dict[str, Any]] = {}
    for change in found.images:
        new, old = _parts(change.after), _parts(change.before)
        name = entries.get(change.path) or str(new["image"])
        entry = images.setdefault(name, {key: value for key, value in new.items() if value != old[key]})
        if change.path not in entries:
            entry.setdefault("in", []).append(change.path)
    tree: dict[str, Any] = {}
    for change in found.defaults:
        _data.merge(tree, _nested(change.path, change.after))
    sections = {"images": images, "defaults": tree}
    cluster = tree.pop("gpuCluster", None)
    lines = [
        f"# GPU operator {version}. Source: NVIDIA/gpu-operator, tag {version}, deployments/gpu-operator (Apache-2.0).",
        f"# Written as the difference to {found.base}.",
        f"base: {found.base}",
        'date: "" # of the release; and kubernetes, openshift and containerd, where their ranges are others',
        *(f"nfd: {change.after}" for change in found.nfd if change.after),
        *(f"# The archive lacks {part}." for part in found.missing),
        "notes: []",
    ]
    for title, content in (*sections.items(), ("gpu_cluster", cluster)):
        lines += [f"{title}:", *(f"  {key}: {json.dumps(value)}" for key, value in content.items())] if content else []
    return "\n".join(lines) + "\n"


def _parts(reference: str | None) -> dict[str, str | None]:
    """The registry, name and version of REFERENCE, as data files have them; None for what it lacks."""
    path, _, tag = (reference or "").partition(":")
    repository, _, name = path.rpartition("/")
    return {"repository": repository or None, "image": name or None, "version": tag or None}
