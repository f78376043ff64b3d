"""The lists of what is harmless: nothing that isn't on them is ever routine, and nothing is without a tier."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.catalog import _data
from gpustack.model import Body
from gpustack.review.diff.objects import Identity, Objects, Rendered, compare
from gpustack.review.impact import table
from gpustack.review.impact.bounds import BOUNDS
from gpustack.review.impact.effects import impact
from gpustack.review.impact.leaves import Leaf, changed, leaves
from gpustack.review.impact.tiers import OUTAGE, PLANNED, POWER, ROUTINE, TIERS, UNCLASSIFIED, number_of
from tests.review.impact.requests import loaded

KINDS = [*_data.load("tiers")["groups"], "Role", "Pod", "Anything", "NetworkPolicy", "Application"]
WORDS = st.sampled_from(
    ["spec", "data", "metadata", "labels", "annotations", "template", "containers", "image", "replicas", "name", "env"]
) | st.text("abcdefghij/._-", min_size=1, max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=12
)


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """An object of a known or unknown kind, with whatever in it."""
    kind = draw(st.sampled_from(KINDS))
    group = _data.load("tiers")["groups"].get(kind, "example.com")
    metadata = {"name": "a", "namespace": draw(st.sampled_from(["gpu-operator", "other"]))}
    rest = draw(st.dictionaries(WORDS.filter(lambda word: word not in {"metadata", "kind"}), VALUES, max_size=4))
    return {**rest, "apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata}


def side(body: Body | None) -> Objects:
    """A side with one object, or none."""
    return {Identity.of(body): Rendered(body, "operands/a.yaml")} if body else {}


@settings(max_examples=150)
@given(before=bodies(), data=st.data())
def test_what_is_on_no_list_is_never_routine(before: Body, data: st.DataObject) -> None:
    """Random edits of random objects: each has a tier, and is routine only if every field is listed as inert."""
    after = copy.deepcopy(before)
    holder: Any = after
    for _ in range(data.draw(st.integers(0, 3))):
        inner = [value for value in holder.values() if isinstance(value, dict)]
        holder = data.draw(st.sampled_from(inner)) if inner else holder
    key = data.draw(WORDS.filter(lambda word: word not in {"apiVersion", "kind", "name", "namespace", "metadata"}))
    holder[key] = data.draw(VALUES)
    spec = loaded("lab-a100", {}).spec
    for old, new in ((before, after), (None, after), (before, None)):
        changes = compare(side(old), side(new))
        found = impact({"c": changes}, {"c": (spec, spec)})
        if not changes:
            continue
        assert found.tier is not None
        assert found.tier in range(len(TIERS))
        assert all(change.tier in range(len(TIERS)) for change in found.changes["c"])
        if found.tier >= UNCLASSIFIED:
            entries = table.of_kind(before["kind"])
            fields = list(changed(leaves(old), leaves(new)))
            known = [table.tier_of(entries, leaf) for leaf in fields if leaf.path[0] not in {"apiVersion", "kind"}]
            assert before["metadata"]["namespace"] == "gpu-operator"
            assert found.tier < ROUTINE or (known and min(known) == ROUTINE)
        assert found.tier != ROUTINE or (old and new)


@settings(max_examples=100)
@given(path=st.lists(WORDS, min_size=1, max_size=6), old=SCALARS, new=SCALARS)
def test_a_field_of_a_policy_that_nobody_listed_is_power(path: list[str], old: Any, new: Any) -> None:
    """Whatever the language gets next is power until somebody puts it on the list."""
    steps = ("somethingNew", *path)
    listed = any(table.matches(entry.path, steps) for entry in table.policy())
    tier = table.tier_of(table.policy(), Leaf(steps, old, new, {}, {}))
    assert listed or tier == POWER
    assert tier != ROUTINE or listed


def test_every_entry_is_of_use() -> None:
    """Each names a bound that there is and a tier that there is, and no earlier entry hides a later one."""
    for entries in (table.policy(), *(table.of_kind(kind) for kind in table.LISTED)):
        for at, entry in enumerate(entries):
            assert {bound for bound, _ in entry.bounds} <= set(BOUNDS)
            assert {entry.tier, *(tier for _, tier in entry.bounds)} <= set(range(len(TIERS)))
            concrete = tuple("x" if step == "*" else step for step in entry.path if step != "**")
            if "**" not in entry.path:
                assert not any(table.matches(other.path, concrete) for other in entries[:at]), entry.path
    listed = (*table.policy(), *(entry for kind in table.LISTED for entry in table.of_kind(kind)))
    assert {bound for entry in listed for bound, _ in entry.bounds} == set(BOUNDS)


@pytest.mark.parametrize("bound", BOUNDS)
@given(old=VALUES, new=VALUES)
@settings(max_examples=20)
def test_a_bound_survives_every_value(bound: str, old: Any, new: Any) -> None:
    """What can't be compared is out of bounds, and no traceback."""
    assert BOUNDS[bound](Leaf(("a", "b", "c", "d", "e", "f"), old, new, {}, {})) in {True, False}


