"""Inputs of the guards: which accounts change what of which node, and who may write what their pods run; and of the
NetworkPolicies: which pods listen, where, and to whom.

Which parts run is asked of the parts themselves, so that a guard names an account exactly where there is one.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from ...api import keys
from ...cluster.resolve import Cluster
from ...gitops.reads import writing
from ...model import FindingsError
from ...policy.language import guards as language
from ...policy.language import reconciler
from ...policy.language.spec import ClusterPolicySpec
from ..dra.dra_driver_inputs import DraDriverInputs
from ..driver.driver_inputs import DriverInputs
from ..driver.driver_settings_inputs import ACCOUNT, Manager
from ..driver.nvidia_drivers_inputs import NvidiaDriversInputs
from ..mig.mig_manager_inputs import MigManagerInputs
from ..nfd.nfd_inputs import KATA_PLUGIN, NfdInputs, NodeLabelsInputs, namespaced_labels
from ..parts.common_inputs import Inputs
from ..registry import REGISTRY
from ..validator.validator_inputs import ValidatorInputs

MIG_MANAGER, VALIDATOR = "nvidia-mig-manager", "nvidia-operator-validator"
DRA_PLUGIN, DRA_CONTROLLER = "nvidia-dra-driver-kubeletplugin", "nvidia-dra-driver-controller"
DRA_DAEMON = "compute-domain-daemon-service-account"
COMPUTE_DOMAIN, CLIQUE = "resource.nvidia.com/", "nvidia.com/gpu.clique"
LABELLED = {
    "mig_manager": keys.MIG_STATE,
    "cc_manager": "nvidia.com/cc.",
    "vgpu_device_manager": "nvidia.com/vgpu.config.state",
}
"""Components that label their nodes, and what those labels begin with."""
RECONCILER = "gpustack-reconciler"
EXPORTERS = {
    "dcgm_exporter": ("nvidia-dcgm-exporter", 9400),
    "dra_dcgm_exporter": ("nvidia-dcgm-exporter-dra", 9400),
    "node_status_exporter": ("nvidia-node-status-exporter", 8000),
}
"""Component -> the label `app` of its pods, and the port of its metrics."""
ENGINES = {"dcgm": ("nvidia-dcgm", 5555), "dra_dcgm": ("nvidia-dcgm-dra", 5555)}
"""Component -> the label `app` of its pods, and the port to which exporters come."""
EVICTION_LABEL = "NODE_LABEL_FOR_GPU_POD_EVICTION"
"""The driver manager's variable with one more label that it changes (reconciler.md D1)."""


class NodeWriter(Inputs):
    """An account that changes nodes: `labels` are what keys of its labels begin with, `cordons` whether it cordons,
    `anywhere` whether it does so on nodes other than its own."""

    account: str
    labels: tuple[str, ...]
    cordons: bool = False
    anywhere: bool = False


class PodWriter(Inputs):
    """An account that writes pods of its own node. Those that it makes may name `pull_secrets`."""

    account: str
    pull_secrets: tuple[str, ...] = ()


class Discovery(Inputs):
    """The master of node feature discovery: the `namespaces` in which it labels any node, and the labels among those
    that steer the stack which rules of the policy set (`steering`)."""

    account: str
    namespaces: tuple[str, ...]
    steering: tuple[str, ...] = ()


class GuardsInputs(Inputs):
    """`layouts` is the account that publishes its node's MIG layouts in a ConfigMap, "" for none; `kept`: the
    reconciler writes those that the managers read. `daemons`: accounts
    of the DRA driver that make workloads. `users` and `groups` may write the stack's ConfigMaps; `known`: nobody else.
    """

    namespace: str
    mode: Literal["Deny", "Audit"]
    nodes: tuple[NodeWriter, ...] = ()
    pods: tuple[PodWriter, ...] = ()
    discovery: Discovery | None = None
    layouts: str = ""
    domains: bool = False
    mps: bool = False
    kept: bool = False
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    known: bool = False


