"""The invariants about pods: which ones may be removed, how, and how often."""

from __future__ import annotations

from collections.abc import Iterator

from . import moment as m
from .invariants import Check
from .moment import Document, Moment

OWN = {"nvidia-driver-daemonset", "nvidia-mig-manager"}


def _node(now: Moment) -> Document:
    return now.world.node(now.before["spec"]["nodeName"])


def _seen(now: Moment) -> Document:
    """The operation as the pass saw it: somebody may have taken the record away since, or another leader have ended the
    operation while this one's request was under way."""
    name = now.before["spec"]["nodeName"]
    found = next((each for each in now.known.nodes if each.name == name), None) if now.known else None
    text = found.annotations.get(m.OP) if found else None
    return m.parsed(text) if text else {}


def _app(now: Moment) -> str:
    return m.labels(now.before).get("app", "")


EMPTIED = {"Evicting", "Acting", "Verifying"}
"""Phases in which a pod that uses a GPU has no business on the node."""


def i6_driver_pods(now: Moment) -> Iterator[str]:
    """Pods of the driver are deleted in Acting alone."""
    phases = {m.operation(_node(now)).get("phase"), _seen(now).get("phase")}
    if _app(now) == "nvidia-driver-daemonset" and "Acting" not in phases:
        yield f"a driver pod was removed in {phases}"


def i8_how(now: Moment) -> Iterator[str]:
    """Pods go by eviction; those of the driver and of the MIG manager are deleted, and those that the policy names, or
    whose budgets it lets be ignored, while their node is emptied."""
    if now.request is None:
        return
    if now.request.verb == "delete" and _app(now) not in OWN and not _may_delete(now):
        yield f"{now.name} was deleted and not evicted"
    if not now.request.body:
        yield f"{now.name} was removed without saying which pod of that name"


def _may_delete(now: Moment) -> bool:
    """Whether the policy, as the pass saw it, lets the pod of a workload be deleted."""
    found = next((each for each in (_seen(now), m.operation(_node(now))) if each.get("phase") in EMPTIED), {})
    policy = now.seen_policy(found.get("policy", ""))
    if policy is None or m.labels(now.before).get("uses-gpu") != "true":
        return False
    upgrade = policy.spec.upgrade
    named = any(each.then == "delete" and each.podSelector == f"app={_app(now)}" for each in upgrade.podRules or ())
    return named or (upgrade.ignoreBudgetsAfter is not None and found["finish"].get("ignoreBudgets", False))


def i9_which(now: Moment) -> Iterator[str]:
    """Pods that use no GPU are left alone, unless a drain names them."""
    if now.request is None or now.request.subresource != "eviction":
        return
    records, seen = (m.operation(_node(now)), _seen(now)), m.labels(now.before)
    if now.before["metadata"]["namespace"] == "gpu-operator":
        if _app(now) != "nvidia-operator-validator":
            yield f"{now.name} of the stack was evicted"
        return
    found = next((each for each in records if each.get("phase") in EMPTIED), None)
    if found is None:
        yield f"{now.name} was evicted in {[each.get('phase') for each in records]}"
        return
    if seen.get("uses-gpu") != "true":
        drains = (
            found.get("phase") == "Evicting"
            and found.get("step") == "drain"
            and seen.get("nvidia.com/gpu-driver-upgrade-drain.skip") != "true"
        )
        if not drains:
            yield f"{now.name} uses no GPU"


POD_CHECKS: tuple[Check, ...] = (i6_driver_pods, i8_how, i9_which)
"""Checks of our writes on pods."""
