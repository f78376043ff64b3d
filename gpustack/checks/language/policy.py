"""Rules over the effective spec: what is not rendered yet, what the release doesn't know yet, what has no effect, what
contradicts itself; and objects of the GPU operator that a policy brings along.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel

from ...catalog import _versions, defaults, fields, releases
from ...cluster.resolve import Cluster
from ...policy.language.reconciler import runs
from ...policy.language.spec import ClusterPolicySpec
from ..dra import dra
from ..rule import Hit, hit, rule

BY_HAND = "delete the driver pods of drained nodes yourself"


@rule("GPU101", "error")
def not_rendered_yet(cluster: Cluster) -> Iterator[Hit]:
    """A field that this version of gpustack renders nothing for."""
    for path, asked, what in unrendered(cluster.spec):
        if asked:
            yield hit(f"spec.{path}", what=what)


def unrendered(spec: ClusterPolicySpec) -> Iterator[tuple[str, bool, str]]:
    """(path, whether the policy asks for it, words for it) of everything that is accepted and not rendered."""

    yield "tenancy", spec.tenancy is not None and spec.gpuCluster is not None, "tenancy beside gpuCluster is"


@rule("GPU102", "error")
def nri_needs_cdi_and_toolkit(cluster: Cluster) -> Iterator[Hit]:
    """The NRI plugin without CDI or without the container toolkit."""
    spec = cluster.spec
    if not spec.cdi.nriPluginEnabled:
        return
    for path, on in (("cdi.enabled", spec.cdi.enabled), ("toolkit.enabled", spec.toolkit.enabled)):
        if not on:
            yield hit("spec.cdi.nriPluginEnabled", section=path)


@rule("GPU103", "error")
def driver_without_pools(cluster: Cluster) -> Iterator[Hit]:
    """A driver, and no node pool that says for which operating system."""
    spec = cluster.spec
    if cluster.pools:
        return
    if cluster.drivers_by == "section":
        yield hit("spec.driver.enabled", "section")
    elif cluster.listed and (spec.drivers or not cluster.dra):
        path = "drivers" if spec.drivers else "driver.useNvidiaDriverCRD"
        yield hit(f"spec.{path}", "list" if spec.drivers else "none")
    if not cluster.listed and cluster.sandbox and spec.vgpuManager.enabled:
        yield hit("spec.vgpuManager.enabled", "host")


@rule("GPU104", "note")
def without_effect(cluster: Cluster) -> Iterator[Hit]:
    """A field that does nothing."""
    spec = cluster.spec
    for path, given, why in (*idle(spec), *dra.idle(spec)):
        if given:
            yield hit(f"spec.{path}", why=why)


def idle(spec: ClusterPolicySpec) -> Iterator[tuple[str, bool, str]]:
    """(path, whether it is set, why it does nothing), from operator.md 5.2 and 15."""
    pod = "it is about the operator's own pod, which doesn't exist here"
    yield "operator.annotations", bool(spec.operator.annotations), pod
    yield "operator.labels", bool(spec.operator.labels), pod
    yield (
        "operator.defaultRuntime",
        bool(spec.operator.defaultRuntime),
        "no release reads it; cluster.containerRuntime says it",
    )
    yield "operator.initContainer", given(spec, "initContainer"), "no release since v26.3 uses it"
    yield "operator.metrics", given(spec, "metrics"), pod
    yield (
        "psp.enabled",
        bool(spec.psp.enabled),
        "PodSecurityPolicy was removed in Kubernetes 1.25; psa.enabled labels the namespace",
    )
    yield "cdi.default", bool(spec.cdi.default), "ignored since v25.10"
    yield (
        "driver.useOpenKernelModules",
        spec.driver.useOpenKernelModules is not None,
        "replaced by driver.kernelModuleType in v25.3",
    )
    yield (
        "dcgm.hostPort",
        spec.dcgm.hostPort is not None,
        "no release acts on it; dcgm.hostNetwork opens the port on the node",
    )
    yield (
        "toolkit.args",
        bool(getattr(spec.toolkit, "args", None)),
        "the toolkit takes its settings from toolkit.env alone",
    )
    yield "gds.args", bool(spec.gds.args), "the operator ignores it as well"
    yield (
        "kataManager.enabled",
        bool(spec.kataManager.enabled and releases.release(spec.release).traits.no_kata_manager),
        "it is never deployed since v26.7; kataSandboxDevicePlugin and Kata's own installation replace it",
    )
    yield "gdrcopy.args", bool(spec.gdrcopy.args), "the operator ignores it as well"


def given(spec: ClusterPolicySpec, part: str) -> bool:
    """Whether the policy says anything in `operator.PART` that the defaults of its release don't."""
    section: BaseModel = getattr(spec.operator, part)
    default = releases.release(spec.release).defaults.get("operator", {}).get(part, {})
    return section != type(section).model_validate(default)


