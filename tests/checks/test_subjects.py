"""What rules look at, and what becomes of their hits: origins, single objects, whole renders, days."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpustack.checks import rule as registry
from gpustack.checks.rule import Hit, Over, Rule
from gpustack.checks.subjects import Render, Written
from gpustack.compiler import fleet, lint, sources, stack
from gpustack.compiler.cache import Store
from gpustack.compiler.judge import GroupedFinding
from gpustack.model import Finding, FindingsError, Resource
from gpustack.policy.loading.load import load
from tests.components.common import spec
from tests.project import SMALL, Project

DAY = datetime.date(2027, 3, 31)
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "labels": {"a": "b"}}}


@pytest.fixture
def mine(tmp_path: Path) -> Project:
    """A project whose cache no other test sees: the rules here are made up."""
    return Project(tmp_path / "project", tmp_path / "cache")


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> list[Rule]:
    """All the rules that there are."""
    found: list[Rule] = []

    def over(subject: Over) -> tuple[Rule, ...]:
        return tuple(rule for rule in found if rule.over == subject)

    monkeypatch.setattr(registry, "rules_over", over)
    for room in (stack, sources):
        monkeypatch.setattr(room, "rules_over", over)
    return found


def settings(project: Project, today: datetime.date | None = DAY) -> fleet.Project:
    """PROJECT as the compiler knows it."""
    return fleet.Project(project.folder, project.dist, Store(project.cache, "s" * 64), 1, today)


def linted(project: Project, today: datetime.date | None = DAY) -> list[GroupedFinding]:
    """What lint finds in PROJECT."""
    paths = sorted((project.folder / "policies").glob("*.yaml"))
    return list(lint.lint(settings(project, today), paths).findings)


def hit(path: str, what: str = "what", **more: Any) -> Hit:
    """A hit."""
    return Hit(path, what, "why", "remedy", **more)


def test_origins(tmp_path: Path) -> None:
    """A rule sees who wrote a value: release, platform, layer or the cluster's own policy, or nobody."""
    project = Project(tmp_path, tmp_path)
    project.layer("base", daemonsets={"labels": {"a": "b"}})
    cluster = {"kubernetesVersion": "1.34", "platform": "eks-al2023"}
    pools = [{"name": "training", "os": "amzn2023"}]
    file = project.policy("x", extends=["base"], cluster=cluster, nodePools=pools, toolkit={})
    found = load(file, root=tmp_path)
    written = Written(found.spec, found.merged)
    for path, by in (
        ("spec.driver.enabled", "policy"),
        ("nodePools[0].os", "policy"),
        ("spec.daemonsets.labels.a", "layer"),
        ("spec.toolkit.enabled", "platform"),
        ("spec.driver.version", "release"),
        ("spec.driver.nonsense", None),
    ):
        assert (written.by(path), written.by_user(path)) == (by, by in {"policy", "layer"}), path


def test_rules_over_origins(mine: Project, rules: list[Rule]) -> None:
    """They run once for each policy that changed, and are remembered with the policy: a layer may say in one cluster
    what the other says itself."""
    ran: list[str | None] = []

    def check(written: Written) -> Iterator[Hit]:
        ran.append(written.by("spec.daemonsets.labels.x"))
        if written.by("spec.daemonsets.labels.x") == "policy":
            yield hit("spec.daemonsets.labels.x", "said by the policy")

    rules.append(Rule("GPU899", "warning", check, "origins"))
    mine.layer("base", daemonsets={"labels": {"x": "1"}})
    mine.policy("a", extends=["base"])
    mine.policy("b", daemonsets={"labels": {"x": "1"}})
    for _ in range(2):
        (found,) = linted(mine)
        assert (found.clusters, found.finding.what) == (("b",), "said by the policy")
        assert str(found.finding.location).startswith("policies/b.yaml:")
    assert sorted(map(str, ran)) == ["layer", "policy"]


def test_rules_over_objects(mine: Project, rules: list[Rule]) -> None:
    """They run when a component is synthesised. A place in an object of the policy is a place in the policy, anything
    else is shown at the section that rendered it."""
    ran: list[str] = []

    def check(resource: Resource) -> Iterator[Hit]:
        ran.append(resource.name)
        if resource.name in {"mine", "nvidia-operator-validator"} and resource.kind in {"ConfigMap", "DaemonSet"}:
            yield hit("metadata.labels.a", f"{resource.kind}/{resource.name}")

    rules.append(Rule("GPU899", "warning", check, "object"))
    other = {**CONFIG_MAP, "metadata": {"name": "other"}}
    mine.policy("a", extraObjects=[other, CONFIG_MAP])
    mine.policy("b", extraObjects=[CONFIG_MAP])
    paths = {(item.finding.what, item.finding.path): item for item in linted(mine)}
    assert set(paths) == {
        ("ConfigMap/mine", "spec.extraObjects[1].metadata.labels.a"),
        ("ConfigMap/mine", "spec.extraObjects[0].metadata.labels.a"),
        ("DaemonSet/nvidia-operator-validator", "spec.validator"),
    }
    own = paths["ConfigMap/mine", "spec.extraObjects[1].metadata.labels.a"]
    assert own.clusters == ("a",)
    assert own.finding.location is not None
    assert (own.finding.location.file, (own.finding.location.text or "").strip()) == ("policies/a.yaml", "a: b")
    assert ran.count("mine") == 2, "once for each set of objects"
    before = len(ran)
    assert len(linted(mine)) == 3
    assert len(ran) == before


