"""What in a policy caused an object, so that what is wrong with the object is shown there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..model import Body, Finding

if TYPE_CHECKING:
    from ..policy.language.spec import ClusterPolicySpec


def caused(spec: ClusterPolicySpec, section: str, identity: tuple[str, ...], finding: Finding) -> Finding:
    """FINDING about a place in the object IDENTITY (`named`) of a component, with the place of SPEC that caused it: in
    the object of extraObjects that it is, else the component's SECTION or, where there is none, the policy.
    """
    path = "spec"
    if section == "extraObjects":
        index = [named(body, spec.cluster.namespace) for body in spec.extraObjects].index(identity)
        below = f".{finding.path}" if finding.path and not finding.path.startswith("[") else finding.path
        path = f"spec.extraObjects[{index}]{below}"
    elif section.partition(".")[0] in type(spec).model_fields:
        path = f"spec.{section}"
    return dataclasses.replace(finding, path=path)


def named(body: Body, namespace: str) -> tuple[str, ...]:
    """API group, kind, namespace (NAMESPACE unless it says another) and name of an object in a policy."""
    meta = body["metadata"]
    return str(body["apiVersion"]).rpartition("/")[0], body["kind"], meta.get("namespace") or namespace, meta["name"]
