"""Node feature discovery: what must never happen, and the rights and restrictions that see to it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gpustack.model import Body
from gpustack.policy.language.nfd import Nfd
from tests.components import common
from tests.components.nfd.common import NAME, ROLES, config, inputs, pod, rendered, rule_object

ADMISSION = "gpustack-nodefeatures-of-own-node"


@pytest.mark.parametrize("release", ["v26.7.0", "v25.10.1"])
def test_label_namespaces_are_a_closed_list(release: str) -> None:
    """Labels are taken in the default namespaces, nvidia.com and those that the policy names or uses in rules of its
    own. All others are denied, and taints are never switched on."""
    extra = [rule_object(vendor_example__a="1", kubernetes_io__gpu="1", node_k8s_io__a="1", plain="1")]
    found = config(rendered({"labelNamespaces": ["team.example"]}, release=release, extraObjects=extra), "master")
    assert found == {
        "denyLabelNs": ["*"],
        "extraLabelNs": [
            "feature.node.kubernetes.io",
            "nvidia.com",
            "profile.node.kubernetes.io",
            "team.example",
            "vendor.example",
        ],
    }


@pytest.mark.parametrize("body", [{}, {"spec": 1}, {"spec": {"rules": 1}}, {"spec": {"rules": [1, {"labels": [1]}]}}])
def test_broken_rules_are_left_to_validation(body: Body) -> None:
    """A NodeFeatureRule of the policy that is none doesn't end in a traceback here."""
    extra = {**rule_object(), **body} if body else {**rule_object(), "spec": {}}
    assert inputs(extraObjects=[extra]) == inputs()


@pytest.mark.parametrize("namespace", ["kubernetes.io", "node-restriction.kubernetes.io", "k8s.io", "a.k8s.io", "*"])
def test_kubernetes_namespaces_are_refused(namespace: str) -> None:
    """A policy can't open the namespaces whose labels decide what a cluster does with a node, nor all of them."""
    with pytest.raises(ValidationError):
        Nfd.model_validate({"labelNamespaces": [namespace]})
    Nfd.model_validate({"labelNamespaces": ["notkubernetes.io", "gpu.feature.node.kubernetes.io"]})


@pytest.mark.parametrize("value", ["3", "012", "0B40", "0x12", "display"])
def test_pci_classes_are_two_or_four_hex_digits(value: str) -> None:
    """Anything else matches no device and would be ignored."""
    with pytest.raises(ValidationError):
        Nfd.model_validate({"pciClasses": [value]})


def test_rights() -> None:
    """Each part has an account of its own and what its program does: only the master changes nodes, and the worker
    has no right outside the namespace."""
    bodies = rendered()
    accounts = {role: pod(bodies, role)["serviceAccountName"] for role in ROLES}
    assert accounts == {"master": NAME, "worker": f"{NAME}-worker", "gc": f"{NAME}-gc"}
    assert {f"ServiceAccount/{account}" for account in accounts.values()} <= set(bodies)
    roles = {key: common.grants(body) for key, body in bodies.items() if body["kind"] in {"Role", "ClusterRole"}}
    assert roles == {
        f"ClusterRole/{NAME}": {
            *("nodes:get", "nodes:list", "nodes:patch", "nodes/status:patch"),
            *("nodefeatures:list", "nodefeatures:watch", "nodefeaturerules:list", "nodefeaturerules:watch"),
        },
        f"Role/{NAME}-worker": {"nodefeatures:get", "nodefeatures:create", "nodefeatures:update", "pods:get"},
        f"ClusterRole/{NAME}-gc": {
            *("nodes:list", "nodes:watch", "nodefeatures:list", "nodefeatures:delete"),
            *("noderesourcetopologies:list", "noderesourcetopologies:delete"),
        },
    }
    for key, body in bodies.items():
        if body["kind"].endswith("Binding") and "subjects" in body:
            name = key.partition("/")[2]
            assert body["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": "gpu-operator"}]


def test_finders_write_about_their_own_node_only() -> None:
    """The API server holds worker and GFD to the node that their token was made for: on creation, and on an update also
    for the object that is replaced. It fails closed."""
    bodies = rendered(cluster={"namespace": "gpus"})
    policy = bodies[f"ValidatingAdmissionPolicy/{ADMISSION}"]["spec"]
    assert policy["failurePolicy"] == "Fail"
    (rule,) = policy["matchConstraints"]["resourceRules"]
    assert (rule["resources"], set(rule["operations"])) == (["nodefeatures"], {"CREATE", "UPDATE"})
    (condition,) = policy["matchConditions"]
    for account in (f"{NAME}-worker", "nvidia-gpu-feature-discovery"):
        assert f"'system:serviceaccount:gpus:{account}'" in condition["expression"]
    variables = {item["name"]: item["expression"] for item in policy["variables"]}
    assert "request.userInfo" in variables["here"]
    assert "authentication.kubernetes.io/node-name" in variables["here"]
    assert "nfd.node.kubernetes.io/node-name" in variables["node"]
    assert "oldObject" in variables["before"]
    (check,) = policy["validations"]
    assert check["expression"] == "variables.here == [variables.node] && variables.before in ['', variables.node]"
    binding = bodies[f"ValidatingAdmissionPolicyBinding/{ADMISSION}"]["spec"]
    assert binding == {"policyName": ADMISSION, "validationActions": ["Deny"]}


@pytest.mark.parametrize(("version", "there"), [("1.29", False), ("1.30.2", True), ("v1.37.0+k3s1", True)])
def test_admission_policy_needs_kubernetes_1_30(version: str, there: bool) -> None:
    """Older API servers have neither the kind nor the node in a token: there it isn't rendered."""
    bodies = rendered(cluster={"kubernetesVersion": version})
    assert (f"ValidatingAdmissionPolicy/{ADMISSION}" in bodies) is there


def test_pods_are_restricted() -> None:
    """No part runs as root, writes to its image, keeps a capability or shares anything of the node; the worker reads
    folders of the node and can't write to any."""
    bodies = rendered()
    for role in ROLES:
        found = pod(bodies, role)
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(found)
        assert found["containers"][0]["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert all(mount["readOnly"] for mount in found["containers"][0].get("volumeMounts", []))
    hosts = {
        path: mount["from"]["hostPath"]["path"]
        for path, mount in common.mounts(pod(bodies, "worker"), "worker").items()
        if "hostPath" in mount["from"]
    }
    features = "/etc/kubernetes/node-feature-discovery/features.d/"
    assert hosts == {
        "/host-boot": "/boot",
        "/host-etc/os-release": "/etc/os-release",
        "/host-sys": "/sys",
        "/host-usr/lib": "/usr/lib",
        "/host-lib": "/lib",
        "/host-proc/swaps": "/proc/swaps",
        features: features,
    }
    assert not any("hostPath" in volume for role in ("master", "gc") for volume in pod(bodies, role).get("volumes", []))


def test_probes_and_ports() -> None:
    """Health and metrics are served on 8080, which the probes ask. A master that lists a big cluster has five minutes
    to start."""
    bodies = rendered()
    for role in ROLES:
        container = pod(bodies, role)["containers"][0]
        assert container["ports"] == [{"name": "http", "containerPort": 8080}]
        assert "-port=8080" in container["args"]
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"] == {"path": "/healthz", "port": 8080}
    startup = pod(bodies, "master")["containers"][0]["startupProbe"]
    assert startup["failureThreshold"] * startup.get("periodSeconds", 10) == 300
