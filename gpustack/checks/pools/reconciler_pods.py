"""Rules about what the reconciler does with pods of others: a right without its guard, and what never happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog import kubernetes
from ...policy.language import guards
from ...policy.language.reconciler import guard, runs
from ..rule import Hit, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster
    from ...policy.language.reconciler import Reconciler
    from ...policy.language.spec import ClusterPolicySpec


@rule("GPU840", "error")
def deletes_unguarded(cluster: Cluster) -> Iterator[Hit]:
    """A right to delete pods in all namespaces, and no guard that refuses any."""
    spec = cluster.spec
    if spec.reconciler is None or not runs(spec) or guard(spec) == "Deny":
        return
    why, mend = _unguarded(spec)
    for path, without in _deletes(spec.reconciler):
        yield Hit(
            path,
            "the reconciler may delete any pod of any namespace: no guard holds it to those that are meant",
            why,
            f"{without.format(path)}; or {mend}" if mend else without.format(path),
        )


def _deletes(section: Reconciler) -> Iterator[tuple[str, str]]:
    """Where SECTION lets pods of others be deleted, and how it no longer does."""
    for index, each in enumerate(section.podRules):
        if each.then == "delete":
            yield f"spec.reconciler.podRules[{index}].then", "set {}: evict"
    if section.ignoreBudgetsAfterSeconds is not None:
        yield "spec.reconciler.ignoreBudgetsAfterSeconds", "leave out {}"


def _unguarded(spec: ClusterPolicySpec) -> tuple[str, str]:
    """Why no guard refuses anything by SPEC, and how one does; "" where the API server has none."""
    if not guards.knows_policies(spec):
        minor = kubernetes.minor(spec.cluster.kubernetesVersion)
        return f"Kubernetes {minor} has no admission policies, which would; 1.30 is the first that has", ""
    off = {}
    if spec.reconciler is not None and spec.reconciler.admissionPolicy is False:
        off["reconciler.admissionPolicy: false"] = "set spec.reconciler.admissionPolicy: true"
    if (mode := guards.mode(spec)) != "Deny":
        off[f"guards.mode: {mode}"] = "set spec.guards.mode: Deny"
    why = f"access rights can't say which pods; a guard does, and with {' and '.join(off)} it refuses nothing"
    return why, " and ".join(off.values())
