"""`gpustack migrate run`, `abort`, `status` and the way back, on an API server with objects as the operator made them.

A node is there, so that DaemonSets have pods: whether one was deleted shows by its UID. Nothing starts on the node.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
import yaml

from gpustack.model import STAGES
from tests.control_plane.api import Body
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.manifests import established
from tests.control_plane.test_migrate import POD, definition, install, plane
from tests.control_plane.test_revisions import revisions
from tests.fidelity import live
from tests.fidelity.test_live import ROLLS
from tests.moving.test_migrate import LABELS, ORDER, PLAIN, POOLED, prepared
from tests.project import ROOT, Project, Ran, cache, project

__all__ = ["cache", "definition", "plane", "project"]

SPACE = "gpu-operator"
DONE = [each for each in ORDER if each not in {"policy", "suspend", "reconciler"}]
"""Steps of a cluster that Helm's command line installed, and of a policy without a reconciler."""


@pytest.fixture
def cluster(plane: ControlPlane, project: Project) -> Cluster:
    """A cluster of the operator, and a project for its policy."""
    return Cluster(plane, project)


class Cluster:
    """What the tests ask of a cluster, and the program as an administrator runs it."""

    def __init__(self, plane: ControlPlane, project: Project) -> None:
        self.plane, self.project, self.api = plane, project, plane.admin
        self.config = plane.kubeconfig("admin", plane.token)

    def holds(self, case: str, **spec: Any) -> None:
        """Let the cluster hold the objects of CASE, and the project the policy that is adopted from them, with SPEC."""
        self.case, sets = case, live.daemonsets(case)
        pods = [each["spec"]["template"]["spec"] for each in sets.values()]
        for name in {pod["serviceAccountName"] for pod in pods if "serviceAccountName" in pod}:
            meta = {"name": name, "namespace": SPACE}
            self.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        self.node({key: value for pod in pods for key, value in pod.get("nodeSelector", {}).items()})
        install(self.plane, prepared(self.project, case, **spec))
        self.first = revisions(self.api, sets)

    def node(self, labels: dict[str, str]) -> None:
        """Make a node with LABELS that offers GPUs, and takes the stack's pods alone."""
        taints = {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}
        meta = {"name": "gpu-0", "labels": {**labels, "nvidia.com/gpu.present": "true"}}
        self.api.create({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": taints})
        offered = {"nvidia.com/gpu": "8", "cpu": "64", "memory": "256Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True", "reason": "test", "message": "test"}]
        status = {"status": {"capacity": offered, "allocatable": offered, "conditions": ready}}
        self.api.patch("Node", "gpu-0", status, subresource="status")

    def words(self, action: str, *more: str | Path) -> list[str | Path]:
        """A line of the verb."""
        which: list[str | Path] = [] if action == "run" else ["x"]
        config: list[str | Path] = [] if "--kubeconfig" in more else ["--kubeconfig", self.config]
        return ["migrate", action, *which, *config, *more]

    def migrate(self, action: str, *more: str | Path) -> Ran:
        """Run the verb."""
        return self.project.run(*self.words(action, *more), env={"HOME": str(self.project.folder)})

    def planned(self, *more: str) -> Body:
        """Write a plan to plan.json."""
        ran = self.migrate("plan", "--write", "plan.json", *more)
        assert ran.code == 0, ran.out + ran.err
        found: Body = json.loads((self.project.folder / "plan.json").read_text("utf-8"))
        return found

    def run(self, step: str, *more: str | Path) -> None:
        """Run STEP of the plan."""
        ran = self.migrate("run", "--plan", "plan.json", "--step", step, "--wait", "40", *more)
        assert ran.code == 0, ran.out + ran.err

    def drivers(self) -> dict[str, Any]:
        """The driver's DaemonSets: UIDs, templates, and the UIDs of their pods."""
        sets = [each for each in self.api.list("DaemonSet", SPACE) if "-driver-" in each["metadata"]["name"]]
        pods = self.api.list("Pod", SPACE)
        return {
            each["metadata"]["name"]: (
                each["metadata"]["uid"],
                each["spec"]["template"],
                sorted(
                    pod["metadata"]["uid"]
                    for pod in pods
                    if (pod["metadata"].get("ownerReferences") or [{}])[0].get("uid") == each["metadata"]["uid"]
                    and "deletionTimestamp" not in pod["metadata"]
                ),
            )
            for each in sets
        }

    def owners(self) -> dict[str, Any]:
        """Who owns the DaemonSets that the operator made."""
        return {
            each["metadata"]["name"]: sorted(owner["uid"] for owner in each["metadata"].get("ownerReferences", []))
            for each in self.api.list("DaemonSet", SPACE)
            if each["metadata"]["name"] in self.first
        }

    def replicas(self) -> int:
        """How many pods the operator's Deployment wants."""
        return int(self.api.get("Deployment", "gpu-operator", SPACE)["spec"]["replicas"])

    def rolled(self) -> set[str]:
        """DaemonSets with more revisions than in the beginning."""
        now = revisions(self.api, live.daemonsets(self.case))
        return {name for name, count in now.items() if count != self.first[name]}


def started(cluster: Cluster) -> dict[str, Any]:
    """The drivers, once each has a pod on the node."""
    wait_for(lambda: all(pods for *_, pods in cluster.drivers().values()), "the driver has a pod")
    return cluster.drivers()


def account(cluster: Cluster, rights: list[Body]) -> Path:
    """The kubeconfig of a ServiceAccount that has RIGHTS and no others."""
    made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mover", "namespace": "default"}}
    cluster.api.create(made)
    for role in rights:
        cluster.api.create(role)
        meta, kind = role["metadata"], role["kind"]
        binding = {"apiVersion": role["apiVersion"], "kind": f"{kind}Binding", "metadata": {**meta}}
        binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": meta["name"]}
        binding["subjects"] = [{"kind": "ServiceAccount", "name": "mover", "namespace": "default"}]
        cluster.api.create(binding)
    return cluster.plane.account("mover", "default")


def test_a_plan_is_run_and_gone_back_under_the_rights_that_it_names(cluster: Cluster) -> None:
    """To the end and back again, by somebody who has the plan's rights alone: no driver has a second revision, none of
    its pods is deleted, the operator's Deployment, rights and owner references are there as before, and the record says
    who did what.
    """
    cluster.holds(POOLED)
    drivers, owners = started(cluster), cluster.owners()
    plan = cluster.planned()
    assert (plan["promise"]["level"], plan["direction"]) == ("kept", "in")
    mover = account(cluster, plan["rights"])
    assert not any(
        "pods" in rule["resources"] and rule["verbs"] != ["list"] for role in plan["rights"] for rule in role["rules"]
    )
    cluster.run("all", "--kubeconfig", mover)
    assert (cluster.rolled(), cluster.drivers()) == (set(ROLLS), drivers)
    assert cluster.replicas() == 0
    assert not any(cluster.owners().values())
    cluster.run("remove", "--kubeconfig", mover)
    assert not cluster.api.find("Deployment", "gpu-operator", SPACE)
    status = cluster.migrate("status", "--format", "json").json
    assert [each["step"] for each in status["done"]] == ["plan", *DONE]
    assert {each["by"] for each in status["done"]} == {"system:serviceaccount:default:mover"}
    assert (status["next"], status["labels"]) == (None, None)
    assert cluster.planned("--reverse")["direction"] == "out"
    cluster.run("all", "--kubeconfig", mover)
    assert (cluster.replicas(), cluster.owners(), cluster.drivers()) == (1, owners, drivers)
    assert cluster.api.find("ClusterRoleBinding", "gpu-operator")
    assert cluster.api.find("ServiceAccount", "gpu-operator", SPACE)
    guards = cluster.api.list("ValidatingAdmissionPolicyBinding")
    assert not guards, "they would refuse what the operator's own account writes"
    assert cluster.rolled() == set(ROLLS)


def test_the_record_is_believed_in_nothing_that_it_may_not_say(cluster: Cluster) -> None:
    """Whoever can write the record can't let an administrator who goes back apply or patch what he likes: entries
    about other kinds, other fields or whole objects are left out.
    """
    cluster.holds(PLAIN)
    cluster.planned()
    cluster.run("save")
    cluster.run("stop")
    role = {"kind": "ClusterRole", "namespace": "", "name": "gpu-operator"}
    sets = {"kind": "DaemonSet", "namespace": SPACE, "name": "nvidia-driver-daemonset"}
    uid = cluster.api.get("Node", "gpu-0")["metadata"]["uid"]
    owner = [{"apiVersion": "v1", "kind": "Node", "name": "gpu-0", "uid": uid}]
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    forged = [
        {"step": "suspend", "verb": "patch", "object": role, "before": {"rules": rules}},
        {"step": "suspend", "verb": "patch", "object": sets, "before": {"spec": {"template": {"spec": {}}}}},
        {"step": "release", "verb": "patch", "object": sets, "before": {"metadata": {"ownerReferences": owner}}},
        {"step": "remove", "verb": "delete", "object": {**role, "name": "evil"}, "before": {"rules": rules}},
    ]
    text = json.dumps([{"at": "2026-11-29T00:00:00Z", "by": "x", "uid": "", **each} for each in forged])
    cluster.api.patch("ConfigMap", "gpustack-migrate", {"data": {"000099": text}}, SPACE)
    drivers, owners = cluster.drivers(), cluster.owners()
    ran = cluster.migrate("abort")
    assert (ran.code, "1 objects of it were removed" in ran.err) == (4, True), ran.err
    assert (cluster.drivers(), cluster.owners()) == (drivers, owners)
    assert not cluster.api.get("ClusterRole", "gpu-operator").get("rules")
    assert not cluster.api.find("ClusterRole", "evil")


def commands(page: str, after: str) -> list[list[str]]:
    """The commands of gpustack's in the part of PAGE behind the heading AFTER."""
    text = (ROOT / "docs" / page).read_text("utf-8").partition(after)[2].partition("\n### From")[0]
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("gpustack ")]


