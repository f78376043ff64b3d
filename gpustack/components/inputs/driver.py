"""Inputs of the driver.

`DriverSettings` is what the policy says about a driver whatever node it runs on, `DriverPod` what one DaemonSet adds:
its name, its nodes, its images and files. A cluster has one of the first, and several of the second where its nodes
differ in OS or kernel. What comes later (a DaemonSet per RHCOS version, drivers per pool) makes other settings and pods
of its own, and the same construct runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ...model import Finding, FindingsError
from .common import Common, Inputs, Pairs, dump, image, pairs, pull_policy
from .driver_files import SUSE_IDS, SUSE_MODULES, Files, HostFile, files, subscriptions
from .driver_pools import NAME, Target, targets

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec

PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


class Manager(Inputs):
    """The init container that clears a node of its old driver."""

    image: str
    pull_policy: str = ""
    env: Pairs = ()


class Module(Inputs):
    """A kernel module that is built beside the driver's: nvidia-fs (GDS) or gdrdrv (GDRCopy)."""

    image: str
    pull_policy: str = "IfNotPresent"
    env: Pairs = ()


class DriverSettings(Inputs):
    """What all DaemonSets of a driver share. `startup` overrides numbers of the startup probe, by the API's names."""

    manager: Manager
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    precompiled: bool = False
    module_type: Literal["auto", "open", "proprietary"] = "auto"
    rdma: bool = False
    host_mofed: bool = False
    env: Pairs = ()
    args: tuple[str, ...] = ()
    secret_env: str = ""
    resources: dict[str, Any] | None = None
    host_network: bool = False
    startup: dict[str, int] = {}


class DriverPod(Inputs):
    """What one DaemonSet runs, and where. `app` is its label and selector, None of `gds` and `gdrcopy` means off."""

    name: str = NAME
    app: str = NAME
    node_selector: dict[str, str] = {}
    image: str
    gds: Module | None = None
    gdrcopy: Module | None = None
    files: tuple[Files, ...] = ()
    host_files: tuple[HostFile, ...] = ()


class DriverInputs(Inputs):
    """Without node pools there are no `pods`: rights and ConfigMap are there, and nothing runs."""

    common: Common
    settings: DriverSettings
    pods: tuple[DriverPod, ...] = ()


def from_spec(spec: ClusterPolicySpec) -> DriverInputs | None:
    """The driver of all nodes; None where the nodes bring it, or where `drivers` describes it.

    Raises FindingsError where the policy asks for what no driver image can do, or does not say what the nodes run.
    """
    if not spec.driver.enabled or spec.driver.useNvidiaDriverCRD:
        return None
    findings = refusals(spec)
    try:
        common = Common.from_spec(spec)
        found = DriverInputs(
            common=common,
            settings=settings(spec),
            pods=tuple(driver_pod(spec, target, crio=common.runtime == "crio") for target in targets(spec)),
        )
    except FindingsError as error:
        raise FindingsError(*findings, *error.findings) from None
    if findings:
        raise FindingsError(*findings)
    return found


def settings(spec: ClusterPolicySpec) -> DriverSettings:
    """The part of the policy's driver that does not depend on the node."""
    driver = spec.driver
    manager, probe, rdma = driver.manager, driver.startupProbe, bool(driver.rdma.enabled)
    secrets = [*(manager.imagePullSecrets or ()), *(driver.imagePullSecrets or ())]
    for module in (spec.gds, spec.gdrcopy):
        secrets += (module.imagePullSecrets or ()) if module.enabled else ()
    return DriverSettings(
        manager=Manager(
            image=image(spec, manager, "driver.manager"),
            pull_policy=manager.imagePullPolicy or "",
            env=pairs(manager.env),
        ),
        pull_policy=pull_policy(driver.imagePullPolicy),
        pull_secrets=tuple(secrets),
        precompiled=bool(driver.usePrecompiled),
        module_type=driver.kernelModuleType or "auto",
        rdma=rdma,
        host_mofed=rdma and bool(driver.rdma.useHostMofed),
        env=pairs(driver.env),
        args=tuple(driver.args or ()),
        secret_env="" if driver.usePrecompiled else driver.secretEnv or "",
        resources=dump(driver.resources),
        host_network=bool(driver.hostNetwork),
        startup={name: number for name in PROBE_NUMBERS if (number := getattr(probe, name, None))},
    )


def driver_pod(spec: ClusterPolicySpec, target: Target, *, crio: bool) -> DriverPod:
    """The images and files of the DaemonSet for TARGET."""
    host_files = subscriptions(spec, target.os, crio=crio)
    if target.kernel and target.os.id in SUSE_IDS:
        host_files = (*host_files, SUSE_MODULES)
    return DriverPod(
        name=target.name,
        app=target.app,
        node_selector=target.node_selector,
        image=image(spec, spec.driver, "driver", suffix=target.image_suffix),
        gds=module(spec, "gds", target),
        gdrcopy=module(spec, "gdrcopy", target),
        files=files(spec, target.os),
        host_files=host_files,
    )


def module(spec: ClusterPolicySpec, path: Literal["gds", "gdrcopy"], target: Target) -> Module | None:
    """The module of the policy's section PATH, or None where it is off."""
    section = getattr(spec, path)
    if not section.enabled:
        return None
    return Module(
        image=image(spec, section, path, suffix=target.os.tag),
        pull_policy=pull_policy(section.imagePullPolicy),
        env=pairs(section.env),
    )


def refusals(spec: ClusterPolicySpec) -> list[Finding]:
    """What no driver can do, whatever the nodes run (operator.md 7.1, 10.1; cases 61 and 71)."""
    findings = [
        Finding(
            "GPU056",
            "error",
            f"the driver's container has no {probe} to set",
            path=f"spec.driver.{probe}",
            why="only its start is probed: killing a running driver takes the GPUs from all pods of the node. "
            "NVIDIA's operator crashes on this field",
            remedy=f"remove spec.driver.{probe}; spec.driver.startupProbe says how long a driver may take to start",
        )
        for probe in ("livenessProbe", "readinessProbe")
        if getattr(spec.driver, probe) is not None
    ]
    if not spec.driver.usePrecompiled:
        return findings
    findings += [
        Finding(
            "GPU054",
            "error",
            f"{name} can't be used with a precompiled driver",
            path=f"spec.{path}.enabled",
            why="its module is built from the driver's sources, which a precompiled image does not have",
            remedy=f"set spec.{path}.enabled: false, or spec.driver.usePrecompiled: false",
        )
        for path, name in (("gds", "GPUDirect Storage"), ("gdrcopy", "GDRCopy"))
        if getattr(spec, path).enabled
    ]
    findings += [
        Finding(
            "GPU055",
            "error",
            "a precompiled driver can't be named by a digest",
            path=f"spec.driver.{field}",
            why="a digest is one image, and each kernel has its own",
            remedy='name the image without digest, with spec.driver.version a branch such as "580", '
            "or set spec.driver.usePrecompiled: false",
        )
        for field in ("version", "image")
        if "sha256:" in (getattr(spec.driver, field) or "")
    ]
    return findings
