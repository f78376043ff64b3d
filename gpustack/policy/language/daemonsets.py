"""`daemonsets`: what holds for the pods of every component."""

from typing import Annotated, Any, Literal

from .base import Own, Section, items, mapping, own, section
from .forms import form, refuse_as
from .types import Annotations, AtLeast0, DnsSubdomain, Labels, LabelValue, ObjectName, TaintKey, Text


class Toleration(Section):
    """A taint that pods put up with."""

    key: TaintKey | None = None
    """Key of the taint. Absent or empty with operator Exists: every taint."""
    operator: Literal["Exists", "Equal", "Lt", "Gt", ""] | None = None
    """How key and value are compared; Lt and Gt need a feature gate, new in Kubernetes 1.35. Absent or empty: Equal."""
    value: LabelValue | None = None
    """Value of the taint, not with operator Exists. Absent: the empty value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] | None = None
    """Effect of the taint. Absent or empty: every effect."""
    tolerationSeconds: int | None = None
    """Seconds that a pod stays after a NoExecute taint appears. Absent: for ever."""

    def model_post_init(self, _: Any) -> None:
        if self.operator == "Exists" and self.value:
            raise refuse_as("toleration", "value")
        if not self.key and self.operator != "Exists":
            raise refuse_as("toleration", "key")
        if self.tolerationSeconds is not None and self.effect != "NoExecute":
            raise refuse_as("toleration", "seconds")


class RollingUpdate(Section):
    """How fast a changed DaemonSet replaces its pods."""

    maxUnavailable: Annotated[str, form("nodes_text")] | None = None
    """How many nodes may be without the pod at a time: a number in quotes, or a percentage of the nodes. Absent: the
    default of the release, 1."""


class AppArmorProfile(Section):
    """The AppArmor profile of a pod."""

    type: Literal["RuntimeDefault", "Localhost", "Unconfined"]
    """Which kind of profile applies."""
    localhostProfile: Text | None = None
    """Name of a profile loaded on the node; for type Localhost only. Absent: none."""


class SeccompProfile(Section):
    """The seccomp profile of a pod."""

    type: Literal["RuntimeDefault", "Localhost", "Unconfined"]
    """Which kind of profile applies."""
    localhostProfile: Annotated[str, form("profile_path")] | None = None
    """Path of a profile below the kubelet's seccomp folder; for type Localhost only. Absent: none."""


class SELinuxOptions(Section):
    """The SELinux context of a pod."""

    level: Text | None = None
    """SELinux level, such as `s0`. Absent: what the runtime assigns."""
    role: Text | None = None
    """SELinux role. Absent: what the runtime assigns."""
    type: Text | None = None
    """SELinux type, such as `spc_t`. Absent: what the runtime assigns."""
    user: Text | None = None
    """SELinux user. Absent: what the runtime assigns."""


class Sysctl(Section):
    """A kernel parameter of the pod's own namespaces."""

    name: Annotated[str, form("sysctl")]
    """Name of the parameter, such as `net.core.somaxconn`."""
    value: Text
    """Its value, as text."""


class WindowsOptions(Section):
    """Windows settings of a pod. There for completeness: NVIDIA's components run on Linux nodes."""

    gmsaCredentialSpec: Text | None = None
    """The content of a group-managed service account's credential specification. Absent: none."""
    gmsaCredentialSpecName: DnsSubdomain | None = None
    """Name of such a specification. Absent: none."""
    hostProcess: bool | None = None
    """Whether the containers run as host processes. Absent: false."""
    runAsUserName: Annotated[str, form("windows_user")] | None = None
    """Windows user that runs the containers. Absent: the image's."""


class PodSecurityContext(Section):
    """Kubernetes' pod security context, for the pods of every component. Containers stay privileged where needed."""

    appArmorProfile: AppArmorProfile | None = None
    """AppArmor profile of the pods. Absent: the runtime's."""
    fsGroup: AtLeast0 | None = None
    """Group id that owns mounted volumes. Absent: ownership stays as it is."""
    fsGroupChangePolicy: Literal["OnRootMismatch", "Always"] | None = None
    """When the ownership of volumes is changed to `fsGroup`. Absent: Always."""
    runAsGroup: AtLeast0 | None = None
    """Group id of the processes. Absent: the image's."""
    runAsNonRoot: bool | None = None
    """Whether the kubelet refuses images that run as root, as most of NVIDIA's do. Absent: false."""
    runAsUser: AtLeast0 | None = None
    """User id of the processes. Absent: the image's."""
    seLinuxChangePolicy: Literal["MountOption", "Recursive"] | None = None
    """How volumes get the pod's SELinux label. Absent: MountOption where the volume can do it."""
    seLinuxOptions: SELinuxOptions | None = None
    """SELinux context of the pods. Absent: what the runtime assigns."""
    seccompProfile: SeccompProfile | None = None
    """Seccomp profile of the pods. Absent: the kubelet's default."""
    supplementalGroups: list[AtLeast0] | None = None
    """Further group ids of the processes. Absent: none."""
    supplementalGroupsPolicy: Literal["Merge", "Strict"] | None = None
    """Whether the image's own groups are added to these. Absent: Merge."""
    sysctls: list[Sysctl] | None = None
    """Kernel parameters of the pods. Absent: none."""
    windowsOptions: WindowsOptions | None = None
    """Windows settings; without effect on Linux nodes. Absent: none."""


class DaemonSets(Section):
    """What holds for the DaemonSets of all components."""

    labels: Labels = mapping()
    """Labels for every DaemonSet and its pods; the ones that selectors need stay. Absent: none."""
    annotations: Annotations = mapping()
    """Annotations for every DaemonSet and its pods. Absent: none."""
    tolerations: list[Toleration] = items()
    """Tolerations of all pods, instead of the built-in one for the taint `nvidia.com/gpu`. Absent: the built-in one."""
    priorityClassName: Annotated[ObjectName, Own("daemonsets.priorityClassName")] = own("daemonsets.priorityClassName")
    """PriorityClass of all pods. Absent or empty: system-node-critical."""
    updateStrategy: Literal["RollingUpdate", "OnDelete"] | None = None
    """How changed DaemonSets replace their pods; the driver's is always OnDelete. Absent: RollingUpdate."""
    rollingUpdate: RollingUpdate = section()
    podSecurityContext: PodSecurityContext | None = None
    """Security context of all pods. Absent: none."""
