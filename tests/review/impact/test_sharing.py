"""Pods that trusted to be alone on a GPU and aren't any more: told as that, by whatever route it comes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpustack.review.impact.tiers import OUTAGE, PLANNED, POWER
from tests.review.impact.requests import Request, Values, judge, laid, request
from tests.review.impact.test_requests import NEW_POOL, extra, pool, thing

PLAIN = "version: v1\n"


def sliced(kind: str = "timeSlicing", replicas: int = 4, name: str = "nvidia.com/gpu", **more: Any) -> str:
    """A text of the device plugin that shares a resource."""
    said = {"version": "v1", "sharing": {kind: {**more, "resources": [{"name": name, "replicas": replicas}]}}}
    return yaml.safe_dump(said)


def config(default: str = "plain", **texts: str) -> Values:
    """Texts of the device plugin, and which of them is the default."""
    return {"devicePlugin": {"config": {"name": "plugin", "data": texts, "default": default}}}


def brought(default: str = "plain", **texts: str) -> Values:
    """The same in a ConfigMap that the policy brings along."""
    return {
        **extra(thing("v1", "ConfigMap", "plugin", data=texts)),
        "devicePlugin": {"config": {"name": "plugin", "create": False, "default": default}},
    }


def notebooks(refused: bool | None) -> Values:
    """A pool's sharing that says whether a container that asks for several shares is REFUSED."""
    said = {} if refused is None else {"failRequestsGreaterThanOne": refused}
    return pool("notebooks", sharing={"timeSlicing": {"replicas": 4, **said}})


ONE: dict[str, Any] = {"failRequestsGreaterThanOne": True}
NEWER = {"release": "v26.7.0"}
BOTH = {"plain": PLAIN, "shared": sliced()}
CLOSER = {
    "the default's text": request("train-dgx", config(plain=sliced()), config(plain=PLAIN)),
    "the default's text, by MPS": request("train-dgx", config(plain=sliced("mps")), config(plain=PLAIN)),
    "another default": request("train-dgx", config("shared", **BOTH), config("plain", **BOTH)),
    "a default where there was none": request("train-dgx", config("shared", **BOTH)),
    "a text that nobody is known to choose": request(
        "train-dgx", config(plain=PLAIN, other=sliced()), config(plain=PLAIN, other=PLAIN)
    ),
    "an object's text": request("train-dgx", brought(plain=sliced()), brought(plain=PLAIN)),
    "another default of an object": request("train-dgx", brought("shared", **BOTH), brought("plain", **BOTH)),
    "a default that nobody knows": request("train-dgx", config("gone", **BOTH), config("plain", **BOTH)),
    "one more resource": request(
        "train-dgx",
        config(plain=sliced()),
        config(plain=sliced(name="nvidia.com/mig-1g.10gb")),
    ),
    "time slicing instead of MPS": request("train-dgx", config(plain=sliced()), config(plain=sliced("mps"))),
    "the plain name again, by a text": request(
        "train-dgx", config(plain=sliced()), config(plain=sliced(renameByDefault=True))
    ),
    "several shares for one, by a text": request("train-dgx", config(plain=sliced()), config(plain=sliced(**ONE))),
    "several shares for one, by MPS": request(
        "train-dgx",
        {**config(plain=sliced("mps", failRequestsGreaterThanOne=False)), **NEWER},
        {**config(plain=sliced("mps")), **NEWER},
    ),
    "several shares for one, by a pool": request("lab-a100", notebooks(False), notebooks(True)),
    "several shares for one, by a pool that says nothing": request("lab-a100", notebooks(None), notebooks(True)),
    "several shares for one, by a text that nobody is known to choose": request(
        "train-dgx", config(plain=PLAIN, other=sliced()), config(plain=PLAIN, other=sliced(**ONE))
    ),
    "the plain name again, by a pool": request(
        "lab-a100",
        pool("training", sharing={"timeSlicing": {"replicas": 4, "renameByDefault": False}}),
        pool("training", sharing={"timeSlicing": {"replicas": 4, "renameByDefault": True}}),
    ),
}


@pytest.mark.parametrize("name", CLOSER)
def test_pods_come_closer(name: str) -> None:
    """Whatever says it, IMP304 tells it or the field does, and it is power."""
    found, _ = judge(CLOSER[name])
    assert found.tier == POWER
    told = {effect.rule for effect in found.red if effect.tier == POWER}
    assert told & {"IMP304", "IMP905"}
    if not name.endswith("a text that nobody is known to choose"):
        assert "IMP304" in told


