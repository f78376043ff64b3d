"""Inputs of what runs beside NVIDIA's DRA driver: a function for each component, called as it is."""

from ...cluster.resolve import Cluster, resolve
from ...policy.language.gpu_cluster import GpuCluster
from ...policy.language.spec import ClusterPolicySpec
from ..monitoring.monitoring_inputs import DcgmExporterInputs, dcgm, dcgm_exporter
from ..parts.common_inputs import Common, Inputs, OperandInputs, dumped, image


def common_of(spec: ClusterPolicySpec, cluster: GpuCluster, *, priority: str = "system-node-critical") -> Common:
    """What steers the pods of CLUSTER, which is SPEC's (operator.md 11.1).

    An empty list of tolerations means none. The update strategy is each component's own, and security context and root
    file system are not for the policy to say."""
    return Common.of(resolve(spec), cluster.daemonsets, cluster.hostPaths.driverInstallDir, "/").model_copy(
        update={
            "tolerations": dumped(cluster.daemonsets.tolerations),
            "priority_class": priority,
            "security_context": None,
            "on_delete": False,
            "max_unavailable": "100%",
        }
    )


def dra_dcgm(cluster: Cluster) -> OperandInputs | None:
    """None without a `gpuCluster`, and where each of its exporters runs an engine of its own."""
    if (section := cluster.spec.gpuCluster) is None or (without_dra := dcgm(cluster)) is None:
        return None
    return without_dra.model_copy(update={"common": common_of(cluster.spec, section)})


def dra_dcgm_exporter(cluster: Cluster) -> DcgmExporterInputs | None:
    """None without a `gpuCluster`, and where its exporter is off."""
    if (section := cluster.spec.gpuCluster) is None or (without_dra := dcgm_exporter(cluster)) is None:
        return None
    return without_dra.model_copy(update={"common": common_of(cluster.spec, section), "rules": False})


class DraValidatorInputs(Inputs):
    """The validator runs the image of `validator`, pulled as the DRA driver is (operator.md 11.1)."""

    common: Common
    image: str
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()


def dra_validator(cluster: Cluster) -> DraValidatorInputs | None:
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
