"""NodePolicy (`gpustack.dev/v1alpha1`): what the nodes of a pool are to be, and how fast they may get there.

The compiler renders one for each pool (pools with equal selection and content share one); the program reads them and
writes their status. The CustomResourceDefinition's schema and this file say the same: a test compares them.
"""

from typing import Literal

import msgspec

from .objects import Condition, Object, Slim, Taint, Time

GROUP, VERSION = "gpustack.dev", "v1alpha1"

IntOrPercent = int | str
"""5, or "25%"."""


class Mig(Slim, kw_only=True):
    """The MIG layout of a pool's GPUs."""

    config: str
    """Name of the entry in the MIG manager's configuration: the value of nvidia.com/mig.config."""
    digest: str = ""
    """Names the entry's content, so that a change under the same name is seen. Empty: not known."""


class Gpu(Slim, kw_only=True):
    """What is known of the pool's GPUs."""

    product: str = ""
    """As in the label nvidia.com/gpu.product. Empty: not known. Checked after a node is set up, never a selector."""
    migCapable: bool | None = None
    """Whether they can be cut. None: the node's labels tell, once GPU feature discovery has run."""
    resources: dict[str, int] = {}
    """What a node must offer once all is well, by resource; 0 stands for "some, the number isn't known". Empty: not
    known."""
    runtimeClasses: list[str] = []
    """RuntimeClasses whose pods use GPUs without asking for one."""


class DaemonRevision(Slim, kw_only=True):
    """A rendered driver DaemonSet that runs on nodes of the pool, and the revision that this policy was made with."""

    name: str
    revision: str = ""
    images: str | None = None
    """Names its images, where they are pulled beforehand: the value of the label gpustack.dev/images of pods that have
    them. None: they are not."""


class Driver(Slim, kw_only=True):
    """The pool's driver, where a DaemonSet installs it."""

    daemonSets: list[DaemonRevision] = []
    """One for each operating system and kernel of the pool. A node's is the one whose nodeSelector it matches."""
    digestRestart: bool = True
    """Whether an unchanged DRIVER_CONFIG_DIGEST means that restarting the pod disturbs nobody (reconciler.md U34).
    False with precompiled drivers, whose images do not compare it."""


class WaitForCompletion(Slim, kw_only=True):
    """Pods to wait for before anything is evicted."""

    podSelector: str = ""
    timeoutSeconds: int = 0
    """0: no limit, but the node gives its slot back after an hour."""


class PodDeletion(Slim, kw_only=True):
    """How pods with GPUs are evicted."""

    force: bool = False
    """Also pods that nothing creates again."""
    timeoutSeconds: int = 300
    """0: no limit."""
    deleteEmptyDir: bool = False


class Drain(PodDeletion, kw_only=True):
    """What happens where evicting the pods with GPUs was not enough."""

    enable: bool = False
    podSelector: str = ""


class Window(Slim, kw_only=True):
    """A time in which operations may start; what has started finishes."""

    days: list[str] = []
    """mon to sun. Empty: every day."""
    start: str
    """HH:MM."""
    hours: int
    timeZone: str = "UTC"


class Limits(Slim, kw_only=True):
    """A budget of disruption."""

    maxParallel: int = 1
    """Operations at a time; 0: no limit."""
    maxUnavailable: IntOrPercent = "25%"
    """Nodes that may be unavailable, for whatever reason, when an operation starts."""


class OrderBy(Slim, kw_only=True):
    """Nodes by a label: those with the first value go first, those with none of them last."""

    label: str
    values: list[str]


class PodRule(Slim, kw_only=True):
    """What becomes of pods that use a GPU of a node that is to be worked on; the first rule that a pod matches counts.
    leave: they count as none that uses one. wait: nobody is evicted before they have ended. evict: as without a rule.
    delete: they are deleted, whatever a PodDisruptionBudget says."""

    podSelector: str
    namespace: str = ""
    """Empty: any."""
    then: Literal["leave", "wait", "evict", "delete"]


