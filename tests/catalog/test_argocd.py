"""How Argo CD tells the health of a NodePolicy (reconciler.md A7)."""

from __future__ import annotations

from typing import Any

import lupa  # type: ignore[import-untyped] # it brings no types
import pytest

from gpustack.catalog import texts

READY = {"type": "Ready", "status": "True", "reason": "Accepted"}


def health(status: dict[str, Any] | None, annotations: dict[str, str] | None = None) -> tuple[str, str]:
    """What the script says about a NodePolicy of generation 2."""
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)
    metadata = {"generation": 2, **({"annotations": annotations} if annotations else {})}
    given = {"metadata": metadata, **({} if status is None else {"status": status})}
    lua.globals().obj = lua.table_from(given, recursive=True)
    answer = lua.execute(texts.argocd_health())
    return answer["status"], answer["message"]


def status(*conditions: dict[str, Any], generation: int = 2) -> dict[str, Any]:
    """A status with CONDITIONS."""
    return {"observedGeneration": generation, "conditions": list(conditions)}


def rolled(reason: str, done: str = "False", message: str = "3 of 4") -> dict[str, Any]:
    """The condition that says how far a roll-out is."""
    return {"type": "RolledOut", "status": done, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (None, "Progressing"),
        ({"observedGeneration": 2}, "Progressing"),
        (status(READY, generation=1), "Progressing"),
        (status({**READY, "status": "False"}, {"type": "Stalled", "status": "True", "message": "overlap"}), "Degraded"),
        (status(READY, {"type": "Stalled", "status": "False"}, rolled("Done", "True")), "Healthy"),
        (status(READY, rolled("Waiting")), "Healthy"),
        (status(READY, rolled("RollingOut")), "Healthy"),
        (status(READY, rolled("WindowClosed")), "Suspended"),
        (status(READY, rolled("Paused")), "Suspended"),
        (status(READY, rolled("BreakerOpen")), "Degraded"),
        (status(READY), "Healthy"),
    ],
)
def test_health(found: dict[str, Any] | None, wanted: str) -> None:
    """A policy that nobody has seen is progressing, one that can't be carried out or has failed degraded, one that
    somebody holds back suspended; waiting is healthy, or the cluster would never be."""
    assert health(found)[0] == wanted


def test_messages() -> None:
    """People read why: the condition's message, or the reason of a pause."""
    assert health(status(READY, rolled("Waiting")))[1] == "3 of 4"
    assert health(status(READY, rolled("Waiting")), {"gpustack.dev/paused": "audit"}) == ("Suspended", "Paused: audit")
    assert health(None)[1]
