"""For each measured policy, the lists of gpustack's pod templates have the operator's order, and drivers its digest."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from gpustack.compiler.cache import Store

from .order import facts, names, nearest, order
from .test_operator import render

RELEASE = "v26.7.0"
MEANT = yaml.safe_load(Path(__file__).with_suffix("").with_name("order.yaml").read_text(encoding="utf-8"))


def differing(name: str, folder: Path, store: Store) -> dict[str, list[str]]:
    """The DaemonSets of case NAME that are not as the operator writes them, and where."""
    sets = [body for body in render(RELEASE, name, folder, store) if body["kind"] == "DaemonSet"]
    rendered = {body["metadata"]["name"]: order(body["spec"]["template"]) for body in sets}
    found = {daemonset: nearest(daemonset, want, rendered) for daemonset, want in facts(name).items()}
    return {daemonset: lines for daemonset, lines in found.items() if lines}


@pytest.mark.parametrize("name", names())
def test_templates_have_the_operators_order(name: str, tmp_path: Path, store: Store) -> None:
    """Environment, mounts, volumes and tolerations of every DaemonSet, and the digest, but for what is meant."""
    meant = [each for each in MEANT if each["case"] == name]
    found = differing(name, tmp_path, store)
    assert {
        daemonset: lines
        for daemonset, lines in found.items()
        if not any(fnmatch(daemonset, each["name"]) for each in meant)
    } == {}
    for each in meant:
        assert any(fnmatch(daemonset, each["name"]) for daemonset in found), f"{each} is needed no more"
        assert each["reason"].strip()


def test_another_order_is_found() -> None:
    """The comparison can fail: two volumes exchanged, and another digest."""
    want = facts("01-defaults-ubuntu2204")["nvidia-driver-daemonset"]
    first, second, *rest = want["volumes"]
    changed = {**want, "volumes": [second, first, *rest], "nvidia-driver-ctr.DRIVER_CONFIG_DIGEST": "1"}
    assert len(nearest("x", want, {"x": changed})) == 2
