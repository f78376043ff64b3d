"""Does everything that a resource names exist?

A pod that names a missing ConfigMap waits forever in ContainerCreating, a binding to a missing ServiceAccount grants
nothing, a ServiceMonitor whose port is misspelt scrapes nothing: none of it is an error to the API server. So every
name is looked up in the render and in the policy's `references`.

`provided` and `needed` look at one body each, so that their answers can be kept with the body; `missing` joins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..model import Body, Finding
from . import claims

BUILT_IN = {
    ("PriorityClass", "system-node-critical"),
    ("PriorityClass", "system-cluster-critical"),
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
    *(("ClusterRole", name) for name in ("cluster-admin", "admin", "edit", "view")),
}
"""What every cluster has, or every namespace of it."""

PLATFORM = ("kube-", "openshift-")
"""Namespaces of the cluster itself begin with these: what is in them is the platform's to know."""

INJECTED = "config.openshift.io/inject-trusted-cabundle"
"""The label of a ConfigMap that OpenShift fills: its keys are not known here."""

ACCOUNT_USER = "system:serviceaccount:"
SELECTABLE = {
    **dict.fromkeys(("Pod", "DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob"), "Pods"),
    "Service": "Services",
}
"""What a reference of a kind may be selected as."""

ANYWHERE = "*"
Identity = tuple[str, str, str]
"""Kind, namespace ("" for none) and name."""


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
    if kind in {"ConfigMap", "Secret"} and INJECTED not in meta.get("labels", {}):
        keys = sorted({*body.get("data", {}), *body.get("binaryData", {}), *body.get("stringData", {})})
    elif kind == "Service":
        keys = [str(port.get("name", port["port"])) for port in body["spec"].get("ports", [])]
    yield Provided(kind, namespace, meta["name"], keys)
    if claims.made_of(body):
        yield Provided("ResourceClaimTemplate", namespace, claims.made_of(body))
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
    for name in claims.named_by(body):
        yield Needed(name.kind, name.namespace, name.name, f"{by}: {name.where}")
    if kind in {"RoleBinding", "ClusterRoleBinding"}:
        role = body["roleRef"]
        where = namespace if role["kind"] == "Role" else ""
        yield Needed(role["kind"], where, role["name"], f"{by}: roleRef")
        for subject in body.get("subjects", []):
            if subject["kind"] == "ServiceAccount":
                yield Needed("ServiceAccount", subject.get("namespace", namespace), subject["name"], f"{by}: subjects")
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
    elif kind == "SecurityContextConstraints":
        for user in body.get("users", []):
            prefix, _, account = user.rpartition(":")
            if prefix.startswith(ACCOUNT_USER):
                yield Needed("ServiceAccount", prefix.removeprefix(ACCOUNT_USER), account, f"{by}: users")


def monitor_needs(body: Body, namespace: str, by: str) -> Iterator[Needed]:
    """The Services, and their ports, that a ServiceMonitor selects."""
    spec = body["spec"]
    labels = [f"{key}={value}" for key, value in spec.get("selector", {}).get("matchLabels", {}).items()]
    spaces = spec.get("namespaceSelector", {})
    for where in [ANYWHERE] if spaces.get("any") else spaces.get("matchNames", [namespace]):
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
        yield Needed("Secret", namespace, secret.get("name", ""), f"{by}: imagePullSecrets")
    for claim in claims.named_by_pod(spec, namespace):
        yield Needed(claim.kind, claim.namespace, claim.name, f"{by}: {claim.where}")
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
                name, optional = source[key].get("name", ""), bool(source[key].get("optional"))
                yield Needed(kind, namespace, name, f"{by}: envFrom", None, optional)
    for entry in container.get("env", []):
        for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            found = entry.get("valueFrom", {}).get(key)
            if found:
                where, optional = f"{by}: env {entry['name']}", bool(found.get("optional"))
                yield Needed(kind, namespace, found.get("name", ""), where, [found["key"]], optional)


