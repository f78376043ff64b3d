"""A comparison in each format: what is never cut, and what values can't do."""

from __future__ import annotations

import html.parser
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.cli.formats import diff as formats
from gpustack.cli.formats.diff import Compared, head, markdown, verdict
from gpustack.review.diff.groups import Difference, Group
from gpustack.review.diff.objects import Identity, ObjectChange
from gpustack.review.impact.effects import Effect, Impact
from gpustack.review.impact.rule import RULES, all_rules
from gpustack.review.impact.tiers import RED
from tests.project import Project

all_rules()
TEXTS = st.text(max_size=60)
LONG = st.builds(str.__mul__, st.sampled_from(["@", "#b", "&", "<", "字", "😀", "x."]), st.integers(1, 250))
EVIL = "<script>alert(1)</script>`]|[x](http://evil.example) **b** @team #12 \x1b[31m\x07\u202e&amp;\n# heading\n```\n"


@st.composite
def effects(draw: st.DrawFn) -> list[Effect]:
    """Effects of any rules, up to thousands of them in all."""
    rules = draw(st.lists(st.sampled_from(sorted(RULES)), unique=True))
    number = draw(st.sampled_from([1, 2, 30, 200]))
    where, what = draw(TEXTS), draw(TEXTS)
    names = draw(st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=40, unique=True))
    made = []
    for rule in rules:
        made += [
            Effect(rule, RULES[rule].tiers[0], f"{where}{at}", what, "do", tuple(names), (at, at + 1))
            for at in range(number)
        ]
    return sorted(made, key=lambda effect: (effect.tier, effect.rule))


def compared(made: list[Effect], groups: int, text: str = "x", unknown: tuple[str, ...] = ()) -> Compared:
    """A comparison with the effects MADE and a number of groups, and without numbers for clusters UNKNOWN."""
    changes = [
        Group((f"c{at}", text), (ObjectChange("removed", Identity("", text, "", f"o{at}"), body={"data": {text: ""}}),))
        for at in range(groups)
    ]
    return Compared(Difference("a", "b", 3000, tuple(changes)), Impact(tuple(made), unknown=unknown or (text,)))


@settings(max_examples=25, deadline=None)
@given(
    made=effects(),
    budget=st.integers(markdown.SMALLEST, 70_000),
    groups=st.sampled_from([0, 1, 500]),
    text=st.one_of(st.text(min_size=1, max_size=300), st.text("@#&<字😀\n`", min_size=1, max_size=300)),
    unknown=st.lists(LONG, max_size=8, unique=True),
)
def test_markdown_keeps_the_budget_and_every_danger(
    made: list[Effect], budget: int, groups: int, text: str, unknown: list[str]
) -> None:
    """However much there is to say, the body is within its budget in bytes, what it comes to and each rule with a
    danger are in it, and nothing that is cut leaves a tag or an entity torn.
    """
    found = compared(made, groups, text, tuple(unknown))
    body = markdown.write(found, budget=budget)
    assert len(body.encode()) <= budget
    assert body.startswith(f"### gpustack: {head(found)}\n")
    assert not groups or f"\n{verdict(found)}\n" in body
    assert all(f"**{effect.rule} ({effect.tier} " in body for effect in made if effect.tier <= RED)
    prose = body.partition("<details>")[0]
    assert re.sub(r"<code>[^<]*</code>", "", prose).count("<") == 0
    assert re.sub(r"&#[0-9]+;", "", prose).count("&") == 0
    assert body.count("\n<details>") == body.count("\n</details>")


def test_all_rules_at_once_fit_into_the_smallest_budget() -> None:
    """Every danger that there is, thousands of times, in 1,000 clusters with names as long as names may be."""
    names = tuple(f"{'字' * 240}-{at * 2}" for at in range(1000))
    made = [
        Effect(rule.id, min(rule.tiers), f"{at}", "y" * 300, "do", names)
        for rule in all_rules()
        if min(rule.tiers) <= RED
        for at in range(50)
    ]
    body = markdown.write(compared(made, 1000, unknown=names), budget=markdown.SMALLEST)
    assert len(body.encode()) <= markdown.SMALLEST
    assert all(f"**{rule.id} (" in body for rule in all_rules() if min(rule.tiers) <= RED)


