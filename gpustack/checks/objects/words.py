"""Rules about values of extraObjects that are taken for something else than they look like: a number in quotes where
the API server wants a number or a percentage, and a null where the key means something.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...catalog import kubernetes, object_kinds
from ...catalog._lookup import nearest
from ...model import Path, Resource, dotted, mappings, steps
from ...policy.language.spec import ClusterPolicySpec
from ...policy.loading.diagnose import nulls
from ...policy.loading.lists import identity
from ...policy.loading.place import node
from ..rule import Hit, hit, meant, rule
from ..subjects import Written
from .api_server import PORTS, of_kubernetes
from .pods import FOREIGN, who

SHARES: Mapping[tuple[str, str], Sequence[Path]] = object_kinds.grouped("shares")
"""Where a kind has a number of pods or a percentage of them."""
UP_TO_100 = ("minAvailable", "maxUnavailable")
PERCENT = re.compile(r"[0-9]+%")
MAPS = frozenset(
    ("annotations", "binaryData", "data", "hard", "labels", "matchLabels", "nodeLabels", "nodeSelector", "stringData")
)
"""Maps whose keys are the author's: a key with nothing behind it is one that somebody meant to be there."""
_NUMBER = re.compile(r"[0-9]+")


@rule("GPU206", "error", over="object")
def number_in_quotes(resource: Resource) -> Iterator[Hit]:
    """A number in quotes where the API server takes a number, or text that is not one."""
    if resource.origin not in FOREIGN:
        return
    for path in SHARES.get((resource.group, resource.kind), ()):
        value = node(resource.body, path)
        if what := _no_share(value, str(path[-1])):
            remedy = f"write {value}, without quotes" if _number(value) else 'write a number from 0 on, or "25%"'
            yield hit(dotted(path), "share", remedy=remedy, who=who(resource), key=path[-1], value=what)
    for place, value in resource.leaves if of_kubernetes(resource) else ():
        if place[1] in PORTS and _number(value) and MAPS.isdisjoint(steps(place)):
            yield hit(dotted(steps(place)), who=who(resource), key=place[1], value=value)


def _number(value: Any) -> bool:
    return isinstance(value, str) and _NUMBER.fullmatch(value) is not None


def _no_share(value: Any, field: str) -> str:
    """In which way VALUE is neither a number of pods nor a percentage, "" for one that is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value}" if value < 0 else ""
    if not isinstance(value, str):  # the schema refuses it
        return ""
    if not PERCENT.fullmatch(value):
        return f'"{value}", neither a number nor a percentage'
    return f'"{value}", more than all' if field in UP_TO_100 and int(value[:-1][:9]) > 100 else ""


@rule("GPU207", "warning", over="origins")
def null_in_an_object(written: Written) -> Iterator[Hit]:
    """A key of a ConfigMap, a label, or a key that doesn't exist, with nothing behind its colon."""
    merged = written.merged.spec.get("extraObjects")
    positions = {identity(item, ("extraObjects",)): at for at, item in enumerate(merged or ())}
    for part in written.merged.parts:
        if part.kind not in {"layer", "change", "policy"} or part.clean is part.data:
            continue
        for index, body in mappings(part.data.get("extraObjects")):
            at = positions.get(identity(body, ("extraObjects",)), index)
            for path in nulls(body, but=()):
                steps: Path = ("extraObjects", at, *path)
                free, known = path[-2:-1] and path[-2] in MAPS, _fields(body, path[:-1], written.spec)
                if written.merged.writer(steps) is not None or not (free or (known and path[-1] not in known)):
                    continue  # a lower layer's value stays, as null promises
                where = part.locate(("extraObjects", index, *path), key=True)
                what, line = f"{dotted(path)} of the {body.get('kind')}", f"({where.file}, line {where.line})"
                near = "" if free else meant(nearest(str(path[-1]), known, 1))
                place = dotted(("spec", *steps))
                yield hit(place, "" if free else "unknown", remedy=near, who=what, line=line, key=path[-1])


def _fields(body: Any, path: Path, spec: ClusterPolicySpec) -> list[str]:
    """The fields that the object at PATH of BODY may have; none where that isn't known, or keys are free."""
    minor = kubernetes.minor(spec.cluster.kubernetesVersion)
    file = kubernetes.schema_path(str(body.get("apiVersion")), str(body.get("kind")), minor)
    schema: Any = json.loads(file.read_bytes()) if file else {}
    for step in path:
        schema = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
        if not isinstance(schema, dict):
            return []
    return sorted(schema.get("properties", ())) if schema.get("additionalProperties") is False else []
