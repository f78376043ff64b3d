"""Rules over policies for OpenShift, which decides more than other platforms: runtime, namespace and node finder."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import defaults
from ...cluster.resolve import Cluster
from ..rule import Hit, hit, rule

POD_PARTS = ("master", "worker", "gc")


@rule("GPU120", "error")
def openshift_runs_crio(cluster: Cluster) -> Iterator[Hit]:
    """Settings of another container runtime on OpenShift."""
    spec = cluster.spec
    if not (runs := cluster.platform.container_runtime):
        return
    why = f"{cluster.platform.title} runs {runs}, on every node"
    pools = [(f"spec.nodePools[{index}]", pool.containerRuntime) for index, pool in enumerate(spec.nodePools)]
    for path, value in [("spec.cluster", spec.cluster.containerRuntime), *pools]:
        if value and not value.partition(":")[0].lower().startswith("cri"):
            yield hit(f"{path}.containerRuntime", "runtime", why=why, value=value)
    for index, entry in enumerate(spec.toolkit.env or ()):
        if entry.name.startswith("CONTAINERD_"):
            yield hit(f"spec.toolkit.env[{index}]", "toolkit", why=why, entry=entry.name)


@rule("GPU121", "warning")
def namespace_of_openshift(cluster: Cluster) -> Iterator[Hit]:
    """A namespace on OpenShift that gets no labels for monitoring and Pod Security."""
    spec = cluster.spec
    usual = cluster.platform.namespace
    if not cluster.platform.own_monitoring or spec.cluster.namespace == usual:
        return
    lost = ["metrics are not scraped by OpenShift's own Prometheus"] if spec.cluster.monitoring else []
    lost += ["psa.enabled has no effect"] if spec.psa.enabled else []
    if lost:
        yield hit("spec.cluster.namespace", namespace=spec.cluster.namespace, lost=" and ".join(lost), usual=usual)


@rule("GPU122", "note")
def nfd_of_openshift(cluster: Cluster) -> Iterator[Hit]:
    """Settings for the pods of node feature discovery on OpenShift."""
    spec = cluster.spec
    if not cluster.platform.own_discovery or not spec.nfd.enabled:
        return
    empty = type(spec.nfd)()
    own = next(rule.values["nfd"] for rule in defaults.rules() if not rule.kind)
    parts = {name: getattr(spec.nfd, name).model_dump(exclude_none=True, exclude_defaults=True) for name in POD_PARTS}
    given = [name for name, said in parts.items() if said and said != own.get(name)]
    given += [name for name in ("helmRelease", "imagePullSecrets") if getattr(spec.nfd, name) != getattr(empty, name)]
    for name in given:
        yield hit(f"spec.nfd.{name}")
