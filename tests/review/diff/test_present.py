"""Changes as lines: of a list whose items nothing tells apart, the items that go and come are shown, and no others."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.review.diff.fields import FieldChange
from gpustack.review.diff.groups import Group
from gpustack.review.diff.objects import Identity, ObjectChange
from gpustack.review.diff.present import LONG, Line, blocks


def lines(kind: str, field: str, before: list[Any], after: list[Any]) -> list[Line]:
    """What is shown of an object of KIND whose FIELD was BEFORE and is AFTER; less the line that names the field."""
    change = ObjectChange("changed", Identity("", kind, "", "x"), [FieldChange("replace", (field,), before, after)])
    (block,) = blocks(Group(("a",), (change,)))
    assert block.lines[0] == Line("~", field)
    return list(block.lines[1:])


RULES = [{"apiGroups": [""], "resources": [name], "verbs": ["get", "list", "watch"]} for name in "abcdefghijklmnop"]


def test_one_rule_more_is_what_is_shown() -> None:
    """A rule that a ClusterRole gets doesn't hide among the others."""
    more = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}
    found = lines("ClusterRole", "rules", RULES, [*RULES[:9], more, *RULES[9:]])
    assert {line.mark for line in found} == {"+", " "}
    assert any("secrets" in line.text for line in found)
    assert found[-1] == Line(" ", "16 items stay")
    assert len(found) < LONG


def test_one_text_more_is_one_line() -> None:
    """An argument that a list of texts gets, or loses, is a line of its own."""
    words = [f"--flag-{number}" for number in range(19)]
    assert lines("Pod", "args", words, [*words, "--more"]) == [Line("+", "- --more"), Line(" ", "19 items stay")]
    assert lines("Pod", "args", words[:2], words[:1]) == [Line("-", "- --flag-1"), Line(" ", "1 item stays")]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.lists(st.sampled_from("abc"), min_size=1, max_size=8)
)
def test_what_is_shown_makes_the_one_of_the_other(before: list[str], after: list[str]) -> None:
    """As many items come and go as the lists differ by; the order of what comes is that of the list."""
    found = lines("Pod", "args", before, after) if before != after else []
    gone = [line.text for line in found if line.mark == "-"]
    come = [line.text for line in found if line.mark == "+"]
    stay = sum(int(line.text.split()[0]) for line in found if line.mark == " ")
    if before != after:
        assert len(before) - len(gone) == len(after) - len(come) == stay
        assert gone or come
