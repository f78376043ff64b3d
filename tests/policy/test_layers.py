"""Merging: who wins, what a list is, where each value came from, and that nothing is changed on the way."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gpustack.catalog import releases
from gpustack.model import InputError, Location, Path
from gpustack.policy.language.cluster import ClusterFacts
from gpustack.policy.loading.layers import Merged, Origin, Part, merge


def layer(data: dict[str, Any], file: str = "layer") -> Part:
    """A part without a text."""
    return Part("layer", file, data)


def merged(*datas: dict[str, Any]) -> dict[str, Any]:
    """The result of merging DATAS, lowest first."""
    return merge([layer(data, str(number)) for number, data in enumerate(datas)]).spec


def policy(text: str, file: str = "p.yaml") -> Part:
    """A part with a text, of which the spec counts."""
    from gpustack.text.read import parse

    return Part("policy", file, parse(text, file)["spec"], ("spec",), text)


# --- the rules ------------------------------------------------------------------------------------------------------


def test_maps_merge_by_key_and_scalars_are_replaced() -> None:
    """A key of either part is there; one in both has the later value, at any depth; the order is that of appearance."""
    found = merged({"a": 1, "m": {"x": 1, "y": {"z": 1}}}, {"m": {"y": {"w": 2}, "x": 2}, "b": 3})
    assert found == {"a": 1, "m": {"x": 2, "y": {"z": 1, "w": 2}}, "b": 3}
    assert list(found) == ["a", "m", "b"]


def test_null_is_absence() -> None:
    """A null neither overrides nor stays, however deep it stands."""
    assert merged({"a": 1, "b": {"c": 1}}, {"a": None, "b": {"c": None, "d": None}, "e": None}) == {
        "a": 1,
        "b": {"c": 1},
    }
    assert merged({"a": {"b": None}, "l": [{"x": None}]}) == {"a": {}, "l": [{}]}


def test_lists_of_named_items_merge_by_name() -> None:
    """Items of one name become one, in the lower part's order, and new ones follow: env variables and node pools."""
    low = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    high = {"env": [{"name": "C"}, {"name": "A", "value": "9"}]}
    assert merged(low, high) == {"env": [{"name": "A", "value": "9"}, {"name": "B", "value": "2"}, {"name": "C"}]}


def test_kind_is_part_of_the_identity() -> None:
    """A ConfigMap and a Secret of one name are two references."""
    low = {"references": [{"kind": "ConfigMap", "name": "a", "keys": ["x"]}]}
    high = {"references": [{"kind": "Secret", "name": "a"}, {"kind": "ConfigMap", "name": "a", "keys": ["y"]}]}
    assert merged(low, high) == {
        "references": [{"kind": "ConfigMap", "name": "a", "keys": ["y"]}, {"kind": "Secret", "name": "a"}]
    }


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([1, 2], [3]),
        ([{"key": "a"}], [{"key": "b"}]),
        ([{"name": "a"}], [{"name": "b"}, {"key": "c"}]),
        ([{"name": "a"}], []),
        ([{"name": "a"}], ["a"]),
        ([], [{"name": "a"}]),
        ([{"name": 1}], [{"name": 2}]),
    ],
)
def test_other_lists_are_replaced_whole(low: list[Any], high: list[Any]) -> None:
    """A list without names, or an empty one (which says that there are no items), takes the place of the lower one."""
    assert merged({"l": low}, {"l": high}) == {"l": high}


def test_an_item_without_a_name_below_named_ones() -> None:
    """A layer's item that lacks its name would be gone without a word once somebody above names one; it is refused at
    its place, which also says where the others are. What an empty list has taken away does not matter."""
    low = policy("spec:\n  nodePools:\n  - {name: a}\n  - {os: rhel9}\n", "low.yaml")
    high = policy("spec:\n  nodePools:\n  - {name: b}\n", "high.yaml")
    with pytest.raises(InputError) as caught:
        merge([low, high])
    (finding,) = caught.value.findings
    assert finding.rule == "GPU011"
    assert finding.location == Location("low.yaml", 4, 5, "  - {os: rhel9}")
    assert "high.yaml:2" in finding.why
    with pytest.raises(InputError):
        merge([low, policy("spec: {nodePools: [{name: c}]}"), high])
    assert merge([low, policy("spec: {nodePools: []}"), high]).spec == {"nodePools": [{"name": "b"}]}


