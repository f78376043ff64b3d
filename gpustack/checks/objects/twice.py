"""Rules about what contradicts what the stack brings: a second node feature discovery, a namespace that refuses it."""

import re
from collections.abc import Iterator

from ...api import keys
from ...catalog import kubernetes
from ...cluster.resolve import Cluster
from ...model import mapping, mappings
from ..rule import Hit, hit, rule
from .references import pod_of

NFD, PLUGIN = "node-feature-discovery", "nvidia-device-plugin"
NFD_NAMES = rf"{NFD}|(nfd-worker|nfd-master|nfd-gc|nfd-topology-updater|nfd-controller-manager)$"
"""Charts call it by its whole name, its own manifests and OpenShift's operator nfd-worker and nfd-master."""
STRICT = ("baseline", "restricted")
INSTALLING = {"HelmRelease", "Application", "HelmChart"}
"""Kinds whose objects make an engine install a chart."""


@rule("GPU804", "error")
def discovery_twice(cluster: Cluster) -> Iterator[Hit]:
    """Node feature discovery, which somebody else brings along as well."""
    if cluster.spec.nfd.enabled:
        kinds = ("DaemonSet", "Deployment")
        yield from _others(cluster, NFD_NAMES, kinds, chart=NFD, image=f"/{NFD}", whole="NodeFeatureDiscovery")


@rule("GPU809", "error")
def plugin_twice(cluster: Cluster) -> Iterator[Hit]:
    """A second device plugin for the same GPUs."""
    if cluster.spec.devicePlugin.enabled and not cluster.dra:
        yield from _others(cluster, PLUGIN, ("DaemonSet",), chart=PLUGIN, image="/k8s-device-plugin:")


def _others(
    cluster: Cluster, named: str, kinds: tuple[str, ...], *, chart: str, image: str, whole: str = ""
) -> Iterator[Hit]:
    """References to KINDS that are NAMED so, objects brought along that install CHART or run IMAGE, and any WHOLE."""
    for index, each in enumerate(cluster.spec.references):
        if each.kind == whole or (each.kind in kinds and re.search(named, each.name.lower())):
            yield hit(f"spec.references[{index}]", what=f"{each.kind} {each.name}")
    for index, body in enumerate(cluster.spec.extraObjects):
        kind, charts = body["kind"], f"'chart': '{chart}'" in str(body.get("spec"))
        runs = any(image in str(one.get("image")) for _, one in mappings(pod_of(body).get("containers")))
        if kind == whole or (kind in INSTALLING and charts) or runs:
            yield hit(f"spec.extraObjects[{index}]", what=f"{kind} {body['metadata']['name']}")


@rule("GPU805", "error")
def strict_namespace(cluster: Cluster) -> Iterator[Hit]:
    """A namespace whose level of Pod Security refuses the stack's pods."""
    spec = cluster.spec
    for index, body in enumerate(spec.extraObjects):
        level = mapping(body["metadata"].get("labels")).get(keys.ENFORCE)
        if body["kind"] == "Namespace" and body["metadata"]["name"] == spec.cluster.namespace and level in STRICT:
            path = f'spec.extraObjects[{index}].metadata.labels["{keys.ENFORCE}"]'
            yield hit(path, namespace=spec.cluster.namespace, level=level)


@rule("GPU213", "note")
def runtime_class_of_the_platform(cluster: Cluster) -> Iterator[Hit]:
    """A RuntimeClass that the platform makes as well."""
    name = cluster.runtime_class
    ours = not cluster.dra and not cluster.spec.cdi.nriPluginEnabled
    referred = any(one.kind == "RuntimeClass" and one.name == name for one in cluster.spec.references)
    if ours and not referred and name in cluster.platform.runtime_classes:
        yield hit("spec.cluster.platform", name=name)


@rule("GPU214", "warning")
def namespace_without_label(cluster: Cluster) -> Iterator[Hit]:
    """A namespace that needs the label of Pod Security, and doesn't get it from here."""
    spec, name = cluster.spec, cluster.spec.cluster.namespace
    wanted = spec.psa.enabled or cluster.platform.psa_required
    if wanted and not cluster.platform.security_constraints and kubernetes.is_own(name):
        yield hit("spec.cluster.namespace", name=name)
