"""DRIVER_CONFIG_DIGEST: names what a driver's pod installs, as the operator names it (moving.md M3).

Manager and driver keep the kernel modules that are loaded when the digest is the one they were installed with, and a
roll-out then spares the workloads (operator.md 12, reconciler.md U34 and D8). So it has to be the operator's to the
last digit: another one restarts every driver of a cluster that is taken over.

The operator hashes a text made of those fields of a record that are not empty, in the order of their names. It fills
the record from the finished pod of the section `driver` (driver_pod.py), and from the settings of one of
`drivers` before there is a pod. A field that is empty leaves no trace, so fields that a later release adds change no
digest until somebody sets them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...policy.language.driver import NvidiaDriver
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import image, pairs
from .driver_files_inputs import Files, HostFile
from .driver_pools_inputs import Target, openshift_version
from .driver_settings_inputs import DriverPod
from .driver_view import DriverView


class Records(NamedTuple):
    """Records of one type of the operator's, in order."""

    type: str
    records: Sequence[Mapping[str, str | bool]]


Value = str | bool | Sequence[str] | Records


def digest(fields: Mapping[str, Value]) -> str:
    """The digest of FIELDS, those that are empty left out."""
    text = ""
    for name, value in sorted(fields.items()):
        if value.records if isinstance(value, Records) else value:
            text += f"{name}:{printed(value)}"
    return str(fnv1a(text.encode()))


def printed(value: Value) -> str:
    """VALUE as the operator's printer shows it, with its type in Go."""
    if isinstance(value, bool):
        return f"(bool){str(value).lower()}"
    if isinstance(value, str):
        return f"(string){value}"
    if not isinstance(value, Records):
        return f"([]string)[{' '.join(value)}]"
    records = (" ".join(f"{name}:{printed(item)}" for name, item in each.items()) for each in value.records)
    return f"([]config.{value.type})[{' '.join(f'{{{each}}}' for each in records)}]"


def fnv1a(data: bytes) -> int:
    """The 32-bit FNV-1a hash of DATA."""
    hashed = 0x811C9DC5
    for byte in data:
        hashed = (hashed ^ byte) * 0x01000193 & 0xFFFFFFFF
    return hashed


def variables(env: Iterable[tuple[str, str]]) -> Records:
    """Variables by name."""
    return Records("EnvVar", [{"Name": name, "Value": value} for name, value in sorted(env, key=lambda pair: pair[0])])


def mounts(rows: Iterable[tuple[str, str, str, bool]]) -> Records:
    """Mounts by volume and path: (volume, path, path below the volume, read-only)."""
    names = ("Name", "MountPath", "SubPath", "ReadOnly")
    return Records("VolumeMountConfig", [dict(zip(names, each, strict=True)) for each in sorted(rows)])


def volumes(rows: Iterable[tuple[str, str, str, str]]) -> Records:
    """Volumes by name: (name, ConfigMap, Secret, path on the node), "" for what it is not."""
    names = ("Name", "ConfigMapName", "SecretName", "HostPath")
    return Records("VolumeConfig", [dict(zip(names, each, strict=True)) for each in sorted(rows)])


def digest_of_driver(view: DriverView, driver: NvidiaDriver, pod: DriverPod, target: Target) -> str:
    """The digest of DRIVER, which VIEW is of, for TARGET, whose images and files are in POD."""
    rdma = bool(driver.rdma.enabled)
    fields: dict[str, Value] = {
        "DriverImage": pod.image,
        "DriverManagerImage": image(view.spec, view.driver.manager, "driver.manager", at=view.at),
        "DriverType": driver.driverType,
        "KernelModuleType": driver.kernelModuleType or "auto",
        "DriverArgs": list(driver.args or ()),
        "SecretEnvSource": driver.secretEnv or "",
        "DriverEnv": variables(pairs(driver.env)),
        "ManagerEnv": variables(pairs(driver.manager.env)),
        "LicensingConfigName": driver.licensingConfig.secretName or "",
        "VirtualTopologyConfig": driver.virtualTopologyConfig.name or "",
        "KernelModuleConfig": driver.kernelModuleConfig.name or "",
        "RepoConfig": driver.repoConfig.name or "",
        "CertConfig": driver.certConfig.name or "",
        "GPUDirectRDMAEnabled": rdma,
        "PeermemImage": pod.image if rdma else "",
        "UseHostMOFED": rdma and bool(driver.rdma.useHostMofed),
        "UsePrecompiled": bool(target.kernel),
        "KernelVersion": target.kernel,
        "HostRoot": "/" if view.cluster.dra else view.spec.hostPaths.rootFS or "",
        **of_modules(pod),
        **of_openshift(view.spec, target),
        **of_files(pod.files),
    }
    return digest(fields)


def of_modules(pod: DriverPod) -> dict[str, Value]:
    """What is built beside the driver."""
    values: dict[str, Value] = {}
    for name, module in (("GDS", pod.gds), ("GDRCopy", pod.gdrcopy)):
        if module:
            values |= {f"{name}Image": module.image, f"{name}Enabled": True, f"{name}Env": variables(module.env)}
    return values


def of_openshift(own: ClusterPolicySpec, target: Target) -> dict[str, Value]:
    """What a driver has to know of OpenShift; its version counts also where nothing is built."""
    facts = own.cluster.openshift
    if facts is None:
        return {}
    values: dict[str, Value] = {"OpenshiftVersion": openshift_version(own)}
    if not own.driver.usePrecompiled:
        proxy, toolkit = facts.proxy, target.toolkit
        values |= {"HTTPProxy": proxy.httpProxy or "", "HTTPSProxy": proxy.httpsProxy or ""}
        values |= {"NoProxy": proxy.noProxy or "", "TrustedCAConfigMapName": proxy.trustedCA.name or ""}
        if toolkit:
            values |= {"DTKEnabled": True, "DTKImage": toolkit.image, "RHCOSVersion": toolkit.rhcos}
    return values


def of_files(files: Sequence[Files | HostFile]) -> dict[str, Value]:
    """The volumes that the policy adds, and where they are mounted."""
    named, mounted = list[tuple[str, str, str, str]](), list[tuple[str, str, str, bool]]()
    for each in files:
        if isinstance(each, HostFile):
            named.append((each.volume, "", "", each.path))
            mounted.append((each.volume, each.target, "", True))
        else:
            maps, secrets = (each.name, "") if each.kind == "ConfigMap" else ("", each.name)
            named.append((each.volume, maps, secrets, ""))
            mounted += [(each.volume, path, key, True) for key, path in each.paths.items()]
    return {"AdditionalVolumes": volumes(named), "AdditionalVolumeMounts": mounts(mounted)}
