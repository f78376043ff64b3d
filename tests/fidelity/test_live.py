"""What a live cluster of the operator runs, rendered with what its policy has to carry: the pod templates are equal.

tests/control_plane/test_revisions.py shows the same on an API server, where no new ControllerRevision comes of it.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.compiler.cache import Store
from gpustack.compiler.stack import compile_stack
from gpustack.moving.adopt.carry import differences, rendered_for
from gpustack.policy.loading.load import load, spec_key

from .cases import case
from .live import daemonsets, names, taken

RELEASE = "v26.7.0"
WORKER = "gpu-operator-node-feature-discovery-worker"
ROLLS = {
    WORKER: {
        ".metadata.annotations.checksum/config",
        ".metadata.annotations.gpustack.dev/config",
        ".spec.containers[0].args",
        ".spec.containers[0].livenessProbe.httpGet.port",
        ".spec.containers[0].readinessProbe.httpGet.port",
        ".spec.containers[0].securityContext.seccompProfile",
        ".spec.dnsPolicy",
        ".spec.serviceAccountName",
        ".spec.tolerations[0].operator",
    }
}
"""DaemonSets whose pods are replaced all the same, and by which fields: node labels stay while the worker restarts."""


def rendered(policy: dict[str, Any], folder: Path, store: Store) -> dict[str, dict[str, Any]]:
    """The DaemonSets that POLICY renders to, by name."""
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    loaded = load(path, root=folder)
    stack = compile_stack(loaded.spec, spec_key(loaded.merged), store)
    bodies = (yaml.load(file.text, yaml.CSafeLoader) for file in stack.files)
    return {body["metadata"]["name"]: body for body in bodies if body["kind"] == "DaemonSet"}


def carrying(name: str, folder: Path, store: Store) -> dict[str, Any]:
    """The policy of case NAME with what its live cluster has to keep."""
    policy = copy.deepcopy(case(RELEASE, name).policy)
    plain, live = rendered(policy, folder, store), daemonsets(name)
    pairs = [(body, mine) for each, body in live.items() if each != WORKER and (mine := rendered_for(each, plain))]
    policy["spec"]["carried"] = [found for body, mine in pairs if (found := taken(body, mine))]
    return policy


@pytest.mark.parametrize("name", names())
def test_what_runs_is_rendered(name: str, tmp_path: Path, store: Store) -> None:
    """Every template equals the live one, but the one that is meant to change, by the fields that are listed."""
    live = daemonsets(name)
    have = rendered(carrying(name, tmp_path, store), tmp_path, store)
    assert sorted(have) == sorted(live)
    found = {each: differences(body["spec"]["template"], have[each]["spec"]["template"]) for each, body in live.items()}
    fields = {each: {line.split(": ")[0] for line in lines} for each, lines in found.items() if lines}
    assert fields == {each: why for each, why in ROLLS.items() if each in live}


@pytest.mark.parametrize("name", names())
def test_drivers_need_nothing_but_names_and_texts(name: str, tmp_path: Path, store: Store) -> None:
    """Order, volumes, tolerations and digest come out by themselves; the vGPU manager carries nothing at all."""
    carried = carrying(name, tmp_path, store)["spec"]["carried"]
    of_drivers = [each for each in carried if "-driver-" in each["name"] and "dra-" not in each["name"]]
    assert not any("vgpu-manager" in each["name"] for each in carried)
    assert {key for each in of_drivers for key, value in each.items() if value} <= {
        *("name", "origin", "template", "called", "texts")
    }
    places = {at for each in of_drivers for at in each.get("texts", {})}
    assert places <= {"containers.openshift-driver-toolkit-ctr.args.0"}


def test_another_template_carries_the_name_alone(tmp_path: Path, store: Store) -> None:
    """A change of the driver rolls its pods anyway: the rest drops out by itself, and the name never does."""
    policy = carrying("53-nvidiadriver-default", tmp_path, store)
    plugin = "nvidia-device-plugin-daemonset"
    before = rendered(policy, tmp_path, store)
    policy["spec"]["devicePlugin"]["env"] = [{"name": "A", "value": "1"}]
    policy["spec"]["drivers"][0]["env"] = [{"name": "A", "value": "1"}]
    after = rendered(policy, tmp_path, store)
    assert sorted(after) == sorted(before)
    assert "# text of" in str(before[plugin])
    assert "# text of" not in str(after[plugin])
    assert "gpustack.dev/carried" not in after[plugin]["metadata"]["annotations"]
    assert "# text of" in str(after["nvidia-mig-manager"]), "what did not change keeps what it carries"
