"""Every label, annotation and value on a node that the program, or more than one room, reads or writes, in one place.

Those below `nvidia.com/` are an interface that NVIDIA's programs share: the operands' DaemonSets select by them, and
the driver manager and the MIG manager pause components through them (reconciler.md 1). Those below `gpustack.dev/` are
ours.
"""

DOMAIN = "gpustack.dev"

# --- ours, on nodes ---------------------------------------------------------------------------------------------------
OPERATION = f"{DOMAIN}/op"
"""Annotation: the open operation, one JSON record (record.py). Nobody else writes it."""
LAST = f"{DOMAIN}/last-op"
"""Annotation: how the last operation ended, and when the next may start."""
MEMORY = f"{DOMAIN}/node"
"""Annotation: which policy the node belongs to, and the machine on which its stack was last proved."""
CORDONED = f"{DOMAIN}/cordoned-by"
"""Annotation: the id of the operation that cordoned the node. With the record it makes the cordon ours."""
FENCE = f"{DOMAIN}/fence"
"""Annotation: written by a new leader so that a late admission of the former one conflicts."""
REQUESTED = f"{DOMAIN}/requested"
"""Annotation: "reset" or "reboot", which a node with a fault needs. Whoever can do so does it, and then removes it."""
PHASE = f"{DOMAIN}/phase"
"""Label: the phase of the open operation, for selectors."""

# --- people's, on nodes -----------------------------------------------------------------------------------------------
HOLD = f"{DOMAIN}/hold"
"""Label, "true": start nothing on this node, and give up what has not passed the point of no return. As an annotation
of a NodePolicy: the same for all its nodes; the value is the reason."""
OPT_OUT = f"{DOMAIN}/optout"
"""Annotation: components, with commas between, that are not to run on this node."""
RETRY = f"{DOMAIN}/retry"
"""Annotation: try the quarantined or backed-off operation again now. Removed when it is."""
MANUAL_MIG = f"{DOMAIN}/manual-mig"
"""Annotation: until this time (RFC 3339) a MIG configuration set by hand stays."""

# --- people's, on NodePolicies and on the Lease -----------------------------------------------------------------------
PAUSED = f"{DOMAIN}/paused"
"""Annotation of a NodePolicy, or of the Lease for the whole fleet: admit nothing; the value is the reason."""
RESET_BREAKER = f"{DOMAIN}/reset-breaker"
"""Annotation of a NodePolicy: close the breaker. Each new value closes it once."""
REVISION = f"{DOMAIN}/revision"
"""Annotation of a rendered driver DaemonSet; its NodePolicies say which one they were made for."""
IMAGES = f"{DOMAIN}/images"
"""Label of pods that have pulled a driver's images; the value names them, as the NodePolicies do."""
ADMITTING = f"{DOMAIN}/admitting"
"""Annotation of the Lease: admissions under way, by node UID."""
LEDGER = f"{DOMAIN}/open"
"""Annotation of the Lease: all open operations, by node UID. A record on a node that is of none of them isn't ours."""
SINCE, AWAY = f"{DOMAIN}/since", f"{DOMAIN}/away"
"""Annotations of the Lease: since when the leader has seen what it waits for, by node UID and what it is; from when to
when nobody has led."""

# --- the MIG manager's file -------------------------------------------------------------------------------------------
LAYOUTS = "gpustack-mig-layouts"
"""The ConfigMap of MIG layouts: the compiler renders what is wanted, the program writes what the managers read."""
LAYOUTS_WANTED, LAYOUTS_DIGESTS, LAYOUTS_FILE = "wanted.json", "digests.json", "config.yaml"
LAYOUTS_AT = f"{DOMAIN}/written"
"""Annotation of it: when the program last wrote a content that was not there before."""