def test_rules_over_renders(mine: Project, rules: list[Rule]) -> None:
    """They see the spec and all objects of all components, also of those that were rendered long ago."""
    seen: list[tuple[int, set[str]]] = []

    def check(render: Render) -> Iterator[Hit]:
        assert render.minor == "1.34"
        names = {resource.name for resource, _ in render.pods}
        seen.append((len(render.resources), names))
        yield hit("spec.daemonsets", f"{len(render.spec.extraObjects)} objects")

    rules.append(Rule("GPU899", "warning", check, "render"))
    mine.policy("a")
    assert [item.finding.what for item in linted(mine)] == ["0 objects"]
    mine.policy("b", extraObjects=[CONFIG_MAP])
    assert {item.finding.what for item in linted(mine)} == {"0 objects", "1 objects"}
    (count, names), (more, same) = seen
    assert more == count + 1
    assert names == same == {"nvidia-operator-validator"}


@pytest.mark.parametrize(("today", "severities"), [(DAY, ["error"]), (DAY - datetime.timedelta(days=1), ["warning"])])
def test_days(mine: Project, rules: list[Rule], today: datetime.date, severities: list[str]) -> None:
    """A rule says from which day on a hit counts, and up to which. What is rendered, and kept, is the same on all
    days: the next day's lint compiles nothing and says something else."""

    def soon(_: object) -> Iterator[Hit]:
        yield hit("spec.release", "it ends soon", until=DAY)

    def over(_: object) -> Iterator[Hit]:
        yield hit("spec.release", "it has ended", since=DAY)

    rules += [Rule("GPU898", "warning", soon), Rule("GPU899", "error", over)]
    mine.policy("a")
    stacks = lint.lint(settings(mine), [mine.folder / "policies/a.yaml"]).stacks
    again = lint.lint(settings(mine, today), [mine.folder / "policies/a.yaml"])
    assert (stacks, again.stacks) == (1, 0)
    assert [item.finding.severity for item in again.findings] == severities
    assert linted(mine, None) == []


def test_an_error_of_a_day_stops_the_render_of_that_day(mine: Project, rules: list[Rule]) -> None:
    """The day before, the same policy renders, with the same bytes as ever."""

    def over(_: object) -> Iterator[Hit]:
        yield hit("spec.release", "it has ended", since=DAY)

    rules.append(Rule("GPU899", "error", over))
    paths = [mine.policy("a")]
    with pytest.raises(FindingsError, match="it has ended"):
        fleet.render(settings(mine), paths)
    assert not mine.dist.exists()
    fleet.render(settings(mine, DAY - datetime.timedelta(days=1)), paths)
    tree = mine.tree()
    fleet.render(settings(mine, None), paths)
    assert mine.tree() == tree


def test_tolerated_for_one_is_not_for_another(mine: Project, rules: list[Rule]) -> None:
    """A stack that was compiled for a cluster with a waiver is refused for a cluster without, whoever comes first."""

    def check(_: object) -> Iterator[Hit]:
        yield hit("spec.release")

    rules.append(Rule("GPU899", "error", check))
    wanted, store = spec(**SMALL), Store(mine.cache, "s" * 64)
    for _ in range(2):
        with pytest.raises(stack.RefusedError, match="what"):
            stack.compile_stack(wanted, "k" * 64, store)
        found = stack.compile_stack(wanted, "k" * 64, store, {"GPU899"})
        assert [finding.rule for finding in found.findings] == ["GPU899"]


def test_findings_survive_the_store() -> None:
    """What is kept with a stack comes back as it was."""
    plain = Finding("GPU899", "note", "what", path="spec.x", why="why", remedy="remedy")
    dated = Finding("GPU899", "note", "what", path="spec.x", inside=(3, 1), since=DAY)
    for finding in (plain, dated, Finding("GPU899", "error", "x", until=DAY)):
        assert stack.finding_of(stack.plain(finding)) == finding


def test_notes_are_for_lint(mine: Project, rules: list[Rule]) -> None:
    """A render passes them on without looking for their places; lint shows where they are."""

    def check(_: object) -> Iterator[Hit]:
        yield hit("spec.release")

    rules.append(Rule("GPU899", "note", check))
    path = mine.policy("a", **SMALL)
    (found,) = linted(mine)
    assert str(found.finding.location) == "policies/a.yaml:6:12"
    (rendered,) = fleet.render(settings(mine), [path]).findings
    assert rendered.finding.location is None