def test_defaults_without_names_below_named_items() -> None:
    """Nobody can give names to the items of a default: a list with names replaces it, and is judged by itself."""
    below = Part("release", "release v1", {"daemonsets": {"tolerations": [{"key": "a"}]}})
    wrong = policy("spec:\n  daemonsets: {tolerations: [{name: b}]}\n")
    assert merge([below, wrong]).spec == {"daemonsets": {"tolerations": [{"name": "b"}]}}


def test_a_map_that_meets_something_else_names_both_places() -> None:
    """Two layers that disagree on what a value is can't be merged; the message has both places and both sorts."""
    low = policy("spec:\n  driver: {env: {a: 1}}\n", "low.yaml")
    high = policy("spec:\n  driver:\n    env: 3\n", "high.yaml")
    with pytest.raises(InputError) as caught:
        merge([low, high])
    (finding,) = caught.value.findings
    assert finding.rule == "GPU011"
    assert finding.path == "spec.driver.env"
    assert finding.location == Location("high.yaml", 3, 5, "    env: 3")
    assert "low.yaml:2:12" in finding.why
    assert "a mapping" in finding.what
    assert "a single value" in finding.what
    assert finding.remedy
    with pytest.raises(InputError):
        merge([high, low])


def test_a_name_that_stands_twice_in_a_list_names_both_places() -> None:
    """One of two items of the same name would be lost, so that is an error, also with nothing to merge with."""
    text = "spec:\n  env:\n  - name: A\n  - name: B\n  - name: A\n"
    with pytest.raises(InputError) as caught:
        merge([policy(text)])
    (finding,) = caught.value.findings
    assert finding.location == Location("p.yaml", 5, 11, "  - name: A")
    assert "p.yaml:3:11" in finding.why
    assert finding.path == "spec.env[2]"
    assert finding.remedy


def test_names_inside_of_manifests_need_not_be_unique() -> None:
    """A manifest is never merged, so subjects of one name in two namespaces are fine there."""
    subjects = [{"kind": "ServiceAccount", "name": "x", "namespace": "a"}, {"kind": "ServiceAccount", "name": "x"}]
    data = {"extraObjects": [{"kind": "RoleBinding", "subjects": subjects}]}
    assert merged(data) == data


def test_a_null_in_a_list_is_refused_with_its_place() -> None:
    """An item can't be absent; a dash with nothing after it is found by line."""
    with pytest.raises(InputError) as caught:
        merge([policy("spec:\n  args:\n  - a\n  -\n  - b\n")])
    (finding,) = caught.value.findings
    assert finding.rule == "GPU011"
    assert finding.location is not None
    assert (finding.location.line, finding.location.text) == (4, "  -")
    assert finding.remedy


def test_what_one_part_mentions_is_shared() -> None:
    """Defaults that nobody touches are not copied: that is what makes merging cheap."""
    defaults = layer({"a": {"x": [1]}, "b": {"y": {}}})
    found = merge([defaults, layer({"b": {"z": 1}})]).spec
    assert found["a"] is defaults.data["a"]
    assert found["b"]["y"] is defaults.data["b"]["y"]
    assert found["b"] is not defaults.data["b"]


def test_merging_is_cheap() -> None:
    """A policy over the defaults of a release merges in under half a millisecond at best of 20."""
    defaults = Part("release", "release", dict(releases.release("v26.7.0").defaults))
    pools = {"nodePools": [{"name": f"p{n}", "os": "ubuntu22.04"} for n in range(5)], "driver": {"version": "1"}}
    times = []
    for _ in range(20):
        started = time.perf_counter()
        merge([defaults, layer({"toolkit": {"enabled": False}}), layer(pools)])
        times.append(time.perf_counter() - started)
    assert min(times) < 0.0005


# --- origins --------------------------------------------------------------------------------------------------------


def test_every_leaf_knows_its_part_and_its_place_there() -> None:
    """An item that moved in a merged list is named by where its author wrote it."""
    low = Part("layer", "low.yaml", {"pools": [{"name": "a", "os": "x"}], "m": {"e": {}}}, ("spec",))
    high = Part("policy", "high.yaml", {"pools": [{"name": "b"}, {"name": "a", "n": [1]}]}, ("spec",))
    found = merge([low, high])
    assert found.origins == {
        ("pools", 0, "name"): Origin("policy", "high.yaml", ("spec", "pools", 1, "name")),
        ("pools", 0, "os"): Origin("layer", "low.yaml", ("spec", "pools", 0, "os")),
        ("pools", 0, "n", 0): Origin("policy", "high.yaml", ("spec", "pools", 1, "n", 0)),
        ("pools", 1, "name"): Origin("policy", "high.yaml", ("spec", "pools", 0, "name")),
        ("m", "e"): Origin("layer", "low.yaml", ("spec", "m", "e")),
    }