def test_nobody_hides_one_danger_behind_a_thousand_others() -> None:
    """Where not all dangers fit, each rule has its turn, and in it what is unlike the rest first: so a binding stands
    in the comment among 900 new objects, and the one object of another kind, and all of the budget is used.
    """
    made = [Effect("IMP401", 1, "ClusterRoleBinding all", "new: everybody", "refuse it", ("c1",))]
    made += [
        Effect("IMP901", 1, f"Job gpu-operator/job-{at}", f"it is new: {'x' * 90}", "", ("c1",)) for at in range(900)
    ]
    made.insert(600, Effect("IMP901", 1, "CronJob gpu-operator/job-z", f"it is new: {'x' * 90}", "", ("c1",)))
    body = markdown.write(compared(made, 900), budget=65_000)
    assert "ClusterRoleBinding all" in body
    assert "CronJob gpu-operator/job-z" in body
    assert "901 times" in body
    assert "Not all of these fit here" in body
    assert 64_000 < len(body.encode()) <= 65_000


def test_what_is_cut_is_counted() -> None:
    """Changes that don't fit are left out from the end, whole, and the last line says how many there are."""
    body = markdown.write(compared([], 900), budget=markdown.SMALLEST)
    shown = body.count("<details>")
    assert body.count("</details>") == shown
    assert 0 < shown < 900
    assert body.endswith(f"\n{900 - shown} of 900 changes are not shown here: the whole is in `gpustack diff`.\n")


def test_what_fits_is_not_folded() -> None:
    """A danger has its reason, what to do, and where, as long as there is room."""
    body = markdown.write(
        compared([Effect("IMP402", 1, "Role x", "new: get secrets", "refuse it", ("c1",))], 1), budget=65_000
    )
    for part in ("IMP402", "Role x", "new: get secrets", "refuse it", "c1", RULES["IMP402"].page.why[:20]):
        assert part in body


@pytest.mark.parametrize("how", ["text", "markdown", "html", "unified"])
def test_effects_are_counted_by_tier_as_they_are_told(how: str) -> None:
    """A heading for each rule: so many are counted, and the places below them apart."""
    made = [Effect("IMP201", 3, f"DaemonSet {name}", "its pods restart", "", ("c1",)) for name in "abc"]
    made.insert(0, Effect("IMP402", 1, "Role x", "new: get secrets", "refuse it", ("c1",)))
    text = formats.written(compared(made, 1), how, budget=65_000, colours=False)
    assert "tier 1 power: 1 finding; tier 3 planned: 1 finding in 3 places" in text
    if how == "text":
        assert [len(re.findall(f"^tier {tier} .*: ", text, re.MULTILINE)) for tier in (1, 3)] == [2, 1]  # and a verdict


def test_our_own_code_spans_are_code_spans() -> None:
    """What a remedy calls code is code in the comment as well; a backtick of a policy's value is none."""
    made = [Effect("IMP303", 2, "pool `x", "was `a` <b>", "run `gpustack mig show` ` and <i>", ("c1",))]
    body = markdown.write(compared(made, 1), budget=65_000)
    assert "Do: run `gpustack mig show` &#96; and &#60;i>" in body
    assert "was &#96;a&#96; &#60;b>" in body
    assert "&#96;gpustack" not in body


