"""Fixtures: one control plane with the rendered stack for all tests of the reconciler's program.

What reconciler.md asks for (6.6: T, 6.8: A), and where it is shown. Files are of this folder; those of tests/reconciler
are named with it, and show what a real API server can't be made to do, or not in seconds.

    T1   wire: second_writer_loses
    T2   wire: evictions, evictions_that_nobody_can_judge
    T3   revisions: sibling_with_a_like_name, syncs_in_any_order (back to an older template)
    T4   policies: driver_that_covers_no_node (selector); newcomers: opt_outs (label); obstacles: outage_of_node_...
    T5   wire: replaced_pod_is_not_deleted
    T6   wire: too_old; replicas: lost_answers_and_broken_watches, outage_of_the_api_server. Duplicate and late events,
         which no server sends when asked: reconciler/test_watch
    T7   replicas: killed_at_every_phase. After every single write, which are hundreds of runs: reconciler/test_sweep
    T8   replicas: late_admission_of_a_stalled_leader
    T9   obstacles: each_node_waits_for_its_own_reason (relaxed); waits: what_an_operation_waits_for (never relaxed)
    T10  obstacles: each_node_waits_for_its_own_reason (before), others_interfere (uncordoned meanwhile); budgets
    T11  obstacles: both (before, Evicting); failures: nodes_fall_away_in_the_middle (Acting, Verifying)
    T12  failures: failed_drivers (in an operation); waits: what_nobody_works_on (outside of any)
    T13  failures: failed_drivers (never ready); newcomers: opt_outs (missing, opted out)
    T14  failures: mig (fresh, failed, without effect), reboot_for_a_layout; waits: what_an_operation_waits_for
         (pending)
    T15  obstacles: outage_of_node_feature_discovery; newcomers: gpu_that_is_gone. Part of the nodes, or another format
         of the labels, is the same to each node
    T16  waits: what_nobody_works_on (paused); obstacles: others_interfere; newcomers: nodes_that_are_leaving (taint)
    T17  budgets: budgets. Edges of percentages: reconciler/test_budget
    T18  budgets: windows. More zones and changes of clocks: reconciler/test_windows
    T19  load: requests_and_memory. 1,000 nodes take most of an hour: tests/bench/reconciler_soak
    T20  rights: missing_right_stops_the_program; all others run with the rendered rights
    T21  rollout: driver_rollout (applied again); fields: no_field_has_two_writers. That a prune is blocked is the
         engines' part: tests/gitops
    T22  no condition of a Node is written, but a status of NodePolicies; Events: reconciler/test_telling
    T23  uninstall: uninstall_in_every_phase. From anywhere: reconciler/test_model, test_uninstall

    A1   replicas: late_admission_of_a_stalled_leader
    A2   policies: nodes_of_several_policies_and_of_none, policy_that_vanishes
    A3   policies: nodes_of_several_policies_and_of_none (the rule). Pools that become one: tests/components
    A4   newcomers: new_nodes; failures: mig (no GPU before its layout)
    A5   waits: what_an_operation_waits_for. Doubling up to 6 h: reconciler/test_rollouts
    A6   takeover: in_the_middle_of_its_upgrade
    A7   policies, takeover (conditions). What Argo CD and Flux make of them: tests/control_plane/test_engines
    A8   revisions: syncs_in_any_order
    A9   obstacles: each_node_waits_for_its_own_reason (counted); load: requests_and_memory (series)
    A10  budgets: budgets. Held nodes that are down: reconciler/test_budget
    A11  wire: evictions_that_nobody_can_judge (the server); reconciler/test_perform (read before it is evicted)
    A12  obstacles: each_node_waits_for_its_own_reason (taint); newcomers: nodes_that_are_leaving
    A13  newcomers: nodes_that_are_leaving; failures: nodes_fall_away_in_the_middle
    A14  policies: driver_that_covers_no_node, nodes_of_several_policies_and_of_none (the lines that would cover it)
    A15  policies: pauses_outlive_a_sync; waits: both (a layout by hand)
    A16  policies: records_of_another_version
    A17  budgets: windows
    A18  rights: lease_goes_first
    A19  rights: only_its_own_fields_of_a_node
    A20  revisions: revert_in_the_middle
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.cluster import ControlPlane
from tests.control_plane.conftest import running
from tests.control_plane.reconciler.proxy import Proxy
from tests.control_plane.reconciler.stack import NEW_DRIVER, Stack, render
from tests.control_plane.reconciler.witness import Witness


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster as it is at first."""
    return render(tmp_path_factory.mktemp("rendered") / "old")


@pytest.fixture(scope="session")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster with a newer driver."""
    return render(tmp_path_factory.mktemp("rendered") / "new", NEW_DRIVER)


@pytest.fixture(scope="session")
def reconciled(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """The control plane of these tests."""
    with ControlPlane(tmp_path_factory.mktemp("reconciled"), emulated=emulated) as plane:
        yield plane


@pytest.fixture
def stack(reconciled: ControlPlane, rendered: Path, tmp_path: Path) -> Iterator[Stack]:
    """The rendered stack, no node and no program; tidied up afterwards."""
    with running(gpu_kubelets(reconciled.admin)) as kubelets:
        made = Stack(reconciled, kubelets, tmp_path)
        reconciled.folder = tmp_path  # logs of programs
        made.apply(rendered)
        yield made
        made.tidy()


@pytest.fixture
def witness(stack: Stack) -> Iterator[Witness]:
    """Sees every change of every node, and whether a limit was broken at any moment."""
    made = Witness(stack.api)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def proxy(stack: Stack) -> Iterator[Proxy]:
    """Between a program and the API server."""
    made = Proxy(stack.api)
    made.start()
    yield made
    made.stop()