def test_a_section_belongs_to_the_highest_part_that_mentions_it() -> None:
    """`writer` and `origin` answer for sections too, and say nothing about what is not there."""
    low, high = layer({"a": {"b": 1, "c": [1, 2]}}, "low"), layer({"a": {"d": 2}}, "high")
    found = merge([low, high])
    assert found.origin(("a",)) == Origin("layer", "high", ("a",))
    assert found.origin(("a", "b")) == Origin("layer", "low", ("a", "b"))
    assert found.origin(("a", "c", 1)) == Origin("layer", "low", ("a", "c", 1))
    for nowhere in (("x",), ("a", "b", "x"), ("a", "c", 2), ("a", "c", "x")):
        assert found.origin(nowhere) is None
    assert merge([]).origin(()) is None


RULE = """
spec:
  extraObjects:
  - apiVersion: monitoring.coreos.com/v1
    kind: PrometheusRule
    metadata: {name: gpus, namespace: monitoring, labels: {team: a}}
    spec: {groups: [{name: base, rules: [{alert: Hot}]}]}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: gpus}, data: {a: "1"}}
"""


def objects(text: str) -> list[dict[str, Any]]:
    """The objects of RULE's layer with those of a policy above it."""
    found: list[dict[str, Any]] = merge([policy(RULE, "base.yaml"), policy(text)]).spec["extraObjects"]
    return found


def test_objects_merge_by_group_kind_namespace_and_name() -> None:
    """An object of the policy is added to those of its layers; one of the same name is merged with theirs."""
    added = objects("spec: {extraObjects: [{apiVersion: v1, kind: Secret, metadata: {name: gpus}}]}")
    assert [item["kind"] for item in added] == ["PrometheusRule", "ConfigMap", "Secret"]
    other = objects("spec: {extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: gpus, namespace: x}}]}")
    assert len(other) == 3
    (_, same) = objects(
        'spec: {extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: gpus}, data: {b: "2"}}]}'
    )
    assert same["data"] == {"a": "1", "b": "2"}
    rule = """
spec:
  extraObjects:
  - apiVersion: monitoring.coreos.com/v1beta1
    kind: PrometheusRule
    metadata: {name: gpus, namespace: monitoring}
    spec: {groups: [{name: mine, rules: [{alert: Cold}]}]}
"""
    found = objects(rule)[0]
    assert found["metadata"]["labels"] == {"team": "a"}
    assert [group["name"] for group in found["spec"]["groups"]] == ["base", "mine"]


def test_rules_of_a_group_merge_by_alert_and_record() -> None:
    """No alert of the base vanishes under a group of its name (issue 16, 12); one of the same name is changed."""
    rule = "apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: gpus}"
    low = "[{alert: Hot, expr: a, for: 5m}, {record: Hot, expr: b}, {alert: Cold, expr: c}]"
    high = "[{alert: Hot, expr: z}, {alert: Mine, expr: d}]"
    text = "spec: {extraObjects: [{%s, spec: {groups: [{name: gpus, rules: %s}]}}]}"
    (found,) = merge([policy(text % (rule, low), "base.yaml"), policy(text % (rule, high))]).spec["extraObjects"]
    assert found["spec"]["groups"][0]["rules"] == [
        {"alert": "Hot", "expr": "z", "for": "5m"},
        {"record": "Hot", "expr": "b"},
        {"alert": "Cold", "expr": "c"},
        {"alert": "Mine", "expr": "d"},
    ]
    twice = "[{alert: Hot, expr: y}, {alert: Hot, expr: z}]"
    (found,) = merge([policy(text % (rule, low), "base.yaml"), policy(text % (rule, twice))]).spec["extraObjects"]
    assert [each["expr"] for each in found["spec"]["groups"][0]["rules"]] == ["y", "z"]


