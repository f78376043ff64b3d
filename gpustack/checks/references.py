"""Does everything that a resource names exist?

A pod that names a missing ConfigMap waits forever in ContainerCreating, a binding to a missing ServiceAccount grants
nothing, a ServiceMonitor whose port is misspelt scrapes nothing: none of it is an error to the API server. So every
name is looked up in the render and in the policy's `references`.

`provided` and `needed` look at one body each, so that their answers can be kept with the body; `missing` joins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..model import Body, Finding

BUILT_IN = {("PriorityClass", "system-node-critical"), ("PriorityClass", "system-cluster-critical")}
BUILT_IN_ACCOUNT = "default"
DEFAULT_ACCESS = {"cluster-admin", "admin", "edit", "view"}


class Provided(NamedTuple):
    """An object that exists: KEYS are the keys of a ConfigMap or Secret, the ports of a Service, or the pod labels of a
    workload as "key=value"; None = not known."""

    kind: str
    namespace: str
    name: str
    keys: list[str] | None = None


class Needed(NamedTuple):
    """An object that somebody names.

    BY says who and where; with KEYS, these must be in it (for the kind Pods: labels).
    """

    kind: str
    namespace: str
    name: str
    by: str
    keys: list[str] | None = None
    optional: bool = False


def provided(body: Body) -> Iterator[Provided]:
    """What the existence of BODY satisfies."""
    kind, meta = body["kind"], body["metadata"]
    namespace, keys = meta.get("namespace", ""), None
    if kind in {"ConfigMap", "Secret"}:
        keys = sorted({*body.get("data", {}), *body.get("binaryData", {}), *body.get("stringData", {})})
    elif kind == "Service":
        keys = [str(port.get("name", port["port"])) for port in body["spec"].get("ports", [])]
    yield Provided(kind, namespace, meta["name"], keys)
    template = pod_template(body)
    if template is not None:
        labels = template.get("metadata", {}).get("labels", {})
        yield Provided("Pods", namespace, meta["name"], [f"{key}={value}" for key, value in labels.items()])
    if kind == "Service":
        labels = meta.get("labels", {})
        ports = [f"port:{name}" for name in keys or []]
        yield Provided(
            "Services", namespace, meta["name"], [*(f"{key}={value}" for key, value in labels.items()), *ports]
        )


def pod_template(body: Body) -> Body | None:
    """The pod template of a workload (the body itself for a Pod), or None for anything else."""
    if body["kind"] == "Pod":
        return body
    if body["kind"] == "CronJob":
        return dict(body["spec"]["jobTemplate"]["spec"]["template"])
    template = body.get("spec", {}).get("template") if isinstance(body.get("spec"), dict) else None
    return template if isinstance(template, dict) and "spec" in template else None


def needed(body: Body) -> Iterator[Needed]:
    """Every object that BODY names."""
    kind, meta = body["kind"], body["metadata"]
    namespace, by = meta.get("namespace", ""), f"{body['kind']}/{meta['name']}"
    template = pod_template(body)
    if template is not None:
        yield from pod_needs(template["spec"], namespace, by)
    if kind in {"RoleBinding", "ClusterRoleBinding"}:
        role = body["roleRef"]
        where = namespace if role["kind"] == "Role" else ""
        if role["name"] not in DEFAULT_ACCESS:
            yield Needed(role["kind"], where, role["name"], f"{by}: roleRef")
        for subject in body.get("subjects", []):
            if subject["kind"] == "ServiceAccount" and subject.get("namespace", namespace) == namespace:
                yield Needed("ServiceAccount", namespace, subject["name"], f"{by}: subjects")
    elif kind == "Service" and body["spec"].get("selector"):
        yield Needed(
            "Pods",
            namespace,
            "",
            f"{by}: selector",
            [f"{key}={value}" for key, value in body["spec"]["selector"].items()],
        )
    elif kind == "ServiceMonitor":
        yield from monitor_needs(body, namespace, by)


def monitor_needs(body: Body, namespace: str, by: str) -> Iterator[Needed]:
    """The Services, and their ports, that a ServiceMonitor selects."""
    spec = body["spec"]
    labels = [f"{key}={value}" for key, value in spec.get("selector", {}).get("matchLabels", {}).items()]
    for where in spec.get("namespaceSelector", {}).get("matchNames", [namespace]):
        for endpoint in spec.get("endpoints", []):
            port = [f"port:{endpoint['port']}"] if "port" in endpoint else []
            yield Needed("Services", where, "", f"{by}: selector and port", [*labels, *port])


def pod_needs(spec: Body, namespace: str, by: str) -> Iterator[Needed]:
    """What a PodSpec names."""
    for key, kind, where in (
        ("serviceAccountName", "ServiceAccount", namespace),
        ("runtimeClassName", "RuntimeClass", ""),
        ("priorityClassName", "PriorityClass", ""),
    ):
        if spec.get(key):
            yield Needed(kind, where, spec[key], f"{by}: {key}")
    for secret in spec.get("imagePullSecrets", []):
        yield Needed("Secret", namespace, secret["name"], f"{by}: imagePullSecrets")
    for volume in spec.get("volumes", []):
        yield from volume_needs(volume, namespace, f"{by}: volume {volume['name']}")
    for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        yield from container_needs(container, namespace, f"{by}: container {container['name']}")


def volume_needs(volume: Body, namespace: str, by: str) -> Iterator[Needed]:
    """The ConfigMaps, Secrets and claims behind a volume."""
    sources = [volume, *volume.get("projected", {}).get("sources", [])]
    for source in sources:
        for key, kind, name in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            found = source.get(key)
            if found:
                items = [item["key"] for item in found.get("items", [])] or None
                yield Needed(
                    kind, namespace, found.get(name) or found.get("name", ""), by, items, bool(found.get("optional"))
                )
    if volume.get("persistentVolumeClaim"):
        yield Needed("PersistentVolumeClaim", namespace, volume["persistentVolumeClaim"]["claimName"], by)


def container_needs(container: Body, namespace: str, by: str) -> Iterator[Needed]:
    """The ConfigMaps and Secrets that a container's environment is taken from."""
    for source in container.get("envFrom", []):
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if key in source:
                yield Needed(
                    kind, namespace, source[key]["name"], f"{by}: envFrom", None, bool(source[key].get("optional"))
                )
    for entry in container.get("env", []):
        for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            found = entry.get("valueFrom", {}).get(key)
            if found:
                yield Needed(
                    kind,
                    namespace,
                    found["name"],
                    f"{by}: env {entry['name']}",
                    [found["key"]],
                    bool(found.get("optional")),
                )


