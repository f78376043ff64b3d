"""Applying what was found to the old side gives the new side, for whatever objects, one cluster or many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from gpustack.cli.formats.diff.json import change_data
from gpustack.model import Body, dotted
from gpustack.review.diff import fields, groups, objects, own, present, ranges, sides
from gpustack.review.diff.objects import Identity, Objects, Rendered
from gpustack.review.diff.own import CLUSTER, NAMESPACE, Own
from tests.review.diff import back, fleets

NAMES = st.sampled_from("abcde")
SCALARS = st.one_of(st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "1", "true", "x\ny"]))
NAMED = st.lists(st.fixed_dictionaries({"name": NAMES}, optional={"value": SCALARS}), max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3), NAMED),
    max_leaves=12,
)


@given(before=VALUES, after=VALUES)
def test_changes_lead_from_before_to_after(before: Any, after: Any) -> None:
    """The changes of a value, applied, give the other value, types and order included."""
    assert fields.same(back.apply(before, fields.changes(before, after)), after)


RULES = st.lists(
    st.fixed_dictionaries({"alert": NAMES, "expr": NAMES}, optional={"labels": st.fixed_dictionaries({"pool": NAMES})}),
    max_size=4,
)


@given(before=RULES, after=RULES)
def test_rules_of_one_name(before: Any, after: Any) -> None:
    """Rules for Prometheus may have one name, each for another pool: changes lead from the old ones to the new."""
    found = fields.changes({"rules": before}, {"rules": after})
    assert fields.same(back.apply({"rules": before}, found), {"rules": after})


def test_a_rule_that_changes() -> None:
    """Of several rules of a name, beside others, one that changes is one change, of what changed in it."""
    pools = ({"alert": "A", "expr": f"a > {pool}", "labels": {"pool": pool}} for pool in "xyz")
    rules: list[dict[str, Any]] = [
        {"record": "x:a", "expr": "1"},
        {"alert": "A", "expr": "a > 1", "labels": {"team": "t"}},
        *pools,
    ]
    for old, path in (("a > 1", 'rules["[A]"].expr'), ("a > y", 'rules["[A,y]"].expr'), ("1", 'rules["[x:a]"].expr')):
        changed = [rule | {"expr": "a > 9"} if rule["expr"] == old else rule for rule in rules]
        (one,) = fields.changes({"rules": rules}, {"rules": changed})
        assert (one.op, dotted(map(str, one.path)), one.before, one.after) == ("replace", path, old, "a > 9")


@given(value=VALUES)
def test_nothing_changed_is_no_change(value: Any) -> None:
    """A value does not differ from itself."""
    assert fields.changes(value, value) == []


def compared(fleet: fleets.Fleet) -> tuple[list[groups.Group], Mapping[str, Own]]:
    """The groups of FLEET, and the names that are marked in them."""
    changes, own = sides.differences(fleets.side(fleet.before), fleets.side(fleet.after))
    return groups.group(changes, own), own


@given(fleet=fleets.fleets())
def test_groups_lead_from_the_old_side_to_the_new(fleet: fleets.Fleet) -> None:
    """The groups of a fleet, applied to each cluster's old render, give its new render: names, order and types too."""
    found, own = compared(fleet)
    changes = back.ungroup(found, own)
    for cluster in {*fleet.before, *fleet.after}:
        before, after = (fleets.by_identity(side.get(cluster)) for side in fleet)
        assert fleets.plain(back.apply_to(before, changes.get(cluster, []))) == fleets.plain(after)


@given(fleet=fleets.fleets())
def test_secrets_are_never_shown(fleet: fleets.Fleet) -> None:
    """Neither the lines that people read nor the document for programs have a Secret's value."""
    for group in compared(fleet)[0]:
        assert fleets.HIDDEN not in repr(present.blocks(group))
        assert fleets.HIDDEN not in repr([change_data(change) for change in group.changes])


REACHED: dict[str, Callable[[groups.Group], bool]] = {
    **{
        what: lambda group, what=what: any(change.what == what for change in group.changes)  # type: ignore[misc]
        for what in ("added", "removed", "changed", "renamed")
    },
    **{
        op: lambda group, op=op: any(field.op == op for change in group.changes for field in change.fields)  # type: ignore[misc]
        for op in ("add", "remove", "replace", "order")
    },
    "item": lambda group: any(isinstance(step, fields.Item) for one in steps(group) for step in one),
    "moved": lambda group: any(change.moved for change in group.changes),
    "secret": lambda group: any(change.identity.kind == "Secret" for change in group.changes),
    "namespaces": lambda group: len(group.clusters) > 1 and NAMESPACE in repr(group.changes),
    "engine": lambda group: len(group.clusters) > 1 and any(change.identity.engine for change in group.changes),
    "literal": lambda group: "<namespace>" in repr([change.new for change in group.changes if change.new]),
}
"""What the fleets of the properties above must have in them, by what a group of one looks like."""


