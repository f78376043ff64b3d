"""Inputs of the MIG manager."""

from ...cluster.resolve import Cluster
from ..parts.common_inputs import OperandInputs, operand
from ..plugin.configs_inputs import gpu_clients_map, kept_layouts, layout_digests, mig_config_map

DEFAULT_CONFIG = "default-mig-parted-config"
DEFAULT_GPU_CLIENTS = "default-gpu-clients"


class MigManagerInputs(OperandInputs):
    """`config` and `gpu_clients` are ConfigMaps of the policy, "" for the defaults, which all releases share.

    `kept`: the layouts that the reconciler keeps for the manager, "" where it reads what is rendered (`kept_layouts`),
    and `digests`, by which NodePolicies name their contents.
    What the ConfigMaps hold isn't an input, on purpose: pods that restart for it would re-cut the GPUs of all nodes at
    once and without drain (reconciler.md M4). New layouts come to a node by its label."""

    config: str = ""
    gpu_clients: str = ""
    kept: str = ""
    digests: str = "{}"


def from_cluster(cluster: Cluster) -> MigManagerInputs | None:
    """None where the MIG manager is off."""
    spec = cluster.spec
    section = spec.migManager
    if not section.enabled:
        return None
    kept = kept_layouts(cluster)
    return MigManagerInputs(
        **operand(spec, section, "migManager"),
        config=mig_config_map(spec).name,
        gpu_clients=gpu_clients_map(spec).name,
        kept=kept,
        digests=layout_digests(cluster) if kept else "{}",
    )
