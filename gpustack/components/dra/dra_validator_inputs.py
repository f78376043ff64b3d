"""Inputs of the validator of a `gpuCluster`."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..parts.common_inputs import Common, Inputs, image
from .dra_inputs import common_of


class DraValidatorInputs(Inputs):
    """The validator runs the image of `validator`, pulled as the DRA driver is (operator.md 11.1)."""

    common: Common
    image: str
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()


def from_cluster(cluster: Cluster) -> DraValidatorInputs | None:
    """None without a `gpuCluster`; with one the validator always runs."""
    spec, section = cluster.spec, cluster.spec.gpuCluster
    if section is None:
        return None
    return DraValidatorInputs(
        common=common_of(spec, section),
        image=image(spec, spec.validator, "validator"),
        pull_policy=section.draDriver.imagePullPolicy or "",
        pull_secrets=(*spec.validator.imagePullSecrets, *section.draDriver.imagePullSecrets),
    )