def missing(
    have: Iterable[Provided], need: Iterable[Needed], references: Iterable[Mapping[str, Any]], namespace: str
) -> Iterator[Finding]:
    """Findings for what is named and not there; what many name is one finding.

    REFERENCES are the policy's; without a namespace they mean NAMESPACE, the stack's own.
    """
    exact: dict[Identity, list[str] | None] = {}
    sets: dict[tuple[str, str], list[set[str]]] = {}
    for there in have:
        if there.kind in {"Pods", "Services"}:
            sets.setdefault((there.kind, there.namespace), []).append(set(there.keys or []))
        else:
            exact[there.kind, there.namespace, there.name] = there.keys
    unseen: set[tuple[str, str]] = set()
    for reference in references:
        own = reference.get("namespace") or namespace
        unseen.add((SELECTABLE.get(reference["kind"], ""), own))
        for where in (own, ""):
            exact.setdefault((reference["kind"], where, reference["name"]), reference.get("keys") or None)
    absent: dict[tuple[Identity, str], list[str]] = {}
    for item in need:
        if item.kind in {"Pods", "Services"}:
            if not selects(item, sets, unseen):
                yield nothing_selected(item)
        elif not item.optional and not built_in(item):
            identity = (item.kind, item.namespace, item.name)
            for key in lacking(item.keys or [], exact, identity):
                absent.setdefault((identity, key), []).append(item.by)
    for (identity, key), named_by in absent.items():
        by = named_by[0] + (f" (and {len(named_by) - 1} more)" if len(named_by) > 1 else "")
        yield no_key(identity, key, by, exact[identity] or []) if key else no_object(identity, by, namespace)


def built_in(item: Needed) -> bool:
    """Whether ITEM is in every cluster, or in a namespace of the platform's own."""
    if item.kind == "ClusterRole" and item.name.startswith("system:"):
        return True
    return (item.kind, item.name) in BUILT_IN or item.namespace.startswith(PLATFORM)


def selects(item: Needed, sets: Mapping[tuple[str, str], list[set[str]]], unseen: set[tuple[str, str]]) -> bool:
    """Whether the selector ITEM finds something, or may find something of a reference, whose labels nobody knows."""
    wanted = set(item.keys or [])
    spaces = {where for kind, where in {*sets, *unseen} if kind == item.kind and item.namespace in {where, ANYWHERE}}
    return any((item.kind, where) in unseen for where in spaces) or any(
        wanted <= labels for where in spaces for labels in sets.get((item.kind, where), [])
    )


def lacking(keys: Iterable[str], exact: Mapping[Identity, list[str] | None], identity: Identity) -> list[str]:
    """What of the object IDENTITY is not there: the KEYS that it lacks, or "" for the object itself."""
    if identity not in exact:
        return [""]
    known = exact[identity]
    return [] if known is None else sorted(set(keys) - set(known))


def no_object(identity: Identity, by: str, namespace: str) -> Finding:
    """The finding for an object that doesn't exist."""
    kind, where, name = identity
    elsewhere = f", namespace: {where}" if where not in {"", namespace} else ""
    return Finding(
        "GPU201",
        "error",
        f"{kind} {name!r} does not exist" + (f" in {where}" if elsewhere else ""),
        path="spec.references",
        why=f"{by} names it, and it is neither rendered nor listed under spec.references; the pod "
        "or binding would wait for it",
        remedy="add it to spec.extraObjects, or, if something else creates it, to spec.references: "
        f"{{kind: {kind}, name: {name}{elsewhere}}}",
    )


def no_key(identity: Identity, key: str, by: str, keys: Sequence[str]) -> Finding:
    """The finding for a key that an object doesn't have."""
    kind, _, name = identity
    return Finding(
        "GPU202",
        "error",
        f"{kind} {name!r} has no key {key!r}",
        path="spec.references",
        why=f"{by} uses it; the object has only {', '.join(keys) or 'no keys'}",
        remedy=f"add the key to the {kind}, or to its `keys` under spec.references",
    )


def nothing_selected(item: Needed) -> Finding:
    """The finding for a selector that matches nothing."""
    what, kind = ("pods", "DaemonSet") if item.kind == "Pods" else ("Service", "Service")
    return Finding(
        "GPU203",
        "error",
        f"{item.by} of {', '.join(item.keys or [])} selects no {what} of this render",
        path="spec.extraObjects",
        why="it would silently do nothing",
        remedy="correct the selector or port name; if something else creates what it selects, add that to "
        f"spec.references: {{kind: {kind}, name: ...}}",
    )
