"""What operators were set to in measured cases, adopted: the policy means the same, and what runs stays as it is."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from gpustack.moving.adopt.carry import differences
from gpustack.moving.adopt.inputs import read_all
from gpustack.moving.adopt.shorten import shorten
from gpustack.moving.adopt.spec import Draft, draft
from gpustack.moving.adopt.write import text_of
from gpustack.policy.loading.load import load_values
from gpustack.text.read import parse
from tests.fidelity import live
from tests.fidelity.cases import Case, case
from tests.fidelity.test_live import ROLLS
from tests.fidelity.test_operator import CASES
from tests.project import Project

RELEASE = "v26.7.0"
OURS = {"release", "cluster", "nodePools", "nfd", "drivers", "gpuCluster", "extraObjects", "references", "reconciler"}
"""Sections of a case's policy that no ClusterPolicy has (operator.md 1)."""


def adopted(project: Project, text: str, *, keep: bool = True) -> Draft:
    """What is made of TEXT, a file, shortened."""
    path = project.write("input.yaml", text)
    made = draft(read_all([str(path)], {}).installation, {}, keep=keep)
    shorten(made)
    return made


@pytest.mark.parametrize(("release", "name"), CASES)
def test_a_policy_is_adopted_as_itself(release: str, name: str, project: Project) -> None:
    """Whatever a policy says, the one that is written of it has the same effective spec, and is no longer."""
    policy = case(release, name).policy
    made = adopted(project, json.dumps(policy))
    written = parse(text_of("x", made.spec, made.leaves, ["head"]), "x")["spec"]
    assert load_values(written).model_dump() == load_values(policy["spec"]).model_dump()
    assert len(json.dumps(written)) <= len(json.dumps(policy["spec"]))
    assert made.installation.notes == []


@pytest.mark.parametrize("release", ["v26.7.0", "v26.3.1", "v25.10.1"])
def test_what_the_chart_writes_is_not_said(release: str, project: Project) -> None:
    """Of case 01, which is the chart's defaults and nothing else, the labels of the chart and the nodes are left."""
    made = adopted(project, dump(case(release, "01-defaults-ubuntu2204")))
    assert set(made.spec) == {"release", "cluster", "nodePools", "daemonsets"}
    assert set(made.spec["daemonsets"]) == {"labels"}


def dump(found: Case) -> str:
    """What `kubectl get ... -o yaml` prints of the cluster of FOUND, a case: a List of objects, here as JSON."""
    spec = found.policy["spec"]
    meta = {"labels": {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": f"gpu-operator-{spec['release']}"}}
    meta["annotations"] = {
        "meta.helm.sh/release-namespace": "gpu-operator",
        "meta.helm.sh/release-name": "gpu-operator",
    }
    own = {key: value for key, value in spec.items() if key not in OURS}
    objects: list[dict[str, Any]] = [node(each, spec) for each in found.cluster]
    if "gpuCluster" in spec:
        objects.append(custom_resource("GPUCluster", "gpu-cluster", meta, spec["gpuCluster"]))
    else:
        objects.append(custom_resource("ClusterPolicy", "cluster-policy", meta, own))
    for driver in spec.get("drivers", []):
        body = {key: value for key, value in driver.items() if key != "name"}
        objects.append(custom_resource("NVIDIADriver", driver["name"], meta, body))
    if spec["cluster"].get("monitoring"):
        objects.append({"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "x"}})
    objects += spec.get("extraObjects", [])
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def node(each: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """The node EACH of a case as the API server has it."""
    cluster = spec["cluster"]
    info = {
        "kubeletVersion": f"v{cluster['kubernetesVersion']}",
        "containerRuntimeVersion": each.get("containerRuntime", cluster.get("containerRuntime", "containerd://1.7.27")),
    }
    meta = {"name": each["name"], "labels": each["labels"]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": {"nodeInfo": info}}


def custom_resource(kind: str, name: str, meta: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """An object of the operator's."""
    version = "v1" if kind == "ClusterPolicy" else "v1alpha1"
    return {"apiVersion": f"nvidia.com/{version}", "kind": kind, "metadata": {**meta, "name": name}, "spec": spec}


def sections(spec: dict[str, Any]) -> dict[str, Any]:
    """The effective SPEC but for what no custom resource says."""
    ours = OURS - {"drivers", "gpuCluster", "release"} | {"carried"}
    return {key: value for key, value in load_values(spec).model_dump().items() if key not in ours}


@pytest.mark.parametrize(("release", "name"), CASES[::4])
def test_a_dump_means_the_same(release: str, name: str, project: Project) -> None:
    """The custom resources that the chart wrote, with nodes, come to the effective spec of the case's own policy."""
    found = case(release, name)
    assert sections(adopted(project, dump(found)).spec) == sections(found.policy["spec"])


VALUES: dict[str, dict[str, Any]] = {
    "01-defaults-ubuntu2204": {},
    "53-nvidiadriver-default": {"driver": {"nvidiaDriverCRD": {"enabled": True}}},
    "56-gpucluster-dra": {
        "clusterPolicy": {"deployCR": False},
        "gpuCluster": {"deployCR": True},
        "driver": {"nvidiaDriverCRD": {"enabled": True}},
    },
}
"""What was given to the chart where these cases were measured."""


@pytest.mark.parametrize(("release", "name"), [each for each in CASES if each[1] in VALUES])
def test_values_mean_what_the_chart_made_of_them(release: str, name: str, project: Project) -> None:
    """A release of Helm with the values of a case comes to what its chart wrote, by the custom resources measured."""
    chart = {"spec": {"chart": "gpu-operator", "version": release}}
    body = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "gpu-operator"}}
    made = adopted(project, json.dumps({**body, "spec": {"chart": chart, "values": VALUES[name]}}))
    assert sections(made.spec) == sections(case(release, name).policy["spec"])


@pytest.mark.parametrize("name", live.names())
def test_what_runs_stays(name: str, project: Project) -> None:
    """Of a dump of a cluster comes a policy by which no DaemonSet rolls but node feature discovery's worker (moving.md
    M9, docs/revisions.md), and each keeps its name.
    """
    found = case(RELEASE, name)
    sets = copy.deepcopy(live.daemonsets(name))
    objects = json.loads(dump(found))
    objects["items"] += sets.values()
    project.write("dump.json", json.dumps(objects))
    ran = project.run("adopt", "dump.json", "--out", "policies/x.yaml", "--format", "json")
    assert ran.code == 0, ran.json["findings"]
    assert {each["name"] for each in ran.json["daemonSets"] if each["rolls"]} == set(ROLLS) & set(sets)
    assert ran.json["effective"]["other"] == []
    assert project.run("render").code == 0
    rendered = [parse(text.decode(), path) for path, text in project.tree().items() if "/daemonset-" in path]
    have = {body["metadata"]["name"]: body["spec"]["template"] for body in rendered}
    assert sorted(have) == sorted(sets)
    for each, body in sets.items():
        assert each in ROLLS or differences(body["spec"]["template"], have[each]) == []
