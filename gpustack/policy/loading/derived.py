"""Defaults that follow from other values of a policy, and images that no chart writes.

These rules see what layers and policy say, unvalidated: whatever is of another shape is none of their business, as the
models refuse it afterwards. A value that layers and policy set themselves always wins.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gpustack.catalog import kubernetes, platforms, releases
from gpustack.model import InputError, Path, children, mapping, mappings
from gpustack.policy.language import images
from gpustack.policy.loading.layers import Part

RELEASE: Path = ("release",)
KUBERNETES: Path = ("cluster", "kubernetesVersion")
CONFIGS: tuple[Path, ...] = tuple(
    tuple(path.split("."))
    for path in """
    devicePlugin.config migManager.config migManager.gpuClientsConfig dcgmExporter.config vgpuDeviceManager.config
    gpuCluster.dcgmExporter.config
    """.split()
)
"""The sections that name a ConfigMap or hold its texts."""


class Derived(NamedTuple):
    """A default that follows from other values: where it goes, the value, and the path that it follows from."""

    path: Path
    value: Any
    source: Path


def mig_strategy(spec: dict[str, Any]) -> Iterator[Derived]:
    """Mixed, if a node has MIG instances of several profiles, or whole GPUs beside instances: pods then tell them apart
    by resource name. With `single`, the device plugin refuses such a node."""
    for index, pool in mappings(spec.get("nodePools")):
        mig = section(pool, ("sharing", "mig"))
        groups = [group for _, group in mappings(mig.get("devices"))]
        shapes = {frozenset(mapping(part.get("layout"))) for part in [*groups, *([mig] if "layout" in mig else [])]}
        cut = sum(len(list(children(group.get("indices")))) for group in groups)
        per_node = pool.get("gpusPerNode")
        if groups and isinstance(per_node, int) and per_node > cut:
            shapes.add(frozenset())  # GPUs in no group stay whole
        if len(shapes) > 1 or any(len(profiles) > 1 for profiles in shapes):
            yield Derived(("mig", "strategy"), "mixed", ("nodePools", index, "sharing", "mig"))
            return


def whole_images(spec: dict[str, Any]) -> Iterator[Derived]:
    """No repository and no version beside an image that is named whole: those of the release are of another image."""
    for name in images.SECTIONS:
        path = tuple(name.split("."))
        if images.stands_alone(section(spec, path)):
            yield Derived(path, dict.fromkeys(images.PARTS, ""), (*path, "image"))


def empty_images(spec: dict[str, Any], operators: dict[str, Any]) -> Iterator[Derived]:
    """What an operator makes of empty texts in SPEC, which it can't tell from absence: its image, from OPERATORS."""
    for name in images.SECTIONS:
        path = tuple(name.split("."))
        own, image = section(spec, path), section(operators, path)
        said = {part: own[part] for part in ("image", *images.PARTS) if own.get(part) is not None}
        if said and not any(said.values()):
            yield Derived(path, {part: image[part] for part in said if part in image}, RELEASE)


def further_images(spec: dict[str, Any], release: str, *, empty: bool) -> Part:
    """What no chart writes of RELEASE's images: those of node feature discovery (an OpenShift's operator of it has its
    own) and of `computeDomains`, and of `drivers` where one names no image itself. The operator has no such default for
    drivers: there a driver without an image is an error (operator.md 10.1). With EMPTY those of drivers that are
    empty texts, which goes above them."""
    known, items = releases.release(release), []
    for _, each in named(spec.get("drivers")):
        item: dict[str, Any] = {}
        for key, name in (("", "driver"), ("manager", "driver.manager"), ("gds", "gds"), ("gdrcopy", "gdrcopy")):
            said = mapping(each.get(key)) if key else each
            if name in known.images and not said.get("image") and (key or each.get("driverType", "gpu") == "gpu"):
                of_release = releases.fields(known.images[name]).items()
                lacking = {part: value for part, value in of_release if said.get(part) == ("" if empty else None)}
                item |= {key: lacking} if key and lacking else lacking
        items += [{"name": each["name"], **item}] if item else []
    data: dict[str, Any] = {"drivers": items} if items else {}
    if not empty:
        data |= {"nfd": releases.fields(known.nfd_image)} if not platform(spec).own_discovery else {}
        dra = known.images.get("gpuCluster.draDriver")
        data |= {"computeDomains": releases.fields(dra)} if dra else {}
    return Part("release", f"release {release}", data, because=RELEASE)


