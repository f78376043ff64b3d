"""The rules that hold for every DaemonSet of the stack, whatever it runs (operator.md 5.1, 5.4, 5.5).

Labels and annotations of the policy, update strategy, priority, tolerations, host paths, RuntimeClass and CDI
annotations are applied here and nowhere else.
"""

from collections.abc import Mapping
from typing import Literal

from ...api import keys
from ...model import Body
from .carried import carry, template_hash
from .common_inputs import Common
from .kube import metadata
from .pod import Pod, Volume, sparse

OWN_LABELS = {"app", "app.kubernetes.io/part-of"}
"""Pod labels that selectors depend on; the policy's `daemonsets.labels` never replaces them."""


def host_root(common: Common) -> Volume:
    """The node's root file system, at `hostPaths.rootFS`."""
    return Volume.host("host-root", common.root_fs)


def host_dev_char(common: Common) -> Volume:
    """The node's /dev/char, where the validator makes links for the driver's devices."""
    return Volume.host("host-dev-char", f"{common.root_fs.rstrip('/')}/dev/char")


def driver_install_dir(common: Common, kind: str = "DirectoryOrCreate") -> Volume:
    """Where the driver's files are on the node: `hostPaths.driverInstallDir`."""
    return Volume.host("driver-install-dir", common.driver_dir, kind)


VALIDATIONS = Volume.host("run-nvidia-validations", "/run/nvidia/validations", "DirectoryOrCreate")
RUN_NVIDIA = Volume.host("run-nvidia", "/run/nvidia", "Directory")
CDI_ROOT = Volume.host("cdi-root", "/var/run/cdi", "DirectoryOrCreate")


def daemonset(
    common: Common,
    name: str,
    pod: Pod,
    *,
    app: str = "",
    select_by: Literal["app", "name"] = "app",
    deploy: str = "",
    labels: Mapping[str, str] | None = None,
    pod_labels: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    part_of: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
    gpu_container: str = "",
    update: Literal["rolling", "on-delete"] = "rolling",
) -> Body:
    """A DaemonSet NAME that runs POD on every node labelled nvidia.com/gpu.deploy.DEPLOY=true.

    LABELS and POD_LABELS come on top of app=APP (default: NAME), SELECTOR on top of the same, and PART_OF on top of all
    three. SELECT_BY is the label of the pods, and so of the selector, that takes the place of `app` there.
    GPU_CONTAINER names the container that uses the GPU: its pod gets the RuntimeClass, or the CDI annotation where NRI
    replaces it."""
    labels, pod_labels, selector = ({**(said or {}), **(part_of or {})} for said in (labels, pod_labels, selector))
    notes = dict(pod_annotations or {})
    own: dict[str, str] = {"app": app or name}
    chosen: dict[str, str] = {select_by: app or name}
    if deploy:
        pod.node_selector = {f"{keys.DEPLOY}{deploy}": "true", **pod.node_selector}
    set_host_root(common, pod)
    if not common.traits.init_resources:
        for container in pod.init:
            container.resources = None
    if gpu_container and common.nri:
        notes[f"nvidia.cdi.k8s.io/container.{gpu_container}"] = "management.nvidia.com/gpu=all"
    if pod.config_digest:
        notes["gpustack.dev/config"] = pod.config_digest
    fixed = {*OWN_LABELS, select_by, *selector}
    extra = {key: value for key, value in common.labels.items() if key not in fixed}
    spec = pod.body() | sparse(
        priorityClassName=common.priority_class,
        runtimeClassName=common.operand_runtime_class if gpu_container else None,
        securityContext=common.security_context,
        tolerations=[dict(toleration) for toleration in common.tolerations],
    )
    template = metadata("", labels={**chosen, **pod_labels, **extra}, annotations={**notes, **common.annotations})
    body = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(
            name,
            common.namespace,
            labels={**own, **labels, **common.labels},
            annotations={**(annotations or {}), **common.annotations},
        ),
        "spec": {
            "selector": {"matchLabels": {**chosen, **selector}},
            "template": {"metadata": template, "spec": spec},
            "updateStrategy": update_strategy(common, update),
        },
    }
    return carry(common, body)


def set_host_root(common: Common, pod: Pod) -> None:
    """Tell every container of POD where the node's root is, if the pod sees it and it is not / (operator.md 5.4)."""
    if common.root_fs != "/" and any(volume.name == "host-root" for volume in pod.volumes()):
        for container in pod.every_container():
            container.env.of_host("HOST_ROOT", common.root_fs)


def update_strategy(common: Common, update: Literal["rolling", "on-delete"]) -> Body:
    """OnDelete for the driver and where the policy says so for all; else RollingUpdate with the policy's budget."""
    if common.on_delete or update == "on-delete":
        return {"type": "OnDelete"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": common.max_unavailable}}


def revision(body: Body) -> str:
    """Names the pod template of the DaemonSet BODY."""
    return template_hash(body["spec"]["template"])


def with_revision(body: Body) -> Body:
    """The DaemonSet BODY with the annotation that names its pod template.

    A driver's DaemonSet and the NodePolicies that roll it out are applied in any order; a roll-out begins when both
    name the same template (reconciler.md A8). The annotation is not in the template: there it would be a change itself.
    """
    meta = body["metadata"]
    return {**body, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), keys.REVISION: revision(body)}}}