class Prepull(Slim, kw_only=True):
    """A node waits for the images of its next driver before it is taken out of service."""

    timeoutSeconds: int = 3600
    then: Literal["wait", "begin"] = "wait"
    """What becomes of a node that hasn't got them by then."""


class Upgrade(Limits, kw_only=True):
    """When and how fast nodes are taken out of service."""

    auto: bool = True
    """Whether a new driver rolls by itself."""
    windows: list[Window] = []
    podDeletion: PodDeletion = msgspec.field(default_factory=PodDeletion)
    drain: Drain = msgspec.field(default_factory=Drain)
    waitForCompletion: WaitForCompletion = msgspec.field(default_factory=WaitForCompletion)
    zoneMaxUnavailable: IntOrPercent | None = None
    """As maxUnavailable, for each value of topology.kubernetes.io/zone. None: no limit of its own."""
    breakerFailures: IntOrPercent = 3
    """Failed nodes of one rollout that stop it until somebody looks; 0: never."""
    firstAlone: bool = True
    """Whether one node at a time has its turn until one of its product and kernel works with what is brought."""
    soakSeconds: int | None = None
    """How long after a node of a rollout is done the next one waits. None: it doesn't."""
    podRules: list[PodRule] | None = None
    ignoreBudgetsAfter: int | None = None
    """Seconds for which PodDisruptionBudgets may hold up a node whose turn it is; then its pods are deleted. None: for
    ever."""
    order: list[OrderBy] | None = None
    """Which nodes have their turn first; the first label decides before the second. None: no label counts."""
    leastUsed: bool | None = None
    """Whether of those whose turn comes next the ones with the fewest pods that use a GPU go first."""
    prepull: Prepull | None = None
    """None: images are pulled once the driver's new pod is there."""
    maxAttempts: int = 3
    """How often an operation is tried on a node before it stays in quarantine."""


class Deadlines(Slim, kw_only=True):
    """Seconds that a phase may take; reconciler.md A13 says why so long. The defaults are those of
    catalog/data/defaults.yaml, which a test holds equal: the reconciler's image has no catalogue."""

    driver: int = 5400
    mig: int = 1800
    migReboot: int = 1800
    verifying: int = 900


class HealthRule(Slim, kw_only=True):
    """What a condition of a node means; of the rules for its type the first counts that it matches."""

    type: str
    status: str = "True"
    """With which the condition tells of a fault."""
    reasons: list[str] = []
    messages: list[str] = []
    """Patterns of a shell, of which one has to fit the whole text. Empty: any."""
    then: Literal["report", "cordon", "drain"]
    request: Literal["", "reset", "reboot"] = ""
    """What somebody is asked for once no pod uses a GPU of the node."""
    heartbeatSeconds: int = 0
    """After so many seconds without a heartbeat it isn't known whether the condition still holds; 0: it has none."""


class Health(Slim, kw_only=True):
    """What is done about faults that conditions of nodes tell of. The same in every NodePolicy of a cluster."""

    rules: list[HealthRule] = []
    reportOnlyUntil: Time | None = None
    """None: until 30 days after the oldest NodePolicy was made."""
    maxNodes: int = 3
    maxShare: IntOrPercent = "10%"
    """How many nodes may be out of service for a fault, in all pools together; the smaller one counts."""
    breakerShare: IntOrPercent = "20%"
    """Where more nodes than these, and more than one, tell of a fault at once, it is their detector that is believed to
    be at fault."""
    holdSeconds: int = 120
    """How long a fault must have been told of without a break before anything is done."""
    settleSeconds: int = 600
    """How long none may have been told of before a node counts as well."""
    requestSeconds: int = 3600
    """How long a reset or a reboot is waited for."""


class Install(Slim, kw_only=True):
    """New nodes: nothing runs there yet, so they need no cordon and no budget."""

    maxParallel: int = 50