# --- shared with NVIDIA's programs ------------------------------------------------------------------------------------
PRESENT = "nvidia.com/gpu.present"
DEPLOY = "nvidia.com/gpu.deploy."
OPERANDS = "nvidia.com/gpu.deploy.operands"
WORKLOAD = "nvidia.com/gpu.workload.config"
MIG_CONFIG = "nvidia.com/mig.config"
"""Label that names a node's layout."""
MIG_STATE = "nvidia.com/mig.config.state"
MIG_CAPABLE = "nvidia.com/mig.capable"
PRODUCT = "nvidia.com/gpu.product"
GUEST_DRIVER = "nvidia.com/vgpu.host-driver-version"
"""Non-empty on guests of vGPU, whose GPUs can't be cut."""
PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
"""Label that names a node's configuration of the device plugin."""
VGPU_CONFIG = "nvidia.com/vgpu.config"
DRIVER_OWNER = "nvidia.com/gpu-operator.driver.owner"
"""Label that names a node's driver (operator.md 2.3)."""
STEERING = (PRESENT, WORKLOAD, MIG_CONFIG, MIG_STATE, PLUGIN_CONFIG, VGPU_CONFIG, DRIVER_OWNER)
"""Labels by which people, the reconciler and NVIDIA's managers say what is to run on a node."""
UPGRADES_ENABLED = "nvidia.com/gpu-driver-upgrade-enabled"
"""Annotation: the driver manager leaves eviction to us (reconciler.md D6)."""
DRAIN_SKIP = "nvidia.com/gpu-driver-upgrade-drain.skip"
"""Label of pods that a drain leaves alone."""
UPGRADE_SKIP = "nvidia.com/gpu-driver-upgrade.skip"
"""Label of nodes whose driver is not upgraded: the operator's own opt-out, honoured."""
UPGRADE_STATE = "nvidia.com/gpu-driver-upgrade-state"
"""Label: how far the operator's own upgrade got. Read once, when a node is taken over."""
INITIAL_UNSCHEDULABLE = "nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable"
UPSTREAM_ANNOTATIONS = (
    INITIAL_UNSCHEDULABLE,
    "nvidia.com/gpu-driver-upgrade-requested",
    "nvidia.com/gpu-driver-upgrade-wait-for-pod-completion-start-time",
    "nvidia.com/gpu-driver-upgrade-validation-start-time",
    "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load",
    "nvidia.com/gpu-driver-upgrade-requestor-mode",
)
"""What the operator's upgrade controller keeps on a node besides its state (reconciler.md U10)."""

GPU_FEATURES = tuple(f"feature.node.kubernetes.io/pci-{of}.present" for of in ("10de", "0302_10de", "0300_10de"))
"""Labels of NFD, any of which set to "true" says that the node has an NVIDIA GPU (reconciler.md L7)."""

PAUSED_FOR_DRIVER = "paused-for-driver-upgrade"
PAUSED_FOR_MIG = "paused-for-mig-change"

# --- what everybody reads of nodes, and of what they offer ------------------------------------------------------------
NVIDIA = "nvidia.com/"
"""What NVIDIA's labels and resources begin with."""
GPU = "nvidia.com/gpu"
"""The resource of whole GPUs; also the key of the taint that keeps others off their nodes."""
MPS_CAPABLE = "nvidia.com/mps.capable"
"""Label of GPU feature discovery: the node's device plugin shares by MPS (operator.md 7.5)."""
FEATURES = "feature.node.kubernetes.io/"
"""What labels of node feature discovery begin with."""
OS_RELEASE = "feature.node.kubernetes.io/system-os_release."
KERNEL = "feature.node.kubernetes.io/kernel-version.full"
ARCH = "kubernetes.io/arch"

# --- on objects that are rendered -------------------------------------------------------------------------------------
CARRIED = f"{DOMAIN}/carried"
"""Annotation of a DaemonSet whose template is carried: the ControllerRevision that it was taken from."""
INERT = f"{DOMAIN}/inert"
"""Annotation of the ClusterPolicy that `compat.clusterPolicy` renders: a copy that nobody acts on."""
ENFORCE = "pod-security.kubernetes.io/enforce"
"""Label of a namespace: the level of Pod Security."""
SCC = "openshift.io/scc"
"""Annotation of pods: the SecurityContextConstraints that they are for."""
COMPONENT = "app.kubernetes.io/component"

# --- what other controllers read while we work on a node --------------------------------------------------------------
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
AUTOSCALERS = (SCALE_DOWN_DISABLED, DO_NOT_DISRUPT)
"""Annotations by which autoscalers leave a node alone."""
LEAVING_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")
"""Taints of nodes that an autoscaler is about to remove."""
CANDIDATE_TAINT = "DeletionCandidateOfClusterAutoscaler"
"""Soft taint (PreferNoSchedule) of nodes that it means to remove, unless they are needed meanwhile."""

# --- by which others say that they work on a node ---------------------------------------------------------------------
KURED = "weave.works/kured-reboot-in-progress"
KURED_LOCK = "weave.works/kured-node-lock"
NETWORK_STATE = "nvidia.com/ofed-driver-upgrade-state"
MACHINE_CONFIGS = ("machineconfiguration.openshift.io/currentConfig", "machineconfiguration.openshift.io/desiredConfig")
DRAINED = "medik8s.io/drain"

HASH = "controller-revision-hash"
"""Label of a DaemonSet's pods: the revision of the template that they were made from."""
