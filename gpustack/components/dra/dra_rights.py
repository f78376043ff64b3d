"""What the DRA driver may do: RBAC, and the admission policy that holds each node to its own devices.

Each right is one that the driver's programs use, so there are fewer than the operator grants. The kubelet plugin
changes its node's labels only for compute domains, and looks for pods only where its MPS daemons are on; the controller
needs leases only to elect a leader. `get list watch` stay together where a program keeps a cache of a kind.
"""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...api import keys
from ...catalog import _data
from ...model import Body
from ..parts.kube import access, grant, grant_here, metadata, rule
from .dra import RESOURCES
from .dra_driver_inputs import DraDriverInputs, Program

GROUP = "resource.nvidia.com"
KUBELET_PLUGIN = "nvidia-dra-driver-kubeletplugin"
CONTROLLER = "nvidia-dra-driver-controller"
COMPUTE_DOMAIN_DAEMON = "compute-domain-daemon-service-account"
"""The account of the pods that the controller makes; their template in the driver's image names it."""
POLICY = "resourceslices-policy-nvidia-dra-driver"
MPS = "MPSSupport"
READ = "get list watch"


def rights(
    inputs: DraDriverInputs, plugin: Mapping[str, str], controller: Mapping[str, str], driver: Mapping[str, str]
) -> Iterator[Body]:
    """The accounts of the driver's programs, with their labels PLUGIN and CONTROLLER; DRIVER is what both have."""
    namespace, domains, mps = inputs.common.namespace, inputs.compute_domains is not None, inputs.feature_gates.get(MPS)
    yield from access(
        KUBELET_PLUGIN,
        namespace,
        role=[rule(GROUP, "computedomaincliques", "get")] if domains else [],
        cluster=[
            rule(RESOURCES, "resourceclaims", READ),
            rule(RESOURCES, "resourceslices", f"{READ} create update delete"),
            rule("", "nodes", "get update patch" if domains else "get"),
            *([rule(GROUP, "computedomains", READ)] if domains else []),
        ],
        labels=plugin,
    )
    here = functools.partial(grant_here, account=KUBELET_PLUGIN, namespace=namespace, labels=plugin)
    if inputs.gpus:
        yield from here(f"{KUBELET_PLUGIN}-driver-validation", [rule("apps", "daemonsets", "list")])
    if inputs.gpus and mps:
        deployments = rule("apps", "deployments", f"{READ} create update patch delete")
        yield from here(f"{KUBELET_PLUGIN}-mps", [deployments, rule("", "pods", "list")])
    if inputs.controller:
        yield from controller_rights(namespace, inputs.controller, controller)
        yield from daemon_rights(namespace, {**driver, keys.COMPONENT: "compute-domain-daemon"})


def controller_rights(namespace: str, program: Program, labels: Mapping[str, str]) -> Iterator[Body]:
    """The controller makes a DaemonSet per compute domain here, and claim templates where its users want them."""
    elects = dict(program.env).get("LEADER_ELECTION_ENABLED") == "true"
    yield from access(
        CONTROLLER,
        namespace,
        role=[
            rule("apps", "daemonsets", f"{READ} create update patch delete"),
            rule(GROUP, "computedomaincliques", f"{READ} update"),
            *([rule("coordination.k8s.io", "leases", "get create update")] if elects else []),
        ],
        cluster=[
            rule(GROUP, "computedomains", f"{READ} update"),
            rule(GROUP, "computedomains/status", "update"),
            rule(RESOURCES, "resourceclaimtemplates", f"{READ} create update delete"),
            rule("", "nodes", f"{READ} update"),
            rule("", "pods", READ),
        ],
        labels=labels,
    )


def daemon_rights(namespace: str, labels: Mapping[str, str]) -> Iterator[Body]:
    """The daemons of a compute domain find each other through its objects."""
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(COMPUTE_DOMAIN_DAEMON, namespace, labels=labels),
    }
    yield from grant(
        "compute-domain-daemon",
        [
            rule(GROUP, "computedomains computedomains/status", f"{READ} update patch"),
            rule(GROUP, "computedomaincliques", f"{READ} create update patch"),
            rule("", "pods", f"{READ} patch"),
        ],
        account=COMPUTE_DOMAIN_DAEMON,
        namespace=namespace,
        labels=labels,
    )


def only_own_slices(namespace: str) -> Iterator[Body]:
    """An admission policy: a kubelet plugin says what devices its own node has, and nothing of other nodes.

    RBAC can't say it. The token of a pod tells its node since Kubernetes 1.30. The operator's policy lets through what
    speaks of all nodes, or of those with a label; the plugin publishes neither, so to one taken-over node that would be
    the way to all others.
    """
    user = f'request.userInfo.username == "system:serviceaccount:{namespace}:{KUBELET_PLUGIN}"'
    spec = _data.copy(_data.read(Path(__file__).with_name("resourceslices-policy.yaml")))
    spec["matchConditions"] = [{"name": "isRestrictedUser", "expression": user}]
    for kind, content in (("", spec), ("Binding", {"policyName": POLICY, "validationActions": ["Deny"]})):
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"ValidatingAdmissionPolicy{kind}",
            "metadata": metadata(POLICY),
            "spec": content,
        }
