"""Rules over the effective spec: what is not rendered yet, what the release doesn't know yet, what has no effect, what
contradicts itself; and objects of the GPU operator that a policy brings along.
"""

import functools
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from ...catalog import _data, _versions, defaults, fields, releases
from ...cluster.resolve import Cluster
from ...policy.language.reconciler import runs
from ...policy.language.spec import ClusterPolicySpec
from ..dra import dra
from ..drivers.upgrades import policies
from ..rule import Hit, hit, rule


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
    cdi, toolkit = cluster.spec.cdi, cluster.spec.toolkit
    for name, on in (("cdi", cdi.enabled), ("toolkit", toolkit.enabled)) if cdi.nriPluginEnabled else ():
        if not on:
            yield hit("spec.cdi.nriPluginEnabled", section=f"{name}.enabled")


@rule("GPU103", "error")
def driver_without_pools(cluster: Cluster) -> Iterator[Hit]:
    """A driver, and no node pool that says for which operating system."""
    spec = cluster.spec
    if cluster.pools:
        return
    if cluster.drivers_by == "section":
        yield hit("spec.driver.enabled", "section")
    elif cluster.listed and spec.drivers:
        yield hit("spec.drivers", "list")
    elif cluster.listed and not cluster.dra:
        yield hit("spec.driver.useNvidiaDriverCRD", "none")
    if not cluster.listed and cluster.sandbox and spec.vgpuManager.enabled:
        yield hit("spec.vgpuManager.enabled", "host")


@rule("GPU104", "note")
def without_effect(cluster: Cluster) -> Iterator[Hit]:
    """A field that does nothing."""
    for path, given in {**idle(cluster.spec), **dra.idle(cluster.spec)}.items():
        if given:
            yield hit(f"spec.{path}", why=_data.at("idle-fields", path))


def idle(spec: ClusterPolicySpec) -> dict[str, object]:
    """Whether fields that do nothing say something, by path; idle-fields.yaml says why (operator.md 5.2, 15)."""
    return {
        "operator.annotations": spec.operator.annotations,
        "operator.labels": spec.operator.labels,
        "operator.defaultRuntime": spec.operator.defaultRuntime,
        "operator.initContainer": _differs(spec, "initContainer"),
        "operator.metrics": _differs(spec, "metrics"),
        "psp.enabled": spec.psp.enabled,
        "cdi.default": spec.cdi.default,
        "driver.useOpenKernelModules": spec.driver.useOpenKernelModules is not None,
        "dcgm.hostPort": spec.dcgm.hostPort,
        "toolkit.args": spec.toolkit.args,
        "gds.args": spec.gds.args,
        "kataManager.enabled": spec.kataManager.enabled and releases.release(spec.release).traits.no_kata_manager,
        "gdrcopy.args": spec.gdrcopy.args,
    }


def _differs(spec: ClusterPolicySpec, part: str) -> bool:
    """Whether the policy says anything in `operator.PART` that the defaults of its release don't."""
    section: BaseModel = getattr(spec.operator, part)
    default = releases.release(spec.release).defaults.get("operator", {}).get(part, {})
    return section != type(section).model_validate(default)


@rule("GPU105", "note")
def rollouts_need_the_reconciler(cluster: Cluster) -> Iterator[Hit]:
    """Automatic driver upgrades, and nothing that carries them out."""
    if not any(policy.autoUpgrade for _, policy, _ in policies(cluster)):
        return
    section = "drivers[].upgradePolicy" if cluster.listed else "driver.upgradePolicy"
    path = "spec.drivers" if cluster.listed else f"spec.{section}"
    if not runs(cluster.spec):
        yield hit(path, "by hand" if cluster.sandbox else "nobody", section=section)
    elif cluster.sandbox:
        yield hit(path, "sandbox")


@rule("GPU107", "error")
def unknown_to_the_release(cluster: Cluster) -> Iterator[Hit]:
    """A field that came with a later release than the policy's."""
    spec = cluster.spec
    for path, since in newer_fields(spec.release):
        if is_set(spec, path):
            yield hit(f"spec.{path}", first=since, release=spec.release)


@functools.cache
def newer_fields(release: str) -> tuple[tuple[str, str], ...]:
    """(path, release that brought it) of the ClusterPolicy fields that RELEASE does not know, less those of lists."""
    known = ((path, each) for path, each in fields.fields("ClusterPolicy").items() if "[]" not in path)
    dated = [(path, each.since) for path, each in known if each.since and each.type != "object"]
    return tuple((path, since) for path, since in dated if _versions.key(since) > _versions.key(release))


def is_set(spec: Any, path: str) -> bool:
    """Whether the policy SPEC says at PATH anything but gpustack's own default."""
    said = functools.reduce(lambda section, step: getattr(section, step, None), path.split("."), spec)
    return said not in (None, "", [], {}, False, defaults.values().get(path))


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
