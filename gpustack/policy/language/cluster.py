"""`cluster`: what the cluster is. Nothing of it is rendered; it decides how the rest is."""

import dataclasses
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator

from gpustack.catalog import object_kinds

from .base import Section, mapping, section
from .forms import absent, form, refuse_as, refuse_at
from .types import (
    REPOSITORY,
    AtLeast1,
    ContainerRuntime,
    Digest,
    DnsLabel,
    DnsSubdomain,
    ImageReference,
    KubernetesVersion,
    Labels,
    ObjectName,
    OstreeVersion,
    ProxyUrl,
    Text,
)

RegistryPath = Annotated[str, dataclasses.replace(REPOSITORY, empty=False)]


class TrustedCA(Section):
    """Authorities that a proxy's certificates are signed by."""

    name: ObjectName | None = None
    """ConfigMap in the namespace openshift-config. Absent or empty: the system's own."""


class Proxy(Section):
    """The cluster-wide proxy of OpenShift, which the driver container needs for its packages."""

    httpProxy: ProxyUrl | None = None
    """Proxy for http addresses. Absent or empty: none."""
    httpsProxy: ProxyUrl | None = None
    """Proxy for https addresses. Absent or empty: none."""
    noProxy: Text | None = None
    """Hosts, domains and networks that are reached directly, separated by commas. Absent or empty: none."""
    trustedCA: TrustedCA = section()


class OpenShift(Section):
    """What is particular to OpenShift. Being there at all says that the cluster is OpenShift."""

    version: Annotated[str, form("openshift_version")] | None = None
    """Version of OpenShift, such as 4.18.1. Absent: not known, and then nothing that depends on it is rendered."""
    driverToolkitImages: Annotated[dict[OstreeVersion, ImageReference], BeforeValidator(absent)] = mapping()
    """Images of the driver toolkit by RHCOS version, as the image stream `openshift/driver-toolkit` lists them. Absent:
    no driver toolkit."""
    proxy: Proxy = section()


def _only_known(crds: dict[str, str]) -> dict[str, str]:
    """Return CRDS, or refuse the first name that gpustack has no CRD of."""
    for name in crds:
        try:
            object_kinds.known_crd(name)
        except object_kinds.UnknownCRD as unknown:
            words = {"near": " or ".join(unknown.nearest), "known": ", ".join(object_kinds.CRDS)}
            error = refuse_as("crd", "near" if unknown.nearest else "none", name=name, **words)
            raise refuse_at((name,), error, name) from None
    return crds


Monitoring = bool | Literal["victoria-metrics", "google-managed"]
"""Whose monitors and rules are rendered; true: the Prometheus operator's."""


class ClusterFacts(Section):
    """What the cluster is: its Kubernetes version, platform, container runtime."""

    kubernetesVersion: KubernetesVersion | None = None
    """Version of the API server, in quotes: "1.34" or "1.34.1". Manifests are checked against it. Has no default."""
    platform: DnsLabel | None = None
    """Platform, which changes defaults: `eks-al2023`, `gke-cos`, `rke2`, ... Absent or `generic`: no changes."""
    containerRuntime: ContainerRuntime = "containerd"
    """Container runtime of the nodes: `containerd`, `cri-o` or `docker`, with the version if you like:
    `containerd://1.7.27`. Absent: containerd; on OpenShift always CRI-O."""
    namespace: DnsLabel = "gpu-operator"
    """Namespace that everything namespaced is rendered into. Absent: gpu-operator; on OpenShift nvidia-gpu-operator."""
    monitoring: Monitoring = False
    """Whether the CRDs of the Prometheus operator are in the cluster, so that ServiceMonitors and PrometheusRules are
    rendered; `victoria-metrics` where those of its operator are (VMServiceScrape, VMRule), `google-managed` where
    Google's managed Prometheus collects (PodMonitoring, ClusterRules). Absent: false; on OpenShift true."""
    monitoringLabels: Labels = mapping()
    """Labels by which your Prometheus selects monitors and rules, such as `{release: kube-prometheus-stack}`: every
    monitor and rule gets them. Absent: none."""
    seriesLimit: AtLeast1 | None = None
    """The most series that the exporters may serve together, with as many nodes as pools may have, as `gpustack
    capacity` counts them. Pools that don't say their number count nothing. Absent: no limit."""
    networkOperator: bool | Literal["without-nfd"] | None = None
    """Whether NVIDIA's network operator, which brings the driver of network cards, is in the cluster, `without-nfd`
    where its chart was installed with nfd.enabled=false. For checks of RDMA and of node feature discovery. Absent: not
    known."""
    openshift: OpenShift | None = None
    """What is particular to OpenShift. Absent: the cluster is not OpenShift, unless `platform` says so."""
    registryMap: Annotated[dict[RegistryPath, RegistryPath], BeforeValidator(absent)] = mapping()
    """Mirrors: registry or registry and path, and what stands for it, such as `{nvcr.io: mirror.example.com/nvcr}`. The
    longest match wins. Absent: none."""
    imageDigests: Annotated[dict[ImageReference, Digest], BeforeValidator(absent)] = mapping()
    """Digests by image as the manifests name it, mirror and tag included: it is rendered as name:tag@digest, so that a
    tag that is moved changes nothing. `gpustack lock --layer` writes a layer of them. Entries for images of other
    clusters do nothing. Absent: tags alone."""
    crds: Annotated[
        dict[DnsSubdomain, Literal["own", "expect"]], BeforeValidator(absent), AfterValidator(_only_known)
    ] = mapping()
    """Per CRD that a component needs, by full name: `own` renders it along with that component, `expect` takes it as
    there, so that two owners never fight. Absent: own."""


class Cluster(ClusterFacts):
    """What the cluster is, with what must be known of it."""

    kubernetesVersion: KubernetesVersion
