"""Facts of Kubernetes objects, in a form in which two ways of writing the same thing are equal.

Each object becomes flat `path -> value` pairs: environment by name, mounts by path with the source of their volume,
shell snippets as the absolute paths that they mention, rights one by one. So names of volumes, the order of environment
variables and the wording of a script never count; what a container gets, sees and waits for does.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

Facts = dict[str, Any]

DROPPED_LABELS = {"helm.sh/chart", "app.kubernetes.io/managed-by"}
DROPPED_ANNOTATIONS = {"nvidia.com/last-applied-hash"}
DROPPED_ENV = {"DRIVER_CONFIG_DIGEST"}
OWN_INIT = "gpustack-"
"""Init containers that are ours on purpose (components/parts/validation.py says why)."""
ABOUT_THE_OPERATOR = {
    "Service/gpu-operator",
    "ServiceMonitor/gpu-operator",
    "PrometheusRule/nvidia-gpu-operator-metrics",
}
API_DEFAULTS: dict[str, Any] = {
    "protocol": "TCP",
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "sessionAffinity": "None",
    "type": "ClusterIP",
    "periodSeconds": 10,
    "timeoutSeconds": 1,
    "successThreshold": 1,
    "failureThreshold": 3,
    "initialDelaySeconds": 0,
    "maxSurge": 0,
    "minReadySeconds": 0,
    "defaultMode": 420,
    "mode": 420,
    "internalTrafficPolicy": "Cluster",
    "schedulerName": "default-scheduler",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "allowPrivilegeEscalation": True,
}
MORE_IS_FINE = ("labels.", "annotations.", "pod.labels.", "pod.annotations.")
SHELLS = {"/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash", "/dev/null"}
SNIPPET = re.compile(r"[;&|]|\$\(|\bwhile\b|\buntil\b|\bif\b|\n")
PATHS = re.compile(r"(?<![\w.])/(?:[\w.\-]+/)*[\w.\-]+")
POD_FIELDS = (
    "nodeSelector",
    "affinity",
    "priorityClassName",
    "runtimeClassName",
    "hostPID",
    "hostNetwork",
    "hostIPC",
    "dnsPolicy",
    "serviceAccountName",
    "securityContext",
    "terminationGracePeriodSeconds",
    "restartPolicy",
    "shareProcessNamespace",
)


def facts_of(objects: Iterable[Mapping[str, Any]]) -> dict[str, Facts]:
    """Facts by "Kind/name" of OBJECTS."""
    found: dict[str, Facts] = {}
    for item in objects:
        name, facts = item["metadata"]["name"], object_facts(item)
        if f"{item['kind']}/{name}" in ABOUT_THE_OPERATOR:
            continue
        if f"{item['kind']}/{name}" == "ConfigMap/nvidia-driver-startup-probe":
            facts.pop("labels.app", None)  # the operator hashes the UID of an object into it
        per_driver = item["kind"] == "DaemonSet" and re.match(r"nvidia-(gpu|vgpu|vgpu-host-manager)-driver-", name)
        if per_driver:  # likewise; the nodes that it selects tell which one it is
            selects = item["spec"]["template"]["spec"].get("nodeSelector") or {}
            name = (
                f"{per_driver[0]}<{','.join(f'{k}={v}' for k, v in sorted(selects.items()) if 'gpu.deploy' not in k)}>"
            )
            facts = {path: value for path, value in facts.items() if not path.endswith(("abels.app", "Labels.app"))}
        found[f"{item['kind']}/{name}"] = facts
    return found


def object_facts(item: Mapping[str, Any]) -> Facts:
    """The facts of one object."""
    meta, kind = item["metadata"], item["kind"]
    facts: Facts = {
        "labels": {k: v for k, v in (meta.get("labels") or {}).items() if k not in DROPPED_LABELS},
        "annotations": {k: v for k, v in (meta.get("annotations") or {}).items() if k not in DROPPED_ANNOTATIONS},
    }
    if kind in {"DaemonSet", "Deployment", "Job", "StatefulSet"}:
        facts |= workload_facts(item["spec"])
    elif kind in {"Role", "ClusterRole"}:
        facts["grants"] = dict.fromkeys(sorted(grants(item.get("rules") or [])), True)
    elif kind in {"RoleBinding", "ClusterRoleBinding"}:
        facts["roleRef"] = item.get("roleRef")
        facts["subjects"] = sorted(
            _text({k: v for k, v in s.items() if k != "apiGroup"}) for s in item.get("subjects") or []
        )
    elif kind == "ConfigMap":
        for key, text in (item.get("data") or {}).items():
            facts[f"data<{key}>"] = "script" if text.lstrip().startswith("#!") else config_facts(text)
    else:
        facts |= {key: value for key, value in item.items() if key not in {"apiVersion", "kind", "metadata", "status"}}
    out: Facts = {"present": True, "apiVersion": item.get("apiVersion")}
    flatten({k: v for k, v in facts.items() if v not in (None, {}, [], "")}, "", out)
    return out


def workload_facts(spec: Mapping[str, Any]) -> Facts:
    """The facts of a workload's spec."""
    template = spec.get("template") or {}
    meta = template.get("metadata") or {}
    return {
        "selector": spec.get("selector"),
        "updateStrategy": spec.get("updateStrategy"),
        "minReadySeconds": spec.get("minReadySeconds"),
        "pod.labels": {k: v for k, v in (meta.get("labels") or {}).items() if k not in DROPPED_LABELS},
        "pod.annotations": meta.get("annotations"),
        "pod": pod_facts(template.get("spec") or {}),
    }