def driver_probes(spec: dict[str, Any]) -> Iterator[Derived]:
    """How long one of `drivers` may take to start that says nothing of it: less to load modules than to build them.
    Where one says something, what it leaves out is the API server's (operator.md 10.3)."""
    for index, each in named(spec.get("drivers")):
        if not isinstance(each.get("startupProbe"), dict) and each.get("driverType") != "vgpu-host-manager":
            delay = 5 if each.get("usePrecompiled") is True else 60
            probe = {"initialDelaySeconds": delay, "timeoutSeconds": 60, "periodSeconds": 10}
            probe |= {"successThreshold": 1, "failureThreshold": 120}
            yield Derived(("drivers",), [{"name": each["name"], "startupProbe": probe}], ("drivers", index))


def whole_artifact(spec: dict[str, Any]) -> Iterator[Derived]:
    """Of an OCI artifact all of its tag `latest`: it holds one cluster, and has no branches (gitops.repository)."""
    from gpustack.policy.language.repository import OCI  # models, which nothing else here needs

    where = ("gitops", "repository")
    if str(section(spec, where).get("url")).startswith(OCI):
        yield Derived(where, {"revision": "latest", "path": "."}, (*where, "url"))


def config_maps(spec: dict[str, Any]) -> Iterator[Derived]:
    """A ConfigMap is rendered where its texts are said."""
    for path in CONFIGS:
        if section(spec, path).get("data"):
            yield Derived((*path, "create"), True, (*path, "data"))


def dashboard_objects(spec: dict[str, Any]) -> Iterator[Derived]:
    """Dashboards are in the stack's namespace, and have the label by which Grafana's sidecar finds them."""
    if isinstance(said := spec.get("dashboards"), dict):
        if not said.get("labels") and said.get("output", "configMap") == "configMap":
            yield Derived(("dashboards", "labels"), {"grafana_dashboard": "1"}, ("dashboards", "output"))
        if not said.get("instanceSelector"):
            yield Derived(("dashboards", "instanceSelector"), {"dashboards": "grafana"}, ("dashboards",))


def kubevirt_object(spec: dict[str, Any]) -> Iterator[Derived]:
    """The object that KubeVirt is configured by: on OpenShift the HyperConverged operator's, which overwrites its."""
    if isinstance(said := spec.get("kubevirt"), dict):
        by_operator = platform(spec).hyperconverged
        target = said.get("target") or ("hyperconverged" if by_operator else "kubevirt")
        name = "kubevirt" if target == "kubevirt" else "kubevirt-hyperconverged"
        namespace = "openshift-cnv" if by_operator and name != target else name
        yield Derived(("kubevirt",), {"target": target, "name": name, "namespace": namespace}, ("cluster",))


def guarding(spec: dict[str, Any]) -> Iterator[Derived]:
    """Guards are rendered where the API server knows admission policies, and tokens that tell their node."""
    with contextlib.suppress(InputError):
        knows = kubernetes.knows_policies(str(mapping(spec.get("cluster")).get("kubernetesVersion")))
        yield Derived(("guards", "mode"), "Deny" if knows else "Off", KUBERNETES)
        if isinstance(spec.get("reconciler"), dict):
            yield Derived(("reconciler", "admissionPolicy"), knows, KUBERNETES)


DERIVED: tuple[Callable[[dict[str, Any]], Iterator[Derived]], ...] = (
    mig_strategy,
    whole_images,
    driver_probes,
    whole_artifact,
    config_maps,
    dashboard_objects,
    kubevirt_object,
    guarding,
)
"""Rules over what layers and policy say, unvalidated. A value that these set themselves always wins."""


def platform(spec: dict[str, Any]) -> platforms.Platform:
    """The platform of the cluster."""
    cluster = mapping(spec.get("cluster"))
    named = cluster.get("platform") if cluster.get("platform") in platforms.names() else None
    return platforms.of(named, openshift=isinstance(cluster.get("openshift"), dict))


def section(spec: dict[str, Any], path: Path) -> dict[str, Any]:
    """The section at PATH of SPEC, or an empty one."""
    for step in path:
        spec = mapping(spec.get(str(step)))
    return spec


def named(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The items of a list that have names, by which layers are merged, with their positions."""
    return ((index, item) for index, item in mappings(value) if isinstance(item.get("name"), str))
