"""A remedy, applied, passes: what a finding tells people to do takes the finding away, and brings no error."""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from gpustack.checks.pages import page
from gpustack.checks.rule import Rule, all_rules, rules_over, texts
from gpustack.checks.subjects import Written
from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.stack import RefusedError, compile_stack
from gpustack.model import Finding, GpustackError
from gpustack.policy.loading.load import load, spec_key
from tests.checks.edits import Document, Edit, both, changed, drop, put, replace
from tests.checks.edits import Path as Steps
from tests.checks.frame import framed
from tests.checks.remedies import UNKNOWN_KEY, Reading, readings, steps
from tests.checks.snippets import EVERY
from tests.checks.test_kinds import ROWS
from tests.checks.test_real_mistakes import MISTAKES

BESIDE = yaml.safe_load(Path(__file__).with_name("remedies.yaml").read_text(encoding="utf-8"))
BY_HAND, OPEN = BESIDE["by_hand"], {name: why for why, names in BESIDE["open"].items() for name in names.split()}
TRIALS = sorted((Path(__file__).parent / "trials").glob("*.yaml"))
NO_SCHEMA = "GPU902"
TODAY = datetime.date(2026, 11, 28)

CASES = {
    **{f"{row.kind}-{row.rule}-{number}": row.bad for number, row in enumerate(ROWS)},
    **{f"{number:02}-{each['what']}": each["policy"] for number, each in enumerate(MISTAKES)},
}


def wording(page: Mapping[str, Any], case: Mapping[str, Any]) -> re.Pattern[str]:
    """What findings of CASE of PAGE say, whatever their words are."""
    text = "\n".join(str({**page, **case}.get(part, "$any")).strip() for part in ("what", "remedy"))
    return re.compile(re.sub(r"\\\$(?:\\\{)?\w+(?:\\\})?", ".*", re.escape(text)), re.DOTALL)


OWN = {
    f"{rule.id}.{name}": (rule, wording(said, case))
    for rule in all_rules()
    for said in [texts(rule.check, rule.id)]
    for name, case in said.get("cases", {}).items()
    if "remedy" in case
}
"""The cases of pages that have a remedy of their own."""
UNSEEN = {name for names in BESIDE["unseen"].values() for name in names.split()}


def bad(name: str) -> str:
    """The policy that has the case NAME, or the bad snippet of the rule."""
    (rule,) = [rule for rule in all_rules() if rule.id == name.partition(".")[0]]
    return json.dumps(BESIDE["cases"][name]) if name in BESIDE["cases"] else page(rule).bad


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all renders."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def document(snippet: str) -> Document:
    """A policy that says what SNIPPET says."""
    head = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "ClusterPolicy", "metadata": {"name": "example"}}
    return {**head, "spec": framed(yaml.safe_load(snippet))}


def trial(path: Path) -> Document:
    """The policy at PATH, or one that has the manifests there."""
    found = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    return found[0] if found[0]["kind"] == "ClusterPolicy" else document(json.dumps({"extraObjects": found}))


def judged(policy: Document, store: Store) -> tuple[list[Finding], dict[str, Any]]:
    """Everything that is said about POLICY, reading it included, and its effective spec."""
    return _judged(json.dumps(policy), store)