def guards(cluster: Cluster) -> GuardsInputs | None:
    """None where no guards are rendered."""
    spec = cluster.spec
    mode = language.mode(spec)
    if mode == "Off":
        return None
    parts = running(spec, ASKED)
    mig, dra = parts.get("mig_manager"), parts.get("dra_driver")
    writers = writing(spec)
    return GuardsInputs(
        namespace=spec.cluster.namespace,
        mode=mode,
        nodes=tuple(node_writers(parts)),
        pods=tuple(pod_writers(parts)),
        discovery=discovery(spec, parts),
        layouts=MIG_MANAGER if mig and mig.common.traits.mig_manager_discovers_layouts else "",
        domains=bool(dra and dra.controller),
        mps=bool(dra and dra.gpus and dra.feature_gates.get("MPSSupport")),
        kept=bool(mig and mig.kept),
        users=writers.users,
        groups=writers.groups,
        known=writers.known,
    )


ASKED = {
    *("cc_manager", "dra_driver", "driver", "kata_device_plugin", "mig_manager", "nfd"),
    *("node_labels", "nvidia_drivers", "validator", "vfio_manager", "vgpu_device_manager", "vgpu_manager"),
}
"""The components of which a guard may speak."""


def node_writers(parts: dict[str, Any]) -> Iterator[NodeWriter]:
    """The accounts that change nodes, less node feature discovery's and the reconciler's."""
    section: DriverInputs | None = parts["driver"]
    several: NvidiaDriversInputs | None = parts["nvidia_drivers"]
    dra: DraDriverInputs | None = parts["dra_driver"]
    if section:
        managers = [section.settings.manager, *(pool.settings.manager for pool in section.pools)]
        yield NodeWriter(account=ACCOUNT, labels=clearing(*managers), cordons=True)
    for driver in several.drivers if several else ():
        for account in dict.fromkeys(target.account for target in driver.pods):
            yield NodeWriter(account=account, labels=clearing(driver.settings.manager), cordons=True)
    for module in ("vgpu_manager", "vfio_manager"):
        if part := parts[module]:
            account = f"nvidia-{module.replace('_', '-')}"
            yield NodeWriter(account=account, labels=clearing(part.manager), cordons=True)
    for module, label in LABELLED.items():
        if parts[module]:
            yield NodeWriter(account=f"nvidia-{module.replace('_', '-')}", labels=(keys.DEPLOY, label))
    if dra and dra.compute_domains:
        yield NodeWriter(account=DRA_PLUGIN, labels=(COMPUTE_DOMAIN, *([CLIQUE] if dra.clique_label else [])))
    if dra and dra.controller:
        yield NodeWriter(account=DRA_CONTROLLER, labels=(COMPUTE_DOMAIN,), anywhere=True)


def clearing(*managers: Manager) -> tuple[str, ...]:
    """What the labels begin with that driver MANAGERS change to pause the other pods of their node."""
    more = [value for each in managers for name, value in each.env if name == EVICTION_LABEL and value]
    return tuple(dict.fromkeys([keys.DEPLOY, *more]))


def pod_writers(parts: dict[str, Any]) -> Iterator[PodWriter]:
    """The accounts that make, change or delete pods of the stack, less the reconciler's."""
    validator: ValidatorInputs | None = parts["validator"]
    mig: MigManagerInputs | None = parts["mig_manager"]
    dra: DraDriverInputs | None = parts["dra_driver"]
    if validator:
        yield PodWriter(account=VALIDATOR, pull_secrets=validator.common.validation.pull_secrets)
    if parts["kata_device_plugin"]:
        yield PodWriter(account=KATA_PLUGIN)
    if mig:
        yield PodWriter(account=MIG_MANAGER)
    if dra and dra.controller:
        yield PodWriter(account=DRA_DAEMON)


