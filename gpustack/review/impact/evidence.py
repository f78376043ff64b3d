"""What a finding is about, before and after, as digests: what somebody who accepts it has looked at.

A finding about an object, or several, is about the whole of it, one about a field of the policy about that field, any
other about all that changes in its clusters. So whatever is pushed later to the same place is another finding.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ..diff.objects import ObjectChange
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
        return digest([body(change.old) for change in meant]), digest([body(change.new) for change in meant])
    steps = [step.leaf for step in subject.steps if hit.where == f"spec.{step.leaf.name}"]
    if steps:
        return digest([leaf.old for leaf in steps]), digest([leaf.new for leaf in steps])
    leaves = [step.leaf for step in subject.steps]
    before = [[[leaf.path, leaf.old] for leaf in leaves], [_named(change, change.old) for change in changes]]
    after = [[[leaf.path, leaf.new] for leaf in leaves], [_named(change, change.new) for change in changes]]
    return digest(before), digest(after)


def body(content: Any) -> Any:
    """An object, or its absence."""
    return content if content is not None else "absent"


def _named(change: ObjectChange, content: Any) -> Any:
    return [str(change.identity), change.file, body(content)]


def together(pairs: list[Pair]) -> Pair:
    """The digests of one finding in several clusters."""
    distinct = sorted(set(pairs))
    return (
        distinct[0]
        if len(distinct) == 1
        else (digest([one for one, _ in distinct]), digest([two for _, two in distinct]))
    )