def test_the_pages_are_followed_word_for_word(cluster: Cluster) -> None:
    """The commands of moving-in.md, then those of moving-out.md, as they stand there: in, and out again. The policy is
    the one that the first two make of the cluster; what `adopt` can't see there is answered, as it says.
    """
    cluster.holds(PLAIN)
    drivers, owners = started(cluster), cluster.owners()
    folder = cluster.project.folder
    for name in ("dump.json", "policies/x.yaml"):
        (folder / name).unlink()
    config = yaml.safe_load(Path(cluster.config).read_text("utf-8"))
    config["contexts"][0]["name"] = config["current-context"] = "prod-eu-1"
    (folder / "config").write_text(yaml.safe_dump(config), "utf-8")
    home = {"HOME": str(folder), "KUBECONFIG": str(folder / "config")}
    adopt, render = commands("moving-in.md", "# Moving in")[:2]
    answers = ["--set", "cluster.platform=generic", "--set", "nodePools[0].os=ubuntu22.04"]
    for words in ([*adopt, *answers], render):
        ran = cluster.project.run(*words, env=home)
        assert ran.code == 0, f"{words}: {ran.out}{ran.err}"
    replicas = []
    for page, after in (("moving-in.md", "### Let gpustack run it"), ("moving-out.md", "# Moving out")):
        for words in commands(page, after):
            ran = cluster.project.run(*words, env=home)
            assert ran.code == 0, f"{words}: {ran.out}{ran.err}"
        replicas.append(cluster.replicas())
    assert replicas == [0, 1]
    assert (cluster.owners(), cluster.drivers(), cluster.rolled()) == (owners, drivers, set(ROLLS))


