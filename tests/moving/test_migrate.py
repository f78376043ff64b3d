"""The plan of a hand-over, made of dumps: what it promises, in which order, with which commands, and what it refuses.

Expected are the facts of docs/facts/moving.md M4, M6 and M8; DaemonSets are those of measured clusters
(tests/fidelity/live).
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.text.read import parse
from tests.fidelity import live
from tests.fidelity.cases import case
from tests.fidelity.test_live import ROLLS
from tests.project import Project, Ran, cache, project

from .adopt.test_cases import RELEASE, dump
from .adopt.test_live import serving

__all__ = ["cache", "project"]

Body = dict[str, Any]
PLAIN, POOLED, DRA, OPENSHIFT, VGPU = (
    "01-defaults-ubuntu2204",
    "53-nvidiadriver-default",
    "56-gpucluster-dra",
    "03-openshift-dtk",
    "24-sandbox-vgpu",
)
ORDER = ["policy", "save", "suspend", "stop", "release", "apply", "takeover", "reconciler", "remove"]
"""moving.md M6, with what has to be so before it."""
BASE = {"Service", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "ClusterPolicy", "NVIDIADriver", "GPUCluster", "Node"}
LABELS = {"app": "gpu-operator", "app.kubernetes.io/component": "gpu-operator"}


def cluster(name: str) -> list[Body]:
    """The objects of case NAME as `kubectl get -o yaml` prints them, managed fields and UIDs included; built-in kinds
    without an apiVersion. Of the kinds in BASE there is what is the operator's own."""
    found, sets = case(RELEASE, name), copy.deepcopy(list(live.daemonsets(name).values()))
    namespace = sets[0]["metadata"]["namespace"]
    objects: list[Body] = json.loads(dump(found))["items"]
    objects += sets
    objects += [{"kind": kind, "metadata": {"name": "gpu-operator", "namespace": namespace}} for kind in sorted(BASE)]
    objects.append(
        {
            "kind": "Deployment",
            "metadata": {
                "name": "gpu-operator",
                "namespace": namespace,
                "labels": {"app.kubernetes.io/version": RELEASE},
            },
            "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}},
            "status": {"replicas": 1},
        }
    )
    objects.append(pod(namespace))
    for number, body in enumerate(objects):
        meta = body["metadata"]
        meta["uid"] = f"uid-{number}"
        meta["managedFields"] = [{"manager": "gpu-operator", "operation": "Update", "apiVersion": "v1"}]
        if "annotations" in meta and body["kind"] in {"ClusterPolicy", "NVIDIADriver", "GPUCluster"}:
            meta["annotations"] = {**meta["annotations"], "meta.helm.sh/release-namespace": namespace}
        if body["kind"] in CLUSTER_WIDE:
            meta.pop("namespace", None)
        if body["kind"] in {"DaemonSet", "Deployment"}:
            body.pop("apiVersion", None)
        if body["kind"] == "DaemonSet":
            body["status"] = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2}
    return objects


def pod(namespace: str) -> Body:
    """The operator's pod."""
    meta = {"name": "gpu-operator-7d9", "namespace": namespace, "labels": LABELS}
    return {"kind": "Pod", "metadata": meta, "status": {"phase": "Running"}}


ADOPTED: dict[str, str] = {}
"""The policy of each case, once it was adopted."""


def prepared(project: Project, name: str, **spec: Any) -> list[Body]:
    """The objects of case NAME in dump.json, and the policy that `adopt` makes of them, SPEC added to it."""
    objects = cluster(name)
    write(project, objects)
    if name not in ADOPTED:
        ADOPTED[name] = project.run("adopt", "dump.json", "--out", "x.yaml", "--format", "json").json["policy"]
    policy = parse(ADOPTED[name], "x.yaml")
    policy["spec"]["cluster"]["platform"] = case(RELEASE, name).policy["spec"]["cluster"]["platform"]
    policy["spec"] |= spec
    project.write("policies/x.yaml", yaml.safe_dump(policy))
    return objects


