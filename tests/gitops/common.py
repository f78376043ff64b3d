"""Policies with an engine, and what they render to."""

from __future__ import annotations

from typing import Any

from gpustack.compiler.cache import Store, digest
from gpustack.compiler.stack import Stack, compile_stack
from gpustack.gitops.plan import Plan
from gpustack.model import Body
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.derived import whole_artifact
from tests.components.common import spec

URL = "https://git.example.com/platform/gpu.git"
ARGOCD: dict[str, Any] = {
    "engine": "argocd",
    "repository": {"url": URL},
    "argocd": {"destination": {"name": "prod-eu-1"}},
}
FLUX: dict[str, Any] = {"engine": "flux", "repository": {"url": URL}}
POOL = {"name": "training", "os": "ubuntu22.04", "nodeSelector": {"example.com/pool": "training"}}
PROGRAM = {"image": "registry.example.com/gpu/gpustack-reconciler:1"}


def policy(gitops: dict[str, Any] | None = None, **sections: Any) -> ClusterPolicySpec:
    """A spec with drivers, the reconciler, monitoring, and GITOPS."""
    more: dict[str, Any] = {"gitops": gitops} if gitops is not None else {}
    for derived in whole_artifact(more):
        more["gitops"] = {**more["gitops"], "repository": {**derived.value, **more["gitops"]["repository"]}}
    cluster = {"monitoring": True, **sections.pop("cluster", {})}
    return spec(nodePools=[POOL], reconciler=PROGRAM, cluster=cluster, **more, **sections)


def compiled(wanted: ClusterPolicySpec, store: Store) -> Stack:
    """WANTED, compiled."""
    return compile_stack(wanted, digest(wanted.model_dump_json()), store)


def plan(stack: Stack) -> Plan:
    """The plan of STACK, which has one."""
    assert stack.plan is not None
    return Plan.model_validate(stack.plan)


def named(bodies: list[Body]) -> dict[str, Body]:
    """BODIES by "Kind/name"."""
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in bodies}