def test_abort_goes_back_from_every_step(cluster: Cluster) -> None:
    """After each step: the operator's Deployment as before, owner references as before, drivers and their pods as
    before; a second abort does nothing, and the hand-over can be begun anew.
    """
    cluster.holds(PLAIN)
    drivers, owners = started(cluster), cluster.owners()
    for step in DONE:
        cluster.planned()
        for each in DONE[: DONE.index(step) + 1]:
            cluster.run(each)
        assert cluster.drivers() == drivers, step
        assert cluster.migrate("abort").code == 0, step
        assert (cluster.replicas(), cluster.owners(), cluster.drivers()) == (1, owners, drivers), step
        again = cluster.migrate("abort", "--format", "json")
        assert (again.code, again.json["done"]) == (0, []), step
    assert cluster.rolled() == set(ROLLS)


def test_a_second_runner_is_refused_and_goes_on_once_the_first_is_killed(cluster: Cluster) -> None:
    """While one runs a step another is refused, by name. One that is killed in the middle is succeeded by another, who
    need know nothing but the plan.
    """
    cluster.holds(PLAIN)
    cluster.planned()
    cluster.run("save")
    left = {"name": "gpu-operator-0", "namespace": SPACE, "labels": LABELS}
    cluster.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": left, "spec": POD})
    line = cluster.words("run", "--plan", "plan.json", "--step", "all")
    with cluster.project.start(*line, env={"HOME": str(cluster.project.folder)}) as first:
        wait_for(lambda: cluster.replicas() == 0, "the operator is stopped")
        second = cluster.migrate("run", "--plan", "plan.json", "--step", "all")
        assert second.code == 4, second.out
        assert "GPU939: system:admin" in second.err or "is at it" in second.err
        first.kill()
    assert any(cluster.owners().values()), "with a pod of the operator left nothing goes on"
    cluster.api.delete("Pod", "gpu-operator-0", SPACE, grace=0)
    cluster.run("all")
    assert cluster.migrate("status", "--format", "json").json["next"]["id"] == "remove"
    assert cluster.rolled() == set(ROLLS)


