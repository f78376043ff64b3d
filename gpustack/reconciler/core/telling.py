"""What an operation is at, in plain words: an Event on the node for each phase, for whoever is woken at night by it.

Solves: a node that is cordoned says neither by whom nor why, until when, nor what to do about it.
"""

from __future__ import annotations

from datetime import datetime

from ...api import keys
from .actions import PatchNode, Tell
from .record import Operation, readable
from .view import View


def phase(view: View, patch: PatchNode) -> Tell | None:
    """What PATCH means for the node; None where it begins no phase, or one that has an Event of its own."""
    operation = readable(Operation, patch.annotations.get(keys.OPERATION))
    before = view.operation
    if operation is None or (before and (before.id, before.phase, before.step) == _where(operation)):
        return None
    words = _words(view.name, operation)
    return Tell(view.name, f"Operation{operation.phase}", words) if words else None


def _where(operation: Operation) -> tuple[str, str, str]:
    return operation.id, operation.phase, operation.step


def _words(node: str, operation: Operation) -> str:
    what = f"{operation.kind} ({operation.target})"
    back = f"to have it back: kubectl label node {node} {keys.HOLD}=true"
    if operation.acted:
        back = "it has failed before, and stays cordoned until it works"
    until = _until(operation.deadline)
    if operation.phase == "Held":
        waits = f"; waits for pods of {operation.finish.wait.podSelector}" if operation.finish.wait.podSelector else ""
        until = until or ", for an hour at the latest"
        return f"cordoned for {what}, attempt {operation.attempt}{waits}{until}; {back}"
    if operation.phase == "Evicting":
        how = "drained" if operation.step == "drain" else "emptied of pods that use its GPUs"
        return f"{how} for {what}{until}; {back}"
    if operation.phase == "Acting":
        cordoned = "stays cordoned" if operation.cordon else "is set up"
        return f"{operation.step or operation.kind} is under way{until}; the node {cordoned}, and there is no way back"
    if operation.phase == "Verifying":
        return f"{what} is done; whether the node works is looked at{until}, and then it is given back"
    return ""


def _until(deadline: datetime | None) -> str:
    return f", until {deadline:%Y-%m-%dT%H:%MZ} at the latest" if deadline else ""