def missing(
    have: Iterable[Provided], need: Iterable[Needed], references: Iterable[Mapping[str, Any]], namespace: str
) -> Iterator[Finding]:
    """Findings for what is named and not there.

    REFERENCES are the policy's; without a namespace they mean NAMESPACE.
    """
    exact: dict[tuple[str, str, str], list[str] | None] = {}
    sets: dict[tuple[str, str], list[set[str]]] = {}
    for there in have:
        if there.kind in {"Pods", "Services"}:
            sets.setdefault((there.kind, there.namespace), []).append(set(there.keys or []))
        else:
            exact[there.kind, there.namespace, there.name] = there.keys
    for reference in references:
        for where in (reference.get("namespace") or namespace, ""):
            exact.setdefault((reference["kind"], where, reference["name"]), reference.get("keys") or None)
    for item in need:
        if item.kind in {"Pods", "Services"}:
            found = any(set(item.keys or []) <= labels for labels in sets.get((item.kind, item.namespace), []))
            if not found:
                yield nothing_selected(item)
        elif not item.optional and (item.kind, item.name) not in BUILT_IN and not default_account(item):
            yield from lookup(item, exact)


def default_account(item: Needed) -> bool:
    """Whether ITEM is the ServiceAccount that every namespace has."""
    return item.kind == "ServiceAccount" and item.name == BUILT_IN_ACCOUNT


def lookup(item: Needed, exact: Mapping[tuple[str, str, str], list[str] | None]) -> Iterator[Finding]:
    """Findings when the object that ITEM names, or one of the keys it uses, is not there."""
    identity = (item.kind, item.namespace, item.name)
    if identity not in exact:
        yield Finding(
            "GPU201",
            "error",
            f"{item.kind} {item.name!r} does not exist",
            path="spec.references",
            why=f"{item.by} names it, and it is neither rendered nor listed under spec.references; the pod "
            "or binding would wait for it",
            remedy="add it to spec.extraObjects, or, if something else creates it, to spec.references: "
            f"{{kind: {item.kind}, name: {item.name}}}",
        )
        return
    keys = exact[identity]
    for key in sorted(set(item.keys or []) - set(keys)) if keys is not None else ():
        yield Finding(
            "GPU202",
            "error",
            f"{item.kind} {item.name!r} has no key {key!r}",
            path="spec.references",
            why=f"{item.by} uses it; the object has only {', '.join(keys or []) or 'no keys'}",
            remedy=f"add the key to the {item.kind}, or to its `keys` under spec.references",
        )


def nothing_selected(item: Needed) -> Finding:
    """The finding for a selector that matches nothing."""
    what = "pods" if item.kind == "Pods" else "Service"
    return Finding(
        "GPU203",
        "error",
        f"{item.by} of {', '.join(item.keys or [])} selects no {what} of this render",
        path="spec.extraObjects",
        why="it would silently do nothing",
        remedy="correct the selector or port name",
    )