def change_policy(cluster: Cluster) -> str:
    spec = {"spec": {"devicePlugin": {"enabled": False}}}
    name = cluster.api.list("nvidia.com/v1/ClusterPolicy")[0]["metadata"]["name"]
    cluster.api.patch("nvidia.com/v1/ClusterPolicy", name, spec)
    return f"custom ClusterPolicy {name}: another, or has changed"


def new_driver(cluster: Cluster) -> str:
    template = {"spec": {"template": {"metadata": {"annotations": {"example.com/x": "y"}}}}}
    cluster.api.patch("DaemonSet", "nvidia-driver-daemonset", template, SPACE)
    return f"driver DaemonSet {SPACE}/nvidia-driver-daemonset: another, or has changed"


def no_gpus(cluster: Cluster) -> str:
    cluster.api.patch("Node", "gpu-0", {"status": {"allocatable": {"nvidia.com/gpu": "0"}}}, subresource="status")
    return "GPUs of Node gpu-0: gone"


def too_late(cluster: Cluster) -> str:
    path = cluster.project.folder / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "expires": "2026-01-01T00:00:00Z"}), "utf-8")
    return "the plan has expired"


def other_render(cluster: Cluster) -> str:
    path = cluster.project.folder / "policies/x.yaml"
    policy = yaml.safe_load(path.read_text("utf-8"))
    policy["spec"].setdefault("dcgmExporter", {})["env"] = [{"name": "X", "value": "y"}]
    path.write_text(yaml.safe_dump(policy), "utf-8")
    return "render: another, or has changed"


def test_what_has_moved_since_the_plan_is_refused(cluster: Cluster) -> None:
    """A plan of another cluster than the one that is there now is not run, and nothing is changed: the reason says what
    is otherwise.
    """
    cluster.holds(PLAIN)
    for change in (no_gpus, other_render, change_policy, new_driver, too_late):
        cluster.planned() if change is not too_late else None
        why = change(cluster)
        ran = cluster.migrate("run", "--plan", "plan.json", "--step", "all")
        assert (ran.code, why in ran.err) == (4, True), f"{change.__name__}: {ran.out}{ran.err}"
        assert cluster.replicas() == 1
    assert not cluster.api.find("ConfigMap", "gpustack-migrate", SPACE)


FLUX = {
    "engine": "flux",
    "repository": {"url": "ssh://git@git.example.com/clusters.git"},
    "flux": {"secretName": "key"},
}


