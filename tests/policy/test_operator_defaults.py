"""`defaults: operator`: what an absent field means where no chart wrote the ClusterPolicy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpustack.catalog import fields, releases
from gpustack.cluster.resolve import resolve
from gpustack.components.toolkit.toolkit_inputs import toolkit as from_cluster
from gpustack.model import FindingsError, InputError
from gpustack.policy.help.explain import explain
from gpustack.policy.loading.load import load, load_values
from gpustack.review.impact.effects import impact
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]
FACTS = Path(ROOT, "docs", "facts", "operator.md").read_text(encoding="utf-8")


def spec(defaults: str | None, **more: Any) -> Any:
    """The effective spec of a policy that says little more than whose DEFAULTS it has."""
    facts = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34", "platform": "generic"}}
    return load_values({**facts, **({"defaults": defaults} if defaults else {}), **more})


def switches() -> Iterator[tuple[str, bool, bool]]:
    """The switch of each component, with its default in the operator and in the chart (operator.md 1.3)."""
    table = FACTS.partition("### 1.3")[2].partition("###")[0]
    for row in re.findall(r"^\| \d+ \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", table, re.MULTILINE):
        switch = re.search(r"`(\w+\.enabled)`", row[0])
        own, chart = (cell.strip(" *") for cell in row[1:])
        if switch and {own, chart} <= {"on", "off"}:
            yield switch[1], own == "on", chart == "on"


def value(of: Any, path: str) -> Any:
    for step in path.split("."):
        of = getattr(of, step)
    return of


def test_the_table_of_switches_is_read() -> None:
    """Those that differ are the issue: DCGM, and what serves virtual machines."""
    differ = {switch for switch, own, chart in switches() if own != chart}
    assert {"dcgm.enabled", "vfioManager.enabled", "vgpuDeviceManager.enabled"} <= differ


@pytest.mark.parametrize(("switch", "own", "chart"), [*switches()])
def test_switches(switch: str, own: bool, chart: bool) -> None:
    """By the table of states (operator.md 1.3)."""
    assert bool(value(spec("operator"), switch)) is own
    assert bool(value(spec("chart"), switch)) is bool(value(spec(None), switch)) is chart


def test_defaults_of_the_crd() -> None:
    """What the CRD says of a field is what is taken (its schema, in data/fields), autoUpgrade false among it."""
    found = spec("operator", migManager={"config": {}}).model_dump(exclude_none=True)
    compared = []
    for path, field in fields.fields("ClusterPolicy").items():
        if field.default is not None and "[]" not in path:
            node: Any = found
            for step in path.split("."):
                node = node.get(step) if isinstance(node, dict) else None
            if node is not None:
                assert node == field.default, path
                compared.append(path)
    assert {"driver.upgradePolicy.autoUpgrade", "migManager.config.default", "toolkit.installDir"} <= set(compared)
    assert spec(None).driver.upgradePolicy.autoUpgrade is True  # operator.md 15: the chart writes it


def test_what_neither_the_crd_nor_the_code_sets() -> None:
    """The chart alone writes mig.strategy (operator.md 7.4) and the switch of the ServiceMonitor (1.4); a default
    inside a section counts where the section is there, as the API server fills in defaults."""
    found = spec("operator")
    assert found.mig.strategy is None
    assert not found.dcgmExporter.serviceMonitor.enabled
    assert not found.migManager.config.default
    assert spec("operator", driver={"licensingConfig": {"secretName": "x"}}).driver.licensingConfig.nlsEnabled is False
    assert spec(None, driver={"licensingConfig": {"secretName": "x"}}).driver.licensingConfig.nlsEnabled is True


def test_images_come_whole_or_not_at_all() -> None:
    """The operator takes its environment's image where a section names none, and nothing of it beside a part of one
    (operator.md 4)."""
    known = releases.release("v26.7.0").image("toolkit")
    found = spec("operator", toolkit={"enabled": True}).toolkit
    assert (found.repository, found.image, found.version) == (known.repository, known.image, known.version)
    with pytest.raises(FindingsError) as error:
        from_cluster(resolve(spec("operator", toolkit={"version": "v1.19.0"})))
    assert {finding.rule for finding in error.value.findings} == {"GPU040"}
    assert spec(None, toolkit={"version": "v1.19.0"}).toolkit.repository == known.repository


def test_explain_names_the_operator(project: Project) -> None:
    """`explain` says whose default a value is."""
    loaded = load(project.policy("c", defaults="operator"), root=project.folder)
    (found,) = explain(loaded, "dcgm.enabled")
    assert (found.value, found.origin.file) == (True, "the operator of release v26.7.0")


@pytest.mark.parametrize(
    "said",
    [
        {"repository": "", "image": "", "version": ""},
        {"repository": ""},
        {"image": ""},
        {"repository": None, "version": ""},
    ],
)
def test_empty_images(said: dict[str, Any]) -> None:
    """Repository, version and image empty: the image of the operator's environment (operator.md 4)."""
    image = releases.release("v26.7.0").image("toolkit")
    toolkit = spec("operator", toolkit=said).toolkit
    assert (toolkit.repository, toolkit.image, toolkit.version) == (image.repository, image.image, image.version)
    manager = spec("operator", driver={"manager": said}).driver.manager
    assert manager.image == releases.release("v26.7.0").image("driver.manager").image


def test_a_part_of_an_image() -> None:
    """Anything set: all have to be, or the pass stops (operator.md 4); nothing is filled in, and GPU040 refuses it."""
    said = {"repository": "registry.example.com", "image": "", "version": ""}
    toolkit = spec("operator", toolkit=said).toolkit
    assert {"repository": toolkit.repository, "image": toolkit.image, "version": toolkit.version} == said


def test_another_origin_is_judged_by_what_it_changes() -> None:
    """A change of `defaults` is told field by field, each as if it were written."""
    by_hand = spec("chart", driver={"upgradePolicy": {"autoUpgrade": False}}, dcgm={"enabled": True})
    told = {}
    for name, after in {"defaults": spec("operator"), "written": by_hand}.items():
        found = impact({"c": []}, {"c": (spec("chart"), after)}).effects
        told[name] = {effect.where: effect.tier for effect in found if effect.where.startswith("spec.")}
    assert told["written"].items() <= told["defaults"].items()
    assert "spec.dcgm.enabled" in told["written"]


def test_no_other_word() -> None:
    """A third origin isn't known."""
    with pytest.raises(InputError):
        spec("helm")
