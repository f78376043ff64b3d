"""Which DaemonSets one of `drivers` needs, and which nodes each is for (operator.md 10.1 to 10.3).

One per OS tag, precompiled one per OS tag and kernel, on OpenShift one per version of RHCOS. All of them select the
label that names the driver.
"""

import hashlib
import re

from ...api import keys
from ...catalog.oses import UnknownOS
from ...catalog.releases import release
from ...cluster.ownership import os_labels
from ...model import Finding, FindingsError
from ...policy.language.carried import called
from ...policy.language.driver import NvidiaDriver
from ...policy.language.spec import ClusterPolicySpec
from .driver_pools_inputs import (
    RHCOS_LABEL,
    DriverToolkit,
    System,
    Target,
    parse,
    toolkit_images,
    unknown_kernel,
    unknown_os,
)
from .driver_settings_inputs import DriverType
from .driver_view import DriverView

LABEL_LENGTH = 63
"""The name of such a DaemonSet is the value of a label too."""


def toolkits(spec: ClusterPolicySpec) -> dict[str, str]:
    """The images of OpenShift's driver toolkit by RHCOS version; `drivers` use it wherever there is one (10.3)."""
    return {version: image for version, image in toolkit_images(spec).items() if version != "latest"}


def targets_of(view: DriverView, driver: NvidiaDriver) -> list[Target]:
    """The DaemonSets of DRIVER, which VIEW is of, on its pools, in their order. None for pools on OpenShift that do not
    say their version of RHCOS: the operator makes none for such nodes, and a rule warns.

    Raises FindingsError with everything that the pools fail to say."""
    by_name, findings = dict[str, Target](), list[Finding]()
    spec = view.spec
    by_rhcos = view.cluster.platform.os_images and not driver.usePrecompiled
    for of in view.pools:
        pool = of.said
        try:
            system = system_of(spec, pool.os or "")
        except UnknownOS as error:
            findings.append(unknown_os(of, error, None))
        else:
            kernel = pool.kernel or "" if driver.usePrecompiled else ""
            rhcos = pool.ostreeVersion or "" if by_rhcos else ""
            if rhcos or not by_rhcos:
                target = target_of(spec, driver, system, kernel=kernel, rhcos=rhcos)
                by_name.setdefault(target.name, target)
        if driver.usePrecompiled and not pool.kernel:
            findings.append(unknown_kernel(of, view))
    if findings:
        raise FindingsError(*findings)
    return list(by_name.values())


def system_of(spec: ClusterPolicySpec, os: str) -> System:
    """The system called OS; older releases have images for `drivers` by its whole version. UnknownOS as in `parse`."""
    system = parse(os, spec.release)
    return system if release(spec.release).traits.driver_short_tags else system._replace(tag=os)


def target_of(
    spec: ClusterPolicySpec, driver: NvidiaDriver, system: System, *, kernel: str = "", rhcos: str = ""
) -> Target:
    """The DaemonSet of DRIVER on SYSTEM, for one KERNEL or one version of RHCOS where these are not ""."""
    selector = node_selector(spec, driver, system)
    if kernel:
        selector[keys.KERNEL] = kernel
    if rhcos:
        selector[RHCOS_LABEL] = rhcos
    images = toolkits(spec)
    toolkit = DriverToolkit(rhcos=rhcos, image=images.get(rhcos, "")) if rhcos and images else None
    variant = kernel or rhcos or apart(spec, system)
    name = called(spec, daemonset_name(driver.driverType, system.tag, driver.name, variant))
    return Target(name, name, selector, system, kernel, toolkit)


def apart(spec: ClusterPolicySpec, system: System) -> str:
    """What tells SYSTEM from others with its tag, where the release selects by the whole version: that version.

    The operator of such releases has one DaemonSet for them, which selects the nodes of one version only."""
    traits = release(spec.release).traits
    return "" if traits.driver_major_selector or system.tag.endswith(system.version) else system.version


def node_selector(spec: ClusterPolicySpec, driver: NvidiaDriver, system: System) -> dict[str, str]:
    """The labels of DRIVER's nodes that run SYSTEM, less the one that turns the driver on (10.3)."""
    traits, labels = release(spec.release).traits, os_labels(system.text, spec.release)
    whole = f"{keys.OS_RELEASE}VERSION_ID"
    short = whole not in labels or (traits.driver_major_selector and not system.tag.endswith(system.version))
    version = f"{whole}.major" if short else whole
    return {
        keys.PRESENT: "true",
        **({keys.DRIVER_OWNER: driver.name} if traits.driver_owner_label else {}),
        **driver.nodeSelector,
        f"{keys.OS_RELEASE}ID": system.id,
        version: labels[version],
    }


def daemonset_name(kind: DriverType, tag: str, driver: str, variant: str = "") -> str:
    """nvidia-<KIND>-driver-<TAG>-<DRIVER>-<hash>, at most 63 characters, on systems whose images end in TAG.

    The operator ends the name in a hash of an object's UID (operator.md 10.2). There is no object here, so the name
    says whose it is, and ends in a hash of what it says, because names are cut at 63 characters. Both are the same in
    every render, whatever else the policy says. What a driver installs isn't part of them: a new version would be a new
    DaemonSet, and every node would lose its driver at once instead of one after the other.

    VARIANT tells apart the DaemonSets of one driver on one system: its kernel, or its version of RHCOS."""
    digest = hashlib.sha256(f"{kind}/{tag}/{driver}/{variant}".encode()).hexdigest()[:8]
    words = "-".join(part for part in (f"nvidia-{kind}-driver", tag, driver, variant) if part)
    return f"{shortened(words, LABEL_LENGTH - len(digest) - 1)}-{digest}"


def account_name(kind: DriverType, driver: str, tag: str) -> str:
    """The name of service account, roles and security context constraints of DRIVER on TAG (operator.md 10.2)."""
    host = kind == "vgpu-host-manager"
    return shortened(f"nvidia-vgpu-manager-{driver}-{tag}" if host else f"nvidia-{kind}-driver-{driver}-{tag}", 253)


def shortened(words: str, length: int) -> str:
    """WORDS as the name of an object, in at most LENGTH characters: what no name can hold becomes "-" or one dot."""
    name = re.sub(r"[^a-z0-9.-]", "-", words.lower())
    return re.sub(r"[-.]*\.[-.]*", ".", name)[:length].rstrip("-.")
