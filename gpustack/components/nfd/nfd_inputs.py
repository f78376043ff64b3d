"""Inputs of node feature discovery: what is installed of it, and which rules come along.

Everything else stands on its labels: `pci-10de.present` says that a node has a GPU, `kernel-version.full` and
`system-os_release.*` which driver it needs.
"""

from collections.abc import Iterator
from typing import Any, Literal

from ...api import keys
from ...cluster.node_labels import rules_of
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster, resolve
from ...policy.language import guards, reconciler
from ...policy.language.nfd import OPEN_NAMESPACES, Nfd, NfdPart, reserved
from ...policy.language.spec import ClusterPolicySpec
from ..parts.common_inputs import Inputs, dump, dumped, image, owned_crds, pull_policy

HELM_RELEASE, CHART = "gpu-operator", "node-feature-discovery"
CRDS = ("nodefeaturegroups.nfd.k8s-sigs.io", "nodefeaturerules.nfd.k8s-sigs.io", "nodefeatures.nfd.k8s-sigs.io")
LABEL_NAMESPACES = (*OPEN_NAMESPACES, "nvidia.com")
PCI_CLASSES = ("02", "0200", "0207", "0300", "0302")
"""Network, Ethernet, InfiniBand, VGA and 3D controllers: what the operator's chart looks for."""

CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
GPU = {"key": keys.GPU, "operator": "Exists", "effect": "NoSchedule"}
"""Existence, whatever the value: a worker kept off a GPU node stops the stack without an event (bug-reports.md B25)."""

GFD, KATA_PLUGIN = "nvidia-gpu-feature-discovery", "nvidia-kata-sandbox-device-plugin"
"""Accounts besides the worker's that write NodeFeature objects: GFD, and the plugin that runs GFD in a Kata guest."""


class Part(Inputs):
    """What the policy may change about master, worker and gc."""

    resources: dict[str, Any]
    tolerations: tuple[dict[str, Any], ...] = ()
    node_selector: dict[str, str] = {}
    priority_class: str = "system-node-critical"
    off_gpus: Literal["never", "avoid", ""] = ""
    """Whether the pod keeps off nodes with GPUs: always, if there are others, or not at all."""


class Installation(Inputs):
    """Node feature discovery of our own. `crds` are to be brought, `helm_release` is part of names and selectors."""

    namespace: str
    image: str
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    helm_release: str = HELM_RELEASE
    crds: tuple[str, ...] = CRDS
    label_namespaces: tuple[str, ...] = LABEL_NAMESPACES
    pci_classes: tuple[str, ...] = PCI_CLASSES
    master: Part
    worker: Part
    gc: Part

    @property
    def name(self) -> str:
        """What names begin with, by the rule of Helm charts: the release and the chart, unless one has the other."""
        whole = self.helm_release if CHART in self.helm_release else f"{self.helm_release}-{CHART}"
        return whole[:63].removesuffix("-")


class Instance(Inputs):
    """What OpenShift's own operator of node feature discovery is asked for. `image` is "" for the operator's."""

    image: str = ""
    pull_policy: str = "IfNotPresent"
    label_namespaces: tuple[str, ...] = ()
    pci_classes: tuple[str, ...] = PCI_CLASSES


class Finders(Inputs):
    """The accounts of `namespace` that write NodeFeature objects, each held to its own node."""

    namespace: str
    accounts: tuple[str, ...]
    mode: Literal["Deny", "Audit"] = "Deny"


class NfdInputs(Inputs):
    """`installation` and `instance` are None where the cluster has one; `rule` and `finders` hold even so."""

    installation: Installation | None = None
    instance: Instance | None = None
    rule: bool = False
    finders: Finders | None = None


def nfd(cluster: Cluster) -> NfdInputs | None:
    """None where the policy wants neither an installation nor the rule, and nothing writes NodeFeature objects."""
    spec = cluster.spec
    installed = spec.nfd.enabled
    inside = installation(spec) if installed and not cluster.platform.own_discovery else None
    inputs = NfdInputs(
        installation=inside,
        instance=instance(spec) if installed and inside is None else None,
        rule=spec.nfd.nodefeaturerules,
        finders=finders(spec, inside),
    )
    return inputs if inputs != NfdInputs() else None


def finders(spec: ClusterPolicySpec, installed: Installation | None) -> Finders | None:
    """Who writes NodeFeature objects; None where nobody of ours does, or no guard is rendered."""
    mode, accounts = guards.mode(spec), [f"{installed.name}-worker"] if installed else []
    if spec.gfd.enabled and not resolve(spec).dra:
        accounts.append(GFD)
    if spec.kataSandboxDevicePlugin.enabled and not resolve(spec).dra and resolve(spec).sandbox and resolve(spec).kata:
        accounts.append(KATA_PLUGIN)
    if mode == "Off" or not accounts:
        return None
    return Finders(namespace=spec.cluster.namespace, accounts=tuple(accounts), mode=mode)


