"""What a driver's DaemonSets are made of: `DriverCommon` is what the policy says about a driver whatever node it runs
on, `DriverPod` what one DaemonSet adds: its name, its nodes, its images and files.

Three parts of the policy describe drivers, and one construct runs them all: the section `driver`, `driver` of a node
pool, which overrides fields of it (driver_inputs.py), and `drivers` (nvidia_drivers_inputs.py). Each is read as a
DriverView, by the functions here.
"""

from collections.abc import Callable
from typing import Any, Literal

from ...catalog.releases import release
from ...model import Finding
from ...policy.language.operand import DriverManager
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs, Pairs, dump, image, pairs, pull_policy
from ..refusals import refused
from .driver_files_inputs import SECTION, SUSE_IDS, SUSE_MODULES, Files, HostFile, Use, files, subscriptions
from .driver_pools_inputs import NAME, DriverToolkit, Target, openshift_version
from .driver_view import DriverView

PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
ACCOUNT = "nvidia-driver"
DriverType = Literal["gpu", "vgpu", "vgpu-host-manager"]


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


class DriverCommon(Inputs):
    """What all DaemonSets of a driver share.

    `type` is "" for the policy's section `driver` and what overrides it; one of `drivers` has a type, and rules of its
    own (operator.md 10.3). `startup` overrides numbers of the startup probe, by the API's names. `host_mofed`: RDMA
    goes with the node's own network driver; `host_sources`: that one's sources are mounted, even without RDMA.
    `openshift_version`, `proxy` and `trusted_ca` are what a driver that builds has to know of OpenShift."""

    type: DriverType | Literal[""] = ""
    manager: Manager
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    precompiled: bool = False
    module_type: Literal["auto", "open", "proprietary"] = "auto"
    rdma: bool = False
    host_mofed: bool = False
    host_sources: bool = False
    env: Pairs = ()
    args: tuple[str, ...] = ()
    secret_env: str = ""
    resources: dict[str, Any] | None = None
    host_network: bool = False
    startup: dict[str, int] = {}
    openshift_version: str = ""
    proxy: Pairs = ()
    trusted_ca: bool = False


class DriverPod(Inputs):
    """What one DaemonSet runs, and where. `app` is its label and selector, None of `gds` and `gdrcopy` means off.

    `account` is its service account and the name of its rights; `labels` are on the DaemonSet and its pods, beside
    those that every driver has. `installs`: the digest of what it installs; "" if made of the pod (driver_pod.py)."""

    name: str = NAME
    app: str = NAME
    account: str = ACCOUNT
    labels: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    image: str
    gds: Module | None = None
    gdrcopy: Module | None = None
    files: tuple[Files | HostFile, ...] = ()
    installs: str = ""
    toolkit: DriverToolkit | None = None


def settings(view: DriverView) -> DriverCommon:
    """What of the driver VIEW does not depend on the node."""
    spec, driver = view.spec, view.driver
    manager, probe, rdma = driver.manager, driver.startupProbe, bool(driver.rdma.enabled)
    foreign = () if release(spec.release).traits.no_foreign_pull_secrets else spec.validator.imagePullSecrets
    secrets = [*(foreign or ()), *(manager.imagePullSecrets or ()), *(driver.imagePullSecrets or ())]
    for section in (view.gds, view.gdrcopy):
        secrets += (section.imagePullSecrets or ()) if section.enabled else ()
    return DriverCommon(
        manager=driver_manager(spec, manager, "driver.manager", view.at),
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
        **({} if driver.usePrecompiled else openshift(spec)),
    )


def openshift(spec: ClusterPolicySpec) -> dict[str, Any]:
    """What a driver that installs packages has to know of OpenShift: its version, its proxy, and whether that has
    authorities of its own (operator.md 8.2). Nothing elsewhere."""
    facts = spec.cluster.openshift
    if facts is None:
        return {}
    proxy = facts.proxy
    # In the operator's order, as is that of drivers (driver/nvidia_drivers_inputs.py).
    named = {"HTTPS_PROXY": proxy.httpsProxy, "HTTP_PROXY": proxy.httpProxy, "NO_PROXY": proxy.noProxy}
    return {
        "openshift_version": openshift_version(spec),
        "proxy": tuple((spelt, value) for name, value in named.items() if value for spelt in (name, name.lower())),
        "trusted_ca": bool(proxy.trustedCA.name),
    }


def driver_pod(view: DriverView, target: Target, *, crio: bool, order: tuple[Use, ...] = SECTION) -> DriverPod:
    """The images and files of the DaemonSet for TARGET, the latter in ORDER."""
    spec = view.spec
    brought: list[Files | HostFile] = [*files(view, target.os), *subscriptions(view, target.os, crio=crio)]
    if target.kernel and target.os.id in SUSE_IDS and release(spec.release).traits.driver_suse_modules:
        brought.append(SUSE_MODULES)
    return DriverPod(
        name=target.name,
        app=target.app,
        node_selector=target.node_selector,
        image=image(spec, view.driver, "driver", suffix=target.image_suffix, at=view.at),
        gds=module(view, "gds", target),
        gdrcopy=module(view, "gdrcopy", target),
        files=tuple(sorted(brought, key=lambda each: order.index(each.use))),
        toolkit=target.toolkit,
    )


def module(view: DriverView, path: Literal["gds", "gdrcopy"], target: Target) -> Module | None:
    """The module of the driver's section PATH, or None where it is off."""
    section = getattr(view, path)
    if not section.enabled:
        return None
    return Module(
        image=image(view.spec, section, path, suffix=target.os.tag, at=view.at),
        pull_policy=pull_policy(section.imagePullPolicy),
        env=pairs(section.env),
    )


def refusals(view: DriverView) -> list[Finding]:
    """What no driver can do, whatever the nodes run (operator.md 7.1, 10.1; cases 61 and 71)."""
    findings = [
        refused("GPU056", view.at(f"driver.{probe}"), probe=probe, startup=view.at("driver.startupProbe"))
        for probe in ("livenessProbe", "readinessProbe")
        if getattr(view.driver, probe) is not None
    ]
    return findings + precompiled_refusals(view) if view.driver.usePrecompiled else findings


def precompiled_refusals(view: DriverView) -> list[Finding]:
    """What a precompiled driver can't do."""
    switch = view.at("driver.usePrecompiled")
    findings = [
        refused("GPU054", view.at(f"{path}.enabled"), name=name, switch=switch)
        for path, name in (("gds", "GPUDirect Storage"), ("gdrcopy", "GDRCopy"))
        if getattr(view, path).enabled
    ]
    findings += [
        refused("GPU055", view.at(f"driver.{field}"), version=view.at("driver.version"), switch=switch)
        for field in ("version", "image")
        if "sha256:" in (getattr(view.driver, field) or "")
    ]
    return findings


def driver_manager(
    spec: ClusterPolicySpec, section: DriverManager, path: str, at: Callable[[str], str] = str
) -> Manager:
    """The manager that SECTION at PATH ("vfioManager.driverManager") describes; AT as for `image`."""
    reference = image(spec, section, path, at=at)
    return Manager(image=reference, pull_policy=section.imagePullPolicy or "", env=pairs(section.env))
