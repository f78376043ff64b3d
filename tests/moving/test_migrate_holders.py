"""Who holds the operator in place: told by his own objects or marks, suspended in the right order, and never assumed.

What a dump calls an object is a word of a command, so what hostile dumps come to is here, too.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.project import Project, cache, project

from .adopt.test_cases import RELEASE
from .test_migrate import BASE, OPENSHIFT, PLAIN, Body, applied, plan, prepared, ran_plan, step, write

__all__ = ["cache", "project"]

NASTY = "$(touch x); `id` 'a' \"b\" -n"


def application(name: str = "gpu", uid: str = "u", **more: Any) -> Body:
    """An Application of Argo CD for the chart, which syncs by itself."""
    meta = {"name": name, "namespace": "argocd", "uid": uid, **more}
    spec = {"source": {"chart": "gpu-operator"}, "syncPolicy": {"automated": {"selfHeal": True}}}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": meta, "spec": spec}


def test_names_of_a_dump_stay_single_words(project: Project) -> None:
    """What a hostile dump calls an object is one word of a command, whatever it holds; what can't be printed is
    refused.
    """
    objects = prepared(project, PLAIN)
    owner = [{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "x", "uid": "x"}]
    meta = {"name": NASTY, "namespace": NASTY, "uid": "u", "ownerReferences": owner}
    objects += [{"kind": "ConfigMap", "metadata": meta}, application(NASTY)]
    write(project, objects)
    found = plan(project)
    words = [shlex.split(each) for each in step(found, "release")["commands"] if NASTY[:4] in each]
    (patch,) = [each for each in words if each[1] == "patch"]
    assert patch[2:4] == [f"configmaps/{NASTY}", f"--namespace={NASTY}"]
    (hold,) = [shlex.split(each) for each in step(found, "suspend")["commands"]]
    assert hold[2] == f"applications.argoproj.io/{NASTY}"
    for name in ("a\nkubectl delete ns x", "a\x1b[2J", "../x"):
        write(project, [*objects, {"kind": "ConfigMap", "metadata": {"name": name, "uid": "u"}}])
        ran = ran_plan(project, "--format", "json")
        assert (ran.code, ran.json["findings"][0]["rule"]) == (4, "GPU050")


def test_argo_cd_is_suspended_with_what_is_above_it(project: Project) -> None:
    """Automated sync goes, so does the finalizer that deletes everything, and parents come first. It counts as done
    only where each was seen so in a cluster.
    """
    objects = prepared(project, PLAIN)
    finalizers = ["resources-finalizer.argocd.argoproj.io/background", "example.com/mine"]
    owner = [{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "fleet"}]
    ours = application(finalizers=finalizers, ownerReferences=owner)
    write(project, [*objects, ours])
    found = plan(project)
    assert found["installedBy"]["way"] == "argocd"
    assert found["notes"], "the order was measured with Helm's command line"
    suspend = step(found, "suspend")
    assert "ApplicationSet argocd/fleet: it wasn't looked at" in suspend["seen"]
    above = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": {}}
    above["metadata"] = {"name": "fleet", "namespace": "argocd", "uid": "s"}
    write(project, [*objects, ours, above])
    commands = [shlex.split(each) for each in step(plan(project), "suspend")["commands"]]
    assert [each[2] for each in commands] == ["applicationsets.argoproj.io/fleet", "applications.argoproj.io/gpu"]
    assert json.loads(commands[0][-1]) == {"spec": {"syncPolicy": {"applicationsSync": "create-only"}}}
    assert json.loads(commands[1][-1]) == {
        "metadata": {"finalizers": ["example.com/mine"]},
        "spec": {"syncPolicy": {"automated": None}},
    }
    above["spec"] = {"syncPolicy": {"applicationsSync": "create-only"}}
    ours["spec"]["syncPolicy"] = {}
    write(project, [*objects, ours, above])
    assert step(plan(project), "suspend")["state"] == "later", "its finalizer would delete everything"
    ours["metadata"]["finalizers"] = ["example.com/mine"]
    write(project, [*objects, ours, above])
    assert step(plan(project), "suspend")["state"] == "done"
    assert not any("applications" in each for each in step(plan(project), "remove")["commands"]), "a hook would run"
    del ours["metadata"]["uid"]
    write(project, [*objects, ours, above])
    suspend = step(plan(project), "suspend")
    assert suspend["state"] != "done", "a file says what somebody wants, not what is"
    assert "it wasn't looked at in a cluster" in suspend["seen"]


def test_flux_is_suspended_and_told_to_leave_that(project: Project) -> None:
    """A HelmRelease is suspended; where a Kustomization applies it, that would take the suspension back, so the object
    is marked. It is deleted only when it is seen suspended: else Flux uninstalls the chart.
    """
    objects = prepared(project, PLAIN)
    labels = {"kustomize.toolkit.fluxcd.io/name": "infra", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
    meta = {"name": "gpu", "namespace": "gpu-system", "uid": "h", "labels": labels}
    release: Body = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": meta}
    release["spec"] = {
        "chart": {"spec": {"chart": "gpu-operator", "version": RELEASE}},
        "targetNamespace": "gpu-operator",
    }
    write(project, [*objects, release])
    found = plan(project)
    assert found["installedBy"]["way"] == "flux"
    (command,) = [shlex.split(each) for each in step(found, "suspend")["commands"]]
    assert command[:4] == ["kubectl", "patch", "helmreleases.helm.toolkit.fluxcd.io/gpu", "--namespace=gpu-system"]
    mark = {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}
    assert json.loads(command[-1]) == {"metadata": {"annotations": mark}, "spec": {"suspend": True}}
    assert not any("delete helmreleases" in each for each in step(found, "remove")["commands"])
    release["spec"]["suspend"] = True
    write(project, [*objects, release])
    assert step(plan(project), "suspend")["state"] == "later"
    meta["annotations"] = mark
    write(project, [*objects, release])
    found = plan(project)
    assert step(found, "suspend")["state"] == "done"
    commands = step(found, "remove")["commands"]
    assert any("delete helmreleases" in each for each in commands)
    secrets = "kubectl delete secrets --namespace=gpu-system -l owner=helm,name=gpu-operator"
    assert secrets in commands, "Flux keeps the release beside the HelmRelease, under the name that Helm gave it"


@pytest.mark.parametrize("kind", ["Subscription", "ClusterServiceVersion"])
def test_olm_is_told_by_its_own_objects(kind: str, project: Project) -> None:
    """A Subscription, or the version that it installed, says that OLM did; what wasn't seen isn't held."""
    objects = prepared(project, OPENSHIFT)
    meta = {"name": "gpu-operator-certified.v26.7.0", "namespace": "nvidia-gpu-operator", "uid": "o"}
    body = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind, "metadata": meta}
    spec = {"name": "gpu-operator-certified", "version": "26.7.0", "channel": "v26.7"}
    write(project, [*objects, {**body, "spec": spec}])
    found = plan(project)
    assert found["installedBy"]["way"] == "olm"
    suspend = step(found, "suspend")
    assert suspend["state"] != "done"
    if kind == "Subscription":
        (command,) = [shlex.split(each) for each in suspend["commands"]]
        assert json.loads(command[-1]) == {"spec": {"installPlanApproval": "Manual"}}
        write(project, [*objects, {**body, "spec": {**spec, "installPlanApproval": "Manual"}}])
        assert step(plan(project), "suspend")["state"] == "done"
    else:
        assert "it wasn't looked at" in suspend["seen"]
        assert suspend["remedy"]


def test_helms_secret_goes_with_a_backup_and_never_by_uninstall(project: Project) -> None:
    """What keeps the release is deleted by its labels after it was saved, then what is the operator's own (moving.md
    M6); nothing uninstalls, and the custom resources stay.
    """
    prepared(project, PLAIN)
    commands = step(plan(project), "remove")["commands"]
    text = "\n".join(commands)
    assert "uninstall" not in text
    assert "clusterpolic" not in text
    assert "-l owner=helm,name=gpu-operator" in commands[0]
    assert "get secrets" in commands[0]
    assert commands[1] == "kubectl delete secrets --namespace=gpu-operator -l owner=helm,name=gpu-operator"
    assert {each.split()[2].split("/")[0].split(".")[0] for each in commands[2:]} == {
        "deployments",
        *(f"{kind.lower()}s" for kind in BASE),
    }


def test_what_nobody_knows_to_suspend_is_refused(project: Project) -> None:
    """K3s would install the chart anew: that isn't passed over because Helm's marks are there as well."""
    objects = prepared(project, PLAIN)
    meta = {"name": "gpu", "namespace": "kube-system", "uid": "k"}
    chart = {
        "apiVersion": "helm.cattle.io/v1",
        "kind": "HelmChart",
        "metadata": meta,
        "spec": {"chart": "gpu-operator"},
    }
    write(project, [*objects, chart])
    found = plan(project)
    suspend = step(found, "suspend")
    assert (found["installedBy"]["way"], suspend["state"], suspend["commands"]) == ("k3s", "later", [])
    assert "without uninstalling" in suspend["remedy"]


ENGINES: dict[str, Body] = {
    "argocd": {"argocd": {"destination": {"server": "https://kubernetes.default.svc"}}},
    "flux": {"flux": {"secretName": "key"}},
}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_applies_what_it_then_owns(engine: str, project: Project) -> None:
    """With an engine in the policy nothing is applied by hand: the reconciler waits at 0, the root is applied, and the
    fields become those of the engine's own manager. Flux takes them over by itself when it is told from whom (moving.md
    M6).
    """
    repository = {"url": "https://git.example.com/gpu.git"}
    gitops = {"engine": engine, "repository": repository, **ENGINES[engine]}
    objects = prepared(project, PLAIN, gitops=gitops, reconciler={"image": "example.com/reconciler:1"})
    apply = step(plan(project), "apply")["commands"]
    assert not any(each.startswith("kubectl apply") for each in apply)
    assert "spec.reconciler.replicas: 0" in apply[1]
    assert apply[-1] == "gpustack bootstrap x | kubectl apply --server-side -f -"
    told = [each for each in apply if "--override-manager=gpu-operator" in each]
    assert [each.split()[2] for each in told] == ["deployments.apps/kustomize-controller"] * (engine == "flux")
    assert project.run("render").code == 0
    manager = {"argocd": "argocd-controller", "flux": "kustomize-controller"}[engine]
    entries = [{"manager": "helm", "operation": "Update"}, {"manager": manager, "operation": "Apply"}]
    write(project, applied(objects, project, entries))
    commands = step(plan(project), "takeover")["commands"]
    patch = json.loads(next(shlex.split(each)[-1] for each in commands if "daemonsets.apps/nvidia-mig" in each))
    assert {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": manager} in patch
    again = [each for each in commands if not each.startswith("kubectl")]
    assert again[0].startswith({"argocd": "argocd app sync argocd/", "flux": "flux reconcile kustomization "}[engine])