@pytest.mark.parametrize(
    ("bound", "old", "new", "within"),
    [
        ("fewer", 4, 2, True),
        ("fewer", 4, 5, False),
        ("fewer", 4, 0, False),
        ("fewer", 0, 5, True),
        ("fewer", "25%", "10%", True),
        ("fewer", "25%", 1, False),
        ("longer", 300, 600, True),
        ("longer", 300, 0, True),
        ("longer", 0, 600, False),
        ("longer", 600, 300, False),
        ("version", "1.0", "latest", False),
        ("version", "1.0", "1.1", True),
        ("version", "1.0", "sha256:" + "a" * 64, False),
        ("same_repository", "a.example.com/b:1", "a.example.com/b:2", True),
        ("same_repository", "a.example.com/b:1", "a.example.com/b", False),
        ("same_repository", "a.example.com/b:1", "a.example.com/b:nightly", False),
        ("same_repository", "a.example.com/b:1", "c.example.com/b:2", False),
        ("pace", "30s", "15s", True),
        ("pace", "30s", "24h", False),
        ("pace", "30s", "9999m", False),
        ("forward", "v1.20.0", "v1.16.1", False),
        ("forward", "v0.20.0", "v0.20.1", True),
        ("forward", "4.6.0-4.8.3-distroless", "4.6.0-4.8.2-distroless", False),
        ("forward", "4.6.0-4.8.3-distroless", "4.6.1-4.8.4-distroless", True),
        ("forward", "v1.2.0", "custom", False),
        ("image_forward", "a.example.com:5000/b:1.1", "a.example.com:5000/b:1.0", False),
        ("image_forward", "a.example.com:5000/b:1.1", "a.example.com:5000/b:1.10", True),
        ("pulled", "IfNotPresent", "Never", False),
        ("reconciled", "1m", "1h0m0s", True),
        ("reconciled", "1m", "8760h", False),
        ("evaluated", None, "1s", False),
        ("settled", 0, 2000000000, False),
        ("some", 2, 0, False),
        ("some", 2, 10, True),
        ("some", 2, 11, False),
        ("some", 20, 80, True),
        ("some", 50, 101, False),
        ("grace", 60, 0, False),
        ("grace", None, 15, True),
        ("own_series", None, "up", False),
        ("own_series", None, "cluster:cpu:sum", False),
        ("own_series", None, "cluster:gpu_util:avg", False),
        ("own_series", None, "lab:util:avg", True),
        ("own_series", None, "gpu:busy:avg", True),
        ("folder", None, "GPU Fleet/Nodes", True),
        ("folder", None, "/etc", False),
        ("folder", None, "a/..", False),
        ("folder", "a", None, True),
        ("bounded_query", None, 'avg(a{b="c"}) / on (d) {__name__=~"DCGM_FI_(DEV|PROF)_.*", b="c"}', True),
        ("bounded_query", None, '{"gpu.util", job="a"}', True),
        ("bounded_query", None, '{job="a"}', True),
        ("bounded_query", None, '{job=~".*"}', False),
        ("bounded_query", None, '{__name__=~"DCGM_.*|.+"}', False),
        ("bounded_query", None, '{__name__=~"(abc)?.*"}', False),
        ("bounded_query", None, '{__name__!="a"}', False),
        ("bounded_query", None, 'a unless {job!="b"}', False),
        ("left_on", True, None, False),
        ("left_on", False, True, True),
        ("left_on", None, False, True),
        ("held", False, None, False),
        ("held", True, False, True),
        ("nothing_less", ["12", "0b40"], ["12"], False),
        ("nothing_less", None, ["12"], True),
    ],
)
def test_bounds(bound: str, old: Any, new: Any, within: bool) -> None:
    """What is within, and what is not."""
    assert BOUNDS[bound](Leaf(("x",), old, new, {}, {})) is within