def test_flux_is_suspended_waited_for_and_let_go_again(cluster: Cluster) -> None:
    """A HelmRelease is suspended by `run`; what the engine of the policy has to apply is said and waited for; `abort`
    asks for the word that the engine is suspended where it runs elsewhere, and then lets the HelmRelease go on.
    """
    kind = "helm.toolkit.fluxcd.io/v2/HelmRelease"
    crd = cluster.api.create(definition("HelmRelease"))["metadata"]["name"]
    wait_for(lambda: established(cluster.api, crd), "HelmReleases are served")
    cluster.holds(PLAIN, gitops=FLUX)
    drivers, owners = started(cluster), cluster.owners()
    meta = {"name": "gpu", "namespace": SPACE}
    spec = {"chart": {"spec": {"chart": "gpu-operator", "version": "v26.7.0"}}, "releaseName": "gpu-operator"}
    cluster.api.create(
        {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": meta, "spec": spec}
    )
    plan = cluster.planned()
    assert (plan["installedBy"]["way"], plan["steps"][2]["state"]) == ("flux", "later")
    assert cluster.project.run("render").code == 0
    line = cluster.words("run", "--plan", "plan.json", "--step", "all", "--wait", "120")
    with cluster.project.start(*line, env={"HOME": str(cluster.project.folder)}) as runner:
        until(runner, lambda: not any(cluster.owners().values()), "the steps before the apply are done")
        assert cluster.api.get(kind, "gpu", SPACE)["spec"]["suspend"] is True
        # What is applied before the runner looks, it doesn't wait for.
        assert any("it goes on once you have done it" in line for line in runner.stderr or ())
        for path, text in sorted(cluster.project.tree().items(), key=lambda each: stage_of(each[0])):
            if path.endswith(".yaml") and ".gitops/" not in path:
                body = yaml.safe_load(text)
                wait_for(lambda: cluster.api.knows(body["apiVersion"], body["kind"]), f"{path} is served")  # noqa: B023
                cluster.api.apply(body, manager="kustomize-controller")
        out, err = runner.communicate(timeout=240)
    assert runner.returncode == 0, out + err
    assert (cluster.rolled(), cluster.drivers()) == (set(ROLLS), drivers)
    refused = cluster.migrate("abort")
    assert (refused.code, "--suspended-elsewhere" in refused.err) == (4, True)
    assert cluster.migrate("abort", "--suspended-elsewhere").code == 0
    assert (cluster.replicas(), cluster.owners(), cluster.drivers()) == (1, owners, drivers)
    assert "suspend" not in cluster.api.get(kind, "gpu", SPACE)["spec"]


def until(runner: Popen[str], condition: Callable[[], Any], what: str) -> Any:
    """What CONDITION comes to while RUNNER runs; what that says where it ends first."""
    met = wait_for(lambda: condition() or runner.poll() is not None, what, 200)
    assert runner.poll() is None, runner.communicate()
    return met


def stage_of(path: str) -> int:
    """Where the stage of PATH is in a sync."""
    return next((number for number, stage in enumerate(STAGES) if f"/{stage}/" in path), len(STAGES))


def test_the_reconciler_is_started_and_stopped_again(cluster: Cluster) -> None:
    """With a reconciler in the policy the hand-over ends when that is ready, and `abort` stops it, takes the guards
    away and gives the nodes back before the operator starts.
    """
    cluster.holds(PLAIN, reconciler={"image": "registry.example.com/gpu/gpustack-reconciler:1"})
    drivers, owners = started(cluster), cluster.owners()
    cluster.planned()
    line = cluster.words("run", "--plan", "plan.json", "--step", "all", "--wait", "120")
    with cluster.project.start(*line, env={"HOME": str(cluster.project.folder)}) as runner:
        labels = "app=gpustack-reconciler"
        pods = until(runner, lambda: cluster.api.list("Pod", SPACE, labels=labels), "the reconciler has a pod")
        ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        for pod in pods:
            cluster.api.patch("Pod", pod["metadata"]["name"], ready, SPACE, subresource="status")
        out, err = runner.communicate(timeout=240)
    assert runner.returncode == 0, out + err
    assert cluster.migrate("status", "--format", "json").json["labels"] == "reconciler"
    cluster.api.patch("Node", "gpu-0", {"metadata": {"annotations": {"gpustack.dev/fence": "x"}}})
    assert cluster.migrate("abort").code == 0
    assert cluster.api.get("Deployment", "gpustack-reconciler", SPACE)["spec"]["replicas"] == 0
    assert "gpustack.dev/fence" not in cluster.api.get("Node", "gpu-0")["metadata"].get("annotations", {})
    assert not cluster.api.list("ValidatingAdmissionPolicyBinding")
    assert (cluster.replicas(), cluster.owners(), cluster.drivers()) == (1, owners, drivers)


def test_what_a_webhook_would_change_is_refused_beforehand(cluster: Cluster) -> None:
    """Where the cluster itself would write another template of a driver, the trial of the apply shows it: nothing is
    applied, and no driver has a second revision.
    """
    cluster.holds(PLAIN)
    drivers = started(cluster)
    group = "admissionregistration.k8s.io"
    version = next(
        each for each in ("v1", "v1beta1") if cluster.api.knows(f"{group}/{each}", "MutatingAdmissionPolicy")
    )
    annotated = 'Object.spec.template.metadata{annotations: {"example.com/x": "y"}}'
    change = f"Object{{spec: Object.spec{{template: Object.spec.template{{metadata: {annotated}}}}}}}"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["daemonsets"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "later", "expression": "!has(oldObject.metadata.ownerReferences)"}],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": change}}],
    }
    head = {"apiVersion": f"{group}/{version}", "metadata": {"name": "changes"}}
    cluster.planned()
    for step in DONE[: DONE.index("apply")]:
        cluster.run(step)
    cluster.api.create({**head, "kind": "MutatingAdmissionPolicy", "spec": spec})
    cluster.api.create({**head, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "changes"}})
    name, worker = "nvidia-driver-daemonset", "gpu-operator-node-feature-discovery-worker"
    patch = {"metadata": {"labels": {"example.com/tried": "x"}}}

    def changed() -> bool:
        tried = cluster.api.patch("DaemonSet", name, patch, SPACE, dryRun="All")
        return "example.com/x" in tried["spec"]["template"]["metadata"].get("annotations", {})

    wait_for(changed, "the policy is in force")
    ran = cluster.migrate("run", "--plan", "plan.json", "--step", "apply")
    assert (ran.code, "would roll" in ran.err) == (4, True), ran.err
    assert cluster.drivers() == drivers
    assert not cluster.rolled()
    assert not cluster.api.find("ServiceAccount", worker, SPACE), "nothing else was applied either"
