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
from ...model import Path, dotted, mapping, mappings
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
    for path, feature_rule in rules_of(cluster.spec):
        yield from _labels(path, feature_rule.get("labels"))
        for where, term in _terms(path, feature_rule):
            yield from _term(where, term)
        if feature_rule.get("taints") and cluster.spec.nfd.enabled:
            yield hit(dotted((*path, "taints")), "taints")


def _labels(path: Path, labels: Any) -> Iterator[Hit]:
    for key, value in mapping(labels).items():
        space, slash, name = str(key).partition("/")
        where, free = dotted((*path, "labels", key)), OPEN_NAMESPACES[0]
        if slash and reserved(space):
            yield hit(where, "label", key=key, namespace=space, open_namespace=free, name=name, at_key=True)
        text = value if isinstance(value, str) and not value.startswith("@") else ""
        if len(text) > LABEL_VALUE.longest or (text and not re.fullmatch(LABEL_VALUE.pattern, text)):
            yield hit(where, "value", value=repr(value))


def _terms(path: Path, feature_rule: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The features that a rule asks about, with their paths."""
    either = [((*path, "matchAny", index), part) for index, part in mappings(feature_rule.get("matchAny"))]
    for where, part in [(path, feature_rule), *either]:
        for index, term in mappings(part.get("matchFeatures")):
            yield (*where, "matchFeatures", index), term


def _term(path: Path, term: dict[str, Any]) -> Iterator[Hit]:
    feature = str(term.get("feature", ""))
    if feature not in nfd.features():
        near, place = nearest(feature, nfd.features(), 2), dotted((*path, "feature"))
        yield hit(place, "feature", remedy=meant(near), feature=repr(feature), known=", ".join(nfd.features()))
        return
    for attribute, expression in [*mapping(term.get("matchExpressions")).items(), ("", term.get("matchName"))]:
        where = (*path, "matchExpressions", attribute) if attribute else (*path, "matchName")
        if isinstance(expression, dict):
            yield from _attribute(where, feature, attribute)
            yield from _values(where, feature, attribute, expression)


def _attribute(path: Path, feature: str, attribute: str) -> Iterator[Hit]:
    known = nfd.attributes(feature)
    if attribute and known and attribute not in known:
        near, called, listed = meant(nearest(attribute, known, 1)), repr(attribute), ", ".join(known)
        yield hit(dotted(path), "attribute", remedy=near, feature=feature, attribute=called, known=listed)


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
            at, given = dotted((*path, "value")), repr(value)
            yield hit(at, "hex" if HEX.fullmatch(right) else "digits", value=given, attribute=attribute, right=right)


@rule("GPU531", "note")
def prefixed(cluster: Cluster) -> Iterator[Hit]:
    """A label of a NodeFeatureRule without a prefix."""
    for path, feature_rule in rules_of(cluster.spec):
        for key in mapping(feature_rule.get("labels")):
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
    section = cluster.spec.nfd
    version, path = images.version(section), images.version_path("spec.nfd", section)
    if section.enabled and not cluster.platform.own_discovery and () < numbers(version)[:2] < LEAST:
        yield hit(path, version=version)
