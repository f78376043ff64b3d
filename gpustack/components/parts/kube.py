"""Kubernetes objects that several components need, as plain dicts: identities, RBAC, ConfigMaps, Services."""

from collections.abc import Iterator, Mapping, Sequence

from ...model import Body
from .common_inputs import GUARDED
from .pod import sparse

RBAC = "rbac.authorization.k8s.io"


def metadata(
    name: str,
    namespace: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Body:
    """An object's metadata, without what is empty."""
    return sparse(name=name, namespace=namespace, labels=dict(labels or {}), annotations=dict(annotations or {}))


def rule(group: str, resources: str, verbs: str, *, names: Sequence[str] = ()) -> Body:
    """One RBAC rule from words: rule("", "pods nodes", "get list watch"). GROUP is "" for the core API."""
    return sparse(resources=resources.split(), verbs=verbs.split(), resourceNames=list(names)) | {"apiGroups": [group]}


def access(
    name: str,
    namespace: str,
    *,
    role: Sequence[Body] = (),
    cluster: Sequence[Body] = (),
    labels: Mapping[str, str] | None = None,
    token: bool = True,
) -> Iterator[Body]:
    """A ServiceAccount NAME with a Role and a ClusterRole of the same name, bound to it; without rules there is no
    role. Without TOKEN its pods get none: they never ask the API server. That stands here and not in the pods, whose
    templates a driver's roll-out depends on.
    """
    unused = {} if token else {"automountServiceAccountToken": False}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, namespace, labels=labels), **unused}
    if role:
        yield from grant_here(name, role, account=name, namespace=namespace, labels=labels)
    if cluster:
        yield from grant(name, cluster, account=name, namespace=namespace, labels=labels)


def grant(
    name: str, rules: Sequence[Body], *, account: str, namespace: str, labels: Mapping[str, str] | None = None
) -> Iterator[Body]:
    """A ClusterRole NAME with RULES, bound to the ServiceAccount ACCOUNT of NAMESPACE."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": metadata(name, labels=labels),
        "rules": list(rules),
    }
    yield binding("ClusterRoleBinding", name, subject, labels=labels)


def grant_here(
    name: str,
    rules: Sequence[Body],
    *,
    account: str,
    namespace: str,
    labels: Mapping[str, str] | None = None,
    home: str = "",
) -> Iterator[Body]:
    """A Role NAME with RULES in NAMESPACE, bound to the ServiceAccount ACCOUNT of that namespace, or of HOME."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": home or namespace}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": metadata(name, namespace, labels=labels),
        "rules": list(rules),
    }
    yield binding("RoleBinding", name, subject, namespace=namespace, labels=labels)


def binding(
    kind: str, name: str, subject: Body, *, namespace: str = "", labels: Mapping[str, str] | None = None
) -> Body:
    """A RoleBinding or ClusterRoleBinding NAME to the Role or ClusterRole of the same name."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": metadata(name, namespace, labels=labels),
        "roleRef": {"apiGroup": RBAC, "kind": kind.removesuffix("Binding"), "name": name},
        "subjects": [subject],
    }


def config_map(name: str, namespace: str, data: Mapping[str, str], *, labels: Mapping[str, str] | None = None) -> Body:
    """A ConfigMap of texts, which nobody writes but who applies the render."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(name, namespace, labels={**GUARDED, **(labels or {})}),
        "data": dict(data),
    }


def service(
    name: str,
    namespace: str,
    *,
    port_name: str,
    port: int,
    annotations: Mapping[str, str] | None = None,
    kind: str = "ClusterIP",
    traffic: str = "",
) -> Body:
    """A Service in front of the pods labelled app=NAME.

    KIND and TRAFFIC ("" = the API's default) are type and internalTrafficPolicy. The API's own type isn't written.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, namespace, labels={"app": name}, annotations=annotations),
        "spec": sparse(
            type=kind if kind != "ClusterIP" else "",
            internalTrafficPolicy=traffic,
            selector={"app": name},
            ports=[{"name": port_name, "port": port, "targetPort": port, "protocol": "TCP"}],
        ),
    }