@pytest.mark.parametrize(
    ("how", "what", "old", "new", "within"),
    [
        ("limits", "memory", None, "4Mi", False),
        ("limits", "memory", None, "512Mi", True),
        ("limits", "memory", "20Gi", "200Mi", False),
        ("limits", "memory", "64Mi", "48Mi", True),
        ("limits", "memory", "64Mi", None, False),
        ("requests", "cpu", None, 5000, False),
        ("requests", "cpu", None, "100m", True),
        ("requests", "cpu", "8", "32", True),
        ("requests", "cpu", "8", "33", False),
        ("requests", "memory", "128Mi", "256Mi", True),
        ("limits", "nvidia.com/gpu", None, 1, False),
    ],
)
def test_amounts(how: str, what: str, old: Any, new: Any, within: bool) -> None:
    """A pod that starts and fits on a node: near what was, or above what programs need and nodes have."""
    assert BOUNDS["amount"](Leaf(("devicePlugin", "resources", how, what), old, new, {}, {})) is within


@pytest.mark.parametrize(
    ("bound", "old", "new", "within"),
    [
        ("sharing", "version: v1", "version: v1\nsharing: {mps: {resources: []}}", True),
        ("sharing", None, "version: v1\nflags: {migStrategy: none}", True),
        ("sharing", None, "version: v1\nflags: {nvidiaDriverRoot: /x}", False),
        ("sharing", None, "- no map", False),
        ("sharing", None, "a: [", False),
        ("mig_layouts", None, "version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false}]}", True),
        ("mig_layouts", None, "version: v1\nhooks: {a: b}", False),
        ("vgpu_layouts", None, "version: v1\nvgpu-configs: {a: [{devices: all}]}", True),
        ("vgpu_layouts", None, "version: v1\nelse: 1", False),
        ("metrics", None, "DCGM_FI_DEV_GPU_UTIL, gauge, Busy.\n", True),
        ("metrics", None, "anything else", False),
    ],
)
def test_texts(bound: str, old: Any, new: Any, within: bool) -> None:
    """A text is judged by what is in it: how GPUs are shared and cut, which metrics there are, and nothing else."""
    assert BOUNDS[bound](Leaf(("a", "config", "data", "x"), old, new, {}, {})) is within


AT = ("carried", "a", "texts", "containers.nvidia-operator-validator.args.0", "text")
OPERATORS = "echo all validations are successful; while true; do sleep 86400; done"


@pytest.mark.parametrize(
    ("path", "new", "tier"),
    [
        (AT, OPERATORS, PLANNED),
        (AT, f"{OPERATORS};", POWER),
        (AT, None, PLANNED),
        ((*AT[:3], "containers.nvidia-driver-ctr.args.0", "text"), OPERATORS, POWER),
        (("carried", "a", "called"), "other", OUTAGE),
    ],
)
def test_what_is_carried(path: tuple[str, ...], new: str | None, tier: int) -> None:
    """A text is root shell unless it is NVIDIA's, at its place; another name is another DaemonSet."""
    assert table.tier_of(table.policy(), Leaf(path, "old", new, {}, {})) == tier


def test_tiers_have_names() -> None:
    """A number, or its name; nothing else."""
    assert [number_of(tier.name) for tier in TIERS] == [number_of(str(number)) for number in range(len(TIERS))]
    for word in ("danger", "6", "-1", "", "²"):
        with pytest.raises(ValueError, match="is not a tier"):
            number_of(word)
