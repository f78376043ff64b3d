"""Inputs of `drivers`: several drivers in one cluster, each for nodes of its own (operator.md 10).

Each driver is read as the policy's section `driver` is (`view_of`), so that every field is read in one place; what is
different for `drivers` is put right afterwards. Which pools are whose: cluster/ownership.py. What the
drivers contradict each other in: checks/drivers/drivers.py.
"""

import re
from typing import Any

from ...api import keys
from ...catalog import drivers
from ...catalog.releases import release
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster, resolve
from ...model import Finding, FindingsError, numbers
from ...policy.language import images, reconciler
from ...policy.language.base import own
from ...policy.language.driver import NvidiaDriver
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Common, Inputs, dump, dumped
from ..reconciler.rollout_inputs import managers_evict
from ..refusals import refused
from .driver_digest_inputs import digest_of_driver
from .driver_files_inputs import DRIVERS, Part
from .driver_pools_inputs import Target, sanitised
from .driver_settings_inputs import (
    DriverCommon,
    DriverPod,
    DriverType,
    driver_pod,
    openshift,
    precompiled_refusals,
    settings,
)
from .driver_view import DriverView
from .nvidia_driver_pools_inputs import account_name, targets_of, toolkits

EVERYWHERE: tuple[Part, ...] = ("driver", "peermem", "fs", "gdrcopy")
TOLERATION: dict[str, Any] = {"key": keys.GPU, "operator": "Exists", "effect": "NoSchedule"}
PROBE_DEFAULTS = {
    "initialDelaySeconds": 0,
    "periodSeconds": 10,
    "timeoutSeconds": 1,
    "successThreshold": 1,
    "failureThreshold": 3,
}
"""What the API server puts in for numbers that a probe does not give."""


class NvidiaDriverInputs(Inputs):
    """One driver. `pods` are its DaemonSets, the other fields hold for all of them, beside `settings`."""

    name: str
    settings: DriverCommon
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = (TOLERATION,)
    priority_class: str = own("drivers[].priorityClassName")
    security_context: dict[str, Any] | None = None
    pods: tuple[DriverPod, ...]


class NvidiaDriversInputs(Inputs):
    """All drivers that have nodes. `revisions` and `evicts` as in DriverInputs."""

    common: Common
    drivers: tuple[NvidiaDriverInputs, ...]
    revisions: bool = False
    evicts: bool = True


def from_cluster(cluster: Cluster) -> NvidiaDriversInputs | None:
    """The drivers of CLUSTER that have nodes; None where there are none, or where the section `driver` is in charge.

    Raises FindingsError where one asks for what no driver image can do, or pools do not say what their nodes run."""
    spec = cluster.spec
    if not cluster.listed:
        return None
    drivers, findings = list[NvidiaDriverInputs](), list[Finding]()
    for index, driver in enumerate(spec.drivers):
        pools = [pool for pool in cluster.pools if pool.driver is not None and pool.driver.number == index]
        if not pools:
            continue
        try:
            drivers.append(of_driver(view_of(cluster, index, pools), driver))
        except FindingsError as error:
            findings += error.findings
    if findings:
        raise FindingsError(*findings)
    if not drivers:
        return None
    rolled = {"revisions": reconciler.runs(spec), "evicts": managers_evict(spec)}
    return NvidiaDriversInputs(common=common(spec), drivers=tuple(drivers), **rolled)


def common(spec: ClusterPolicySpec) -> Common:
    """What holds for all drivers: nothing of `daemonsets`, and the node's root only with a ClusterPolicy (10.3)."""
    of_cluster = Common.from_cluster(resolve(spec))
    return of_cluster.model_copy(update={"root_fs": "/"}) if resolve(spec).dra else of_cluster


def of_driver(view: DriverView, driver: NvidiaDriver) -> NvidiaDriverInputs:
    """The inputs of DRIVER, which VIEW is of, on its pools."""
    findings = refusals(view)
    try:
        made = own_settings(view, driver)
        pods = tuple(own_pod(view, driver, target) for target in targets_of(view, driver))
    except FindingsError as error:
        findings += error.findings
    if findings:
        raise FindingsError(*findings)
    # The operator drops labels that selectors depend on, and appends tolerations, even its own once more (10.3).
    kept = [key for key in driver.labels if key != "app" and not key.startswith("app.kubernetes.io/")]
    return NvidiaDriverInputs(
        name=driver.name,
        settings=made,
        labels={key: driver.labels[key] for key in kept},
        annotations=driver.annotations,
        tolerations=(TOLERATION, *dumped(driver.tolerations)),
        priority_class=driver.priorityClassName,
        security_context=dump(driver.podSecurityContext),
        pods=pods,
    )


