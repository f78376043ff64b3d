"""What the DRA driver may do: accounts with rights, and a policy that holds each node to its own devices."""

from collections.abc import Iterator
from pathlib import Path

from ...api import keys
from ...catalog import _data
from ...model import Body
from ..parts.kube import access, grant, metadata
from ..parts.kube import rights as granted
from .dra_driver_inputs import DraDriverInputs

KUBELET_PLUGIN = "nvidia-dra-driver-kubeletplugin"
CONTROLLER = "nvidia-dra-driver-controller"
DAEMON = "compute-domain-daemon"
COMPUTE_DOMAIN_DAEMON = f"{DAEMON}-service-account"
"""The account of the pods that the controller makes; their template in the driver's image names it."""
POLICY = "resourceslices-policy-nvidia-dra-driver"
MPS = "MPSSupport"
DRIVER = {"app.kubernetes.io/name": "nvidia-dra-driver"}
LABELS = {keys.COMPONENT: "nvidia-dra-driver-kubelet-plugin", **DRIVER}
CONTROLLER_LABELS = {keys.COMPONENT: CONTROLLER, **DRIVER}


def rights(inputs: DraDriverInputs) -> Iterator[Body]:
    """The accounts of the driver's programs, and of the daemons that carry compute domains."""
    space, domains = inputs.common.namespace, inputs.compute_domains is not None
    yield from access(KUBELET_PLUGIN, space, **granted(KUBELET_PLUGIN, domains=domains), labels=LABELS)
    mps = inputs.gpus and inputs.feature_gates.get(MPS)
    for what, on in (("driver-validation", inputs.gpus), ("mps", mps)):
        if on:
            name = f"{KUBELET_PLUGIN}-{what}"
            yield from grant(name, KUBELET_PLUGIN, space, labels=LABELS, **granted(name))
    if inputs.controller:
        elects = dict(inputs.controller.env).get("LEADER_ELECTION_ENABLED") == "true"
        yield from access(CONTROLLER, space, **granted(CONTROLLER, elects=elects), labels=CONTROLLER_LABELS)
        labels = {**DRIVER, keys.COMPONENT: DAEMON}
        yield from access(COMPUTE_DOMAIN_DAEMON, space, labels=labels)
        yield from grant(DAEMON, COMPUTE_DOMAIN_DAEMON, space, labels=labels, **granted(DAEMON))


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