def instance(spec: ClusterPolicySpec) -> Instance:
    """The inputs of an instance; sections about pods are the operator's own there."""
    section = spec.nfd
    given = section.repository or section.image or section.version
    return Instance(
        image=image(spec, section, "nfd") if given else "",
        pull_policy=pull_policy(section.imagePullPolicy),
        label_namespaces=tuple(sorted({"nvidia.com", *section.labelNamespaces, *namespaces_of_rules(spec)})),
        pci_classes=tuple(dict.fromkeys((*PCI_CLASSES, *section.pciClasses))),
    )


def installation(spec: ClusterPolicySpec) -> Installation:
    """The inputs of an installation."""
    section = spec.nfd
    return Installation(
        namespace=spec.cluster.namespace,
        image=image(spec, section, "nfd"),
        pull_policy=pull_policy(section.imagePullPolicy),
        pull_secrets=tuple(section.imagePullSecrets),
        helm_release=section.helmRelease,
        crds=owned_crds(spec, CRDS),
        label_namespaces=tuple(sorted({*LABEL_NAMESPACES, *section.labelNamespaces, *namespaces_of_rules(spec)})),
        pci_classes=tuple(dict.fromkeys((*PCI_CLASSES, *section.pciClasses))),
        master=serving_all(part(section.master, "master", [CONTROL_PLANE]), section),
        worker=part(
            section.worker, "worker", [CONTROL_PLANE, GPU, *dumped(resolve(spec).stack.daemonsets.tolerations)]
        ),
        gc=serving_all(part(section.gc, "gc", [CONTROL_PLANE]), section),
    )


def serving_all(inputs: Part, section: Nfd) -> Part:
    """INPUTS of a part that serves every node, kept off those on which workloads with GPUs run.

    Whoever is root on its node has its token. On a control plane's node they would have more than that anyway."""
    return inputs if inputs.node_selector else inputs.model_copy(update={"off_gpus": section.onGpuNodes})


def part(section: NfdPart, name: str, tolerations: list[dict[str, Any]]) -> Part:
    """The inputs of part NAME; TOLERATIONS are the built-in ones, which the policy replaces as a whole."""
    built_in = [item for position, item in enumerate(tolerations) if item not in tolerations[:position]]
    return Part(
        resources=dump(section.resources) or {},
        tolerations=tuple(built_in) if section.tolerations is None else dumped(section.tolerations),
        node_selector=section.nodeSelector,
        priority_class=section.priorityClassName,
    )


def namespaces_of_rules(spec: ClusterPolicySpec) -> Iterator[str]:
    """Namespaces of the labels that the policy's own NodeFeatureRules set, where they are not Kubernetes' own.

    Labels from a rule's labelsTemplate are not known before the nodes are: `nfd.labelNamespaces` is for them."""
    for key in namespaced_labels(spec):
        namespace = key.partition("/")[0]
        if not reserved(namespace):
            yield namespace


def namespaced_labels(spec: ClusterPolicySpec) -> Iterator[str]:
    """Labels with a namespace that the policy's own NodeFeatureRules set."""
    for _, rule in rules_of(spec):
        labels = rule.get("labels")
        yield from (str(key) for key in (labels if isinstance(labels, dict) else {}) if "/" in str(key))


class LabelRule(Inputs):
    """Labels, and the nodes that get them: those with a GPU on which node feature discovery finds `system` and
    `kernel`; what is empty may be anything. `pools` are the pools that it stands for."""

    labels: dict[str, str]
    pools: tuple[str, ...] = ()
    system: dict[str, str] = {}
    kernel: str = ""


class NodeLabelsInputs(Inputs):
    """The rules, one for each set of labels and nodes."""

    rules: tuple[LabelRule, ...]


def node_labels(cluster: Cluster) -> NodeLabelsInputs | None:
    """None where somebody else labels nodes. One rule for all where all nodes get the same."""
    if reconciler.labelling(cluster.spec) != "nodeFeatureRule":
        return None
    labels = [pool.all_labels for pool in cluster.nodes]
    alike = all(each == labels[0] for each in labels)
    made = [LabelRule(labels=pool.all_labels, **({} if alike else features(pool))) for pool in cluster.nodes]
    rules: list[LabelRule] = []
    for rule in (each for index, each in enumerate(made) if each not in made[:index]):
        names = [pool.name for pool, own in zip(cluster.nodes, made, strict=True) if own == rule]
        rules.append(rule.model_copy(update={"pools": tuple(names) if cluster.pools else ()}))
    return NodeLabelsInputs(rules=tuple(rules))


def features(pool: Pool) -> dict[str, Any]:
    """What node feature discovery finds on the nodes of POOL, by the fields of LabelRule."""
    system = {
        key.removeprefix(keys.OS_RELEASE): value
        for key, value in pool.selection.items()
        if key.startswith(keys.OS_RELEASE)
    }
    return {"system": system, "kernel": pool.said.kernel or ""}
