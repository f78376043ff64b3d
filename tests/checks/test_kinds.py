"""The table of mistakes: each kind from B01 to B60 is found by a rule, prevented by how things are rendered, or left to
the reconciler.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from gpustack.checks.errors import RAISED
from gpustack.checks.rule import all_rules, rules_over
from gpustack.checks.subjects import Written
from gpustack.compiler.cache import Store, own_digest
from gpustack.model import GpustackError
from tests.checks.kinds import Row
from tests.checks.snippets import findings, loaded

TESTS = Path(__file__).parents[1]
KINDS = [f"B{number:02}" for number in range(1, 61)]
MODULES = sorted(path.stem for path in (Path(__file__).parent / "kinds").glob("[a-z]*.py"))
ROWS: list[Row] = [row for name in MODULES for row in import_module(f"tests.checks.kinds.{name}").ROWS]

RENDERED = {
    "B06": "components/plugin/test_device_plugin.py::test_cdi",
    "B09": "components/test_namespace.py::test_runtime_classes",
    "B10": "components/nfd/test_nfd.py::test_stages",
    "B11": "compiler/test_validate.py::test_unknown_fields_are_found_anywhere",
    "B12": "text/test_emit.py::test_what_yaml_cannot_hold_is_refused_with_its_place",
    "B14": "policy/test_layers.py::test_lists_of_named_items_merge_by_name",
    "B16": "components/parts/test_hygiene.py::test_defaults_of_the_crd_are_written_out",
    "B17": "components/parts/test_hygiene.py::test_large_objects_are_applied_by_the_server",
    "B18": "components/parts/test_hygiene.py::test_quantities_are_as_the_api_server_writes_them",
    "B19": "components/parts/test_hygiene.py::test_no_component_has_hooks",
    "B21": "components/parts/test_hygiene.py::test_flux_leaves_dollars_alone",
    "B22": "components/test_namespace.py::test_quota",
    "B23": "components/test_namespace.py::test_pod_security",
    "B25": "components/nfd/test_nfd.py::test_tolerations",
    "B28": "components/nfd/test_nfd.py::test_every_field_has_an_effect",
    "B34": "components/plugin/test_device_plugin.py::test_changed_configuration_rolls_the_pods",
    "B59": "compiler/test_kubeconform.py::test_answers_are_counted",
    "B60": "text/test_emit_readers.py::test_python_reads_every_trap_as_the_string_it_is",
}
"""Kinds that the render prevents, and the test that proves it."""

LEFT = {
    "B40": "whether a MIG change hangs shows on the node: only a program in the cluster can give up and restore labels",
    "B51": "what state a driver upgrade is stuck in, and whether a restart is one, only shows in the cluster",
}
"""Kinds that the reconciler handles, and why nobody else can."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all renders."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


@cache
def told(snippet: str, store: Store) -> frozenset[str]:
    """The ids of everything that is said about a policy with SNIPPET, reading it included."""
    try:
        policy = loaded(snippet)
    except GpustackError as error:
        return frozenset(finding.rule for finding in error.findings)
    written = Written(policy.spec, policy.merged)
    origins = {finding.rule for rule in rules_over("origins") for finding in rule.findings(written)}
    return frozenset(origins | {finding.rule for finding in findings(snippet, store)})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.rule}")
def test_the_mistake_is_found_and_its_neighbour_is_not(row: Row, store: Store) -> None:
    """The input trips the rule; what differs from it only in the mistake does not."""
    assert row.rule in told(row.bad, store)
    assert row.rule not in told(row.good, store)


def test_rows_name_rules() -> None:
    """Each row is about a kind that there is, and a rule or an id that something raises."""
    known = {rule.id for rule in all_rules()} | RAISED.keys()
    assert {row.kind for row in ROWS} <= set(KINDS)
    assert {row.rule for row in ROWS} <= known


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_accounted_for(kind: str) -> None:
    """Found, prevented or left: no kind is none of these, and what is left to others is not claimed as found."""
    found, prevented, left = any(row.kind == kind for row in ROWS), kind in RENDERED, kind in LEFT
    assert found or prevented or left
    assert not (left and (found or prevented))


@pytest.mark.parametrize("place", RENDERED.values())
def test_proofs_exist(place: str) -> None:
    """The test that proves a kind to be prevented is there."""
    file, _, name = place.partition("::")
    assert re.search(rf"^def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)
