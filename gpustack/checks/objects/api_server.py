"""Rules about what the API server, or the kubelet, refuses in an object although its schema lets it pass.

They hold for whatever is rendered, and are the last guard: a value of the policy that could bring one of these about
has a type that refuses it while reading. What they find is in objects of extraObjects, or in names and labels that are
made of several values. Sources: apimachinery's and the API server's validation packages (k8s.io/apimachinery/pkg/util/
validation, k8s.io/kubernetes/pkg/apis/*/validation).
"""

from collections.abc import Iterator
from typing import Any

from pydantic_core import PydanticCustomError

from ...model import (
    ANNOTATIONS_LIMIT,
    INT32,
    Path,
    Resource,
    annotations_size,
    dotted,
    has_credentials,
    mapping,
    mappings,
    masked,
    steps,
)
from ...policy.language.forms import Form
from ...policy.language.types import CONFIG_KEY, DNS_LABEL, DNS_SUBDOMAIN, ENV_NAME, IMAGE, LABEL_KEY, LABEL_VALUE
from ..rule import Hit, hit, rule
from .pods import containers, who

VALUE_OR_NONE = LABEL_VALUE.or_empty()
RBAC = "rbac.authorization.k8s.io"
LABELS_AS_NAMES = ("Namespace", "Service")
"""Kinds whose objects have a DNS label as their name."""
WITH_KEYS = ("ConfigMap", "Secret")
"""Kinds whose keys are names of files."""
OWN_NUMBERS = ("CustomResourceDefinition",)
"""Kinds with numbers of somebody else in them: the defaults and bounds of a schema."""
WIDE = {
    *("activeDeadlineSeconds", "deletionGracePeriodSeconds", "expirationSeconds", "generation", "observedGeneration"),
    *("startingDeadlineSeconds", "terminationGracePeriodSeconds", "tolerationSeconds"),
}
"""Fields with whole numbers of 64 bits in kinds of Kubernetes itself. All others have 32; users and groups, which have
64 in the schema, are held to 31 by the API server."""
AMOUNTS = {
    *("allocatable", "averageValue", "capacity", "default", "defaultRequest", "divisor", "hard", "limits", "max"),
    *("maxLimitRequestRatio", "min", "parameters", "podFixed", "requests", "sizeLimit", "storage", "used", "value"),
}
"""Fields with quantities in or below them, or with what somebody else reads: no numbers of the API."""
PORTS = frozenset(("containerPort", "port", "targetPort"))
PORTS_OR_NONE = frozenset(("hostPort", "nodePort", "healthCheckNodePort"))
"""Fields with ports, in the second 0 for none."""


@rule("GPU811", "error", over="object")
def names_and_labels(resource: Resource) -> Iterator[Hit]:
    """A name, label, annotation or key that the API server refuses."""
    group = resource.group
    if group != RBAC:
        form = DNS_LABEL if group == "" and resource.kind in LABELS_AS_NAMES else DNS_SUBDOMAIN
        yield from _held(resource, ("metadata", "name"), resource.name, form)
    for path, meta in _metadata(resource.body, ()):
        yield from _labels(resource, (*path, "labels"), meta.get("labels"))
        yield from _annotations(resource, (*path, "annotations"), meta.get("annotations"))
    if group == "" and resource.kind in WITH_KEYS:
        yield from _keys(resource)


def _keys(resource: Resource) -> Iterator[Hit]:
    maps = {name: mapping(resource.body.get(name)) for name in ("data", "binaryData", "stringData")}
    for name, values in maps.items():
        for key in values:
            yield from _held(resource, (name, key), str(key), CONFIG_KEY)
    for key in maps["data"].keys() & maps["binaryData"].keys():
        yield hit(dotted(("binaryData", key)), "twice", who=who(resource), key=key)