class Tags(html.parser.HTMLParser):
    """Collects tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.found += [f"{tag} {name}" for name, _ in attrs if name.startswith("on")]


def tags(text: str) -> list[str]:
    """The tags of a page."""
    parser = Tags()
    parser.feed(text)
    return parser.found


@pytest.mark.parametrize("how", ["text", "markdown", "html", "json", "unified"])
def test_values_are_text_and_nothing_else(how: str) -> None:
    """Whatever values hold: no control character, no tag, no heading or fence of theirs, no mention."""
    body = {"kind": "Secret", "data": {EVIL: "x"}, "image": EVIL}
    change = ObjectChange("added", Identity("", "Thing", EVIL, EVIL), body=body, file=EVIL)
    made = [Effect("IMP402", 1, EVIL, EVIL, EVIL, (EVIL,)), Effect("IMP204", 3, EVIL, EVIL, EVIL, (EVIL,))]
    found = Compared(Difference(EVIL, EVIL, 2, (Group((EVIL,), (change,)),)), Impact(tuple(made), unknown=(EVIL,)))
    text = formats.written(found, how, budget=65_000, colours=False)
    assert not {c for c in text if ord(c) < 32} - {"\n"}
    if how == "json":
        assert json.loads(text)["impact"][0]["what"] == EVIL
        return
    assert "\u202e" not in text
    if how == "html":
        assert tags(text).count("script") == 1
        assert not any(" on" in tag for tag in tags(text))
    if how == "markdown":
        lines = outside(text)
        assert not [line for line in lines if "<script" in line or "](" in line or "**b**" in line or "http://" in line]
        assert not [line for line in lines if line.startswith(("# ", "```\n"))]
        assert "@team" not in re.sub(r"<code>.*?</code>", "", "\n".join(lines))  # code mentions nobody


def outside(text: str) -> list[str]:
    """The lines of Markdown that are in no fence. Fails where a fence isn't closed by its own."""
    found, fence = [], ""
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line.removesuffix("diff")
        else:
            found.append(line)
    assert not fence
    return found


def test_json_is_versioned() -> None:
    """Programs find what it does with its tier, whether it is routine, and the groups."""
    text = formats.written(
        compared([Effect("IMP402", 1, "a", "b", "c", ("d",), (1, 2))], 1), "json", budget=1, colours=False
    )
    found = json.loads(text)
    assert (found["version"], found["routine"]) == (2, False)
    (effect,) = found["impact"]
    assert (effect["rule"], effect["tier"], effect["tierName"]) == ("IMP402", 1, "power")
    assert effect["nodes"] == {"min": 1, "max": 2}
    assert len(found["groups"]) == 1


def on_terminal(project: Project, **env: str) -> str:
    """What `gpustack diff` prints on a terminal."""
    controller, terminal = pty.openpty()
    environment = {key: value for key, value in project.environment().items() if key != "NO_COLOR"}
    words = [sys.executable, "-m", "gpustack", "diff", "old", "new"]
    with subprocess.Popen(
        words,
        cwd=project.folder,
        env={**environment, "TERM": "xterm", **env},
        stdout=terminal,
        stdin=subprocess.DEVNULL,
    ) as program:
        os.close(terminal)
        text = b"".join(chunks(controller))
        program.wait(timeout=60)
    return text.decode()


def chunks(controller: int) -> Iterator[bytes]:
    """What comes from a terminal until its program ends."""
    with os.fdopen(controller, "rb", buffering=0) as stream:
        while True:
            try:
                data = stream.read(4096)
            except OSError:  # how Linux says that the other end is closed
                return
            if not data:
                return
            yield data


def test_colours_on_a_terminal(project: Project) -> None:
    """A terminal gets colours; with NO_COLOR, or one that can't, it gets none."""
    for side, image in (("old", "a:1"), ("new", "a:2")):
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"image": image}}
        project.write(f"{side}/one/base/a.yaml", yaml.safe_dump(body))
    assert "\x1b[32m    + a:2\x1b[0m" in on_terminal(project)
    assert "\x1b" not in on_terminal(project, NO_COLOR="1")
    assert "\x1b" not in on_terminal(project, TERM="dumb")
