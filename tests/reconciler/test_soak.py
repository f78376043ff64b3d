"""The time between one node of a rollout and the next: who waits for it, and what it outlasts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpustack.api.node_policy import NodePolicy, Soak, Spec, Status, Upgrade
from gpustack.api.objects import Metadata, Node
from gpustack.reconciler.core.admission import Candidate
from gpustack.reconciler.core.due import Due
from gpustack.reconciler.core.engine import outlook
from gpustack.reconciler.core.queue import soaking
from gpustack.reconciler.core.record import Act, Operation, Phase, Target, write
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.core.soak import soaks
from gpustack.reconciler.core.view import views

NOW = datetime(2026, 1, 5, tzinfo=UTC)
LABELS = {"pool": "a", "feature.node.kubernetes.io/pci-10de.present": "true"}
HOUR = Soak(until=NOW + timedelta(hours=1), after="n0")


def known(seconds: int | None, soak: Soak | None = HOUR, phase: Phase | None = None) -> Snapshot:
    """A node whose policy says that nodes soak for so many SECONDS, and of which SOAK is written; with PHASE an
    operation is open on it."""
    notes = {}
    if phase:
        made = Operation(id="op", acts=["driver"], phase=phase, policy="p", since=NOW, started=NOW)
        notes["gpustack.dev/op"] = write(made)
    node = Node(metadata=Metadata(name="n1", uid="n1", labels=LABELS, annotations=notes))
    spec = Spec(nodeSelector={"pool": "a"}, upgrade=Upgrade(soakSeconds=seconds))
    policy = NodePolicy(metadata=Metadata(name="a", uid="p"), spec=spec, status=Status(soak=soak))
    return Snapshot(NOW, "gpu-operator", (node,), (policy,))


@pytest.mark.parametrize(
    ("acts", "phase", "waits"),
    [
        (("driver",), None, True),
        (("mig",), None, True),
        (("driver", "mig"), None, True),
        (("install",), None, False),
        (("repair",), None, False),
        (("driver",), "Quarantine", False),
    ],
)
def test_who_waits(acts: tuple[Act, ...], phase: Phase | None, waits: bool) -> None:
    """Whoever would begin to be rolled; no new node, nobody to be repaired and no further attempt."""
    seen = known(3600, phase=phase)
    candidate = Candidate(views(seen)[0], seen.policies[0], Due(acts, Target(revision="2")))
    text = soaking({"p": HOUR}, candidate)
    assert bool(text) == waits
    assert not waits or text.startswith("n0 was done")
    assert not soaking({"other": HOUR}, candidate)


@pytest.mark.parametrize(
    ("seconds", "soak", "minutes"),
    [(3600, HOUR, 60), (600, HOUR, 10), (7200, HOUR, 60), (None, HOUR, None), (3600, None, None)],
)
def test_the_policy_may_say_less_by_now(seconds: int | None, soak: Soak | None, minutes: int | None) -> None:
    """What is written holds, unless the policy has become shorter; a longer one is for the next node."""
    _, made = soaks(known(seconds, soak), (), ())
    assert {uid: each.until for uid, each in made.items()} == (
        {} if minutes is None else {"p": NOW + timedelta(minutes=minutes)}
    )


def test_what_is_over_is_written_no_more() -> None:
    """From its last second on."""
    assert soaks(replace(known(3600), now=HOUR.until), (), ())[1] == {}


def test_it_outlasts_an_operator() -> None:
    """While an operator runs nothing is written on nodes, and what was promised before stays."""
    for foreign in ("", "gpu-operator/gpu-operator"):
        assert outlook(replace(known(3600), foreign=foreign)).statuses["p"].soak == HOUR
