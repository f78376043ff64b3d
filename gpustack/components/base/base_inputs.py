"""Inputs of what a cluster needs before everything else: a function for each component, called as it is."""

from __future__ import annotations

from typing import Any, Literal

from ...catalog.fields import fields
from ...cluster.resolve import Cluster
from ...model import Body, FindingsError
from ..parts.common_inputs import GUARDED, Inputs, owned_crds, prometheus_rules
from ..plugin.configs_inputs import refuse_large
from ..refusals import refused

FOREIGN = ("kube-", "openshift-")
"""Namespaces that begin so belong to the cluster, as `default` does: rendering one would let a prune delete it."""

OPENSHIFT_NAMESPACE = "nvidia-gpu-operator"
"""OpenShift's catalogue installs into it, so it is the stack's alone. Any other may be shared with pods that should not
be trusted so far (operator.md 2.5)."""

SYSTEM_CRITICAL = ("system-cluster-critical", "system-node-critical")


class NamespaceInputs(Inputs):
    """What the namespace is labelled with, and whether it has a quota.

    `privileged`: Pod Security lets everything start. `monitored`: OpenShift's Prometheus looks for targets there.
    `quota`: the platform admits system-critical pods only so. `admin_access`: claims of an administrator, which look at
    GPUs without taking them away, are admitted.
    """

    name: str
    privileged: bool = False
    monitored: bool = False
    quota: bool = False
    admin_access: bool = False


def namespace(cluster: Cluster) -> NamespaceInputs | None:
    """The inputs for CLUSTER, or None where the namespace is the cluster's own."""
    spec = cluster.spec
    name = spec.cluster.namespace
    if name == "default" or name.startswith(FOREIGN):
        return None
    preset = cluster.platform
    dra = cluster.dra
    critical = spec.daemonsets.priorityClassName in SYSTEM_CRITICAL
    trusted = preset.namespace in (None, name)
    return NamespaceInputs(
        name=name,
        privileged=(bool(spec.psa.enabled) or preset.psa_required) and trusted,
        monitored=prometheus_rules(spec) and trusted,
        quota=bool(preset.quota) and (dra or critical),
        admin_access=dra,
    )


class RemoteInputs(Inputs):
    """Where the value of KEY is in a store."""

    secret_key: str
    key: str
    property: str = ""
    version: str = ""


class SecretInputs(Inputs):
    """A Secret: from the store REMOTE says, asked every so often, or from SEALED text by key."""

    name: str
    namespace: str
    type: str
    labels: dict[str, str] = {}
    store: tuple[str, str] = ("", "")
    refresh: str = ""
    remote: tuple[RemoteInputs, ...] = ()
    sealed: dict[str, str] = {}
    scope: Literal["strict", "namespace-wide", "cluster-wide"] = "strict"


class SecretsInputs(Inputs):
    """The Secrets, in the order of the policy."""

    secrets: tuple[SecretInputs, ...]


def secrets(cluster: Cluster) -> SecretsInputs | None:
    """None where the policy brings none."""
    made = []
    for each in cluster.spec.secrets:
        inputs = SecretInputs(
            name=each.name,
            namespace=each.namespace or cluster.spec.cluster.namespace,
            type=each.type,
            labels=each.labels,
        )
        if each.external:
            remote = tuple(
                RemoteInputs(secret_key=name, key=at.key, property=at.property or "", version=at.version or "")
                for name, at in sorted(each.external.keys.items())
            )
            store = each.external.store
            more = {"store": (store.kind, store.name), "refresh": each.external.refreshInterval, "remote": remote}
            inputs = inputs.model_copy(update=more)
        if each.sealed:
            inputs = inputs.model_copy(update={"sealed": each.sealed.encryptedData, "scope": each.sealed.scope})
        made.append(inputs)
    return SecretsInputs(secrets=tuple(made)) if made else None


class ExtraObjectsInputs(Inputs):
    """The objects, each with its namespace filled in."""

    objects: tuple[dict[str, Any], ...]


def extra_objects(cluster: Cluster) -> ExtraObjectsInputs | None:
    """The policy's extraObjects; a namespaced one without a namespace goes where the stack is.

    Secrets are refused, and two objects of one name.
    """
    spec = cluster.spec
    objects: list[dict[str, Any]] = []
    seen: dict[tuple[str, ...], int] = {}
    for position, item in enumerate(spec.extraObjects or ()):
        body: dict[str, Any] = item if isinstance(item, dict) else item.model_dump(exclude_none=True)
        if body["kind"] == "Secret" and body["apiVersion"] == "v1":
            raise FindingsError(refused("GPU043", f"extraObjects[{position}]", name=body["metadata"]["name"]))
        if spec.kinds.namespaced(body["apiVersion"], body["kind"]) and not body["metadata"].get("namespace"):
            body = {**body, "metadata": {**body["metadata"], "namespace": spec.cluster.namespace}}
        if body["kind"] == "ConfigMap" and isinstance(body.get("data"), dict):
            refuse_large(body["data"], str(body["metadata"]["name"]), f"extraObjects[{position}].data")
        group, meta = str(body["apiVersion"]).rpartition("/")[0], body["metadata"]
        first = seen.setdefault((group, body["kind"], str(meta.get("namespace")), meta["name"]), position)
        if first != position:
            name = f"{body['kind']} {meta['name']}"
            raise FindingsError(refused("GPU204", f"extraObjects[{position}]", name=name, first=first))
        objects.append(guarded(body, spec.cluster.namespace))
    return ExtraObjectsInputs(objects=tuple(objects)) if objects else None


def guarded(body: Body, namespace: str) -> Body:
    """BODY, marked as written by nobody but who applies the render where it is a ConfigMap that pods of the stack, in
    NAMESPACE, can mount. One without content is another program's to fill, and a label of its own wins.
    """
    meta, full = body["metadata"], body.get("data") or body.get("binaryData")
    labels = meta.get("labels") or {}
    if body["kind"] != "ConfigMap" or meta.get("namespace") != namespace or not full or not isinstance(labels, dict):
        return body
    return {**body, "metadata": {**meta, "labels": {**GUARDED, **labels}}}


CRDS = ("clusterpolicies.nvidia.com",)


class CompatInputs(Inputs):
    """`crds` are the CRDs to bring, `spec` is the copy's, of an operator of RELEASE."""

    release: str
    spec: dict[str, Any]
    crds: tuple[str, ...] = CRDS


def compat(cluster: Cluster) -> CompatInputs | None:
    """None where nobody wants a copy. Raises FindingsError with `gpuCluster`, which has no ClusterPolicy."""
    if not cluster.spec.compat.clusterPolicy:
        return None
    if cluster.dra:
        raise FindingsError(refused("GPU061", "compat.clusterPolicy"))
    spec = known(cluster.spec.model_dump(exclude_none=True))
    return CompatInputs(release=cluster.spec.release, spec=spec, crds=owned_crds(cluster.spec, CRDS))


def known(value: Any, path: str = "") -> Any:
    """VALUE at PATH with those fields alone that the operator's API has; what is free below its field is kept whole. Of
    what is off that alone is said: its image may have no version."""
    paths = fields("ClusterPolicy")
    if isinstance(value, dict) and value.get("enabled") is False:
        return {"enabled": False}
    if isinstance(value, list):
        return [known(item, f"{path}[]") for item in value]
    if not isinstance(value, dict) or (path and not any(each.startswith(f"{path}.") for each in paths)):
        return value
    below = {key: f"{path}.{key}" if path else key for key in value}
    return {key: known(item, below[key]) for key, item in value.items() if below[key] in paths}
