"""Applying what was found to the old side gives the new side, for whatever objects, one cluster or many."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpustack.model import Body, dotted
from gpustack.review.diff import fields, groups, objects, present, ranges
from gpustack.review.diff.objects import Identity, Objects, Rendered

NAMES = st.sampled_from("abcde")
SCALARS = st.one_of(st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "1", "true", "x\ny"]))
NAMED = st.lists(st.fixed_dictionaries({"name": NAMES}, optional={"value": SCALARS}), max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3), NAMED),
    max_leaves=12,
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES}, optional={"env": NAMED, "args": st.lists(NAMES, max_size=3), "image": NAMES}
    ),
    max_size=4,
)
SPECS = st.fixed_dictionaries({}, optional={"containers": CONTAINERS, "volumes": NAMED, "x": VALUES, "y": VALUES})


@st.composite
def renders(draw: st.DrawFn) -> Objects:
    """The objects of a cluster."""
    found: dict[Identity, Rendered] = {}
    for kind, name in draw(st.sets(st.tuples(st.sampled_from(["DaemonSet", "Secret"]), NAMES), max_size=4)):
        body: Body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": draw(SPECS)}
        found[Identity.of(body)] = Rendered(body, f"{draw(NAMES)}/{kind}-{name}.yaml")
    return found


def bodies(side: Objects) -> dict[Identity, Rendered]:
    """SIDE as a plain dict."""
    return dict(side)


@given(before=VALUES, after=VALUES)
def test_changes_lead_from_before_to_after(before: Any, after: Any) -> None:
    """The changes of a value, applied, give the other value, types and order included."""
    assert fields.same(fields.apply(before, fields.changes(before, after)), after)


@given(value=VALUES)
def test_nothing_changed_is_no_change(value: Any) -> None:
    """A value does not differ from itself."""
    assert fields.changes(value, value) == []


@given(before=st.dictionaries(st.sampled_from(["c1", "c2", "c3"]), renders(), max_size=3), data=st.data())
def test_groups_lead_from_the_old_side_to_the_new(before: dict[str, Objects], data: st.DataObject) -> None:
    """The groups of many clusters, applied to each cluster's old render, give its new render."""
    pool = data.draw(st.lists(renders(), min_size=1, max_size=2))
    after = {cluster: data.draw(st.sampled_from(pool)) for cluster in before}
    found = groups.group({cluster: objects.compare(before[cluster], after[cluster]) for cluster in before})
    changes = groups.ungroup(found)
    for cluster, side in before.items():
        made = objects.apply_to(side, changes.get(cluster, []))
        assert bodies(made) == bodies(after[cluster])


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
