"""Kubernetes objects that several components need, as plain dicts: identities, RBAC, ConfigMaps, Services."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from ...catalog import _data
from ...model import Body
from .common_inputs import GUARDED, Common
from .pod import sparse

RBAC = "rbac.authorization.k8s.io"
RIGHTS = Path(__file__).with_name("rights.yaml")


def metadata(
    name: str,
    namespace: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Body:
    """An object's metadata, without what is empty."""
    return sparse(name=name, namespace=namespace, labels=dict(labels or {}), annotations=dict(annotations or {}))


def object_of(
    api_version: str, kind: str, name: str, spec: Body, namespace: str = "", **marks: Mapping[str, str]
) -> Body:
    """The object NAME of KIND; MARKS are its labels and its annotations."""
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata(name, namespace, **marks), "spec": spec}


def rule(group: str, resources: str, verbs: str, *, names: Sequence[str] = ()) -> Body:
    """One RBAC rule from words: rule("", "pods nodes", "get list watch"). GROUP is "" for the core API."""
    return sparse(resources=resources.split(), verbs=verbs.split(), resourceNames=list(names)) | {"apiGroups": [group]}


class Granted(TypedDict):
    """The rules of an account: those in its namespace, and those everywhere."""

    role: list[Body]
    cluster: list[Body]


def rights(name: str, common: Common | None = None, **facts: bool | str) -> Granted:
    """What NAME of the data file grants, by FACTS and, with COMMON, `openshift` and the traits of the release."""
    known = dataclasses.asdict(common.traits) | {"openshift": common.openshift} | facts if common else facts

    def of(place: str) -> Iterator[Body]:
        for group, resources, verbs, *rest in _data.read(RIGHTS)[name].get(place, ()):
            if all(known[word.lstrip("!")] != word.startswith("!") for word in " ".join(rest[:1]).split()):
                yield rule(group, resources, verbs, names=[str(known[key]) for key in rest[1:]])

    return {"role": list(of("role")), "cluster": list(of("cluster"))}


def access(
    name: str,
    namespace: str,
    *,
    role: Sequence[Body] = (),
    cluster: Sequence[Body] = (),
    labels: Mapping[str, str] | None = None,
    token: bool = True,
) -> Iterator[Body]:
    """A ServiceAccount NAME and what is granted to it, as by `grant`. Without TOKEN its pods get none: they never ask
    the API server. That stands here and not in the pods, whose templates a driver's roll-out depends on."""
    unused = {} if token else {"automountServiceAccountToken": False}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, namespace, labels=labels), **unused}
    yield from grant(name, name, namespace, role=role, cluster=cluster, labels=labels)


def grant(
    name: str,
    account: str,
    namespace: str,
    *,
    role: Sequence[Body] = (),
    cluster: Sequence[Body] = (),
    labels: Mapping[str, str] | None = None,
    home: str = "",
) -> Iterator[Body]:
    """A Role NAME in NAMESPACE with the rules ROLE and a ClusterRole NAME with CLUSTER, each only if it has rules, and
    bound to the ServiceAccount ACCOUNT of that namespace, or of HOME."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": home or namespace}
    for kind, rules, space in (("Role", role, namespace), ("ClusterRole", cluster, "")):
        if rules:
            head: Body = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata(name, space, labels=labels)}
            yield {**head, "rules": list(rules)}
            reference = {"apiGroup": RBAC, "kind": kind, "name": name}
            yield {**head, "kind": f"{kind}Binding", "roleRef": reference, "subjects": [subject]}


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

    KIND and TRAFFIC ("" = the API's default) are type and internalTrafficPolicy. The API's own type isn't written."""
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