def write(project: Project, objects: list[Body]) -> None:
    """Write OBJECTS to dump.json, as a list."""
    project.write("dump.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def plan(project: Project, *words: str | Path) -> Any:
    """The plan of dump.json, or what WORDS say, as JSON. The home of whoever asks is the project's."""
    return ran_plan(project, *words, "--format", "json").json


def ran_plan(project: Project, *words: str | Path) -> Ran:
    """A run of the plan."""
    where = words if any(str(word).startswith("--k") for word in words) else ("--from", "dump.json", *words)
    return project.run("migrate", "plan", "x", *where, env={"HOME": str(project.folder)})


def step(found: Any, name: str) -> Any:
    """The step NAME of the plan FOUND."""
    return next(each for each in found["steps"] if each["id"] == name)


def of(objects: list[Body], kind: str, name: str = "") -> Body:
    """The object of KIND among OBJECTS."""
    return next(each for each in objects if each["kind"] == kind and name in ("", each["metadata"]["name"]))


@pytest.mark.parametrize("name", [PLAIN, OPENSHIFT, VGPU, POOLED, DRA])
def test_no_driver_restarts_where_that_was_measured(name: str, project: Project) -> None:
    """Of an adopted cluster every driver and vGPU manager is unchanged, only node feature discovery's worker rolls, and
    the steps have the order of the measurement; the first that can be seen to be left is next.
    """
    prepared(project, name)
    found = plan(project)
    assert found["promise"]["level"] == "kept", found["promise"]
    assert (found["exit"], found["operator"], found["installedBy"]["way"]) == (0, RELEASE, "helm")
    sets = {each["name"]: each["fate"] for each in found["daemonSets"]}
    assert {each for each, fate in sets.items() if fate != "unchanged"} == set(ROLLS) & set(sets)
    assert set(sets) == set(live.daemonsets(name))
    assert [each["id"] for each in found["steps"]] == ORDER
    states = [each["state"] for each in found["steps"]]
    assert states == ["done", "next", "not needed", "later", "later", "later", "later", "not needed", "later"]
    assert ran_plan(project).out.startswith("x: no driver restarts: measured with operator v26.7.0 on platform ")


def applied(objects: list[Body], project: Project, entries: list[Body]) -> list[Body]:
    """OBJECTS and all that is rendered beside them, with managed fields as ENTRIES say."""
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    rendered = [parse(text.decode(), path) for path, text in project.tree().items() if path.endswith(".yaml")]
    more = [each for each in rendered if (each["kind"], each["metadata"]["name"]) not in there]
    for body in more:
        body["metadata"]["uid"] = "new"
    for body in (*objects, *more):
        body["metadata"]["managedFields"] = copy.deepcopy(entries)
    return [*objects, *more]


def test_a_step_is_done_when_the_cluster_shows_it(project: Project) -> None:
    """From the first step to the last, each is next until a dump shows what it does, and is then done."""
    objects = prepared(project, POOLED)
    (save,) = step(plan(project), "save")["commands"]
    assert shlex.split(save.removeprefix("(umask 077; ").removesuffix(")"))[2] == (
        "clusterpolicies.nvidia.com,nvidiadrivers.nvidia.com"
    )
    custom = [each for each in objects if each["kind"] in {"ClusterPolicy", "NVIDIADriver"}]
    project.write("x.before.yaml", yaml.safe_dump({"kind": "List", "apiVersion": "v1", "items": custom}))
    assert following(project, objects) == "stop"
    of(objects, "Deployment")["spec"]["replicas"] = 0
    assert following(project, objects) == "stop", "a replica is still there"
    of(objects, "Deployment")["status"] = {}
    assert following(project, objects) == "stop", "its pod is still there"
    objects.remove(of(objects, "Pod"))
    assert following(project, objects) == "release"
    for body in objects:
        body["metadata"].pop("ownerReferences", None)
    assert following(project, objects) == "release", "RuntimeClasses and others were not looked at"
    objects += [{"kind": kind, "metadata": {"name": "x", "uid": "u"}} for kind in ("RuntimeClass", "ConfigMap")]
    assert following(project, objects) == "apply"
    assert project.run("render").code == 0
    former, ours = ({"manager": "gpu-operator", "operation": "Update"}, {"manager": "gpustack", "operation": "Apply"})
    both = applied(objects, project, [ours, former])
    assert following(project, both) == "takeover"
    commands = step(plan(project), "takeover")["commands"]
    patch = json.loads(next(shlex.split(each)[-1] for each in commands if "daemonsets.apps/nvidia-mig-manager" in each))
    at = "/metadata/managedFields"
    assert patch == [
        {"op": "test", "path": f"{at}/1/manager", "value": "gpu-operator"},
        {"op": "test", "path": f"{at}/0/manager", "value": "gpustack"},
        {"op": "replace", "path": f"{at}/1/manager", "value": "gpustack"},
        {"op": "replace", "path": f"{at}/1/operation", "value": "Apply"},
        {"op": "remove", "path": f"{at}/0"},
    ]
    assert following(project, applied(both, project, [ours])) == "remove"


def following(project: Project, objects: list[Body]) -> str:
    """The step that is next for OBJECTS."""
    write(project, objects)
    (found,) = [each["id"] for each in plan(project)["steps"] if each["state"] == "next"]
    return str(found)


def test_an_operator_that_was_not_seen_is_not_stopped(project: Project) -> None:
    """Neither a dump without Deployments nor one with others says that the operator is stopped."""
    objects = prepared(project, PLAIN)
    deployment = of(objects, "Deployment")
    objects.remove(deployment)
    write(project, objects)
    stop = step(plan(project), "stop")
    assert (stop["state"], "not looked at: Deployment" in stop["seen"]) == ("later", True)
    assert stop["commands"] == ["kubectl get deployments.apps -A -o yaml --show-managed-fields"]
    write(project, [*objects, {**deployment, "metadata": {"name": "coredns", "namespace": "x", "uid": "u"}}])
    stop = step(plan(project), "stop")
    assert stop["state"] == "later"
    assert "no Deployment of the operator was found; that doesn't say that it is stopped" in stop["seen"]
    assert stop["remedy"]
    file = {**deployment, "metadata": {"name": "gpu-operator", "namespace": "gpu-operator"}, "status": {}}
    write(project, [*objects, {**file, "spec": {**file["spec"], "replicas": 0}}])
    assert step(plan(project), "stop")["state"] == "later", "a manifest that nobody has applied is no cluster"


def test_labels_of_the_operators_values_roll_the_driver(project: Project) -> None:
    """The trap of the last step but three: labels that the policy lacks leave the template when the fields are taken
    over. Nothing is handed over then, and the fields and the remedy are told.
    """
    prepared(project, PLAIN, daemonsets={})
    found = plan(project)
    (driver,) = [each for each in found["daemonSets"] if each["driver"]]
    assert (found["exit"], found["promise"]["level"], driver["fate"]) == (2, "broken", "refused")
    assert "metadata.labels.helm.sh/chart" in driver["fields"]
    assert "carried" in driver["remedy"]
    assert [each["state"] for each in found["steps"] if each["id"] == "policy"] == ["next"]
    out = ran_plan(project).out
    assert out.startswith("x: drivers roll, so nothing is handed over: nvidia-driver-daemonset")
    assert "nvidia-driver-daemonset: driver would roll: refused, because of metadata.labels" in out


def test_a_copy_of_the_cluster_policy_is_refused(project: Project) -> None:
    """The operator would act on it, and its own is the way back; where no operator is the policy renders as it is."""
    prepared(project, PLAIN, compat={"clusterPolicy": True})
    found = plan(project)
    policy = step(found, "policy")
    assert (found["exit"], policy["state"], found["steps"][1]["state"]) == (2, "next", "later")
    assert "compat.clusterPolicy" in policy["remedy"]


def test_a_driver_of_another_name_is_refused(project: Project) -> None:
    """Without `called` the DaemonSet of an NVIDIADriver is a second one beside the first (moving.md M6)."""
    prepared(project, POOLED, carried=[])
    found = plan(project)
    (driver,) = [each for each in found["daemonSets"] if each["driver"]]
    assert (found["exit"], driver["fate"], found["promise"]["level"]) == (2, "refused", "broken")
    assert "a second one" in driver["why"]


def test_a_driver_that_is_not_rendered_or_new_is_refused(project: Project) -> None:
    """A driver that only one of the two sides has is told with a remedy, as is another namespace."""
    objects = prepared(project, PLAIN, driver={"enabled": False}, carried=[])
    found = plan(project)
    assert [each["fate"] for each in found["daemonSets"] if each["driver"]] == ["refused"]
    assert all(each["remedy"] for each in found["daemonSets"] if each["fate"] == "refused")
    prepared(project, PLAIN)
    write(project, [each for each in objects if each["metadata"]["name"] != "nvidia-driver-daemonset"])
    assert [each["fate"] for each in plan(project)["daemonSets"] if each["driver"]] == ["refused"]
    for body in objects:
        body["metadata"] |= {"namespace": "elsewhere"} if "namespace" in body["metadata"] else {}
    write(project, objects)
    driver = next(each for each in plan(project)["daemonSets"] if each["name"] == "nvidia-driver-daemonset")
    assert (driver["fate"], driver["remedy"]) == ("refused", "set spec.cluster.namespace: elsewhere")


def test_another_driver_version_is_told_as_that(project: Project) -> None:
    """A policy with another driver version than runs gets the remedy that helps: keep the one that runs. What `adopt`
    carries would not.
    """
    prepared(project, PLAIN, driver={"version": "570.172.08"})
    (driver,) = [each for each in plan(project)["daemonSets"] if each["driver"]]
    assert driver["fate"] == "refused"
    assert "carried" not in driver["remedy"]
    assert driver["remedy"].startswith("keep what runs until the hand-over is done: ")
    assert "570.172.08" in driver["remedy"].partition(", not ")[2]


def older(objects: list[Body]) -> None:
    of(objects, "Deployment")["metadata"]["labels"]["app.kubernetes.io/version"] = "v26.3.1"


def unversioned(objects: list[Body]) -> None:
    for body in objects:
        labels = body["metadata"].get("labels") or {}
        for key in ("app.kubernetes.io/version", "helm.sh/chart"):
            if body["kind"] in {"Deployment", "ClusterPolicy"}:
                labels.pop(key, None)


@pytest.mark.parametrize(
    ("change", "platform", "why"),
    [
        (older, "generic", "operator v26.3.1 was not measured"),
        (unversioned, "generic", "nothing tells which version"),
        (lambda _: None, None, "the policy names no platform"),
        (lambda _: None, "k3s", "platform k3s was not measured"),
    ],
)
def test_what_was_not_measured_is_not_promised(
    change: Callable[[list[Body]], None], platform: str | None, why: str, project: Project
) -> None:
    """Another version or platform than those measured, or none that is told, is said first, and never a promise."""
    objects = prepared(project, PLAIN)
    change(objects)
    write(project, objects)
    policy = yaml.safe_load((project.folder / "policies/x.yaml").read_text("utf-8"))
    policy["spec"]["cluster"].pop("platform")
    policy["spec"]["cluster"] |= {"platform": platform} if platform else {}
    project.write("policies/x.yaml", yaml.safe_dump(policy))
    found = plan(project)
    assert found["promise"]["level"] in {"open", "broken"}
    assert platform == "k3s" or why in found["promise"]["why"][0]
    assert "no driver restarts: measured" not in ran_plan(project).out


def test_what_is_half_done_is_finished_first(project: Project) -> None:
    """Outdated driver pods, and nodes in the middle of the operator's upgrade, are rolled by whoever comes next."""
    objects = prepared(project, PLAIN)
    of(objects, "DaemonSet", "nvidia-driver-daemonset")["status"]["updatedNumberScheduled"] = 1
    write(project, objects)
    found = plan(project)
    assert (found["exit"], found["promise"]["level"]) == (2, "broken")
    assert "1 of 2 pods of nvidia-driver-daemonset are outdated" in step(found, "policy")["seen"]
    of(objects, "DaemonSet", "nvidia-driver-daemonset")["status"]["updatedNumberScheduled"] = 2
    of(objects, "Node")["metadata"]["labels"]["nvidia.com/gpu-driver-upgrade-state"] = "pod-restart-required"
    write(project, objects)
    stop = step(plan(project), "stop")
    assert "pod-restart-required" in stop["seen"]
    assert "upgrade-done" in stop["remedy"]


def test_a_dump_may_leave_out_what_lists_leave_out(project: Project) -> None:
    """Objects in typed lists have neither kind nor apiVersion, and are read all the same."""
    objects = prepared(project, PLAIN)
    lists = []
    for kind in dict.fromkeys(each["kind"] for each in objects):
        bare = [{"metadata": {}, **each} for each in objects if each["kind"] == kind]
        for each in bare:
            each.pop("kind")
            each.pop("apiVersion", None)
        lists.append({"apiVersion": "v1", "kind": f"{kind}List", "items": bare})
    project.write("dump.json", "\n---\n".join(json.dumps(each) for each in lists))
    project.write("lists.yaml", "\n---\n".join(json.dumps(each) for each in lists))
    found = project.run(
        "migrate", "plan", "x", "--from", "lists.yaml", "--format", "json", env={"HOME": str(project.folder)}
    ).json
    assert step(found, "stop")["seen"].startswith("Deployment gpu-operator/gpu-operator: it runs")
    assert {each["fate"] for each in found["daemonSets"] if each["driver"]} == {"unchanged"}


def test_a_cluster_is_only_looked_at(project: Project) -> None:
    """Of a live cluster lists are read and nothing else; a kind that it doesn't have was looked at, and a context is
    part of every command.
    """
    objects = prepared(project, PLAIN)
    paths = {
        "ClusterPolicy": "/apis/nvidia.com/v1/clusterpolicies",
        "Node": "/api/v1/nodes",
        "DaemonSet": "/apis/apps/v1/namespaces/gpu-operator/daemonsets",
        "Deployment": "/apis/apps/v1/namespaces/gpu-operator/deployments",
        "Pod": "/api/v1/namespaces/gpu-operator/pods",
        "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    }
    answers: dict[str, Any] = {path: [each for each in objects if each["kind"] == of] for of, path in paths.items()}
    with serving(project.folder, answers) as (config, asked):
        found = plan(project, "--kubeconfig", config, "--context", "prod")
    assert found["promise"]["level"] == "kept", found["promise"]
    assert [each["id"] for each in found["steps"]] == ORDER
    assert "not looked at" not in json.dumps(found)
    assert all("namespaces" not in path or path.count("/") < 8 for path in asked), "lists alone"
    assert [path for path in asked if "secrets" in path] == [path for path in asked if "labelSelector=owner" in path]
    stop = step(found, "stop")["commands"][0]
    assert stop == (
        f"kubectl --kubeconfig={shlex.quote(str(config))} --context=prod scale deployments.apps/gpu-operator "
        "--namespace=gpu-operator --replicas=0"
    )


def test_what_one_may_not_list_was_not_looked_at(project: Project) -> None:
    """A right that is missing ends nothing, and leaves open what depends on it."""
    objects = prepared(project, PLAIN)
    paths = {"ClusterPolicy": "/apis/nvidia.com/v1/clusterpolicies", "Node": "/api/v1/nodes"}
    answers: dict[str, Any] = {path: [each for each in objects if each["kind"] == of] for of, path in paths.items()}
    answers["/apis/rbac.authorization.k8s.io/v1/clusterroles"] = None
    with serving(project.folder, answers) as (config, _):
        found = plan(project, "--kubeconfig", config)
    assert "not looked at: ClusterRole (" in step(found, "release")["seen"]
    assert "no Deployment of the operator was found in namespace gpu-operator" in step(found, "stop")["seen"]


@pytest.mark.parametrize("part", [{"labels": "x"}, {"annotations": ["x"]}, {"ownerReferences": 1}])
def test_objects_of_another_form_end_in_a_sentence(part: Body, project: Project) -> None:
    """Whatever a dump holds, the answer is a plan or a sentence."""
    objects = prepared(project, PLAIN)
    for kind in ("Deployment", "Pod", "DaemonSet"):
        changed = copy.deepcopy(objects)
        of(changed, kind)["metadata"] |= part
        write(project, changed)
        ran = ran_plan(project, "--format", "json")
        assert ran.code in {0, 2} or ran.json["findings"][0]["rule"] == "GPU050", ran.out


def test_pods_that_are_behind_for_long_are_told(project: Project) -> None:
    """OnDelete has an end: after 14 days `status` says since when, and doesn't end well; before that, or where no pod
    is behind, it does.
    """
    objects = prepared(project, PLAIN)
    body = of(objects, "DaemonSet", "nvidia-mig-manager")
    body["spec"]["updateStrategy"] = {"type": "OnDelete"}
    body["status"]["updatedNumberScheduled"] = 1
    for at, late, behind in (("2026-01-01", True, 1), ("2099-01-01", False, 1), ("2026-01-01", False, 2)):
        entry = {"step": "apply", "at": f"{at}T00:00:00Z", "by": "a", "object": {"name": "x"}}
        meta = {"name": "gpustack-migrate", "namespace": "gpu-operator", "uid": "r"}
        record = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": {"000000": json.dumps([entry])}}
        body["status"]["updatedNumberScheduled"] = behind
        write(project, [*objects, record])
        words = ("migrate", "status", "x", "--from", "dump.json", "--format", "json")
        ran = project.run(*words, env={"HOME": str(project.folder)})
        assert (ran.code, ran.json["overdue"] == entry["at"]) == (2 if late else 0, late), ran.out
