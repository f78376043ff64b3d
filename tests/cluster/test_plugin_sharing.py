"""Everybody who reads a configuration of the device plugin reads the same, and what the plugin does."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.checks.rule import all_rules
from gpustack.cluster.plugin_sharing import pool_sharing, wrong_settings
from gpustack.cluster.resolve import resolve
from gpustack.components.plugin.configs_inputs import resources_of
from gpustack.components.reconciler import node_policies_inputs as node_policies
from gpustack.policy.configurations.plugin_text import read_plugin_config
from gpustack.policy.language.spec import ClusterPolicySpec
from tests.cluster.seen import agreed
from tests.components.common import spec

GPU = "nvidia.com/gpu"
POOL = {"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H200", "gpusPerNode": 2}
TEXT_RULES = {"GPU501", "GPU502", "GPU503", "GPU504"}


class Case(NamedTuple):
    """A text, and what the plugin makes of it (docs/measured.md): the name and number of shares of a node with
    two GPUs, and what GPU feature discovery writes."""

    text: str
    resources: dict[str, int]
    replicas: int
    suffix: str


@functools.cache
def plain(version: str = "v0.19.0") -> ClusterPolicySpec:
    """A policy whose nodes read the configuration `one`, which is still to come."""
    config = {"name": "c", "default": "one", "data": {"one": "version: v1"}}
    plugin = {"version": version, "config": config}
    return spec(nodePools=[POOL], devicePlugin=plugin, mig={"strategy": "single"}, reconciler={})


def reading(text: str, version: str = "v0.19.0") -> ClusterPolicySpec:
    """A policy whose nodes read TEXT."""
    before = plain(version)
    config = before.devicePlugin.config.model_copy(update={"data": {"one": text}})
    return before.model_copy(update={"devicePlugin": before.devicePlugin.model_copy(update={"config": config})})


def any_case(draw: st.DrawFn, word: str) -> str:
    """WORD with each letter in either case."""
    return "".join(draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in word)


@st.composite
def accepted(draw: st.DrawFn) -> Case:
    """A text that the plugin takes, written in one of the ways that mean the same to it."""
    entries = draw(st.lists(st.tuples(st.sampled_from(["gpu", GPU]), st.integers(2, 60)), min_size=1, max_size=3))
    renamed = draw(st.sampled_from(["", "true", "yes", "on", "y", "false", "no", "n", "~"]))
    sharing, kind = any_case(draw, "sharing"), any_case(draw, "timeSlicing")
    form = draw(st.sampled_from(["{}", "{}.0", "+{}", "{}e0", "{}."]))
    lines = [
        draw(st.sampled_from(["version: v1", "version: ''", "# a comment", "VERSION: v1"])),
        f"{sharing}:",
        f"  {kind}:",
    ]
    lines += [f"    renameByDefault: {renamed}"] if renamed else []
    lines += ["    resources:", *(f"    - {{name: {name}, replicas: {form.format(n)}}}" for name, n in entries)]
    shown = f"{GPU}.shared" if renamed in {"true", "yes", "on", "y"} else GPU
    most = max(number for _, number in entries)
    suffix = "" if shown.endswith(".shared") else "-SHARED"
    return Case("\n".join(lines) + "\n", {shown: 2 * most}, entries[0][1], suffix)


@settings(max_examples=150, deadline=None)
@given(accepted())
def test_all_readers_agree(case: Case) -> None:
    """Capacity, the offer, the NodePolicy, who verifies nodes by it, and lint say what the plugin does."""
    found = reading(case.text)
    assert not [rule.id for rule in all_rules() if rule.id in TEXT_RULES and list(rule.findings(found))]
    (pool,), (offered,) = resolve(found).capacity, resolve(found).offer.pools
    assert pool.per_node == offered.resources == case.resources
    inputs = node_policies.from_cluster(resolve(found))
    assert inputs is not None
    (made,) = inputs.policies
    assert made.spec["gpu"]["resources"] == case.resources
    assert agreed(resolve(found).pools[0], made.spec, case.resources)
    assert offered.labels["nvidia.com/gpu.replicas"] == frozenset([str(case.replicas)])
    assert offered.labels["nvidia.com/gpu.product"] == frozenset(["NVIDIA-H200" + case.suffix])
    assert offered.labels["nvidia.com/gpu.sharing-strategy"] == frozenset(["time-slicing"])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["sharing", "timeSlicing", "resources", "renameByDefault", "replicas"]),
    st.sampled_from(["010", '"4"', '"false"', "1", "0", "4.5", "[]", "{}", "", "x", "true", "tRue", "1e30", ".inf"]),
)
def test_no_number_where_lint_refuses(key: str, value: str) -> None:
    """Where a text is refused nobody prints a number, and the reason stands in its place."""
    parts = {"renameByDefault": "true", "replicas": "4", key: value}
    entry = f"[{{name: {GPU}, replicas: {parts['replicas']}}}]"
    block = f"{{renameByDefault: {parts['renameByDefault']}, resources: {parts.get('resources', entry)}}}"
    inner = parts.get("timeSlicing", block)
    text = f"version: v1\nsharing: {parts.get('sharing', '{timeSlicing: ' + inner + '}')}\n"
    found = reading(text)
    refused = [rule.id for rule in all_rules() if rule.id == "GPU502" and list(rule.findings(found))]
    (pool,) = resolve(found).capacity
    assert (pool.per_node == {}) == bool(refused), text
    assert bool(pool.unknown[:1]) == bool(refused) or pool.nodes is None


@given(st.text() | st.text("{}[]:, \n-'\"#&*!timeSlicngrpa0148.", max_size=80))
@settings(max_examples=150, deadline=None)
def test_any_text_is_answered_alike(text: str) -> None:
    """Of any text all readers know the same: either nobody has a number, or all have the same."""
    found = reading(text)
    (pool,), (offered,) = resolve(found).capacity, resolve(found).offer.pools
    assert (dict(pool.per_node) or None) == offered.resources


@pytest.mark.parametrize(
    ("version", "profile", "name"),
    [
        ("v0.19.0", "1g.24gb+me", "nvidia.com/mig-1g.24gb"),
        ("v0.19.0", "1g.24gb-me", "nvidia.com/mig-1g.24gb"),
        ("v0.19.0", "1g.24gb", "nvidia.com/mig-1g.24gb"),
        ("v0.20.0", "1g.24gb+me", "nvidia.com/mig-1g.24gb.me"),
        ("v0.20.0", "1g.24gb-me", "nvidia.com/mig-1g.24gb-me"),
    ],
)
def test_names_of_instances_by_version(version: str, profile: str, name: str) -> None:
    """Before v0.20.0 a pattern fits parts of names, and the plain one comes first: capacity, what is rendered for
    sharing, and the rule about such a text go by the version (plugin-config.yaml)."""
    pool = {**POOL, "gpuProduct": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"}
    cut: dict[str, Any] = {"mig": {"layout": {profile: 1}}, "timeSlicing": {"replicas": 3}}
    sections: dict[str, Any] = {"devicePlugin": {"version": version}, "mig": {"strategy": "mixed"}}
    found = spec(nodePools=[{**pool, "sharing": cut}], **sections)
    assert resources_of(resolve(found).pools[0]) == [name]
    assert [each.per_node for each in resolve(found).capacity] == [{name: 6}]
    text = f"sharing: {{timeSlicing: {{resources: [{{name: {name}, replicas: 3}}]}}}}\n"
    sections["devicePlugin"] |= {"config": {"name": "c", "default": "one", "data": {"one": text}}}
    found = spec(nodePools=[{**pool, "sharing": {"mig": {"layout": {profile: 1}}}}], **sections)
    assert [each.per_node for each in resolve(found).capacity] == [{name: 6}]
    (rule,) = (each for each in all_rules() if each.id == "GPU504")
    assert list(rule.findings(found)) == []


def test_a_name_of_a_later_plugin() -> None:
    """An entry for an instance with media extensions shares nothing with a plugin that counts them as plain ones."""
    text = "sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-1g.24gb.me, replicas: 3}]}}\n"
    config = {"name": "c", "default": "one", "data": {"one": text}}
    for version, expected in (("v0.19.0", ["write nvidia.com/mig-1g.24gb"]), ("v0.20.0", [])):
        plugin = {"version": version, "config": config}
        found = spec(nodePools=[POOL], devicePlugin=plugin, mig={"strategy": "mixed"})
        (rule,) = (each for each in all_rules() if each.id == "GPU504")
        assert [each.remedy for each in rule.findings(found)] == expected


@pytest.mark.parametrize("version", ["v0.17.4", "v0.18.2", "v0.19.0"])
def test_what_only_later_plugins_take(version: str) -> None:
    """An endless sleepInterval came with v0.19.0 (seen on a GPU)."""
    found = read_plugin_config("flags: {gfd: {sleepInterval: infinite}}\n", version)
    assert bool(found.refused) == (version != "v0.19.0")


def test_arguments_win_over_the_environment() -> None:
    """What a policy gives the plugin for arguments counts more than its environment (seen on a GPU)."""
    plugin = {"args": ["--mig-strategy=some"], "env": [{"name": "MIG_STRATEGY", "value": "mixed"}]}
    assert [wrong.value for wrong in wrong_settings(spec(devicePlugin=plugin))] == ["some"]


def test_mps_of_old_plugins() -> None:
    """Before v0.20.0 a second share of MPS is refused whatever the policy says (bug-reports.md B32)."""
    pool = {**POOL, "sharing": {"mps": {"replicas": 2, "failRequestsGreaterThanOne": False}}}
    for version, refuses in (("v0.19.0", True), ("v0.20.0", False)):
        found = spec(nodePools=[pool], devicePlugin={"version": version})
        assert pool_sharing(found, found.nodePools[0]).refuses_more == refuses
