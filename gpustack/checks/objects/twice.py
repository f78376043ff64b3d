"""Rules about what contradicts what the stack brings: a second node feature discovery, a namespace that refuses it."""

from collections.abc import Iterator

from ...api import keys
from ...catalog import kubernetes
from ...cluster.resolve import Cluster
from ...model import Body
from ..rule import Hit, hit, rule
from .references import pod_template

NFD, PLUGIN = "node-feature-discovery", "nvidia-device-plugin"
NFD_PARTS = ("nfd-worker", "nfd-master", "nfd-gc", "nfd-topology-updater", "nfd-controller-manager")
STRICT = ("baseline", "restricted")
INSTALLING = {"HelmRelease", "Application", "HelmChart"}
"""Kinds whose objects make an engine install a chart."""


@rule("GPU804", "error")
def discovery_twice(cluster: Cluster) -> Iterator[Hit]:
    """Node feature discovery, which somebody else brings along as well."""
    spec = cluster.spec
    if not spec.nfd.enabled:
        return
    others = []
    for index, reference in enumerate(spec.references):
        if reference.kind in {"DaemonSet", "Deployment", "NodeFeatureDiscovery"} and _is_nfd(
            reference.kind, reference.name
        ):
            others.append((f"spec.references[{index}]", f"{reference.kind} {reference.name}"))
    for index, body in enumerate(spec.extraObjects):
        if _brings_nfd(body):
            others.append((f"spec.extraObjects[{index}]", f"{body['kind']} {body['metadata']['name']}"))
    for path, what in others:
        yield hit(path, what=what)


def _is_nfd(kind: str, name: str) -> bool:
    """Whether a reference is one to a part of node feature discovery: charts call it by its whole name, its own
    manifests and OpenShift's operator nfd-worker and nfd-master.
    """
    name = name.lower()
    return kind == "NodeFeatureDiscovery" or NFD in name or any(name.endswith(part) for part in NFD_PARTS)


def _brings_nfd(body: Body) -> bool:
    """Whether BODY is a part of an installation of node feature discovery, or makes somebody install it."""
    if body["kind"] == "NodeFeatureDiscovery":
        return True
    if body["kind"] in INSTALLING:
        return f"'chart': '{NFD}'" in str(body.get("spec"))
    return any(f"/{NFD}" in image for image in _images(body))


def _images(body: Body) -> list[str]:
    """The images of the pods in BODY."""
    template = pod_template(body)
    pod = template.get("spec") if template and isinstance(template.get("spec"), dict) else None
    containers = pod.get("containers") if pod else None
    images = (one.get("image") for one in (containers if isinstance(containers, list) else ()) if isinstance(one, dict))
    return [image for image in images if isinstance(image, str)]


@rule("GPU809", "error")
def plugin_twice(cluster: Cluster) -> Iterator[Hit]:
    """A second device plugin for the same GPUs."""
    spec = cluster.spec
    if not spec.devicePlugin.enabled or cluster.dra:
        return
    others = []
    for index, reference in enumerate(spec.references):
        if reference.kind == "DaemonSet" and PLUGIN in reference.name.lower():
            others.append((f"spec.references[{index}]", f"DaemonSet {reference.name}"))
    for index, body in enumerate(spec.extraObjects):
        charts = body["kind"] in INSTALLING and f"'chart': '{PLUGIN}'" in str(body.get("spec"))
        if charts or any("/k8s-device-plugin:" in image for image in _images(body)):
            others.append((f"spec.extraObjects[{index}]", f"{body['kind']} {body['metadata']['name']}"))
    for path, what in others:
        yield hit(path, what=what)


@rule("GPU805", "error")
def strict_namespace(cluster: Cluster) -> Iterator[Hit]:
    """A namespace whose level of Pod Security refuses the stack's pods."""
    spec = cluster.spec
    for index, body in enumerate(spec.extraObjects):
        labels = body["metadata"].get("labels")
        level = labels.get(keys.ENFORCE) if isinstance(labels, dict) else None
        if body["kind"] == "Namespace" and body["metadata"]["name"] == spec.cluster.namespace and level in STRICT:
            yield Hit(
                f'spec.extraObjects[{index}].metadata.labels["{keys.ENFORCE}"]',
                f"the namespace {spec.cluster.namespace} enforces {level}, which the stack's pods break",
            )


@rule("GPU213", "note")
def runtime_class_of_the_platform(cluster: Cluster) -> Iterator[Hit]:
    """A RuntimeClass that the platform makes as well."""
    spec = cluster.spec
    name = cluster.runtime_class
    ours = not cluster.dra and not spec.cdi.nriPluginEnabled
    referred = any(one.kind == "RuntimeClass" and one.name == name for one in spec.references)
    if ours and not referred and name in cluster.platform.runtime_classes:
        yield hit("spec.cluster.platform", name=name)


@rule("GPU214", "warning")
def namespace_without_label(cluster: Cluster) -> Iterator[Hit]:
    """A namespace that needs the label of Pod Security, and doesn't get it from here."""
    spec, name = cluster.spec, cluster.spec.cluster.namespace
    wanted = spec.psa.enabled or cluster.platform.psa_required
    if wanted and not cluster.platform.security_constraints and kubernetes.is_own(name):
        yield hit("spec.cluster.namespace", name=name)
