"""The names in objects of dynamic resource allocation, and in admission policies: what each one stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...model import Body


class Name(NamedTuple):
    """An object that is named, "" for the namespace of one that has none, and WHERE it is named, in words."""

    kind: str
    namespace: str
    name: str
    where: str


def named_by_pod(spec: Body, namespace: str) -> Iterator[Name]:
    """The claims that a PodSpec in NAMESPACE uses, or the templates that they are made from."""
    for claim in spec.get("resourceClaims", []):
        for key, kind in (
            ("resourceClaimName", "ResourceClaim"),
            ("resourceClaimTemplateName", "ResourceClaimTemplate"),
        ):
            if claim.get(key):
                yield Name(kind, namespace, claim[key], f"resource claim {claim['name']}")


def named_by(body: Body) -> Iterator[Name]:
    """What BODY, which is not a workload, names."""
    if body["kind"] == "ValidatingAdmissionPolicyBinding":
        yield Name("ValidatingAdmissionPolicy", "", body["spec"]["policyName"], "policyName")
    elif body["kind"] in {"ResourceClaim", "ResourceClaimTemplate"}:
        spec = body["spec"]["spec"] if body["kind"] == "ResourceClaimTemplate" else body["spec"]
        for request in spec.get("devices", {}).get("requests", []):
            for part in (request, request.get("exactly", {}), *request.get("firstAvailable", [])):
                if part.get("deviceClassName"):
                    yield Name("DeviceClass", "", part["deviceClassName"], f"request {request['name']}")


def made_of(body: Body) -> str:
    """The ResourceClaimTemplate that the DRA driver makes of BODY in its namespace, "" for none."""
    if body["kind"] != "ComputeDomain":
        return ""
    return str(body.get("spec", {}).get("channel", {}).get("resourceClaimTemplate", {}).get("name", ""))
