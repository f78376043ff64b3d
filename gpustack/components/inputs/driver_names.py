"""Names of the objects of drivers that serve some of a cluster's nodes.

The operator ends the name of such a DaemonSet in a hash of an object's UID (operator.md 10.2). There is no object here,
so the hash is one of the driver's name: the same in every render, whatever else the policy says. What a driver installs
is no part of it: with a hash of that, a new version would be a new DaemonSet, and every node would lose its driver at
once instead of one after the other. Two drivers never share a name: their names differ, so their hashes do (40 bits;
should two ever meet, the compiler refuses two objects of one name).
"""

from __future__ import annotations

import hashlib

from .driver_settings import DriverType

LABEL_LENGTH = 63
"""The name of such a DaemonSet is the value of a label too."""
NAME_LENGTH = 253


def daemonset_name(kind: DriverType, tag: str, driver: str, variant: str = "") -> str:
    """nvidia-<KIND>-driver-<TAG>-<hash>, at most 63 characters, for DRIVER on systems whose images end in TAG.

    VARIANT tells apart the DaemonSets of one driver on one system: its kernel, or its version of RHCOS.
    """
    digest = hashlib.sha256(f"{driver}/{variant}".encode()).hexdigest()[:10]
    return f"{shortened(f'nvidia-{kind}-driver-{tag}', LABEL_LENGTH - len(digest) - 1)}-{digest}"


def account_name(kind: DriverType, driver: str, tag: str) -> str:
    """The name of service account, roles and security context constraints of DRIVER on TAG (operator.md 10.2)."""
    host = kind == "vgpu-host-manager"
    name = f"nvidia-vgpu-manager-{driver}-{tag}" if host else f"nvidia-{kind}-driver-{driver}-{tag}"
    return shortened(name, NAME_LENGTH)


def shortened(name: str, length: int) -> str:
    """The first LENGTH characters of NAME, less what no name may end in."""
    return name[:length].rstrip("-.")