class Spec(Slim, kw_only=True):
    pools: list[str] = []
    """The pools of the policy file that this stands for."""
    minNodes: int = 0
    """How many nodes the pools have at least; 0: not known. Nothing is done about it but to say so."""
    nodeSelector: dict[str, str] = {}
    """Labels that the nodes have before anything of NVIDIA's runs there."""
    workload: str = "container"
    """container, vm-passthrough or vm-vgpu."""
    labelling: bool = True
    """Whether the program sets the labels of nodes (gpu.present, gpu.deploy.*, `labels`). False: others do. What stays
    its own are the command of a MIG layout, and that a component goes on which somebody paused and forgot."""
    components: list[str] = []
    """Suffixes of the nvidia.com/gpu.deploy. labels that the nodes get; mig-manager only where a node can have MIG."""
    labels: dict[str, str] = {}
    """Further labels that the nodes get: device-plugin.config, vgpu.config, gpu.workload.config, driver.owner."""
    migManager: bool = False
    """Whether a MIG manager runs."""
    migReboot: bool = False
    """Whether it may reboot nodes (WITH_REBOOT)."""
    mig: Mig | None = None
    """None: geometry is nobody's concern; nodes that can have MIG start with `migDefault`."""
    migDefault: str = "all-disabled"
    """What nvidia.com/mig.config says at first on nodes that can have MIG and have no such label. Empty: nothing."""
    gpu: Gpu = msgspec.field(default_factory=Gpu)
    driver: Driver | None = None
    """None: the nodes bring their driver."""
    upgradeAnnotation: bool = False
    """Whether nodes get nvidia.com/gpu-driver-upgrade-enabled (reconciler.md L31)."""
    clientNamespaces: list[str] = []
    """Namespaces whose DaemonSets may have pods that the driver manager and the MIG manager take off a node
    themselves, by the nodeSelector nvidia.com/gpu.deploy.client. Anybody's pod can have such a selector."""
    upgrade: Upgrade = msgspec.field(default_factory=Upgrade)
    fleet: Limits = msgspec.field(default_factory=Limits)
    """The same in every NodePolicy of a cluster: limits over all of them together."""
    install: Install = msgspec.field(default_factory=Install)
    startupTaints: list[Taint] = []
    """Taints with which the platform brings up nodes; removed once a node's GPUs are proved."""
    deadlines: Deadlines = msgspec.field(default_factory=Deadlines)
    health: Health | None = None
    """None: conditions of nodes are nobody's concern."""
    graceSeconds: int = 900
    """How long a node's GPU must be gone from NFD's labels before its own labels go."""


class Waiting(Slim, kw_only=True):
    """Why some nodes wait."""

    reason: str
    count: int
    nodes: list[str] = []
    """Up to 20 of them."""
    message: str = ""
    """Of the first of them: which pod, which disruption budget, until when."""


class Breaker(Slim, kw_only=True):
    """Whether failures have stopped the rollout."""

    open: bool = False
    target: str = ""
    message: str = ""
    since: Time | None = None
    reset: str = ""
    """The last value of the reset annotation that was acted on."""
    forgiven: list[str] = []
    """Operations in quarantine when it was last reset: they do not count again."""


class Soak(Slim, kw_only=True):
    """The node that a rollout brought to an end last, and until when the next one waits."""

    until: Time
    after: str


class Status(Slim, kw_only=True):
    observedGeneration: int = 0
    nodes: int = 0
    current: int = 0
    """Nodes that are as the policy says."""
    operating: int = 0
    quarantined: int = 0
    waiting: list[Waiting] = []
    conditions: list[Condition] = []
    breaker: Breaker = msgspec.field(default_factory=Breaker)
    soak: Soak | None = None


class NodePolicy(Object, kw_only=True):
    """The policy of a pool's nodes."""

    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)