@pytest.mark.parametrize("said", ["cluster: {namespace: gpus}, ", ""])
@pytest.mark.parametrize("low", ["", ", namespace: gpus"])
@pytest.mark.parametrize("high", ["", ", namespace: gpus"])
def test_an_absent_namespace_is_the_policys(said: str, low: str, high: str) -> None:
    """An object without a namespace goes where the stack is, so it is the object that says so. Where no part says where
    that is, it is in the namespace of the language's default.
    """
    home = "gpus" if said else ClusterFacts.model_fields["namespace"].default
    low, high = low.replace("gpus", home), high.replace("gpus", home)
    head = f"{said}extraObjects: [{{apiVersion: v1, kind: ConfigMap"
    text = f"spec: {{{head}, metadata: {{name: a%s}}, data: {{%s}}}}]}}"
    parts = [
        policy(text % (space, data), file)
        for space, data, file in ((low, "a: '1'", "base.yaml"), (high, "b: '2'", "policy.yaml"))
    ]
    (found,) = merge(parts).spec["extraObjects"]
    assert found["data"] == {"a": "1", "b": "2"}
    elsewhere = policy(text % (", namespace: x", "c: '3'"))
    assert len(merge([parts[0], elsewhere]).spec["extraObjects"]) == 2


def test_an_object_that_replaces_is_taken_whole() -> None:
    """With $replace: true nothing of the lower object is left, and the key itself isn't rendered."""
    text = "{$replace: true, apiVersion: v1, kind: ConfigMap, metadata: {name: gpus}, data: {b: x}}"
    found = merge([policy(RULE, "base.yaml"), policy(f"spec: {{extraObjects: [{text}]}}")])
    replacing = found.spec["extraObjects"][1]
    assert replacing == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gpus"}, "data": {"b": "x"}}
    ((part, path),) = found.overridden(("extraObjects", 1, "data", "b"))
    assert (part.file, path) == ("base.yaml", ("extraObjects", 1))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{$replace: true, apiVersion: v1, kind: ConfigMap, metadata: {name: gpu}}", "no layer below has"),
        ("{$replace: yes, apiVersion: v1, kind: ConfigMap, metadata: {name: gpus}}", "$replace is true"),
        (", ".join(["{apiVersion: v1, kind: ConfigMap, metadata: {name: gpus}}"] * 2), "stands twice in this list"),
    ],
)
def test_objects_that_can_not_be_merged(text: str, what: str) -> None:
    """What replaces nothing, what says so in another way, and what stands twice is refused at its line."""
    with pytest.raises(InputError) as error:
        merge([policy(RULE, "base.yaml"), policy(f"spec:\n  extraObjects: [{text}]\n")])
    (found,) = error.value.findings
    assert (found.rule, found.location and found.location.line) == ("GPU011", 2)
    assert what in found.what


def test_lists_in_objects_with_a_name_twice_are_replaced() -> None:
    """The subjects of a binding may have one name twice: nothing says which is which, so the policy's list counts."""
    binding = "apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b}"
    low = f"spec: {{extraObjects: [{{{binding}, subjects: [{{name: x, namespace: a}}, {{name: x, namespace: b}}]}}]}}"
    high = f"spec: {{extraObjects: [{{{binding}, subjects: [{{name: x, namespace: c}}]}}]}}"
    (found,) = merge([policy(low, "base.yaml"), policy(high)]).spec["extraObjects"]
    assert found["subjects"] == [{"name": "x", "namespace": "c"}]


def test_what_a_value_takes_the_place_of() -> None:
    """The same value in lower parts, lowest first; for an item of a list that is replaced whole, the lower lists."""
    found = merge([layer({"a": 1, "l": [1, 2]}, "one"), layer({"a": 2}, "two"), policy("spec: {a: 3, l: [3]}")])
    assert [(part.file, path) for part, path in found.overridden(("a",))] == [("one", ("a",)), ("two", ("a",))]
    assert [(part.file, path) for part, path in found.overridden(("l", 0))] == [("one", ("l",))]
    assert merge([layer({"a": 1})]).overridden(("a",)) == []


# --- rules that hold for all data -----------------------------------------------------------------------------------

KEYS = st.sampled_from("abc")
LEAVES = st.integers(0, 3) | st.sampled_from(["x", "y"]) | st.booleans()