def steps(group: groups.Group) -> list[fields.Path]:
    """The paths of all fields of GROUP."""
    return [field.path for change in group.changes for field in change.fields]


@pytest.mark.parametrize("what", REACHED)
def test_fleets_have_everything_in_them(what: str) -> None:
    """What the properties are said to hold over does occur."""
    find(
        fleets.fleets(),
        lambda fleet: any(map(REACHED[what], compared(fleet)[0])),
        settings=settings(max_examples=5000, phases=[Phase.generate], database=None, derandomize=True),
    )


@given(fleet=fleets.fleets())
def test_a_fleet_spelled_otherwise_is_the_same(fleet: fleets.Fleet) -> None:
    """Where nothing but the spelling of quantities differs, nothing does."""
    after = {name: fleets.Cluster(fleets.respelled(each.stack), each.engine) for name, each in fleet.before.items()}
    assert compared(fleets.Fleet(fleet.before, after))[0] == []


@pytest.mark.parametrize("name", ["prod", "main", "a", "crds", "spec", "1"])
def test_own_names_of_any_kind(name: str) -> None:
    """Whatever a cluster is called, its objects come back as they were, and paths and words are not torn apart."""
    other = f"{name}-{name}"
    body: Body = {
        "kind": name,
        name: name,
        "metadata": {"name": f"gpustack-{name}"},
        "x": [f"dist/{name}/x", f"q{name}"],
    }
    made = own.marked(body, Own(name), engine=True)
    assert own.literal(made, Own(name)) == body
    assert made["metadata"]["name"] == f"gpustack-{CLUSTER}"
    assert made["x"] == [f"dist/{CLUSTER}/x", f"q{name}"]
    assert name in made
    for text in (f"gpustack-{name}-driver", f"gpustack-{name}-x"):
        wanted = f"gpustack-{CLUSTER}-driver" if text.endswith("driver") else text
        assert own.marked({"x": text}, Own(name), engine=True) == {"x": wanted}
    assert own.marked({"x": other}, Own(name), engine=True) == {"x": other}
    assert own.marked(body, Own(name), engine=False) == body


def thing(namespace: str, value: str) -> Body:
    """An object in NAMESPACE."""
    return fleets.made("DaemonSet", "a", namespace, {"x": value})


def fleet_of(*rows: tuple[str, str, Body, str, Body]) -> fleets.Fleet:
    """A fleet of clusters of one object each: the name of the cluster, then file and object before and after."""
    before = {name: fleets.Cluster({file: body}, {}) for name, file, body, _, _ in rows}
    return fleets.Fleet(before, {name: fleets.Cluster({file: body}, {}) for name, _, _, file, body in rows})


def test_namespaces_that_differ_are_one_group() -> None:
    """The same change in two namespaces is said once; where all have one namespace, its name is shown."""
    file = "driver/a.yaml"
    rows = [(f"c-{space}", file, thing(space, "x"), file, thing(space, "y")) for space in ("one", "two")]
    (group,) = compared(fleet_of(*rows))[0]
    assert (group.clusters, str(group.changes[0].identity)) == (("c-one", "c-two"), f"DaemonSet {NAMESPACE}/a")
    for row in rows:
        (alone,) = compared(fleet_of(row))[0]
        assert str(alone.changes[0].identity) == f"DaemonSet {row[0].removeprefix('c-')}/a"


def test_a_namespace_that_changes_is_no_name_of_ones_own() -> None:
    """An object that moves to another namespace goes there and comes here, with both names."""
    (group,) = compared(fleet_of(("c", "a.yaml", thing("one", "x"), "a.yaml", thing("two", "x"))))[0]
    assert [(change.what, change.identity.namespace) for change in group.changes] == [
        ("removed", "one"),
        ("added", "two"),
    ]


def test_what_is_called_like_a_namespace_is_not_taken_for_it() -> None:
    """A value that is a namespace's name by chance stays what it is, in one cluster and in the next."""
    file = "driver/a.yaml"
    rows = [(f"c-{space}", file, thing(space, "x"), file, thing(space, space)) for space in ("one", "two")]
    found = compared(fleet_of(*rows))[0]
    assert [(group.clusters, group.changes[0].fields[0].after) for group in found] == [
        (("c-one",), "one"),
        (("c-two",), "two"),
    ]


def test_moves_to_two_stages_are_two_groups() -> None:
    """Where an object goes to is part of the change."""
    body = thing("one", "x")
    rows = [("a", "base/a.yaml", body, "driver/a.yaml", body), ("b", "driver/a.yaml", body, "base/a.yaml", body)]
    assert [group.changes[0].moved for group in compared(fleet_of(*rows))[0]] == [
        ("base/a.yaml", "driver/a.yaml"),
        ("driver/a.yaml", "base/a.yaml"),
    ]