@rule("GPU105", "note")
def rollouts_need_the_reconciler(cluster: Cluster) -> Iterator[Hit]:
    """Automatic driver upgrades, and nothing that carries them out."""
    spec = cluster.spec
    listed = cluster.listed
    asked = [driver for driver in spec.drivers if driver.upgradePolicy.autoUpgrade is not False] if listed else []
    if not asked and (listed or not spec.driver.enabled or not spec.driver.upgradePolicy.autoUpgrade):
        return
    section = "drivers[].upgradePolicy" if listed else "driver.upgradePolicy"
    path = "spec.drivers" if listed else f"spec.{section}"
    by_hand = "the driver DaemonSet is OnDelete: a new driver starts on a node when its old driver pod is deleted"
    if not runs(spec):
        yield Hit(
            path,
            f"{section} is not carried out by manifests",
            by_hand,
            ("" if spec.sandboxWorkloads.enabled else "set spec.reconciler.image, or ") + BY_HAND,
        )
    elif spec.sandboxWorkloads.enabled:
        yield hit(path, "sandbox", remedy=BY_HAND, by_hand=by_hand)


@rule("GPU107", "error")
def unknown_to_the_release(cluster: Cluster) -> Iterator[Hit]:
    """A field that came with a later release than the policy's."""
    spec = cluster.spec
    for path, since in newer_fields(spec.release):
        if is_set(spec, path):
            yield hit(f"spec.{path}", first=since, release=spec.release)


@cache
def newer_fields(release: str) -> tuple[tuple[str, str], ...]:
    """(path, release that brought it) of the ClusterPolicy fields that RELEASE does not know; a field inside a list
    stands for the list.
    """
    return tuple(
        (path, facts.since)
        for path, facts in fields.fields("ClusterPolicy").items()
        if facts.since
        and "[]" not in path
        and _versions.key(facts.since) > _versions.key(release)
        and facts.type != "object"
    )


def is_set(spec: Any, path: str) -> bool:
    """Whether the policy SPEC says at PATH anything but gpustack's own default."""
    node = spec
    for step in path.split("."):
        node = getattr(node, step, None)
        if node is None:
            return False
    return node not in ("", [], {}, False, defaults.values().get(path))


GROUP = "nvidia.com"
SECTIONS = {
    "ClusterPolicy": "its sections stand in the policy under spec, by the same names",
    "NVIDIADriver": "what it says goes into an entry of spec.drivers",
    "GPUCluster": "what it says goes into spec.gpuCluster",
}
"""Kinds of the operator, and where a policy says what they say."""


@rule("GPU208", "error")
def object_of_the_operator(cluster: Cluster) -> Iterator[Hit]:
    """An object that only the GPU operator reads."""
    for index, body in enumerate(cluster.spec.extraObjects):
        kind, group = str(body["kind"]), str(body["apiVersion"]).rpartition("/")[0]
        if group == GROUP and kind in SECTIONS:
            yield hit(f"spec.extraObjects[{index}]", kind=kind, name=body["metadata"]["name"], instead=SECTIONS[kind])