def test_nodes_are_the_same_by_their_labels() -> None:
    """A pool of another name with the same nodes, parts of them, or all nodes where there was no pool."""
    dev: dict[str, Any] = {"nodeSelector": {"example.com/pool": "dev"}, **NEW_POOL}
    shared = {"sharing": {"timeSlicing": {"replicas": 4}}}
    for other in (
        {**dev, **shared, "name": "two"},
        {**dev, **shared, "name": "two", "nodeSelector": {**dev["nodeSelector"], "rack": "a"}},
    ):
        found = judged_pools([{**dev, "name": "one"}], [other])
        assert ("IMP304", POWER) in found
    assert ("IMP304", POWER) in judged_pools([], [{**dev, **shared, "name": "two"}])
    assert ("IMP304", POWER) not in judged_pools(
        [{**dev, "name": "one"}],
        [{**dev, "name": "one"}, {**dev, **shared, "name": "two", "nodeSelector": {"example.com/pool": "b"}}],
    )


@pytest.mark.parametrize("runs", [True, False])
def test_nodes_of_a_pool_may_be_of_a_new_one(runs: bool) -> None:
    """A new pool whose labels exclude no node of another is an outage for those, and power where it shares their GPUs.
    One with another value of a label that both have isn't, nor one that says the same where nothing freezes nodes.
    """
    image = (
        {"reconciler": {"image": "registry.example.com/gpu/gpustack-reconciler:1"}} if runs else {"reconciler": None}
    )
    one: dict[str, Any] = {**NEW_POOL, "name": "one", "nodeSelector": {"example.com/pool": "dev"}}
    everything: dict[str, Any] = {**NEW_POOL, "name": "all", "nodeSelector": {"kubernetes.io/arch": "amd64"}}
    apart = {**everything, "nodeSelector": {"example.com/pool": "other"}}
    shared = {"sharing": {"timeSlicing": {"replicas": 8}}}
    cut = {"sharing": {"mig": {"layout": {"1g.10gb": 7}}}}

    def told(new: Values, *, order: int = 1) -> set[tuple[str, int]]:
        return judged_pools([one], [one, new][::order], **image)

    for order in (1, -1):
        assert {("IMP305", OUTAGE), ("IMP304", POWER)} <= told({**everything, **shared}, order=order)
        assert ("IMP305", OUTAGE) in told({**everything, **cut}, order=order)
    assert (("IMP305", OUTAGE) in told(everything)) == runs
    assert not {("IMP305", OUTAGE), ("IMP304", POWER)} & told({**apart, **shared})


def judged_pools(before: list[Values], after: list[Values], **more: Any) -> set[tuple[str, int]]:
    """What is told where the pools AFTER take the place of those BEFORE."""
    from gpustack.policy.language.spec import ClusterPolicySpec
    from gpustack.review.impact.effects import impact
    from tests.review.impact.requests import loaded

    said = loaded("lab-a100", {}).spec.model_dump(mode="json", exclude_none=True)
    one, two = (ClusterPolicySpec.model_validate({**said, "nodePools": pools, **more}) for pools in (before, after))
    return {(effect.rule, effect.tier) for effect in impact({"c": ()}, {"c": (one, two)}).effects}


@pytest.mark.parametrize(
    ("after", "before", "tier"),
    [
        (config(plain=sliced(replicas=8)), config(plain=sliced()), PLANNED),
        (config(plain=PLAIN), config(plain=sliced()), OUTAGE),
        (config(plain=sliced(renameByDefault=True)), config(plain=sliced()), OUTAGE),
        (config(plain=sliced(**ONE)), config(plain=sliced()), OUTAGE),
        (config(plain=PLAIN), config(plain=sliced(**ONE)), OUTAGE),
        (config(plain=sliced(replicas=8, **ONE)), config(plain=sliced(**ONE)), PLANNED),
        (config(plain=PLAIN, shared=sliced()), config(plain=PLAIN), PLANNED),
    ],
)
def test_what_keeps_pods_apart_is_no_power(after: Values, before: Values, tier: int) -> None:
    """More shares of what is shared are planned; fewer, or under another name, are an outage."""
    found, _ = judge(Request("train-dgx", laid(before, after), before))
    assert found.tier == tier
