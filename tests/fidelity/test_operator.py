"""For each measured policy, gpustack renders what the operator creates."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.compiler.cache import Store
from gpustack.compiler.stack import compile_stack
from gpustack.policy.loading.load import load, spec_key

from .cases import case, names
from .facts import Deviation, differences, facts_of

RELEASES = ("v26.7.0", "v26.3.1", "v25.10.1")
CASES = [(release, name) for release in RELEASES for name in names(release)]


def read_deviations() -> list[Deviation]:
    """The deviations that are meant."""
    entries = yaml.safe_load(Path(__file__).with_name("deviations.yaml").read_text(encoding="utf-8"))
    return [Deviation(**entry) for entry in entries]


def render(release: str, name: str, folder: Path, store: Store) -> list[dict[str, Any]]:
    """The objects that the policy of case NAME of RELEASE renders to."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(case(release, name).policy), encoding="utf-8")
    loaded = load(path, root=folder)
    stack = compile_stack(loaded.spec, spec_key(loaded.merged), store)
    return [yaml.load(file.text, yaml.CSafeLoader) for file in stack.files]


@pytest.mark.parametrize(("release", "name"), CASES)
def test_renders_what_the_operator_creates(release: str, name: str, tmp_path: Path, store: Store) -> None:
    """Every fact of every object is equal, but for the deviations that are listed with a reason."""
    rendered = facts_of(render(release, name, tmp_path, store))
    assert differences(name, case(release, name).facts, rendered, read_deviations()) == []


def test_every_deviation_is_needed(tmp_path: Path, store: Store) -> None:
    """A deviation that no case needs is out of date; one without a reason isn't one."""
    deviations = read_deviations()
    for release, name in CASES:
        differences(name, case(release, name).facts, facts_of(render(release, name, tmp_path, store)), deviations)
    assert [deviation.path for deviation in deviations if not deviation.used or not deviation.reason.strip()] == []


@pytest.fixture
def case_01() -> dict[str, dict[str, Any]]:
    """Facts of the first case, to be changed."""
    return {name: dict(facts) for name, facts in case(RELEASES[0], names(RELEASES[0])[0]).facts.items()}


def test_a_difference_is_found(case_01: dict[str, dict[str, Any]]) -> None:
    """The comparison can fail: a changed, a missing and an added fact are each reported."""
    changed = {name: dict(facts) for name, facts in case_01.items()}
    changed["DaemonSet/nvidia-driver-daemonset"]["pod.hostPID"] = False
    changed["DaemonSet/nvidia-driver-daemonset"]["pod.hostIPC"] = True
    del changed["Service/nvidia-dcgm-exporter"]
    assert len(differences("x", case_01, changed, [])) == 3
    assert {item.name for item in fields(Deviation)} == {"path", "reason", "case", "used"}