def _metadata(value: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The metadata of an object and of the templates in it, with their places."""
    yield (*path, "metadata"), mapping(mapping(value).get("metadata"))
    for key in ("spec", "template", "jobTemplate"):
        if key in mapping(value):
            yield from _metadata(value[key], (*path, key))


def _labels(resource: Resource, path: Path, labels: Any) -> Iterator[Hit]:
    for key, value in mapping(labels).items():
        yield from _held(resource, (*path, key), key, LABEL_KEY)
        if isinstance(value, str):
            yield from _held(resource, (*path, key), value, VALUE_OR_NONE)


def _annotations(resource: Resource, path: Path, annotations: Any) -> Iterator[Hit]:
    pairs = mapping(annotations)
    for key in pairs:
        yield from _held(resource, (*path, key), key.lower(), LABEL_KEY)
    size = annotations_size({key: value for key, value in pairs.items() if isinstance(value, str)})
    if size > ANNOTATIONS_LIMIT:
        yield hit(dotted(path), "size", who=who(resource), size=size, limit=ANNOTATIONS_LIMIT)


def _held(resource: Resource, path: Path, value: str, form: Form) -> Iterator[Hit]:
    """A hit where VALUE, which stands at PATH, doesn't have FORM."""
    try:
        form.check(value)
    except PydanticCustomError as error:
        context = error.context or {}
        remedy = str(context.get("remedy") or f"write {form.rule}")
        yield hit(dotted(path), "form", remedy=remedy, who=who(resource), wrong=context.get("what"))


@rule("GPU812", "error", over="object")
def numbers(resource: Resource) -> Iterator[Hit]:
    """A number that its field can't hold."""
    if not of_kubernetes(resource) or resource.kind in OWN_NUMBERS:
        return
    of_others = AMOUNTS - {"value"} if resource.kind == "PriorityClass" else AMOUNTS
    for place, number in resource.leaves:
        if not isinstance(number, int) or isinstance(number, bool) or not of_others.isdisjoint(path := steps(place)):
            continue
        field = next((step for step in reversed(path) if isinstance(step, str)), "")
        if field in PORTS | PORTS_OR_NONE and not (field in PORTS) <= number <= 65535:
            yield hit(dotted(path), "port", who=who(resource), number=number)
        elif field not in WIDE and not -INT32 - 1 <= number <= INT32:
            yield hit(dotted(path), "bits", who=who(resource), number=number, most=INT32)
    for path, container in containers(resource.body):
        for probe, least in (("startupProbe", 1), ("livenessProbe", 1), ("readinessProbe", 0)):
            yield from _probe(resource, (*path, probe), container.get(probe), once=bool(least))


def of_kubernetes(resource: Resource) -> bool:
    """Whether the object is of an API of Kubernetes itself: what numbers mean in others, their schemas say."""
    return "." not in resource.group or resource.group.endswith(".k8s.io")


def _probe(resource: Resource, path: Path, probe: Any, *, once: bool) -> Iterator[Hit]:
    for name, number in mapping(probe).items():
        if not isinstance(number, int) or isinstance(number, bool):
            continue
        if number < 0 and name != "terminationGracePeriodSeconds":
            yield hit(dotted((*path, name)), "negative", who=who(resource), name=name, number=number)
        elif once and name == "successThreshold" and number > 1:
            yield hit(dotted((*path, name)), "once", who=who(resource), number=number)


@rule("GPU813", "error", over="object")
def of_containers(resource: Resource) -> Iterator[Hit]:
    """An image, a variable or an argument that no container can have."""
    for path, container in containers(resource.body):
        image = container.get("image")
        if isinstance(image, str) and image:
            yield from _held(resource, (*path, "image"), image, IMAGE)
        for key in ("command", "args"):
            texts = container.get(key)
            for index, text in enumerate(texts if isinstance(texts, list) else ()):
                yield from _without_nul(resource, (*path, key, index), text)
        for index, entry in mappings(container.get("env")):
            if isinstance(entry.get("name"), str):
                yield from _held(resource, (*path, "env", index, "name"), entry["name"], ENV_NAME)
            yield from _without_nul(resource, (*path, "env", index, "value"), entry.get("value"))


def _without_nul(resource: Resource, path: Path, text: Any) -> Iterator[Hit]:
    if isinstance(text, str) and "\0" in text:
        yield hit(dotted(path), who=who(resource))


@rule("GPU814", "error", over="object")
def password_in_an_address(resource: Resource) -> Iterator[Hit]:
    """An address with a password in it."""
    for place, text in resource.leaves:
        if isinstance(text, str) and "@" in text and has_credentials(text):
            line = next(line for line in text.splitlines() if has_credentials(line))
            yield hit(dotted(steps(place)), who=who(resource), line=masked(line.strip())[:120])
