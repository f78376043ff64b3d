"""What adopt did, for people and for programs: what is carried, what isn't and why, and the proof of it."""

from collections.abc import Iterator
from typing import Any

from . import Adopted
from .installation import Note, Sort, shown

HEADINGS: dict[Sort, str] = {
    "open": "To be answered or decided",
    "assumed": "Assumed, as no input says it",
    "changed": "Changes because of the release",
    "dropped": "Left out",
    "sharing": "How GPUs are shared",
}
MOST = 40
"""Lines of a heading."""


def lines(adopted: Adopted) -> Iterator[str]:
    """The report for people."""
    made, counts = adopted.draft, f"{len(adopted.draft.leaves)} values written, {adopted.dropped} are defaults"
    runs = f", {made.source} runs" if made.source and made.source != made.release else ""
    yield f"{adopted.name}: release {made.release}{runs}; {counts}"
    for sort, heading in HEADINGS.items():
        notes = [note for note in adopted.notes if note.sort == sort]
        if notes:
            yield f"{heading}:"
            yield from (told(note) for note in notes[:MOST])
            if len(notes) > MOST:
                yield f"  and {len(notes) - MOST} more"
    other = adopted.proof()
    same = len(adopted.wanted) - len(other)
    yield f"Effective spec: {same} of {len(adopted.wanted)} values that the inputs say are the policy's"
    yield from (f"  {shown(path)}: {was!r} becomes {now!r}" for path, was, now in other)
    if adopted.rolls:
        yield f"DaemonSets that run{', as the API server would write them' if adopted.tried else ''}:"
        for name, fields in sorted(adopted.rolls.items()):
            yield f"  {name}: {fate(fields)}"


def fate(fields: list[str]) -> str:
    """What happens to the pods of a DaemonSet whose template differs by FIELDS."""
    if not fields:
        return "unchanged"
    if fields == [""]:
        return "not rendered: nothing touches it until it is pruned or deleted"
    return f"rolls, because of {', '.join(fields[:6])}{', ...' if len(fields) > 6 else ''}"


def told(note: Note) -> str:
    """NOTE as a line."""
    where = f" ({note.where})" if note.where and note.where.file else ""
    return f"  {note.path}: {note.why}{where}" + (f"; {note.remedy}" if note.remedy else "")


def data(adopted: Adopted) -> dict[str, Any]:
    """The report for programs."""
    notes: dict[str, list[dict[str, Any]]] = {sort: [] for sort in HEADINGS}
    for note in adopted.notes:
        where = note.where if note.where and note.where.file else None
        row = {"path": note.path, "why": note.why, "remedy": note.remedy}
        notes[note.sort].append({**row, "file": where.file if where else None, "line": where.line if where else None})
    return {
        "name": adopted.name,
        "release": adopted.draft.release,
        "runs": adopted.draft.source or None,
        "carried": len(adopted.draft.leaves),
        "defaults": adopted.dropped,
        **notes,
        "effective": {
            "said": len(adopted.wanted),
            "other": [{"path": shown(path), "was": was, "is": now} for path, was, now in adopted.proof()],
        },
        "daemonSets": [
            {"name": name, "rolls": bool(fields), "fields": fields} for name, fields in sorted(adopted.rolls.items())
        ],
        "tried": adopted.tried,
        "policy": adopted.text,
    }
