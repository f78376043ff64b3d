"""Inputs of the Kata manager."""

from __future__ import annotations

from typing import Any

from ...catalog.releases import release
from ...cluster.resolve import Cluster
from ...policy.language.sandbox import KataManagerConfig
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs, OperandInputs, operand, served
from ..plugin.configs_inputs import config_text


class KataRuntimeClass(Inputs):
    """A RuntimeClass and the labels of the nodes that it may run on, beside those of the manager's nodes."""

    name: str
    node_selector: dict[str, str] = {}


class KataManagerInputs(OperandInputs):
    """`config` is the manager's configuration file, `artifacts` the node's folder for guest kernels and images."""

    config: str
    artifacts: str
    classes: tuple[KataRuntimeClass, ...] = ()


def from_cluster(cluster: Cluster) -> KataManagerInputs | None:
    """None where no node serves virtual machines, and in releases that never deploy it (operator-releases.md 6.13)."""
    spec = cluster.spec
    section = spec.kataManager
    if not cluster.sandbox or not section.enabled or release(spec.release).traits.no_kata_manager:
        return None
    classes = section.config.runtimeClasses
    return KataManagerInputs(
        **operand(spec, section, "kataManager"),
        config=config_text(configuration(spec, section.config)),
        artifacts=section.config.artifactsDir,
        classes=tuple(KataRuntimeClass(name=each.name, node_selector=dict(each.nodeSelector)) for each in classes),
    )


def configuration(spec: ClusterPolicySpec, section: KataManagerConfig) -> dict[str, Any]:
    """The manager's configuration: the policy's SECTION as it is, with its default and without what is empty; images
    by their mirrors.
    """
    classes = [each.model_dump(exclude_none=True) for each in section.runtimeClasses]
    for each in classes:
        if not each["nodeSelector"]:
            del each["nodeSelector"]
        if "artifacts" in each:
            each["artifacts"] = {key: value for key, value in each["artifacts"].items() if value}
            each["artifacts"]["url"] = served(spec, each["artifacts"]["url"])
    content = {"artifactsDir": section.artifactsDir}
    return {**content, "runtimeClasses": classes} if classes else content
