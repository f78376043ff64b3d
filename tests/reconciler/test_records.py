"""Records on nodes survive other versions, and what can't be read is never guessed at (I21, A16)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gpustack.reconciler.core.record import Last, Memory, Operation, Unreadable, read, write
from gpustack.reconciler.core.selectors import matches, parse

NOW = datetime(2026, 1, 5, tzinfo=UTC)


TIMES = ("since", "started", "acted", "deadline", "notBefore", "restarted")


def operation() -> Operation:
    """A record."""
    return Operation(id="a", acts=["driver", "mig"], phase="Held", since=NOW, started=NOW)


def test_round_trip() -> None:
    """What is written is read."""
    assert read(Operation, write(operation())) == operation()
    assert operation().kind == "driver+mig"


def test_the_format_is_written_though_it_is_the_default() -> None:
    """The next version has another default."""
    assert json.loads(write(operation()))["v"] == 1


def test_unknown_fields_are_kept() -> None:
    """A newer version may have written them (A16)."""
    before = json.dumps({**json.loads(write(operation())), "later": {"x": 1}, "attempt": 9})
    made = json.loads(write(operation(), before))
    assert made["later"] == {"x": 1}
    assert made.get("attempt", 1) == 1, "what this version knows is what it wrote"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        '"x"',
        json.dumps({**json.loads(write(operation())), "v": 2}),
        json.dumps({**json.loads(write(operation())), "v": 0}),
        json.dumps({**json.loads(write(operation())), "phase": "Dancing"}),
        json.dumps({**json.loads(write(operation())), "acts": []}),
        json.dumps({**json.loads(write(operation())), "since": "yesterday"}),
        *(json.dumps({**json.loads(write(operation())), name: "2026-01-05T09:00:00"}) for name in TIMES),
        json.dumps({**json.loads(write(operation())), "acts": ["driver", "driver"]}),
        json.dumps({**json.loads(write(operation())), "annotated": ["example.com/owner"]}),
        json.dumps({**json.loads(write(operation())), "target": {"labels": {"example.com/admin": "true"}}}),
        json.dumps({**json.loads(write(operation())), "target": {"labels": {"node-role.kubernetes.io/x": ""}}}),
        json.dumps({**json.loads(write(operation())), "target": {"deploy": ["driver/../x"]}}),
        json.dumps({**json.loads(write(operation())), "attempt": 10**9}),
        '{"later":' * 10_000,
    ],
)
def test_what_cannot_be_read(text: str) -> None:
    """No object, another format, values that are none; a time without a zone, which can be compared with none; an act
    that would come after itself; an annotation of somebody else's, which would be removed; a label of somebody
    else's, which would be set with our rights; what is nested too deep."""
    with pytest.raises(Unreadable):
        read(Operation, text)


@pytest.mark.parametrize(
    ("of", "text"),
    [(Last, '{"notBefore":"2026-01-05T09:00:00"}'), (Last, '{"later":' * 10_000), (Memory, '{"later":' * 10_000)],
)
def test_other_records_that_cannot_be_read(of: Any, text: str) -> None:
    """The same of how the last operation ended, and of whom the node belongs to."""
    with pytest.raises(Unreadable):
        read(of, text)


def test_nothing_is_nothing() -> None:
    """No annotation is no record."""
    assert read(Operation, None) is None
    assert read(Last, "") is None
    assert read(Memory, "{}") == Memory()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("tier!=db", True),
        ("app in (web, db),!spot", True),
        ("app notin (web)", False),
        ("zone notin (a)", True),
        ("app", True),
        ("!app", False),
        ("app=web,spot", False),
        ("app in web", False),
        ("=web", False),
    ],
)
def test_selectors(text: str, wanted: bool) -> None:
    """As kubectl reads them: `!=` and `notin` hold where the key is absent; what can't be read selects nothing."""
    assert matches(text, {"app": "web"}) is wanted


def test_selectors_that_cannot_be_read() -> None:
    """The compiler refuses them with this text."""
    with pytest.raises(ValueError, match="no requirement"):
        parse("app in web")