def discovery(spec: ClusterPolicySpec, parts: dict[str, Any]) -> Discovery | None:
    """The master of node feature discovery, where it is ours."""
    nfd: NfdInputs | None = parts["nfd"]
    rules: NodeLabelsInputs | None = parts["node_labels"]
    if nfd is None or nfd.installation is None:
        return None
    ours = {key for each in (rules.rules if rules else ()) for key in each.labels}
    return Discovery(
        account=nfd.installation.name,
        namespaces=nfd.installation.label_namespaces,
        steering=tuple(sorted({*ours, *namespaced_labels(spec)})),
    )


def running(spec: ClusterPolicySpec, modules: Iterable[str]) -> dict[str, Any]:
    """The inputs of MODULES, None for a component that is off, or that can't be rendered: it says why itself."""
    entries, inputs = {entry.module: entry for entry in REGISTRY}, dict[str, Any]()
    for module in modules:
        try:
            inputs[module] = entries[module].inputs(spec)
        except FindingsError:
            inputs[module] = None
    return inputs


class Listener(Inputs):
    """Pods with `labels`, called `name`, which listen on `port`: to the namespaces `open_to`, to `inside`, the stack's
    own, or with `anywhere` to all. Where none is said only the kubelet reaches them, which no NetworkPolicy stops."""

    name: str
    labels: dict[str, str]
    port: int = 0
    open_to: tuple[str, ...] = ()
    inside: bool = False
    anywhere: bool = False


class NetworkPoliciesInputs(Inputs):
    """The pods that listen."""

    namespace: str
    listeners: tuple[Listener, ...]


def network_policies(cluster: Cluster) -> NetworkPoliciesInputs | None:
    """None where the policy wants none, or nothing listens in the cluster's network."""
    spec = cluster.spec
    reach = spec.guards.networkPolicies
    listeners = [] if reach == "none" else list(own(spec))
    if reach == "all":
        listeners += operands(spec)
    return NetworkPoliciesInputs(namespace=spec.cluster.namespace, listeners=tuple(listeners)) if listeners else None


def own(spec: ClusterPolicySpec) -> Iterator[Listener]:
    """The reconciler's pods: open where something that the policy knows of reads their metrics."""
    if reconciler.runs(spec):
        scrapers = tuple(spec.guards.scrapers)
        anywhere = not scrapers and bool(spec.cluster.monitoring)
        yield Listener(name=RECONCILER, labels={"app": RECONCILER}, port=8080, open_to=scrapers, anywhere=anywhere)


def operands(spec: ClusterPolicySpec) -> Iterator[Listener]:
    """All other pods of the stack that listen in the cluster's network, and not in that of their node."""
    scrapers = tuple(spec.guards.scrapers)
    for module, inputs in running(spec, [*EXPORTERS, *ENGINES, "nfd", "dra_driver"]).items():
        if inputs is None or getattr(inputs, "host_network", False):
            continue
        if module in EXPORTERS:
            app, port = EXPORTERS[module]
            yield Listener(
                name=app, labels={"app": app}, port=listens(inputs, port), open_to=scrapers, anywhere=not scrapers
            )
        elif module in ENGINES:
            app, port = ENGINES[module]
            yield Listener(name=app, labels={"app": app}, port=port, inside=True)
        elif module == "dra_driver":
            yield Listener(name="nvidia-dra-driver", labels={"app.kubernetes.io/name": "nvidia-dra-driver"})
        elif inputs.installation:
            labels = {"app.kubernetes.io/instance": inputs.installation.helm_release}
            labels["app.kubernetes.io/name"] = "node-feature-discovery"
            name = inputs.installation.name
            yield Listener(name=name, labels=labels, port=8080, open_to=scrapers, anywhere=not scrapers)


def listens(inputs: Any, port: int) -> int:
    """The port of an exporter's metrics; the policy's environment may move it from PORT."""
    for name, value in inputs.env:
        if name in {"DCGM_EXPORTER_LISTEN", "METRICS_PORT"} and value.rpartition(":")[2].isdigit():
            port = int(value.rpartition(":")[2])
    return port