def test_a_namespace_is_marked_where_one_is_named() -> None:
    """Namespaces, users and addresses; an image or a label that happens to be called so is none."""
    body: Body = {
        "metadata": {"namespace": "ns", "labels": {"app": "ns"}},
        "users": ["system:serviceaccount:ns:a", "system:serviceaccount:nsx:a"],
        "matchNames": ["ns", "other"],
        "url": "https://a.ns.svc:443",
        "image": "x/ns:1",
        "expr": 'up{namespace="ns"}',
    }
    assert own.marked(body, Own(namespace="ns"), engine=False) == {
        "metadata": {"namespace": NAMESPACE, "labels": {"app": "ns"}},
        "users": [f"system:serviceaccount:{NAMESPACE}:a", "system:serviceaccount:nsx:a"],
        "matchNames": [NAMESPACE, "other"],
        "url": f"https://a.{NAMESPACE}.svc:443",
        "image": "x/ns:1",
        "expr": f'up{{namespace="{NAMESPACE}"}}',
    }


@given(names=st.sets(st.from_regex(r"[ab]-?[0-9]{0,2}c?", fullmatch=True), max_size=30))
def test_a_folded_list_names_the_same_clusters(names: set[str]) -> None:
    """What ranges stand for is what was folded."""
    unfolded = set()
    for text in ranges.fold(names):
        first, dots, last = text.partition("..")
        if not dots:
            unfolded.add(text)
            continue
        low = first[len(first.rstrip("0123456789")) :]
        high, rest = last[: len(last) - len(last.lstrip("0123456789"))], last.lstrip("0123456789")
        stem = first.removesuffix(low)
        unfolded |= {f"{stem}{number:0{len(low)}d}{rest}" for number in range(int(low), int(high) + 1)}
    assert unfolded == names


def test_a_quantity_spelled_otherwise_is_no_change() -> None:
    """`1000m` CPU and `1`, or 1024Mi and 1Gi, are the same to the API server, and to a reviewer."""
    before = {"resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}}}
    after = {"resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}}
    assert fields.changes(before, after) == []
    assert fields.changes({"args": ["1000m"]}, {"args": ["1"]}) != []


def test_a_moved_container_is_an_order_and_no_rewrite() -> None:
    """Items of a list are known by their key: another order is one change, and says the order."""
    before = {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}
    after = {"containers": [{"name": "b", "image": "y"}, {"name": "a", "image": "z"}]}
    made = fields.changes(before, after)
    assert [(change.op, dotted(change.path)) for change in made] == [
        ("replace", "containers[a].image"),
        ("order", "containers"),
    ]


def test_a_change_that_all_have_is_one_group() -> None:
    """One image in 400 clusters is one group of 400; what one cluster has beside it is a group of its own."""
    body: Body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"image": "old", "x": 1}}
    new: Body = {**body, "spec": {"image": "new", "x": 1}}
    odd: Body = {**body, "spec": {"image": "new", "x": 2}}

    def side(of: Body) -> Objects:
        return {Identity.of(of): Rendered(of, "p.yaml")}

    common = objects.compare(side(body), side(new))
    by_cluster = {f"c{number}": common for number in range(399)} | {"c399": objects.compare(side(body), side(odd))}
    found = groups.group(by_cluster)
    assert [(len(group.clusters), len(group.changes)) for group in found] == [(400, 1), (1, 1)]
    assert ranges.summary(found[0].clusters, 400) == "all 400 clusters"
    assert ranges.fold(by_cluster) == ["c0..399"]


def test_what_several_objects_gain_or_lose_is_one_block() -> None:
    """A toleration less and a variable's other value in four DaemonSets are one block each, which says what of."""

    def side(value: str, *tolerations: str) -> Objects:
        env = [{"name": "MIG_STRATEGY", "value": value}]
        tolerated = [{"key": key, "operator": "Exists"} for key in ("kept", *tolerations)]
        pod = {"tolerations": tolerated, "containers": [{"name": "c", "env": env}]}
        bodies: list[Body] = [
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": name},
                "spec": {"template": {"spec": pod}},
            }
            for name in "abcd"
        ]
        return {Identity.of(body): Rendered(body, "d.yaml") for body in bodies}

    (found,) = groups.group({"one": objects.compare(side("mixed", "gone"), side("single"))})
    titles = [block.title for block in present.blocks(found)]
    assert titles == ["tolerations[gone,Exists,None,None] in 4 objects", "env[MIG_STRATEGY].value in 4 objects"]


def test_an_object_that_only_changed_its_name_is_a_rename() -> None:
    """One gone and one new that differ in nothing but the name are said together."""
    old: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    new: Body = {**old, "metadata": {"name": "b"}}
    made = objects.compare({Identity.of(old): Rendered(old, "a")}, {Identity.of(new): Rendered(new, "b")})
    assert [(change.what, change.was and change.was.name, change.identity.name) for change in made] == [
        ("renamed", "a", "b")
    ]