def view_of(cluster: Cluster, index: int, pools: list[Pool]) -> DriverView:
    """Number INDEX of `drivers`, for POOLS."""
    from ...policy.language.driver import Driver

    driver = cluster.spec.drivers[index]
    said = driver.model_dump(exclude_unset=True, include=set(Driver.model_fields) - {"livenessProbe", "readinessProbe"})
    licence = driver.licensingConfig
    said |= {
        "repoConfig": {"configMapName": driver.repoConfig.name},
        "virtualTopology": {"config": driver.virtualTopologyConfig.name},
        "licensingConfig": {
            "configMapName": licence.name,
            "secretName": licence.secretName,
            "nlsEnabled": licence.nlsEnabled,
        },
    }

    def at(field: str) -> str:
        moved = ((before, after) for before, after in MOVED if field.startswith(before))
        before, after = next(moved, ("", ""))
        return f"drivers[{index}].{after}{field.removeprefix(before)}" if before else field

    return DriverView(cluster, Driver.model_validate(said), driver.gds, driver.gdrcopy, tuple(pools), at)


def own_settings(view: DriverView, driver: NvidiaDriver) -> DriverCommon:
    """The settings of DRIVER, which VIEW is of, with the rules of 10.3."""
    base, kind, building = settings(view), driver.driverType, not driver.usePrecompiled
    secrets = [*driver.imagePullSecrets, *driver.manager.imagePullSecrets]
    for module in (driver.gds, driver.gdrcopy):
        secrets += module.imagePullSecrets if module.enabled else ()
    facts = {"openshift_version": "", "proxy": (), "trusted_ca": False}
    return base.model_copy(
        update={
            "type": kind,
            "manager": base.manager.model_copy(update={"pull_policy": base.manager.pull_policy or "IfNotPresent"}),
            "pull_secrets": tuple(secrets),
            "args": ("init", *base.args),
            "host_sources": driver.rdma.useHostMofed,
            "secret_env": driver.secretEnv or "",
            "startup": {**PROBE_DEFAULTS, **base.startup},
            **(in_order(openshift(view.spec)) if building and toolkits(view.spec) else facts),
        }
    )


def in_order(facts: dict[str, Any]) -> dict[str, Any]:
    """FACTS of OpenShift with its proxy in the order of drivers: plain before secure."""
    words = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
    return {**facts, "proxy": tuple(sorted(facts.get("proxy", ()), key=lambda pair: words.index(pair[0])))}


def own_pod(view: DriverView, driver: NvidiaDriver, target: Target) -> DriverPod:
    """The pod of DRIVER, which VIEW is of, for TARGET: what is mounted is mounted everywhere (10.3)."""
    base = driver_pod(view, target, crio=view.cluster.engine == "cri-o", order=DRIVERS)
    labels = {"nvidia.com/node.os-version": target.os.tag}
    if target.kernel:
        labels["nvidia.com/precompiled.kernel-version"] = sanitised(target.kernel)
    kind: DriverType = driver.driverType
    made = base.model_copy(
        update={
            "account": account_name(kind, driver.name, target.os.tag),
            "labels": labels,
            "gds": base.gds and base.gds.model_copy(update={"pull_policy": "IfNotPresent"}),
            "files": tuple(each.model_copy(update={"parts": EVERYWHERE}) for each in base.files),
        }
    )
    digests = release(view.spec.release).traits.driver_digest
    return made.model_copy(update={"installs": digest_of_driver(view, driver, made, target)}) if digests else made


def refusals(view: DriverView) -> list[Finding]:
    """What one of `drivers`, which VIEW is of, can't do (10.1)."""
    findings = precompiled_refusals(view) if view.driver.usePrecompiled else []
    version = images.version(view.gds)
    if (
        view.gds.enabled
        and not view.driver.usePrecompiled
        and view.driver.kernelModuleType != "open"
        and needs_open(version)
    ):
        findings.append(
            refused("GPU059", view.at("driver.kernelModuleType"), version=version, switch=view.at("gds.enabled"))
        )
    return findings


def needs_open(version: str) -> bool:
    """Whether VERSION of nvidia-fs is known to, or may, need the open kernel modules."""
    match = re.fullmatch(r"v?(\d+\.\d+\.\d+).*", version)
    if match is None:
        return version.startswith("sha256")
    return numbers(match[1]) >= drivers.gds_open_from()


MOVED = (
    ("driver.repoConfig.configMapName", "repoConfig.name"),
    ("driver.virtualTopology.config", "virtualTopologyConfig.name"),
    ("driver.licensingConfig.configMapName", "licensingConfig.name"),
    ("driver.", ""),
    ("gds.", "gds."),
    ("gdrcopy.", "gdrcopy."),
)
"""Where a field of the sections stands in one of `drivers`."""
