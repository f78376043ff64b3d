"""Objects that a cluster takes, and objects that it refuses, written by hand: both validators must say so of each."""

from __future__ import annotations

from typing import Any

from gpustack.model import Body


def obj(api_version: str, kind: str, /, **fields: Any) -> Body:
    """An object called `sample` with these fields."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "sample"}, **fields}


def daemonset(container: dict[str, Any] | None = None, pod: dict[str, Any] | None = None) -> Body:
    """A DaemonSet as gpustack renders one, with fields of CONTAINER and POD added."""
    labels = {"app": "nvidia-device-plugin-daemonset"}
    main: dict[str, Any] = {
        "name": "plugin",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.19.3",
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"limits": {"cpu": 1, "memory": "1.5Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
        "ports": [{"name": "metrics", "containerPort": 9400, "protocol": "TCP"}],
        "startupProbe": {"httpGet": {"path": "/health", "port": "metrics"}, "periodSeconds": 10},
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "host", "mountPath": "/host", "mountPropagation": "HostToContainer"}],
    }
    spec: dict[str, Any] = {
        "containers": [{**main, **(container or {})}],
        "nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [{"name": "host", "hostPath": {"path": "/", "type": "Directory"}}],
    }
    return obj(
        "apps/v1",
        "DaemonSet",
        spec={
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}},
            "template": {"metadata": {"labels": labels}, "spec": {**spec, **(pod or {})}},
        },
    )


def crd(schema: dict[str, Any]) -> Body:
    """A CustomResourceDefinition with this openAPIV3Schema."""
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"kind": "NodePolicy", "listKind": "NodePolicyList", "plural": "nodepolicies", "singular": "nodepolicy"}
    spec = {"group": "gpustack.dev", "scope": "Cluster", "names": names}
    versions = [{**version, "schema": {"openAPIV3Schema": schema}}]
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec={**spec, "versions": versions})


def feature_rule(**rule: Any) -> Body:
    """A NodeFeatureRule with one rule."""
    return obj("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", spec={"rules": [{"name": "a rule", **rule}]})


def service_monitor(**endpoint: Any) -> Body:
    """A ServiceMonitor with one endpoint."""
    spec = {"selector": {"matchLabels": {"app": "nvidia-dcgm-exporter"}}, "endpoints": [endpoint]}
    return obj("monitoring.coreos.com/v1", "ServiceMonitor", spec=spec)


RBAC = "rbac.authorization.k8s.io/v1"
CLASS_A = {"class": {"op": "In", "value": ["0300", "0302"]}, "vendor": {"op": "Exists"}}
DEEP: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"x-kubernetes-int-or-string": True}}},
}

GOOD: dict[str, Body] = {
    "words left empty": daemonset({"imagePullPolicy": ""}, {"dnsPolicy": "", "nodeSelector": {"a": ""}}),
    "daemonset": daemonset(),
    "quantities as numbers and strings": daemonset(
        {"resources": {"limits": {"cpu": 0.5, "memory": "1e9", "nvidia.com/gpu": 1, "ephemeral-storage": "1G"}}}
    ),
    "int-or-string as number": daemonset({"startupProbe": {"httpGet": {"port": 8080}}}),
    "namespace": obj("v1", "Namespace"),
    "configmap with every kind of text": obj(
        "v1", "ConfigMap", data={"a.yaml": "x: 1\n---\ny: 2\n", "b": "", "c": "é\t"}
    ),
    "secret": obj("v1", "Secret", type="Opaque", data={"key": "dmFsdWU="}, stringData={"text": "not base64!"}),
    "service": obj("v1", "Service", spec={"ports": [{"port": 9400, "targetPort": "metrics"}], "clusterIP": "None"}),
    "role": obj(RBAC, "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]),
    "runtimeclass": obj("node.k8s.io/v1", "RuntimeClass", handler="nvidia"),
    "budget as percentage": obj("policy/v1", "PodDisruptionBudget", spec={"maxUnavailable": "10%"}),
    "budget as number": obj("policy/v1", "PodDisruptionBudget", spec={"maxUnavailable": 1}),
    "quota": obj("v1", "ResourceQuota", spec={"hard": {"requests.nvidia.com/gpu": "8", "pods": 10}}),
    "crd": crd({"type": "object", "properties": {"spec": DEEP}, "required": ["spec"]}),
    "crd with free fields": crd(
        {"type": "object", "additionalProperties": {"type": "string"}, "default": {"any": [1]}}
    ),
    "feature rule": feature_rule(
        labels={"nvidia.com/gpu.present": "true"},
        labelsTemplate="{{range .pci.device}}a={{.vendor}}\n{{end}}",
        vars={"a": "b"},
        varsTemplate="x=y",
        annotations={"a": "b"},
        extendedResources={"vendor.com/x": "@pci.count"},
        taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "present"}],
        matchFeatures=[{"feature": "pci.device", "matchExpressions": CLASS_A}],
        matchAny=[{"matchFeatures": [{"feature": "kernel.version", "matchName": {"op": "InRegexp", "value": ["^a"]}}]}],
    ),
    "service monitor": service_monitor(
        port="gpu-metrics", interval="15s", scheme="http", metricRelabelings=[{"action": "drop", "regex": "a|b"}]
    ),
    "prometheus rule": obj(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        spec={
            "groups": [
                {"name": "gpu", "rules": [{"alert": "A", "expr": "up == 0", "for": "5m"}, {"record": "b", "expr": 1}]}
            ]
        },
    ),
}

BAD: dict[str, tuple[Body, str]] = {
    "a word that a field does not take": (daemonset(pod={"dnsPolicy": "Clusterfirst"}), "spec.template.spec.dnsPolicy"),
    "a word in a list that it does not take": (
        obj("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "policyTypes": ["ingress"]}),
        "spec.policyTypes[0]",
    ),
    "a subject that is no subject": (
        obj(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"},
            subjects=[{"kind": "serviceaccount", "name": "a", "namespace": "b"}],
        ),
        "subjects[0].kind",
    ),
    "no containers": (daemonset(pod={"containers": []}), "spec.template.spec.containers"),
    "a container without an image": (
        daemonset(pod={"containers": [{"name": "a"}]}),
        "spec.template.spec.containers[0].image",
    ),
    "a container's name": (daemonset({"name": "My_Main"}), "spec.template.spec.containers[0].name"),
    "a label to select nodes by": (daemonset(pod={"nodeSelector": {"a": "b c"}}), "spec.template.spec.nodeSelector.a"),
    "misspelt field": (
        daemonset({"resources": {"requets": {"cpu": "1"}}}),
        "spec.template.spec.containers[0].resources.requets",
    ),
    "unknown field": (daemonset(pod={"hostNetworks": True}), "spec.template.spec.hostNetworks"),
    "unknown field at the top": (obj("v1", "ConfigMap", datas={}), "datas"),
    "number for a string": (
        daemonset({"env": [{"name": "A", "value": 1}]}),
        "spec.template.spec.containers[0].env[0].value",
    ),
    "string for a number": (
        daemonset({"ports": [{"containerPort": "9400"}]}),
        "spec.template.spec.containers[0].ports[0].containerPort",
    ),
    "string for a boolean": (daemonset(pod={"hostPID": "true"}), "spec.template.spec.hostPID"),
    "boolean for a label": (daemonset(pod={"nodeSelector": {"a": True}}), "spec.template.spec.nodeSelector.a"),
    "boolean for int-or-string": (
        daemonset({"startupProbe": {"httpGet": {"port": True}}}),
        "spec.template.spec.containers[0].startupProbe.httpGet.port",
    ),
    "fraction for int-or-string": (
        obj("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1.5}),
        "spec.minAvailable",
    ),
    "text for a quantity": (
        daemonset({"resources": {"limits": {"memory": "8GB"}}}),
        "spec.template.spec.containers[0].resources.limits.memory",
    ),
    "missing selector": (obj("apps/v1", "DaemonSet", spec={"template": {}}), "spec.selector"),
    "missing name": ({"apiVersion": "v1", "kind": "Namespace", "metadata": {}}, "metadata.name"),
    "null": (obj("v1", "ConfigMap", data=None), "data"),
    "one for a list": (daemonset({"args": "--version"}), "spec.template.spec.containers[0].args"),
    "secret with plain text": (obj("v1", "Secret", data={"key": "hunter 2!"}), "data.key"),
    "crd with a misspelt keyword": (
        crd({"type": "object", "properties": {"spec": {"type": "object", "propertees": {}}}}),
        "spec.versions[0].schema.openAPIV3Schema.properties.spec.propertees",
    ),
    "crd with a misspelt keyword among alternatives": (
        crd({"type": "array", "items": {"typ": "string"}}),
        "spec.versions[0].schema.openAPIV3Schema.items.typ",
    ),
    "kind in small letters": (obj("v1", "configmap"), "kind"),
    "feature rule with a number": (
        feature_rule(matchFeatures=[{"feature": "a", "matchExpressions": {"b": {"op": "In", "value": [1000]}}}]),
        "spec.rules[0].matchFeatures[0].matchExpressions.b.value[0]",
    ),
    "feature rule with an unknown operator": (
        feature_rule(matchFeatures=[{"feature": "a", "matchName": {"op": "Equals"}}]),
        "spec.rules[0].matchFeatures[0].matchName.op",
    ),
    "service monitor with a wrong interval": (service_monitor(interval="15 seconds"), "spec.endpoints[0].interval"),
    "service monitor with an unknown field": (service_monitor(prot="x"), "spec.endpoints[0].prot"),
    "prometheus rule without an expression": (
        obj("monitoring.coreos.com/v1", "PrometheusRule", spec={"groups": [{"name": "g", "rules": [{"alert": "A"}]}]}),
        "spec.groups[0].rules[0].expr",
    ),
}
"""Name -> object, and the place of what is wrong in it."""

UNKNOWN: dict[str, Body] = {
    "misspelt kind": obj("apps/v1", "DeamonSet"),
    "old version": obj("apps/v1beta1", "DaemonSet"),
    "kind of nobody": obj("example.com/v1", "Widget"),
}
