"""Does everything that a resource names exist?

A pod that names a missing ConfigMap waits forever in ContainerCreating, a binding to a missing ServiceAccount grants
nothing, a ServiceMonitor whose port is misspelt scrapes nothing: none of it is an error to the API server. So every
name is looked up in the render and in the policy's `references`.

Objects of dynamic resource allocation and admission policies are asked for the names in them (`named_by`).
`provided` and `needed` look at one body each, so that their answers can be kept with the body; gaps.py joins them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...api.keys import LAYOUTS, LAYOUTS_FILE
from ...catalog import kubernetes
from ...model import Body, mapping
from ...policy.loading.place import node

INJECTED = "config.openshift.io/inject-trusted-cabundle"
"""The label of a ConfigMap that OpenShift fills: its keys are not known here."""

ACCOUNT_USER = "system:serviceaccount:"
ANYWHERE = "*"


class Provided(NamedTuple):
    """An object that exists: KEYS are the keys of a ConfigMap or Secret, the ports of a Service, or the pod labels of a
    workload as "key=value"; None = not known."""

    kind: str
    namespace: str
    name: str
    keys: list[str] | None = None


class Needed(NamedTuple):
    """An object that somebody names.

    BY says who and where; with KEYS, these must be in it (for the kind Pods: labels)."""

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
    yield from made_secret(body)
    if not kubernetes.having(body["apiVersion"], kind):
        yield Provided(f"{kind}.{body['apiVersion'].rpartition('/')[0]}", namespace, meta["name"])
        return
    if kind in {"ConfigMap", "Secret"} and INJECTED not in meta.get("labels", {}):
        written = [LAYOUTS_FILE] if meta["name"] == LAYOUTS else []  # by the reconciler
        keys = sorted({*body.get("data", {}), *body.get("binaryData", {}), *body.get("stringData", {}), *written})
    elif kind == "Service":
        keys = [str(port.get("name", port["port"])) for port in body.get("spec", {}).get("ports", [])]
    yield Provided(kind, namespace, meta["name"], keys)
    if made_of(body):
        yield Provided("ResourceClaimTemplate", namespace, made_of(body))
    template = pod_template(body)
    if template is not None:
        yield Provided("Pods", namespace, meta["name"], _pairs(template.get("metadata", {}).get("labels", {})))
    if kind == "Service":
        ports = [f"port:{name}" for name in keys or []]
        yield Provided("Services", namespace, meta["name"], [*_pairs(meta.get("labels", {})), *ports])


def _pairs(labels: Mapping[str, Any]) -> list[str]:
    """LABELS as they are among the keys of what has them."""
    return [f"{key}={value}" for key, value in labels.items()]


def made_secret(body: Body) -> Iterator[Provided]:
    """The Secret that another program makes of BODY: External Secrets Operator, or Sealed Secrets."""
    group, kind = str(body["apiVersion"]).partition("/")[0], body["kind"]
    namespace, name, spec = body["metadata"].get("namespace", ""), body["metadata"]["name"], body.get("spec") or {}
    if (group, kind) == ("bitnami.com", "SealedSecret"):
        more = (spec.get("template") or {}).get("data") or {}
        yield Provided("Secret", namespace, name, sorted({*(spec.get("encryptedData") or {}), *more}))
    elif (group, kind) == ("external-secrets.io", "ExternalSecret"):
        target = spec.get("target") or {}
        template = target.get("template") or {}
        known = not (spec.get("dataFrom") or template.get("data") or template.get("templateFrom"))
        keys = sorted(each["secretKey"] for each in spec.get("data") or ()) if known else None
        yield Provided("Secret", namespace, target.get("name") or name, keys)


def pod_template(body: Body) -> Body | None:
    """The pod template of a workload (the body itself for a Pod), or None for anything else."""
    if body["kind"] == "Pod":
        return body
    steps = ("spec", "jobTemplate", "spec", "template") if body["kind"] == "CronJob" else ("spec", "template")
    template = node(body, steps)
    return template if isinstance(template, dict) and "spec" in template else None


def pod_of(body: Body) -> dict[str, Any]:
    """The PodSpec of a workload, an empty one of anything else."""
    return mapping((pod_template(body) or {}).get("spec"))


def needed(body: Body) -> Iterator[Needed]:
    """Every object that BODY names; of other software's kinds none, though they be called Role, Service or Job."""
    if not kubernetes.having(body["apiVersion"], body["kind"]):
        return
    kind, meta = body["kind"], body["metadata"]
    namespace, by = meta.get("namespace", ""), f"{body['kind']}/{meta['name']}"
    template = pod_template(body)
    if template is not None:
        yield from pod_needs(template.get("spec", {}), namespace, by)
    yield from named_by(body, by)
    if kind in {"RoleBinding", "ClusterRoleBinding"}:
        role = body["roleRef"]
        where = namespace if role["kind"] == "Role" else ""
        yield Needed(role["kind"], where, role["name"], f"{by}: roleRef")
        for subject in body.get("subjects", []):
            if subject["kind"] == "ServiceAccount":
                yield Needed("ServiceAccount", subject.get("namespace", namespace), subject["name"], f"{by}: subjects")
    elif kind == "Service" and body.get("spec", {}).get("selector"):
        yield Needed("Pods", namespace, "", f"{by}: selector", _pairs(body["spec"]["selector"]))
    elif kind in ("ServiceMonitor", "VMServiceScrape", "PodMonitoring"):
        yield from monitor_needs(body, namespace, by)
    elif kind == "SecurityContextConstraints":
        for user in body.get("users", []):
            prefix, _, account = user.rpartition(":")
            if prefix.startswith(ACCOUNT_USER):
                yield Needed("ServiceAccount", prefix.removeprefix(ACCOUNT_USER), account, f"{by}: users")