@functools.cache
def _judged(text: str, store: Store) -> tuple[list[Finding], dict[str, Any]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            found = load(path, root=path.parent)
        except GpustackError as error:
            return list(error.findings), json.loads(text)["spec"]
    written = Written(found.spec, found.merged)
    origins = [finding for rule in rules_over("origins") for finding in rule.findings(written)]
    try:
        rest = compile_stack(found.spec, spec_key(found.merged), store, EVERY).findings
    except RefusedError as error:
        rest = (*error.findings, *error.beside)
    return [*origins, *rest], found.merged.spec


def place(path: str, policy: Document, effective: dict[str, Any]) -> Steps:
    """Where in POLICY stands what a finding calls PATH in the EFFECTIVE spec, whose lists may have more named items."""
    made: Steps = []
    ours: Any = policy
    all_of: Any = {"spec": effective}
    for step in steps(path):
        here = step
        if isinstance(ours, str):
            break  # a configuration in one text, which is known by keys
        if isinstance(step, int) and isinstance(all_of, list) and step < len(all_of) and "name" in all_of[step]:
            same = [index for index, each in enumerate(ours or []) if each.get("name") == all_of[step]["name"]]
            here = same[0] if same else step
        all_of, ours = below(all_of, step), below(ours, here)
        made.append(here)
    return made


def below(holder: Any, step: str | int) -> Any:
    """What HOLDER has at STEP; None for nothing."""
    if isinstance(holder, dict):
        return holder.get(step)
    return holder[step] if isinstance(holder, list) and isinstance(step, int) and step < len(holder) else None


def in_force(findings: Sequence[Finding], day: datetime.date) -> list[Finding]:
    """Those of FINDINGS that count on DAY."""
    return [
        each
        for each in findings
        if (each.since is None or each.since <= day) and (each.until is None or day < each.until)
    ]


def unmet(policy: Document, store: Store, rule: str = "") -> Iterator[tuple[Finding, Reading, str]]:
    """Remedies that don't work on POLICY, of RULE or of all: the finding, the remedy as it is read, what is wrong."""
    every, effective = judged(policy, store)
    for finding in every:
        day = finding.since if rule and finding.since else TODAY
        if (rule and finding.rule != rule) or finding not in in_force([finding], day):
            continue
        for reading in readings(finding, place(finding.path, policy, effective)):
            if wrong := after(policy, finding, reading.edits, in_force(every, day), store, day):
                yield finding, reading, wrong


def after(
    policy: Document,
    finding: Finding,
    edits: Sequence[Edit],
    before: Sequence[Finding],
    store: Store,
    day: datetime.date,
) -> str:
    """What is wrong with POLICY once EDITS have been done for FINDING's sake; "" where all is well."""
    found = in_force(judged(changed(policy, edits), store)[0], day)
    known = {each.rule for each in before if each.severity == "error"}
    for each in found:
        if each.severity == "error" and each.rule not in known:
            return f"brings {each.rule} at {each.path}: {each.what}"
    same = [each for each in found if each.rule == finding.rule and (each.rule != UNKNOWN_KEY or each == finding)]
    if len(same) >= sum(each.rule == finding.rule for each in before):
        return f"{finding.rule} stays: {same[0].what}"
    return ""


def told(found: Iterator[tuple[Finding, Reading, str]]) -> list[str]:
    """What is wrong, in lines."""
    return [f"{finding.rule} {finding.path}: {reading.words!r} {wrong}" for finding, reading, wrong in found]


@pytest.mark.usefixtures("as_of_v26_7")
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_the_remedy_of_a_page(rule: Rule, store: Store) -> None:
    """Every edit that the remedy names, done to the bad snippet, takes the finding away and brings no error."""
    assert told(unmet(document(page(rule).bad), store, rule.id)) == []


@pytest.mark.usefixtures("as_of_v26_7")
@pytest.mark.parametrize("case", CASES)
def test_the_remedies_of_a_mistake(case: str, store: Store) -> None:
    """The same for all that is said about the mistakes that people make (tests/checks/kinds, real_mistakes.yaml)."""
    assert told(unmet(document(CASES[case]), store)) == []


@pytest.mark.usefixtures("as_of_v26_7")
@pytest.mark.parametrize("path", TRIALS, ids=lambda path: path.stem)
def test_the_remedies_of_a_trial(path: Path, store: Store) -> None:
    """And about whole policies and manifests after public reports (tests/checks/trials)."""
    assert told(unmet(trial(path), store)) == []


@pytest.mark.usefixtures("as_of_v26_7")
@pytest.mark.parametrize("name", [name for name in OWN if name not in UNSEEN])
def test_the_remedy_of_a_case(name: str, store: Store) -> None:
    """And of each case of a page that has a remedy of its own: the page shows one, remedies.yaml the others."""
    rule, words = OWN[name]
    policy = document(bad(name))
    every, _ = judged(policy, store)
    assert [each for each in every if each.rule == rule.id and words.fullmatch(f"{each.what}\n{each.remedy}")]
    assert told(unmet(policy, store, rule.id)) == []


@pytest.mark.usefixtures("as_of_v26_7")
@pytest.mark.parametrize("name", BY_HAND)
def test_an_edit_by_hand(name: str, store: Store) -> None:
    """What remedies.yaml makes of a remedy that it quotes."""
    entry, policy = BY_HAND[name], document(bad(name))
    every, _ = judged(policy, store)
    here = [each for each in every if each.rule == name.partition(".")[0] and entry["says"] in each.remedy]
    (finding,) = here
    edits = both(
        *(put(steps(path), value) for path, value in entry.get("put", {}).items()),
        *(drop(steps(path)) for path in entry.get("drop", [])),
        *(replace(steps(path), *texts) for path, texts in entry.get("replace", {}).items()),
    )
    day = finding.since or TODAY
    assert after(policy, finding, [edits], in_force(every, day), store, day) == ""


@pytest.mark.usefixtures("as_of_v26_7")
def test_every_remedy_is_read(store: Store) -> None:
    """Each rule's remedy is read as an edit, or done by hand, or remedies.yaml says why it can't be; and none twice."""
    unread = set()
    for rule in all_rules():
        policy = document(page(rule).bad)
        every, effective = judged(policy, store)
        for finding in (each for each in every if each.rule == rule.id):
            if not any(readings(finding, place(finding.path, policy, effective))):
                unread.add(rule.id)
    assert unread - BY_HAND.keys() == OPEN.keys()
    assert not BY_HAND.keys() & OPEN.keys()


@pytest.mark.usefixtures("as_of_v26_7")
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_a_good_snippet_renders(rule: Rule, store: Store) -> None:
    """Good is good: whoever takes it over gets no error. Kinds of others, which tenants bring, need their schema."""
    every, _ = judged(document(page(rule).good), store)
    theirs = {NO_SCHEMA} if rule.over == "manifest" else set()
    errors = [each for each in every if each.severity == "error" and each.rule not in theirs]
    assert [f"{each.rule} {each.path}: {each.what}" for each in errors] == []
