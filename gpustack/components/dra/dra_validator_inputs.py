"""Inputs of the validator of a `gpuCluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..parts.common_inputs import Common, Inputs, image
from .dra_inputs import common_of

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec


class DraValidatorInputs(Inputs):
    """The validator runs the image of `validator`, pulled as the DRA driver is (operator.md 11.1)."""

    common: Common
    image: str
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()


def from_spec(spec: ClusterPolicySpec) -> DraValidatorInputs | None:
    """None without a `gpuCluster`; with one the validator always runs."""
    cluster = spec.gpuCluster
    if cluster is None:
        return None
    return DraValidatorInputs(
        common=common_of(spec, cluster),
        image=image(spec, spec.validator, "validator"),
        pull_policy=cluster.draDriver.imagePullPolicy or "",
        pull_secrets=(*spec.validator.imagePullSecrets, *cluster.draDriver.imagePullSecrets),
    )
