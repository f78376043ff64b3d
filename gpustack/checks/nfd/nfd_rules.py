"""Rules about node feature discovery: an old one or two, and the NodeFeatureRules that a policy brings along.

The API server takes a rule that discovery drops, or that never matches, and its nodes go without their labels.
"""

import re
from collections.abc import Iterator
from typing import Any

from ...catalog import nfd
from ...catalog._lookup import nearest
from ...catalog._versions import numbers
from ...cluster.node_labels import rules_of
from ...cluster.resolve import Cluster
from ...model import Path, dotted
from ...policy.language import images
from ...policy.language.nfd import OPEN_NAMESPACES, reserved
from ...policy.language.types import LABEL_VALUE
from ..rule import Hit, hit, meant, rule

HEX = re.compile(r"[0-9a-f]{4}")
LEAST = (0, 17)
"""The first version that doesn't flood the API server (bug-reports.md B27)."""


@rule("GPU530", "error")
def without_effect(cluster: Cluster) -> Iterator[Hit]:
    """A NodeFeatureRule with something that node feature discovery drops, or that can't match."""
    spec = cluster.spec
    for path, feature_rule in rules_of(spec):
        yield from _labels(path, feature_rule.get("labels"))
        for where, term in _terms(path, feature_rule):
            yield from _term(where, term)
        if feature_rule.get("taints") and spec.nfd.enabled:
            yield hit(dotted((*path, "taints")), "taints")


def _labels(path: Path, labels: Any) -> Iterator[Hit]:
    for key, value in labels.items() if isinstance(labels, dict) else ():
        namespace, slash, name = str(key).partition("/")
        where = dotted((*path, "labels", key))
        if slash and reserved(namespace):
            yield hit(
                where, "label", key=key, namespace=namespace, open_namespace=OPEN_NAMESPACES[0], name=name, at_key=True
            )
        if isinstance(value, str) and value and not value.startswith("@") and not _label_value(value):
            yield hit(where, "value", value=repr(value))


def _label_value(text: str) -> bool:
    return len(text) <= LABEL_VALUE.longest and re.fullmatch(LABEL_VALUE.pattern, text) is not None


def _terms(path: Path, feature_rule: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The features that a rule asks about, with their paths."""
    groups = [((*path, "matchFeatures"), feature_rule.get("matchFeatures"))]
    either = feature_rule.get("matchAny")
    for index, part in enumerate(either if isinstance(either, list) else []):
        if isinstance(part, dict):
            groups.append(((*path, "matchAny", index, "matchFeatures"), part.get("matchFeatures")))
    for where, terms in groups:
        for index, term in enumerate(terms if isinstance(terms, list) else []):
            if isinstance(term, dict):
                yield (*where, index), term


def _term(path: Path, term: dict[str, Any]) -> Iterator[Hit]:
    feature = str(term.get("feature", ""))
    if feature not in nfd.features():
        near, place = nearest(feature, nfd.features(), 2), dotted((*path, "feature"))
        yield hit(place, "feature", remedy=meant(near), feature=repr(feature), known=", ".join(nfd.features()))
        return
    expressions = term.get("matchExpressions")
    named = list(expressions.items()) if isinstance(expressions, dict) else []
    for attribute, expression in [*named, ("", term.get("matchName"))]:
        where = (*path, "matchExpressions", attribute) if attribute else (*path, "matchName")
        if isinstance(expression, dict):
            yield from _attribute(where, feature, attribute)
            yield from _values(where, feature, attribute, expression)


def _attribute(path: Path, feature: str, attribute: str) -> Iterator[Hit]:
    known = nfd.attributes(feature)
    if attribute and known and attribute not in known:
        near, where = nearest(attribute, known, 1), dotted(path)
        yield hit(
            where, "attribute", remedy=meant(near), feature=feature, attribute=repr(attribute), known=", ".join(known)
        )


def _values(path: Path, feature: str, attribute: str, expression: dict[str, Any]) -> Iterator[Hit]:
    operator, values = str(expression.get("op", "")), expression.get("value") or []
    takes = nfd.values_of(operator)
    if takes is None or not isinstance(values, list):
        return  # validation refuses it
    fewest, most = takes
    if len(values) < fewest or (most is not None and len(values) > most):
        wanted = {0: "no value", 1: "one value", None: "one value or more"}.get(most, f"{most} values")
        where = dotted((*path, "value") if values else path)
        yield hit(where, "number", operator=operator, number=len(values), wanted=wanted)
    for value in values if operator in {"In", "NotIn"} and nfd.in_hex(feature, attribute) else ():
        if not HEX.fullmatch(str(value)):
            right = str(value).lower().removeprefix("0x").rjust(4, "0")
            yield Hit(
                dotted((*path, "value")),
                f"{value!r} equals no {attribute} of a PCI device",
                "these are four hex digits in lower case, without 0x",
                f'write ["{right}"]' if HEX.fullmatch(right) else 'write four hex digits, such as "10de"',
            )


@rule("GPU531", "note")
def prefixed(cluster: Cluster) -> Iterator[Hit]:
    """A label of a NodeFeatureRule without a prefix."""
    for path, feature_rule in rules_of(cluster.spec):
        labels = feature_rule.get("labels")
        for key in labels if isinstance(labels, dict) else ():
            if "/" not in str(key):
                yield hit(dotted((*path, "labels", key)), prefix=nfd.default_prefix(), key=key, at_key=True)


@rule("GPU209", "warning")
def discovery_of_the_network_operator(cluster: Cluster) -> Iterator[Hit]:
    """Node feature discovery, which the chart of NVIDIA's network operator brings as well."""
    spec = cluster.spec
    if spec.cluster.networkOperator is True and spec.nfd.enabled and not cluster.platform.own_discovery:
        yield hit("spec.cluster.networkOperator")


@rule("GPU212", "warning")
def old_discovery(cluster: Cluster) -> Iterator[Hit]:
    """A node feature discovery that can flood the API server."""
    spec = cluster.spec
    version, path = images.version(spec.nfd), images.version_path("spec.nfd", spec.nfd)
    if spec.nfd.enabled and not cluster.platform.own_discovery and () < numbers(version)[:2] < LEAST:
        yield hit(path, version=version)
