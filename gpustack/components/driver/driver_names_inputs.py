"""Names of the objects of drivers that serve some of a cluster's nodes.

The operator ends the name of such a DaemonSet in a hash of an object's UID (operator.md 10.2). There is no object here,
so the name says whose it is, and ends in a hash of what it says, because names are cut at 63 characters. Both follow
from the driver's name and from its nodes, so they are the same in every render, whatever else the policy says. What a
driver installs is no part of them: a new version would be a new DaemonSet, and every node would lose its driver at once
instead of one after the other.
"""

from __future__ import annotations

import hashlib
import re

from .driver_settings_inputs import DriverType

LABEL_LENGTH = 63
"""The name of such a DaemonSet is the value of a label too."""
NAME_LENGTH = 253


def daemonset_name(kind: DriverType, tag: str, driver: str, variant: str = "") -> str:
    """nvidia-<KIND>-driver-<TAG>-<DRIVER>-<hash>, at most 63 characters, on systems whose images end in TAG.

    VARIANT tells apart the DaemonSets of one driver on one system: its kernel, or its version of RHCOS.
    """
    digest = hashlib.sha256(f"{kind}/{tag}/{driver}/{variant}".encode()).hexdigest()[:8]
    words = "-".join(part for part in (f"nvidia-{kind}-driver", tag, driver, variant) if part)
    return f"{shortened(words, LABEL_LENGTH - len(digest) - 1)}-{digest}"


def account_name(kind: DriverType, driver: str, tag: str) -> str:
    """The name of service account, roles and security context constraints of DRIVER on TAG (operator.md 10.2)."""
    host = kind == "vgpu-host-manager"
    return shortened(
        f"nvidia-vgpu-manager-{driver}-{tag}" if host else f"nvidia-{kind}-driver-{driver}-{tag}", NAME_LENGTH
    )


def shortened(words: str, length: int) -> str:
    """WORDS as the name of an object, in at most LENGTH characters: what no name can hold becomes "-" or one dot."""
    name = re.sub(r"[^a-z0-9.-]", "-", words.lower())
    return re.sub(r"[-.]*\.[-.]*", ".", name)[:length].rstrip("-.")
