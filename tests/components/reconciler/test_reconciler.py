"""The reconciler's program: its pods, exactly its rights, and what watches over both (reconciler.md 6.8)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gpustack.api import keys
from gpustack.catalog._data import load
from gpustack.catalog.health import rules as rules_of
from gpustack.cluster.resolve import resolve
from gpustack.components.reconciler.reconciler import EVENTS
from gpustack.components.reconciler.reconciler_inputs import from_cluster
from gpustack.policy.configurations.promql import named
from tests.components.common import env, grants, spec
from tests.components.reconciler.common import IMAGE, POOL, program, specs

NAME = "gpustack-reconciler"
POLICY = f"ValidatingAdmissionPolicy/{NAME}-nodes"


def pod(reconciler: dict[str, Any] | None = None, **sections: Any) -> Any:
    """The pod spec of the program."""
    return program(reconciler, **sections)[f"Deployment/{NAME}"]["spec"]["template"]["spec"]


def test_rights() -> None:
    """The program may do what it does and no more: pods are deleted and Leases written in its own namespace only,
    Events in that of nodes' Events only; of ConfigMaps it has one, by name, and no Secret is read."""
    bodies = program()
    cluster, here = bodies[f"ClusterRole/{NAME}"], bodies[f"Role/{NAME}"]
    assert grants(cluster) == {
        *("nodes:get", "nodes:list", "nodes:watch", "nodes:patch"),
        *("nodepolicies:get", "nodepolicies:list", "nodepolicies:watch"),
        *("nodepolicies/status:patch", "nodepolicies/status:update"),
        *("pods:get", "pods:list", "pods:watch", "pods/eviction:create"),
        *("resourceclaims:get", "resourceclaims:list"),
    }
    events, binding = bodies[f"Role/{NAME}-events"], bodies[f"RoleBinding/{NAME}-events"]
    assert grants(events) == {"events:create"}
    assert events["metadata"]["namespace"] == binding["metadata"]["namespace"] == EVENTS
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "gpu-operator"}]
    assert grants(here) == {
        "pods:delete",
        *(f"{kind}:{verb}" for kind in ("daemonsets", "controllerrevisions") for verb in ("get", "list", "watch")),
        *("deployments:list", "deployments:watch", "leases:create"),
        *(f"leases={NAME}:{verb}" for verb in ("get", "list", "patch", "update")),
        *(f"configmaps=gpustack-mig-layouts:{verb}" for verb in ("get", "list", "patch", "watch")),
    }
    groups = {rule["apiGroups"][0] for body in (cluster, here) for rule in body["rules"]}
    assert groups == {"", "gpustack.dev", "resource.k8s.io", "apps", "coordination.k8s.io"}


