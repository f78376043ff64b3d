"""Inputs of the operator validator."""

from typing import Literal

from ...catalog import releases
from ...cluster.resolve import Cluster, resolve
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import OperandInputs, Pairs, operand, pairs

Feature = Literal["nvidia-fs", "gdrcopy", "nvidia-peermem"]
"""A kernel module of the driver's pod, by the name of the validator's check for it."""


class ValidatorInputs(OperandInputs):
    """`features` are the modules to check; `plugin` says whether there is a device plugin to validate."""

    cuda_env: Pairs = ()
    plugin_env: Pairs = ()
    plugin: bool = True
    mig_strategy: str = ""
    features: tuple[Feature, ...] = ()


def from_cluster(cluster: Cluster) -> ValidatorInputs:
    """Never None: the validator runs in every cluster."""
    spec = cluster.spec
    section = spec.validator
    return ValidatorInputs(
        **operand(spec, section, "validator"),
        cuda_env=pairs(section.cuda.env),
        plugin_env=pairs(section.plugin.env),
        plugin=bool(spec.devicePlugin.enabled),
        mig_strategy=spec.mig.strategy or "",
        features=features(spec),
    )


def features(spec: ClusterPolicySpec) -> tuple[Feature, ...]:
    """The modules that this render's driver pods load beside the driver, less what the release can't check.

    Where drivers differ, a check passes on nodes whose driver goes without its module. The checks of older releases
    don't, so there only what holds for all nodes is checked, as the operator does."""
    traits, drivers = releases.release(spec.release).traits, resolve(spec).container_drivers
    everywhere = not traits.features_in_driver_validation and bool(spec.driver.enabled)
    switches: dict[Feature, bool | None] = {
        "nvidia-fs": spec.gds.enabled if everywhere else any(driver.gds for driver in drivers),
        "gdrcopy": spec.gdrcopy.enabled if everywhere else any(driver.gdrcopy for driver in drivers),
        "nvidia-peermem": traits.peermem_validation and any(driver.rdma for driver in drivers),
    }
    return tuple(feature for feature, on in switches.items() if on)
