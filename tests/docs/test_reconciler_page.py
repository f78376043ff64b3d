"""docs/reconciler.md names all that the reconciler writes, says and waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

import pytest

from gpustack.api import keys
from gpustack.catalog import alerts
from gpustack.reconciler.core import takeover
from gpustack.reconciler.core.actions import WaitKind
from gpustack.reconciler.core.record import Phase
from gpustack.reconciler.shell.metrics import PREFIX, Metrics
from tests.project import ROOT

PAGE = (ROOT / "docs" / "reconciler.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE))
COMPILERS = set("NVIDIA GPU MPS_CAPABLE FEATURES OS_RELEASE KERNEL ARCH CARRIED INERT ENFORCE SCC COMPONENT".split())
"""The keys that only the compiler has to do with, beginnings of names, and labels of nodes that anybody reads."""
PHASES = ("Queued", *get_args(Phase), "Released")


def rows(section: str) -> dict[str, list[str]]:
    """The rows of the table in SECTION by each of the names in their first cell."""
    made: dict[str, list[str]] = {}
    for line in re.findall(r"^\| (.*) \|$", SECTIONS[section], re.MULTILINE):
        cells = line.split(" | ")
        made |= dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]) or [cells[0]], cells)
    return made


def known_keys() -> Iterator[str]:
    """Every key and value of keys.py that the program knows."""
    for name, value in vars(keys).items():
        if name.isupper() and name not in {"DOMAIN", *COMPILERS}:
            yield from [value] if isinstance(value, str) else value


def test_every_key_is_explained() -> None:
    """Each label, annotation, value and taint, with who writes it and what it means; and none that is gone."""
    table = rows("Labels and annotations")
    assert set(known_keys()) == table.keys() - {"Key", "---"}
    assert all(len(cells) == 3 and all(cells) for cells in table.values())


def test_every_kind_of_waiting_is_explained() -> None:
    """With what to do about it; and none that the code doesn't know."""
    under_way = {phase.lower() for phase in PHASES}  # the table of phases has those
    assert rows("What a node waits for").keys() - {"Reason", "---"} == set(get_args(WaitKind)) - under_way
    text = SECTIONS["What a node waits for"]
    assert all(f"`{phase.lower()}`" in text for phase in get_args(Phase))


def test_every_metric_is_explained() -> None:
    """With its type and labels."""
    table = rows("Metrics")
    metrics = {f"{PREFIX}{each.name}": each for each in vars(Metrics()).values()}
    assert metrics.keys() == table.keys() - {"Metric", "---"}
    for name, each in metrics.items():
        assert table[name][1:3] == [each.kind, ", ".join(each.labels) or "none"], name


def test_every_alert_is_explained() -> None:
    """As they are rendered."""
    names = {f"GPUStack{alert.name}" for alert in alerts.alerts().values() if "reconciler" in alert.needs}
    assert rows("Alerts").keys() - {"Alert", "---"} == names


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_is_explained(phase: str) -> None:
    """In the picture, in the table, and how to get out of it."""
    picture = re.search(r"^```\n(.*?)^```", SECTIONS["Phases"], re.MULTILINE | re.DOTALL)
    assert picture
    assert phase in picture[1]
    assert phase in rows("Phases")
    if phase not in {"Queued", "Released"}:
        assert re.search(rf"^### .*{phase}", PAGE, re.MULTILINE)


def test_the_takeover_is_explained() -> None:
    """Each state of the operator, and the phase that it goes on in."""
    table = rows("Taking over from the operator")
    for state, phase in takeover.PHASES.items():
        assert table[state][1].startswith(phase)