def grants(rules: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Each right of RULES on its own: group/resource=names:verb."""
    for rule in rules:
        names = "=" + "+".join(rule["resourceNames"]) if rule.get("resourceNames") else ""
        for group in rule.get("apiGroups") or [""]:
            for resource in rule.get("resources") or rule.get("nonResourceURLs") or []:
                yield from (f"{group}/{resource}{names}:{verb}" for verb in rule.get("verbs") or [])


def pod_facts(spec: Mapping[str, Any]) -> Facts:
    """The facts of a PodSpec."""
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or []}
    facts: Facts = {key: spec[key] for key in POD_FIELDS if spec.get(key)}
    init = [c for c in spec.get("initContainers") or [] if not c["name"].startswith(OWN_INIT)]
    facts["tolerations"] = sorted({_text(toleration) for toleration in spec.get("tolerations") or []})
    facts["imagePullSecrets"] = [secret["name"] for secret in spec.get("imagePullSecrets") or []]
    facts["initOrder"] = [container["name"] for container in init]
    for short, group in (("init", init), ("container", spec.get("containers") or [])):
        facts |= {f"{short}<{container['name']}>": container_facts(container, volumes) for container in group}
    return facts


def container_facts(container: Mapping[str, Any], volumes: Mapping[str, Any]) -> Facts:
    """The facts of one container."""
    plain = ("image", "securityContext", "resources", "ports", "workingDir", "stdin", "tty")
    facts: Facts = {key: container[key] for key in plain if container.get(key)}
    facts["pullPolicy"] = container.get("imagePullPolicy")
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    if any(SNIPPET.search(str(word)) for word in words):
        facts["run"] = script(words)
    else:
        facts |= {key: script(container[key]) for key in ("command", "args") if container.get(key)}
    facts["env"] = environment(container)
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if container.get(probe):
            body = dict(container[probe])
            facts[probe] = body | ({"exec": script(body["exec"].get("command"))} if "exec" in body else {})
    for hook, body in (container.get("lifecycle") or {}).items():
        facts[f"lifecycle.{hook}"] = script((body.get("exec") or {}).get("command"))
    facts["mounts"] = {}
    for mount in container.get("volumeMounts") or []:
        where = mount["mountPath"] + (f":{mount['subPath']}" if mount.get("subPath") else "")
        facts["mounts"][f"<{where}>"] = {
            "from": source_of(volumes.get(mount["name"], {})),
            "readOnly": bool(mount.get("readOnly")),
            "propagation": mount.get("mountPropagation", "None"),
        }
    return facts


def environment(container: Mapping[str, Any]) -> Facts:
    """Environment by name; what comes from a Secret or ConfigMap as a whole under its reference."""
    entries = [entry for entry in container.get("env") or [] if entry["name"] not in DROPPED_ENV]
    found: Facts = {
        entry["name"]: entry["valueFrom"] if entry.get("valueFrom") else str(entry.get("value", ""))
        for entry in entries
    }
    return found | {f"from:{_text(entry)}": True for entry in container.get("envFrom") or []}


def script(words: Any) -> Any:
    """A command line, or the sorted paths that its shell snippet mentions."""
    words = [str(word) for word in words or []]
    if any(SNIPPET.search(word) for word in words):
        return {"shell": sorted({path for word in words for path in PATHS.findall(word)} - SHELLS)}
    return words


def source_of(volume: Mapping[str, Any]) -> Facts:
    """Where a volume comes from."""
    for kind, found in volume.items():
        body = found or {}
        if kind == "hostPath":
            return {"hostPath": body.get("path"), "type": body.get("type", "")}
        if kind == "configMap":
            return {
                "configMap": body.get("name"),
                "items": body.get("items"),
                "optional": body.get("optional", False),
                "mode": body.get("defaultMode"),
            }
        if kind != "name":
            return {kind: body}
    return {}


def config_facts(text: str) -> Any:
    """A configuration file as data, or the word text for anything else."""
    try:
        parsed = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError:
        parsed = None
    return parsed if isinstance(parsed, (dict, list)) else "text"


def flatten(value: Any, path: str, out: Facts) -> None:
    """Write the leaves of VALUE into OUT by dotted path; what is empty, or what the API would default, is left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            flatten(item, f"{path}.{key}" if path else str(key), out)
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for index, item in enumerate(value):
            flatten(item, f"{path}[{index}]", out)
    elif isinstance(value, list):
        if value:
            out[path] = value
    elif value is not None and not defaulted(path, value):
        out[path] = quantity(value) if re.search(r"resources\.(limits|requests)\.", path) else value


def defaulted(path: str, value: Any) -> bool:
    """Whether the API server would fill in VALUE at PATH anyway."""
    key = path.rsplit(".", 1)[-1]
    if key in API_DEFAULTS and type(API_DEFAULTS[key]) is type(value):
        return bool(API_DEFAULTS[key] == value)
    return (key == "apiVersion" and value == "v1" and "fieldRef" in path) or (key == "maxSurge" and value == "0")


def quantity(value: Any) -> Any:
    """The number that a Kubernetes quantity stands for, so that 1000m is 1 and 1024Mi is 1Gi."""
    found = re.fullmatch(r"([0-9.]+(?:[eE][0-9+-]+)?)(m|[kMGTPE]|[KMGTPE]i)?", str(value))
    if not found:
        return value
    unit = found[2] or ""
    if unit == "m":
        scale = 0.001
    elif unit.endswith("i"):
        scale = 1024.0 ** ("KMGTPE".index(unit[0].upper()) + 1)
    else:
        scale = 1000.0 ** ("kMGTPE".index(unit) + 1) if unit else 1.0
    return round(float(found[1]) * scale, 6)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@dataclass
class Deviation:
    """A difference that is meant. In `case` and `path` only * and ? are special."""

    path: str
    reason: str
    case: str = "*"
    used: bool = field(default=False, compare=False)

    def covers(self, case: str, path: str) -> bool:
        return _matches(case, self.case) and _matches(path, self.path)


def _matches(text: str, glob: str) -> bool:
    return fnmatch.fnmatchcase(text, glob.replace("[", "[[]"))


def differences(
    case: str, expected: Mapping[str, Facts], rendered: Mapping[str, Facts], deviations: Iterable[Deviation]
) -> list[str]:
    """What is different and not meant, a line each. Objects, labels and annotations that only RENDERED has are fine."""
    found = []
    for name, want in sorted(expected.items()):
        have = rendered.get(name, {})
        facts = want if have else {"present": True}
        for path in sorted(facts.keys() | have.keys()):
            if (path not in facts and path.startswith(MORE_IS_FINE)) or (
                path in facts and path in have and facts[path] == have[path]
            ):
                continue
            full = f"{name}: {path}"
            meant = next((deviation for deviation in deviations if deviation.covers(case, full)), None)
            if meant is not None:
                meant.used = True
            else:
                found.append(f"{full}: operator {_text(facts.get(path))}, rendered {_text(have.get(path))}")
    return found