def test_pods() -> None:
    """Two copies on different nodes, as nobody in particular and with nothing of the node; a drain that the program
    makes spares it."""
    body = program()[f"Deployment/{NAME}"]["spec"]
    assert body["replicas"] == 2
    assert body["template"]["metadata"]["labels"][keys.DRAIN_SKIP] == "true"
    found = body["template"]["spec"]
    (container,) = found["containers"]
    assert container["image"] == IMAGE
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert env(container) == {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
    assert container["command"] == ["python", "-m", "gpustack.reconciler"]
    assert container["args"] == ["--namespace", "$(POD_NAMESPACE)", "--probe-port", "8081"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 8081}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 8081}
    assert not {"volumes", "hostNetwork", "hostPID"} & found.keys()
    (term,) = found["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"


def test_what_the_policy_says() -> None:
    """Image, pulling, replicas, resources, place and priority are the policy's; mirrors hold for this image too."""
    said = {
        "repository": "docker.example/gpu",
        "image": "reconciler",
        "version": "7",
        "imagePullPolicy": "Always",
        "imagePullSecrets": ["s"],
        "replicas": 3,
        "resources": {"limits": {"memory": "1Gi"}},
        "priorityClassName": "mine",
        "nodeSelector": {"infra": "true"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
    }
    found = pod(said, cluster={"registryMap": {"docker.example": "mirror.example"}})
    (container,) = found["containers"]
    assert container["image"] == "mirror.example/gpu/reconciler:7"
    assert (container["imagePullPolicy"], found["imagePullSecrets"]) == ("Always", [{"name": "s"}])
    assert container["resources"] == {"limits": {"memory": "1Gi"}, "requests": {"cpu": "50m", "memory": "64Mi"}}
    assert (found["priorityClassName"], found["nodeSelector"]) == ("mine", {"infra": "true"})
    assert found["tolerations"] == [{"key": "infra", "operator": "Exists"}]
    assert program(said)[f"Deployment/{NAME}"]["spec"]["replicas"] == 3
    assert program({**said, "replicas": 0})[f"Deployment/{NAME}"]["spec"]["replicas"] == 0
    assert "tolerations" not in pod({"tolerations": []})
    assert {taint["key"] for taint in pod()["tolerations"]} == {
        "node-role.kubernetes.io/control-plane",
        "nvidia.com/gpu",
    }


def test_off() -> None:
    """Without the section, or with labels by node feature discovery, there is no program."""
    assert from_cluster(resolve(spec(nodePools=[POOL]))) is None
    assert from_cluster(resolve(spec(nodePools=[POOL], reconciler={"labelling": "nodeFeatureRule"}))) is None
    assert program({"labelling": "none"})


def test_disruption_budget() -> None:
    """One copy may go at a time."""
    found = program()[f"PodDisruptionBudget/{NAME}"]["spec"]
    assert (found["maxUnavailable"], found["selector"]) == (1, {"matchLabels": {"app": NAME}})


def test_the_lease_comes_first() -> None:
    """Requests for the Lease, and nothing else, are served with those of other leaders (A18), unless that is off."""
    found = program()[f"FlowSchema/{NAME}-lease"]["spec"]
    assert found["priorityLevelConfiguration"] == {"name": "leader-election"}
    (rule,) = found["rules"]
    (resources,) = rule["resourceRules"]
    assert (resources["resources"], resources["namespaces"]) == (["leases"], ["gpu-operator"])
    assert rule["subjects"] == [
        {"kind": "ServiceAccount", "serviceAccount": {"name": NAME, "namespace": "gpu-operator"}}
    ]
    assert not [key for key in program({"flowSchema": False}) if key.startswith("FlowSchema")]


def test_admission_policy() -> None:
    """The API server holds the program to its keys (A19): all of keys.py that it may change, none that others own. It
    fails closed, and speaks of this account only."""
    found = program(cluster={"namespace": "gpus"})[POLICY]["spec"]
    assert found["failurePolicy"] == "Fail"
    (condition,) = found["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == 'system:serviceaccount:gpus:{NAME}'"
    (rule,) = found["matchConstraints"]["resourceRules"]
    assert (rule["resources"], rule["operations"]) == (["nodes"], ["UPDATE"])
    gpu, labels, annotations, fields, taints = (check["expression"] for check in found["validations"])
    assert all(f"'{key}'" in gpu for key in (*keys.GPU_FEATURES, keys.PRESENT))
    for key in (keys.DEPLOY, keys.PRESENT, keys.MIG_CONFIG, keys.PLUGIN_CONFIG, keys.VGPU_CONFIG, keys.DRIVER_OWNER):
        assert f"'{key}'" in labels
    for key in (keys.PRODUCT, keys.MIG_CAPABLE, keys.GUEST_DRIVER, "node-role"):
        assert key not in labels
    for key in (keys.UPGRADES_ENABLED, *keys.UPSTREAM_ANNOTATIONS, keys.SCALE_DOWN_DISABLED, keys.DO_NOT_DISRUPT):
        assert f"'{key}'" in annotations
    assert "providerID" in fields
    assert "unschedulable" not in fields
    assert "example.com/wait" not in taints
    waiting = program({"startupTaints": [{"key": "example.com/wait", "effect": "NoSchedule"}]})[POLICY]["spec"]
    assert "(a.key == 'example.com/wait' && a.effect == 'NoSchedule')" in waiting["validations"][-1]["expression"]
    binding = program()[f"ValidatingAdmissionPolicyBinding/{NAME}-nodes"]["spec"]
    assert binding == {"policyName": f"{NAME}-nodes", "validationActions": ["Deny"]}


@pytest.mark.parametrize(
    ("reconciler", "version", "there"),
    [({}, "1.30", True), ({}, "1.29", False), ({"admissionPolicy": False}, "1.34", False)],
)
def test_admission_policy_can_be_missing(reconciler: dict[str, Any], version: str, there: bool) -> None:
    """Older API servers don't know the kind, and a policy may do without."""
    assert (POLICY in program(reconciler, cluster={"kubernetesVersion": version})) is there


def test_it_makes_no_lease_of_others() -> None:
    """A right to create knows no names: the API server holds it to the name of its own Lease."""
    found = program()[f"ValidatingAdmissionPolicy/{NAME}-lease"]["spec"]
    (rule,), (check,) = found["matchConstraints"]["resourceRules"], found["validations"]
    assert (rule["resources"], rule["operations"]) == (["leases"], ["CREATE"])
    assert f"== '{NAME}'" in check["expression"]


def test_monitoring() -> None:
    """Metrics are scraped and alerts raised where the Prometheus operator is; each alert speaks of metrics that the
    program has, and a node counts as stuck after the longest deadline."""
    assert not [key for key in program() if key.startswith(("ServiceMonitor", "PrometheusRule"))]
    bodies = program({"deadlines": {"driver": 9000}}, cluster={"monitoring": True})
    assert f"ServiceMonitor/{NAME}" in bodies
    (group,) = bodies[f"PrometheusRule/{NAME}-alerts"]["spec"]["groups"]
    alerts = {rule["alert"].removeprefix("GPUStackReconciler"): rule for rule in group["rules"]}
    assert set(alerts) >= {"Down", "NodeStuck", "NodeQuarantined", "BreakerOpen", "NodeNotCovered", "RolloutStands"}
    metrics = {metric.name for rule in alerts.values() for metric in named(rule["expr"]).metrics}
    assert metrics == {
        f"gpustack_reconciler_{name}"
        for name in ("leader", "node_phase_since_seconds", "nodes", "breaker_open", "still_since_seconds")
    }
    assert alerts["NodeStuck"]["expr"].endswith("> 10800")


RULE = {"labels": {"app": "job", "a/b": "x_y"}, "namespace": "ml", "then": "delete"}


def test_pods_are_deleted_by_choice_alone() -> None:
    """The right to delete pods everywhere comes with a rule that says so, or with budgets that are ignored; an
    admission policy holds the program to pods of those rules, or to those that use a GPU."""
    policy, role = f"ValidatingAdmissionPolicy/{NAME}-pods", f"ClusterRole/{NAME}"
    others = [{"labels": {"app": "x"}, "then": then} for then in ("leave", "wait", "evict")]
    plain = program({"podRules": others})
    assert policy not in plain
    assert "pods:delete" not in grants(plain[role])
    ruled = program({"podRules": [RULE, *others]})
    assert "pods:delete" in grants(ruled[role])
    (found,) = ruled[policy]["spec"]["validations"]
    assert found["expression"] == (
        "request.namespace == 'gpu-operator' || (oldObject.metadata.?labels[?'a/b'].orValue('') == 'x_y' && "
        "oldObject.metadata.?labels[?'app'].orValue('') == 'job' && request.namespace == 'ml')"
    )
    (found,) = program({"podRules": [others[1], RULE]})[policy]["spec"]["validations"]
    assert found["expression"].endswith(
        "request.namespace == 'ml' && !(oldObject.metadata.?labels[?'app'].orValue('') == 'x'))"
    ), "the first rule that a pod matches counts: what is waited for isn't deleted by a later one"
    ignoring = program({"ignoreBudgetsAfterSeconds": 600})
    assert "pods:delete" in grants(ignoring[role])
    (found,) = ignoring[policy]["spec"]["validations"]
    assert "key.startsWith('nvidia.com/')" in found["expression"]
    assert "job" not in found["expression"]


@pytest.mark.parametrize(
    ("sections", "classes"),
    [
        ({}, ["nvidia", "nvidia-cdi", "nvidia-legacy"]),
        ({"cdi": {"enabled": False}, "operator": {"runtimeClass": "gpu"}}, ["gpu"]),
        ({"cdi": {"enabled": True, "nriPluginEnabled": True}}, []),
    ],
)
def test_budgets_are_ignored_for_gpus_alone(sections: dict[str, Any], classes: list[str]) -> None:
    """A pod of another RuntimeClass, a sandbox for example, is none that uses a GPU: the API server holds the program
    to the classes that NodePolicies name, and to NVIDIA's resources by their domain."""
    ignoring: dict[str, Any] = {"ignoreBudgetsAfterSeconds": 600}
    (found,) = program(ignoring, **sections)[f"ValidatingAdmissionPolicy/{NAME}-pods"]["spec"]["validations"]
    told = re.findall(r"runtimeClassName[^|]*?(?=\)? \|\|)", found["expression"])
    names = ", ".join(f"'{name}'" for name in classes)
    assert told == ([f"runtimeClassName.orValue('') in [{names}]"] if classes else [])
    assert [each["gpu"]["runtimeClasses"] for each in specs(ignoring, **sections).values()] == [classes]
    assert "key in [" not in found["expression"]


def test_kured() -> None:
    """It may see the one DaemonSet that the policy names and nothing else there, and change nothing of it: whoever may
    write its annotations may make its pods run anything on every node."""
    bodies = program({"kured": {"namespace": "reboots"}})
    role, binding = (bodies[f"{kind}/{NAME}-kured"] for kind in ("Role", "RoleBinding"))
    assert grants(role) == {"daemonsets=kured:list", "daemonsets=kured:watch"}
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "reboots"
    (container,) = bodies[f"Deployment/{NAME}"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-2:] == ["--kured", "reboots/kured"]
    assert not [name for name in program() if "kured" in name]


def test_shared_maintenance() -> None:
    """It may write Leases in the namespace that the policy names, where it makes those of nodes only; without the field
    nothing of it is rendered."""
    bodies = program({"maintenanceLeaseNamespace": "medik8s-leases"})
    role, binding = (bodies[f"{kind}/{NAME}-maintenance"] for kind in ("Role", "RoleBinding"))
    assert grants(role) == {f"leases:{verb}" for verb in ("create", "list", "patch", "watch")}
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "medik8s-leases"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "gpu-operator"}]
    (container,) = bodies[f"Deployment/{NAME}"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-2:] == ["--maintenance-leases", "medik8s-leases"]
    (allowed,) = bodies[f"ValidatingAdmissionPolicy/{NAME}-lease"]["spec"]["validations"]
    assert allowed["expression"] == (
        f"object.metadata.?name.orValue('') == '{NAME}' || "
        "request.namespace == 'medik8s-leases' && object.metadata.?name.orValue('').startsWith('node-')"
    )
    assert not [name for name in program() if "maintenance" in name]


SAID = {
    "NvidiaGpuFatal": "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "NvidiaGpuReset": "NVRM: Xid (PCI:0000:05:00): 48, pid=1204, An uncorrectable double bit error (DBE)",
    "NvidiaGpuDegraded": "NVRM: Xid (PCI:0000:c1:00): 63, name=python3, Row Remapper: New row marked",
    "": "NVRM: Xid (PCI:0000:07:00): 43, pid=4242, name=python3, Ch 00000008",
}
"""Lines of the kernel's log, as in NVIDIA's pages about XIDs, and what each sets: a fault of a program nothing."""


def test_rules_of_node_problem_detector() -> None:
    """They are rendered where its pods are, on request alone; each line of the log sets the condition that it should,
    for each condition there is a rule, and all XIDs that alerts call fatal are among them."""
    section = {"detectors": ["nodeProblemDetector"], "logMonitorNamespace": "detector"}
    body = program({"health": section})["ConfigMap/nvidia-gpu-monitor"]
    assert body["metadata"]["namespace"] == "detector"
    config = json.loads(body["data"]["nvidia-gpu-monitor.json"])
    assert (config["plugin"], {each["type"] for each in config["rules"]}) == ("kmsg", {"permanent"})
    rules = {each["condition"]: each["pattern"] for each in config["rules"]}
    known = {each["type"] for each in rules_of("nodeProblemDetector")}
    assert rules.keys() == {each["type"] for each in config["conditions"]} == known
    for condition, line in SAID.items():
        assert [name for name, pattern in rules.items() if re.fullmatch(pattern, line)] == [condition] * bool(condition)
    fatal = [re.findall(r"\d+", rules[name].partition("): (")[2]) for name in ("NvidiaGpuFatal", "NvidiaGpuReset")]
    assert {int(xid) for xids in fatal for xid in xids} == set(load("alerts")["fatal_xids"])
    assert "ConfigMap/nvidia-gpu-monitor" not in program({"health": {"detectors": ["nodeProblemDetector"]}})
