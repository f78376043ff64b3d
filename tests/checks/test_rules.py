"""Every rule is found, has its page, and says what its page says: about the bad snippet, not about the good one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpustack.checks
from gpustack.checks.errors import RAISED
from gpustack.checks.pages import page
from gpustack.checks.rule import RULES, Hit, Rule, all_rules, rule, rule_modules
from gpustack.cluster.resolve import Cluster
from gpustack.compiler.cache import Store, own_digest
from tests.checks.snippets import findings, said

PACKAGE = Path(gpustack.__file__).parent
ID = re.compile(r"\bGPU[0-9]{3}\b")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all snippets: what they share is rendered once."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def of(found: Rule) -> str:
    """What tests call a rule."""
    return found.id


@pytest.mark.parametrize("found", all_rules(), ids=of)
def test_bad_snippet(found: Rule, store: Store) -> None:
    """The bad snippet of a rule's page trips the rule. The finding says what, why and what to do, at a path of the
    policy."""
    for finding in (told := said(found, page(found).bad, store)):
        assert (finding.rule, finding.severity) == (found.id, found.severity)
        assert finding.what
        assert finding.why
        assert finding.remedy
        assert finding.path.partition(".")[0] == "spec"
    assert told


@pytest.mark.usefixtures("as_of_v26_7")  # a good example of GPU411 is one until a further line comes
@pytest.mark.parametrize("found", all_rules(), ids=of)
def test_good_snippet(found: Rule, store: Store) -> None:
    """The good snippet doesn't trip it."""
    assert said(found, page(found).good, store) == []


@pytest.mark.parametrize("found", [rule for rule in all_rules() if rule.severity == "error"], ids=of)
def test_waived_errors(found: Rule, store: Store) -> None:
    """Where everything is waived, what a rule would have stopped is rendered, or refused with a reason: it never ends
    in a traceback."""
    assert found.id in {finding.rule for finding in findings(page(found).bad, store)}


def test_all_modules_are_listed() -> None:
    """A module with rules is found by its pages: one without a data file beside it would have no rule at all."""
    having = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for room in ("checks", "tenants")
        for path in (PACKAGE / room).rglob("*.py")
        if re.search(r"^@rule\(", path.read_text(), re.MULTILINE)
    }
    assert having == set(rule_modules())


def test_a_page_is_lacking() -> None:
    """Whoever adds a rule and forgets its page is told in which file it belongs."""

    def forgetful(cluster: Cluster) -> Iterator[Hit]:
        """A rule without a page."""
        yield from ()

    file = re.escape(str(Path(__file__).with_suffix(".yaml")))
    with pytest.raises(ValueError, match=rf"{file}: the page of GPU199 \(forgetful\) lacks why and bad and good"):
        page(Rule("GPU199", "note", forgetful))


def test_rules_come_in_order() -> None:
    """By id, so that what is said does not depend on the order of imports."""
    ids = [found.id for found in all_rules()]
    assert ids == sorted(ids)


def test_one_meaning_per_id() -> None:
    """An id is either a rule, in the range of rules, or raised somewhere, and never both."""
    rules = {found.id for found in all_rules()}
    assert not rules & RAISED.keys()
    assert all("100" <= name[3:] <= "899" for name in rules)
    assert len(set(RAISED.values())) == len(RAISED)


def test_raised_ids_are_listed() -> None:
    """Each id in the code is a rule or has its line in errors.yaml, and each line there is about an id in the code."""
    used = {
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r'"(GPU[0-9]{3})"', path.read_text(encoding="utf-8"))
    }
    assert used - {found.id for found in all_rules()} == RAISED.keys()


def test_two_rules_of_one_id() -> None:
    """Registering a second function under an id is a defect, and found at once."""
    with pytest.raises(ValueError, match="two rules are called GPU101"):
        rule("GPU101", "note")(lambda spec: iter(()))


def test_a_rule_that_takes_another_thing() -> None:
    """A rule is registered over what it takes: one over objects that takes a cluster is a defect, and found at once."""

    def mistaken(cluster: Cluster) -> Iterator[Hit]:
        """A rule over the wrong thing."""
        yield from ()

    with pytest.raises(TypeError, match="GPU199 looks at a Resource, and mistaken takes a Cluster"):
        rule("GPU199", "note", "object")(mistaken)
    assert "GPU199" not in RULES