def named(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of items that are told apart by name."""
    items = st.dictionaries(KEYS, values, max_size=2)
    return st.dictionaries(st.sampled_from("pqr"), items, max_size=3).map(
        lambda found: [{"name": name, **item} for name, item in found.items()]
    )


VALUES = st.recursive(
    LEAVES | st.none() | st.lists(LEAVES, max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | named(inner),
    max_leaves=8,
)
PARTS = st.lists(st.dictionaries(KEYS, VALUES, max_size=3), min_size=1, max_size=4)


def mergeable(datas: list[dict[str, Any]]) -> Merged:
    """The merge of DATAS; those that can't be merged don't count."""
    try:
        return merge([layer(data, str(number)) for number, data in enumerate(datas)])
    except InputError:
        assume(False)
        raise


def leaves(node: Any, path: Path = ()) -> dict[Path, Any]:
    """The leaves of NODE: scalars, empty maps and empty lists."""
    if isinstance(node, (dict, list)) and node:
        steps = node.items() if isinstance(node, dict) else enumerate(node)
        return {leaf: value for step, item in steps for leaf, value in leaves(item, (*path, step)).items()}
    return {path: node}


def value_at(node: Any, path: Path) -> Any:
    """What stands at PATH of NODE."""
    for step in path:
        node = node[step]
    return node


@settings(max_examples=150, deadline=None)
@given(PARTS)
@example([{"a": [{"name": "p", "b": 1}]}, {"a": []}, {"a": [{"name": "q", "c": None}]}])
def test_origins_cover_exactly_the_leaves_and_tell_the_truth(datas: list[dict[str, Any]]) -> None:
    """Each leaf has one origin, nothing else has, and the part has that very value at that very path."""
    found = mergeable(datas)
    assert found.origins.keys() == leaves(found.spec).keys()
    for path, origin in found.origins.items():
        there = value_at(datas[int(origin.file)], origin.path)
        here = value_at(found.spec, path)
        assert here == (there if here not in ({}, []) else here)
        assert found.origin(path) == origin


@settings(max_examples=150, deadline=None)
@given(PARTS)
def test_no_part_is_changed(datas: list[dict[str, Any]]) -> None:
    """Parts are shared between clusters: what is merged must be what was there before."""
    before = copy.deepcopy(datas)
    first = mergeable(datas)
    assert datas == before
    assert mergeable(datas).spec == first.spec


@settings(max_examples=150, deadline=None)
@given(PARTS)
@example([{"a": [{"name": "p"}]}, {"a": [1]}, {"a": [{"name": "q"}]}])
@example([{"a": [{"name": name}]} for name in "pqr"])
def test_merging_at_once_is_merging_one_after_the_other(datas: list[dict[str, Any]]) -> None:
    """From the left, merging is associative: parts may be merged in advance."""
    expected = mergeable(datas).spec
    result: dict[str, Any] = {}
    for data in datas:
        result = mergeable([result, data]).spec
    assert result == expected


MAPS = st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3), max_leaves=8)


@settings(max_examples=100, deadline=None)
@given(*[st.dictionaries(KEYS, MAPS, max_size=3)] * 3)
def test_without_lists_merging_is_associative(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    """From the right too, where nothing is replaced whole. (A list that is replaced forgets what was below it.)"""
    assert mergeable([mergeable([a, b]).spec, c]).spec == mergeable([a, mergeable([b, c]).spec]).spec


@settings(max_examples=100, deadline=None)
@given(PARTS)
def test_the_last_part_wins(datas: list[dict[str, Any]]) -> None:
    """Every scalar of the last part, outside of lists, is in the result; a part merged with itself is that part."""
    found = mergeable(datas).spec
    for path, value in leaves(datas[-1]).items():
        if value is not None and value not in ({}, []) and all(isinstance(step, str) for step in path):
            assert value_at(found, path) == value
    alone = mergeable([datas[-1]]).spec
    assert mergeable([datas[-1], datas[-1]]).spec == alone


@settings(max_examples=100, deadline=None)
@given(PARTS)
def test_nulls_never_come_through(datas: list[dict[str, Any]]) -> None:
    """There is no null in a result."""
    assert None not in leaves(mergeable(datas).spec).values()


def test_what_the_clusters_own_file_wrote() -> None:
    """It is what `origins` says of the policy, in the same order, whatever lies below: named items, lists, maps."""
    low = layer({"a": 1, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "l": [1], "m": {"x": 1}})
    high = policy("spec: {b: 1, env: [{name: B, value: 3}, {name: C}], l: [2, 3], m: {y: {}}, n: {z: [{q: 1}]}}\n")
    found = merge([low, high])
    assert list(found.own.items()) == [item for item in found.origins.items() if item[1].kind == "policy"]
    assert ("env", 1, "value") in found.own
    assert ("env", 0, "value") not in found.own
