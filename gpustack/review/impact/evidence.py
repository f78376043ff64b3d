"""What a finding is about, before and after, as digests: what somebody who accepts it has looked at.

A finding about an object, or several, is about the whole of it, one about a field of the policy about that field, any
other about all that changes in its clusters. So whatever is pushed later to the same place is another finding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from .leaves import text
from .rule import Hit
from .subject import Subject

Pair = tuple[str, str]


def digest(value: Any) -> str:
    """The digest of VALUE, whatever the order of its keys is."""
    return f"sha256:{hashlib.sha256(text(value).encode('utf-8', 'surrogatepass')).hexdigest()}"


def about(subject: Subject, hit: Hit) -> Pair:
    """The digests of what HIT is about, before and after."""
    changes = (*subject.changes, *subject.engine)
    wanted = {*hit.about} or {hit.where}
    meant = [change for change in changes if wanted & {str(change.identity), str(change.was)}]
    if meant:
        return _each([(_there(change.old), _there(change.new)) for change in meant])
    leaves = [step.leaf for step in subject.steps]
    named = [(leaf.old, leaf.new) for leaf in leaves if hit.where == f"spec.{leaf.name}"]
    if named:
        return _each(named)
    whole = [(str(change.identity), change.file, _there(change.old), _there(change.new)) for change in changes]
    before = [[[leaf.path, leaf.old] for leaf in leaves], [[name, file, old] for name, file, old, _ in whole]]
    after = [[[leaf.path, leaf.new] for leaf in leaves], [[name, file, new] for name, file, _, new in whole]]
    return digest(before), digest(after)


def together(pairs: list[Pair]) -> Pair:
    """The digests of one finding in several clusters."""
    distinct = sorted(set(pairs))
    return distinct[0] if len(distinct) == 1 else _each(distinct)


def _there(content: Any) -> Any:
    """An object, or its absence."""
    return content if content is not None else "absent"


def _each(pairs: Sequence[tuple[Any, Any]]) -> Pair:
    return digest([one for one, _ in pairs]), digest([two for _, two in pairs])
