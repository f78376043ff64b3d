"""The sidecar that builds kernel modules for RHCOS: OpenShift's driver toolkit (operator.md 8.1).

The container that installs the modules leaves its sources and its entry point in a shared folder, and the sidecar
builds there, with headers and compiler of exactly the node's kernel. So there is a DaemonSet per RHCOS version. Where
the image for a version is missing, the sidecar runs the installing container's own image, which then builds without the
toolkit, as the operator's does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..parts.pod import PRIVILEGED_S0, Container, Env, Volume
from ..scripts import argument
from .driver_toolkit_inputs import DriverToolkit

NAME = "openshift-driver-toolkit-ctr"
SHARED = Volume.empty_dir("shared-nvidia-driver-toolkit")
SHARED_DIR = "/mnt/shared-nvidia-driver-toolkit"


def build_with_toolkit(
    main: Container, toolkit: DriverToolkit, env: Env, *, resources: Mapping[str, Any] | None
) -> Container:
    """Let MAIN build with TOOLKIT, and return the sidecar for it, which has no mounts but the shared folder.

    ENV is the sidecar's, from `toolkit_env`. The arguments that MAIN had are gone, those of the policy with them.
    """
    use_toolkit(main, toolkit, "nv-ctr-run-with-dtk")
    if not toolkit.image:
        env.set("RHCOS_IMAGE_MISSING", True)
    sidecar = Container(
        NAME,
        toolkit.image or main.image,
        "IfNotPresent",
        command=["bash", "-xc"],
        args=[argument("build-driver")],
        env=env,
        security=PRIVILEGED_S0,
        resources=resources,
    )
    return sidecar.mount(SHARED, SHARED_DIR)


def toolkit_env(toolkit: DriverToolkit) -> Env:
    """What the sidecar of TOOLKIT is told, less what depends on what is built."""
    return Env({"RHCOS_VERSION": toolkit.rhcos, "NVIDIA_VISIBLE_DEVICES": "void"}).appended()


def use_toolkit(container: Container, toolkit: DriverToolkit, word: str) -> None:
    """Make CONTAINER prepare the shared folder and take its modules from there.

    WORD is the argument of its entry point.
    """
    container.command, container.args = ["ocp_dtk_entrypoint"], [word]
    container.mount(SHARED, SHARED_DIR)
    without_image(container.env, toolkit)


def without_image(env: Env, toolkit: DriverToolkit) -> None:
    """Tell a container that installs modules to build them itself, where TOOLKIT has no image for its nodes."""
    if not toolkit.image:
        env.set("RHCOS_IMAGE_MISSING", True).set("RHCOS_VERSION", toolkit.rhcos)


def labels(toolkit: DriverToolkit) -> tuple[dict[str, str], dict[str, str]]:
    """The labels of the DaemonSet for TOOLKIT, and those of its pods."""
    pod = {"openshift.driver-toolkit": "true"}
    if not toolkit.image:
        pod["openshift.driver-toolkit.rhcos-image-missing"] = "true"
    return {**pod, "openshift.driver-toolkit.rhcos": toolkit.rhcos}, pod
