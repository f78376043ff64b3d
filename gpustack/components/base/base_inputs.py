"""Inputs of what a cluster needs before everything else: a function for each component, called as it is."""

from typing import Any

from ...catalog import kubernetes
from ...catalog.fields import fields
from ...cluster.resolve import Cluster
from ...model import Body, FindingsError
from ...policy.language.secrets import SecretSource, is_sealed
from ..parts.common_inputs import GUARDED, Inputs, Whole, owned_crds, prometheus_rules
from ..parts.pod import sparse
from ..parts.template import template
from ..plugin.configs_inputs import refuse_large
from ..refusals import refused

SYSTEM_CRITICAL = ("system-cluster-critical", "system-node-critical")


class NamespaceInputs(Inputs):
    """What the namespace is labelled with, and whether it has a quota.

    `privileged`: Pod Security lets everything start. `monitored`: OpenShift's Prometheus looks for targets there.
    `quota`: the platform admits system-critical pods only so. `admin_access`: claims of an administrator, which look at
    GPUs without taking them away, are admitted. `ignored`: Gatekeeper leaves it out."""

    name: str
    privileged: bool = False
    monitored: bool = False
    quota: bool = False
    admin_access: bool = False
    ignored: bool = False


def namespace(cluster: Cluster) -> NamespaceInputs | None:
    """The inputs for CLUSTER, or None where the namespace is the cluster's own."""
    spec = cluster.spec
    name = spec.cluster.namespace
    if kubernetes.is_own(name):
        return None
    preset = cluster.platform
    dra = cluster.dra
    critical = spec.daemonsets.priorityClassName in SYSTEM_CRITICAL
    # The platform's is the stack's alone; others may be shared with pods that nobody trusts so far (operator.md 2.5).
    trusted = preset.namespace in (None, name)
    return NamespaceInputs(
        name=name,
        privileged=(bool(spec.psa.enabled) or preset.psa_required) and trusted,
        monitored=prometheus_rules(spec) and trusted,
        quota=bool(preset.quota) and (dra or critical),
        admin_access=dra,
        ignored=spec.tenancy is not None and spec.tenancy.exceptions.gatekeeper,
    )


def secrets(cluster: Cluster) -> Whole | None:
    """The objects by which other programs make Secrets, with what these would fill in, so that a GitOps engine finds
    nothing that differs. None where the policy has none."""
    return Whole.of(
        (external if each.external else sealed)(each, each.namespace or cluster.spec.cluster.namespace)
        for each in cluster.spec.secrets
    )


def external(said: SecretSource, namespace: str) -> Body:
    """The ExternalSecret. The Secret stays where its entry goes from the store."""
    source: Any = said.external
    usual = {"conversionStrategy": "Default", "decodingStrategy": "None", "metadataPolicy": "None"}
    found = [
        {"secretKey": name, "remoteRef": {**sparse(**at.model_dump()), **usual}}
        for name, at in sorted(source.keys.items())
    ]
    words = {"namespace": namespace, "metadata": sparse(labels=said.labels), "data": found}
    store = {"kind": source.store.kind, "store": source.store.name, "interval": source.refreshInterval}
    return template(__file__, "external", name=said.name, type=said.type, **words, **store)


def sealed(said: SecretSource, namespace: str) -> Body:
    """The SealedSecret."""
    source: Any = said.sealed
    notes = {} if source.scope == "strict" else {f"sealedsecrets.bitnami.com/{source.scope}": "true"}
    words = {"namespace": namespace, "notes": notes, "labels": said.labels}
    encrypted = dict(sorted(source.encryptedData.items()))
    return template(__file__, "sealed", name=said.name, type=said.type, **words, encrypted=encrypted)


def extra_objects(cluster: Cluster) -> Whole | None:
    """The policy's extraObjects; a namespaced one without a namespace goes where the stack is.

    Secrets are refused, and two objects of one name."""
    spec = cluster.spec
    objects: list[dict[str, Any]] = []
    seen: dict[tuple[str, ...], int] = {}
    for position, item in enumerate(spec.extraObjects or ()):
        body: dict[str, Any] = item if isinstance(item, dict) else item.model_dump(exclude_none=True)
        if body["kind"] == "Secret" and body["apiVersion"] == "v1":
            raise FindingsError(refused("GPU043", f"extraObjects[{position}]", "plain", name=body["metadata"]["name"]))
        texts = (body.get("spec") or {}).get("encryptedData") if body["kind"] == "SealedSecret" else None
        if plain := [key for key, text in (texts or {}).items() if not is_sealed(text)]:
            name = body["metadata"]["name"]
            raise FindingsError(refused("GPU043", f"extraObjects[{position}]", "sealed", name=name, key=plain[0]))
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
    return Whole.of(objects)


def guarded(body: Body, namespace: str) -> Body:
    """BODY, marked as written by nobody but who applies the render where it is a ConfigMap that pods of the stack, in
    NAMESPACE, can mount. One without content is another program's to fill, and a label of its own wins."""
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
