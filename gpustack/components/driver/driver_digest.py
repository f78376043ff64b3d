"""The digest of a driver's pod: which of its fields decide what is on the node afterwards (driver_digest_inputs.py).

It covers images, the driver's command, plain variables, and what is declared and mounted; not labels, tolerations,
resources, probes or node selectors. Changing what enters here makes every driver of every cluster re-install.
"""

from __future__ import annotations

from ..parts.pod import Container, Pod, Volume
from .driver_digest_inputs import Records, Value, digest, mounts, variables, volumes


def digest_of(pod: Pod) -> str:
    """The digest of POD, a driver's of the section `driver`, which has none yet."""
    by_name = {container.name: container for container in pod.every_container()}
    main, manager = by_name["nvidia-driver-ctr"], by_name["k8s-driver-manager"]
    declared = pod.volumes()
    fields: dict[str, Value] = {
        "DriverImage": main.image,
        "DriverCommand": list(main.command),
        "DriverArgs": list(main.args),
        "DriverEnv": plain(main),
        "SecretEnvSource": next((str(each["secretRef"]["name"]) for each in main.env_from), ""),
        "DriverManagerImage": manager.image,
        "ManagerEnv": plain(manager),
        "AdditionalVolumes": volumes(source(volume) for volume in declared),
        "AdditionalVolumeMounts": mounts(
            (mount["name"], mount["mountPath"], mount.get("subPath", ""), mount.get("readOnly", False))
            for _, mount in main.mounts
        ),
        "HostRoot": next(volume.path for volume in declared if volume.name == "host-root"),
    }
    if peermem := by_name.get("nvidia-peermem-ctr"):
        fields |= {"PeermemImage": peermem.image, "GPUDirectRDMAEnabled": True}
    for name, part in (("GDS", "nvidia-fs-ctr"), ("GDRCopy", "nvidia-gdrcopy-ctr")):
        if builder := by_name.get(part):
            fields |= {f"{name}Image": builder.image, f"{name}Enabled": True, f"{name}Env": plain(builder)}
    if toolkit := by_name.get("openshift-driver-toolkit-ctr"):
        fields |= {"DTKImage": toolkit.image, "DTKEnabled": True}
    return digest(fields)


def plain(container: Container) -> Records:
    """The variables of CONTAINER that are plain texts."""
    return variables((entry["name"], entry["value"]) for entry in container.env.body() if "value" in entry)


def source(volume: Volume) -> tuple[str, str, str, str]:
    """VOLUME as the digest counts it; of an empty folder only the name."""
    kinds = (("configMap", "name"), ("secret", "secretName"), ("hostPath", "path"))
    config_map, secret, path = (str(volume.source.get(kind, {}).get(key, "")) for kind, key in kinds)
    return volume.name, config_map, secret, path