def monitor_needs(body: Body, namespace: str, by: str) -> Iterator[Needed]:
    """The Services, and their ports, that a ServiceMonitor selects; a PodMonitoring the pods of its namespace."""
    spec = body["spec"]
    labels = _pairs(spec.get("selector", {}).get("matchLabels", {}))
    if body["kind"] == "PodMonitoring":
        yield Needed("Pods", namespace, "", f"{by}: selector", labels)
        return
    spaces = spec.get("namespaceSelector", {})
    for where in [ANYWHERE] if spaces.get("any") else spaces.get("matchNames", [namespace]):
        for endpoint in spec.get("endpoints", []):
            port = [f"port:{endpoint['port']}"] if "port" in endpoint else []
            yield Needed("Services", where, "", f"{by}: selector and port", [*labels, *port])


def pod_needs(spec: Body, namespace: str, by: str) -> Iterator[Needed]:
    """What a PodSpec names."""
    for kind, where in (("ServiceAccount", namespace), ("RuntimeClass", ""), ("PriorityClass", "")):
        if name := spec.get(_field(kind)):
            yield Needed(kind, where, name, f"{by}: {_field(kind)}")
    for secret in spec.get("imagePullSecrets", []):
        yield Needed("Secret", namespace, secret.get("name", ""), f"{by}: imagePullSecrets", [".dockerconfigjson"])
    for claim in spec.get("resourceClaims", []):
        for kind in ("ResourceClaim", "ResourceClaimTemplate"):
            if name := claim.get(_field(kind)):
                yield Needed(kind, namespace, name, f"{by}: resource claim {claim['name']}")
    for volume in spec.get("volumes", []):
        yield from volume_needs(volume, namespace, f"{by}: volume {volume['name']}")
    for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        yield from container_needs(container, namespace, f"{by}: container {container['name']}")


def _field(kind: str) -> str:
    """The field that names an object of KIND: serviceAccountName."""
    return f"{kind[0].lower()}{kind[1:]}Name"


def volume_needs(volume: Body, namespace: str, by: str) -> Iterator[Needed]:
    """The ConfigMaps, Secrets and claims behind a volume."""
    sources = [volume, *volume.get("projected", {}).get("sources", [])]
    for source in sources:
        for key, kind, name in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            if ref := source.get(key):
                items = [item["key"] for item in ref.get("items", [])] or None
                called, optional = ref.get(name) or ref.get("name", ""), bool(ref.get("optional"))
                yield Needed(kind, namespace, called, by, items, optional)
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
            ref = entry.get("valueFrom", {}).get(key)
            if ref:
                where, optional = f"{by}: env {entry['name']}", bool(ref.get("optional"))
                yield Needed(kind, namespace, ref.get("name", ""), where, [ref["key"]], optional)


def named_by(body: Body, by: str) -> Iterator[Needed]:
    """What BODY, which is not a workload, names."""
    if body["kind"] == "ValidatingAdmissionPolicyBinding":
        yield Needed("ValidatingAdmissionPolicy", "", body["spec"]["policyName"], f"{by}: policyName")
    elif body["kind"] in {"ResourceClaim", "ResourceClaimTemplate"}:
        spec = body["spec"]["spec"] if body["kind"] == "ResourceClaimTemplate" else body["spec"]
        for request in spec.get("devices", {}).get("requests", []):
            for part in (request, request.get("exactly", {}), *request.get("firstAvailable", [])):
                if part.get("deviceClassName"):
                    yield Needed("DeviceClass", "", part["deviceClassName"], f"{by}: request {request['name']}")


def made_of(body: Body) -> str:
    """The ResourceClaimTemplate that the DRA driver makes of BODY in its namespace, "" for none."""
    if body["kind"] != "ComputeDomain":
        return ""
    return str(body.get("spec", {}).get("channel", {}).get("resourceClaimTemplate", {}).get("name", ""))
