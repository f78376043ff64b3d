"""Tenants' workloads beside what a cluster offers."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpustack.checks.rule import rules_over
from gpustack.cluster.offer import Offer
from gpustack.cluster.resolve import resolve
from gpustack.model import Finding
from gpustack.tenants.tenants import findings, pods_in, tenants_of
from tests.components.common import spec

H100 = "NVIDIA-H100-80GB-HBM3"
TRAINING = {
    "name": "training",
    "os": "ubuntu22.04",
    "gpuProduct": H100,
    "gpusPerNode": 8,
    "nodeSelector": {"pool": "t"},
}
SHARED = {
    "name": "shared",
    "os": "ubuntu22.04",
    "gpuProduct": "NVIDIA-L4",
    "gpusPerNode": 2,
    "nodeSelector": {"pool": "s"},
    "sharing": {"timeSlicing": {"replicas": 4, "renameByDefault": True}},
}
CUT = {"mig": {"layout": {"1g.10gb": 7}}}
OF_GKE = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TAINT = {"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"}
TOLERATION = {"key": "example.com/gpu", "operator": "Exists"}


@functools.cache
def cluster(name: str) -> Offer:
    """What the cluster NAME of these tests offers."""
    sections: dict[str, dict[str, Any]] = {
        "plain": {"nodePools": [TRAINING]},
        "two": {"nodePools": [TRAINING, SHARED]},
        "tainted": {"nodePools": [{**TRAINING, "taints": [TAINT]}]},
        "half-tainted": {"nodePools": [{**TRAINING, "taints": [TAINT]}, {**TRAINING, "name": "b"}]},
        "gke": {"cluster": {"platform": "gke-ubuntu"}, "nodePools": [{**TRAINING, "taints": [OF_GKE]}]},
        "mixed": {"mig": {"strategy": "mixed"}, "nodePools": [{**TRAINING, "sharing": CUT}]},
        "single": {"mig": {"strategy": "single"}, "nodePools": [{**TRAINING, "sharing": CUT}]},
        "mps": {"nodePools": [{**TRAINING, "sharing": {"mps": {"replicas": 4}}}]},
        "partly": {"nodePools": [TRAINING, {**TRAINING, "name": "b", "sharing": {"mps": {"replicas": 4}}}]},
        "unknown": {"nodePools": [{"name": "a", "os": "ubuntu22.04"}]},
        "foreign": {"devicePlugin": {"enabled": False}, "nodePools": [TRAINING]},
        "none": {},
        "network": {"cluster": {"networkOperator": True}, "nodePools": [TRAINING]},
        "no-discovery": {"gfd": {"enabled": False}, "nodePools": [TRAINING]},
    }  # fmt: skip
    return resolve(spec(**sections[name])).offer


def pod(resource: str = "nvidia.com/gpu", number: object = 1, part: str = "limits", **fields: Any) -> dict[str, Any]:
    """A Pod that asks for NUMBER of RESOURCE; FIELDS of its spec."""
    container = {"name": "main", "image": "a", "resources": {part: {resource: number}} if resource else {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container], **fields}}


def told(body: dict[str, Any], name: str) -> list[Finding]:
    """What all rules say about BODY in the cluster NAME."""
    tenants = tenants_of(body, pods_in(body), cluster(name))
    return [finding for tenant in tenants for rule in rules_over("workload") for finding in rule.findings(tenant)]


def ids(body: dict[str, Any], name: str) -> list[str]:
    """The ids of what is said about BODY in the cluster NAME."""
    return [finding.rule for finding in told(body, name)]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (pod(number=8), "plain"),
        (pod(number="8"), "plain"),
        (pod("nvidia.com/gpu.shared"), "two"),
        (pod("nvidia.com/mig-1g.10gb"), "mixed"),
        (pod(), "single"),
        (pod(number=99), "unknown"),
        (pod("nvidia.com/gpu.shared"), "foreign"),
        (pod(), "none"),
        (pod(tolerations=[TOLERATION]), "tainted"),
        (pod(), "half-tainted"),
        (pod(), "gke"),
        (pod(number=2), "partly"),
        (pod(number=0), "plain"),
        (pod("example.com/fpga", 3), "plain"),
        (pod(""), "tainted"),
        (pod(runtimeClassName="nvidia"), "plain"),
        (pod("", runtimeClassName="gvisor"), "plain"),
        (pod(nodeSelector={"nvidia.com/gpu.product": H100, "kubernetes.io/arch": "amd64"}), "plain"),
        (pod(nodeSelector={"nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.deploy.driver": "true"}), "plain"),
        (pod(nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}), "plain"),
    ],
)
def test_what_is_fine(body: dict[str, Any], name: str) -> None:
    """Pods that can run, or of which nobody can say that they can't."""
    assert told(body, name) == []


@pytest.mark.parametrize(
    ("resource", "name", "remedy"),
    [
        ("nvidia.com/gpus", "plain", "write nvidia.com/gpu"),
        ("nvidia.com/gpu.shared", "plain", "write nvidia.com/gpu"),
        ("nvidia.com/mig-1g.10gb", "single", "write nvidia.com/gpu"),
        ("nvidia.com/mig-2g.20gb", "mixed", "write nvidia.com/mig-1g.10gb"),
        ("nvidia.com/mig-1g.10gb+me", "unknown", "write nvidia.com/mig-1g.10gb.me"),
        ("nvidia.com/mig-small", "unknown", "write nvidia.com/mig- and a profile"),
        ("nvidia/gpu", "unknown", "write nvidia.com/gpu"),
        ("nvidia.com/gpu", "mixed", "write nvidia.com/mig-1g.10gb"),
    ],
)
def test_resources_that_no_node_offers(resource: str, name: str, remedy: str) -> None:
    """The message says what is offered and which name is near; illegal names are told in any cluster."""
    found = [finding for finding in told(pod(resource), name) if finding.rule == "GPU701"]
    assert [finding.remedy.startswith(remedy) for finding in found] == [True]
    assert found[0].path == f'spec.containers[0].resources.limits["{resource}"]'


def test_instances_of_gpus_that_stay_whole() -> None:
    """Nothing is called otherwise by the MIG strategy where no GPU is divided (gpus/mig.yaml: a T4 has no MIG)."""
    (whole,) = [each for each in told(pod("nvidia.com/mig-1g.10gb"), "plain") if each.rule == "GPU701"]
    assert ("strategy" in whole.why, whole.remedy) == (False, "write nvidia.com/gpu")
    (cut,) = [each for each in told(pod("nvidia.com/mig-1g.10gb"), "single") if each.rule == "GPU701"]
    assert "with mig.strategy single, instances are called so" in cut.why


def test_shared_gpus_have_another_name() -> None:
    """Where all GPUs are renamed, the plain name is nobody's."""
    renamed = resolve(spec(nodePools=[SHARED])).offer
    (tenant,) = tenants_of(pod(), pods_in(pod()), renamed)
    found = [finding for rule in rules_over("workload") for finding in rule.findings(tenant)]
    assert [(finding.rule, finding.remedy) for finding in found] == [("GPU701", "write nvidia.com/gpu.shared")]


def test_claims_are_no_resources() -> None:
    """With dynamic resource allocation nodes have no such resource, and no RuntimeClass."""
    dra = resolve(spec(gpuCluster={}, nodePools=[TRAINING])).offer
    body = pod(runtimeClassName="nvidia")
    (tenant,) = tenants_of(body, pods_in(body), dra)
    found = {finding.rule: finding for rule in rules_over("workload") for finding in rule.findings(tenant)}
    assert "ResourceClaimTemplate" in found["GPU701"].remedy
    assert "GPU705" in found


def test_the_class_in_place_of_nvidia() -> None:
    """`operator.runtimeClass` names the class that is called nvidia by default (operator.md 1.4); the other two are
    other ways of getting a GPU, however like its name theirs are."""
    named = resolve(spec(operator={"runtimeClass": "gpu"}, nodePools=[TRAINING])).offer
    body = pod(runtimeClassName="nvidia")
    (tenant,) = tenants_of(body, pods_in(body), named)
    (found,) = [each for rule in rules_over("workload") for each in rule.findings(tenant) if each.rule == "GPU705"]
    assert found.remedy == "write gpu"


@pytest.mark.parametrize(
    ("body", "name", "rules"),
    [
        (pod(part="requests"), "plain", ["GPU702"]),
        (pod(number="500m"), "plain", ["GPU702"]),
        (pod(number=9), "plain", ["GPU703"]),
        (pod(number=3, nodeSelector={"pool": "s"}), "two", ["GPU703"]),
        (pod("nvidia.com/gpu.shared", 9), "two", ["GPU703", "GPU710"]),
        (pod(), "tainted", ["GPU704"]),
        (pod(nodeSelector={"pool": "t"}, tolerations=[{"key": "other", "operator": "Exists"}]), "tainted", ["GPU704"]),
        (pod(runtimeClassName="nvidia-cid"), "plain", ["GPU705"]),
        (pod(runtimeClassName="kata"), "plain", ["GPU705"]),
        (pod(nodeSelector={"nvidia.com/gpu.product": "H100"}), "plain", ["GPU706"]),
        (pod(nodeSelector={"nvidia.com/gpu.produkt": H100}), "plain", ["GPU706"]),
        (pod(nodeSelector={"nvidia.com/gpu.product": H100}), "no-discovery", ["GPU706"]),
        (pod(nodeSelector={"pool": "x"}), "plain", ["GPU706"]),
        (pod(nodeSelector={"accelerator": "x"}), "plain", ["GPU707"]),
        (pod("nvidia.com/mig-1g.10gb", 2), "mixed", ["GPU708"]),
        (pod(number=2), "single", ["GPU708"]),
        (pod(number=2), "mps", ["GPU709"]),
        (pod("nvidia.com/gpu.shared", 2), "two", ["GPU710"]),
    ],
)
def test_what_can_not_run(body: dict[str, Any], name: str, rules: list[str]) -> None:
    """Each reason why a pod stays pending or is refused has a rule, and only that one speaks."""
    assert ids(body, name) == rules


def test_containers_count_together_and_initial_ones_alone() -> None:
    """Containers need their GPUs at the same time, initial ones before that, sidecars all the time."""
    parts = pod(number=4)["spec"]["containers"]
    together = pod(number=5)
    together["spec"]["containers"] += parts
    assert ids(together, "plain") == ["GPU703"]
    assert ids(pod(number=5, initContainers=parts), "plain") == []
    assert ids(pod(number=5, initContainers=[{**parts[0], "restartPolicy": "Always"}]), "plain") == ["GPU703"]


def test_two_resources_on_one_node() -> None:
    """A pod runs on one node: resources of different pools don't come together."""
    both = pod()
    both["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu.shared"] = 1
    assert ids(both, "two") == ["GPU703"]


def test_affinity() -> None:
    """A required affinity selects as a nodeSelector does; of alternatives, one may do. NotIn may exclude all nodes."""

    def terms(*values: str, operator: str = "In") -> dict[str, Any]:
        found = [
            {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": operator, "values": [value]}]}
            for value in values
        ]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}}

    assert ids(pod(affinity=terms("H100")), "plain") == ["GPU706"]
    assert ids(pod(affinity=terms(H100)), "plain") == []
    assert ids(pod(affinity=terms("H100", H100)), "plain") == []
    assert ids(pod(affinity=terms(H100, operator="NotIn")), "plain") == ["GPU706"]
    assert ids(pod(affinity=terms("Tesla-T4", operator="NotIn")), "plain") == []


def test_labels_that_no_pool_has_together() -> None:
    """A pod runs on a node of one pool: labels of two, or alternatives of which none can be, leave it pending."""
    label = "nvidia.com/gpu.product"
    (found,) = told(pod(nodeSelector={"pool": "s", label: H100}), "two")
    assert (found.rule, found.remedy) == ("GPU706", "select the nodes of one pool")
    assert f"training has pool: t, {label}: {H100}; shared has pool: s" in found.why
    assert ids(pod(nodeSelector={"pool": "t", label: H100}), "two") == []
    terms = [{"matchExpressions": [{"key": label, "operator": "In", "values": [one]}]} for one in ("H100", "Tesla-T4")]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert ids(pod(affinity=affinity), "plain") == ["GPU706"]
    # there may be nodes without GPUs, which the policy doesn't mention
    assert ids(pod("cpu", nodeSelector={"pool": "s", label: H100}), "two") == []
    assert ids(pod("cpu", nodeSelector={"pool": "other"}), "two") == []
    others = {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["s", "t"]}]}
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = [others]
    assert ids(pod("cpu", affinity=affinity), "two") == []


@pytest.mark.parametrize(
    ("kind", "content", "path"),
    [
        ("NIMService", lambda selector, asks: {"nodeSelector": selector, **asks}, "spec"),
        (
            "InferenceService",
            lambda selector, asks: {"predictor": {"nodeSelector": selector, "model": asks}},
            "spec.predictor",
        ),
    ],
)
def test_nodes_of_containers_without_a_pod(kind: str, content: Any, path: str) -> None:
    """Custom resources without a PodSpec select nodes, too, by labels that GPU feature discovery writes."""
    label, asks = "nvidia.com/gpu.product", {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    body = {
        "apiVersion": "x.example.com/v1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": content({label: "H100"}, asks),
    }
    (found,) = told(body, "plain")
    assert (found.rule, found.path, found.remedy) == ("GPU706", f'{path}.nodeSelector["{label}"]', f"write {H100}")
    body["spec"] = content({label: H100, "team": "a"}, asks)
    assert ids(body, "plain") == []


@pytest.mark.parametrize(
    ("value", "expected"), [("all", ["GPU711"]), ("0", ["GPU711"]), ("none", []), ("void", []), ("", [])]
)
def test_gpus_past_the_scheduler(value: str, expected: list[str]) -> None:
    """NVIDIA_VISIBLE_DEVICES by hand gives GPUs that may be somebody else's (B52)."""
    body = pod("")
    body["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": value}]
    assert ids(body, "plain") == expected


TEMPLATE = pod(number=16)["spec"]


@pytest.mark.parametrize(
    ("kind", "content", "path"),
    [
        ("Deployment", {"template": {"spec": TEMPLATE}}, "spec.template.spec"),
        ("Job", {"template": {"spec": TEMPLATE}}, "spec.template.spec"),
        ("CronJob", {"jobTemplate": {"spec": {"template": {"spec": TEMPLATE}}}}, "spec.jobTemplate.spec.template.spec"),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": TEMPLATE}}}},
         "spec.pytorchReplicaSpecs.Worker.template.spec"),
        ("RayCluster", {"workerGroupSpecs": [{"template": {"spec": TEMPLATE}}]},
         "spec.workerGroupSpecs[0].template.spec"),
        ("InferenceService", {"predictor": TEMPLATE}, "spec.predictor"),
    ],
)  # fmt: skip
def test_pods_are_found_anywhere(kind: str, content: dict[str, Any], path: str) -> None:
    """Nobody knows all kinds whose controllers make pods: a PodSpec is known by its containers."""
    (found,) = told({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "a"}, "spec": content}, "plain")
    assert (found.rule, found.path) == ("GPU703", f'{path}.containers[0].resources.limits["nvidia.com/gpu"]')
    assert f"{kind} a" in found.what


def test_resources_without_a_pod() -> None:
    """Some custom resources have resources alone; where their pods may run isn't known, so only amounts are judged."""
    body = {
        "apiVersion": "x/v1",
        "kind": "NIMService",
        "metadata": {"name": "a"},
        "spec": {"resources": {"limits": {"nvidia.com/gpu": 9}}},
    }
    (found,) = told(body, "plain")
    assert (found.rule, found.path) == ("GPU703", 'spec.resources.limits["nvidia.com/gpu"]')
    body["spec"]["resources"]["limits"]["nvidia.com/gpu"] = 8  # type: ignore[index]
    assert told(body, "tainted") == []


@pytest.mark.parametrize(
    ("amount", "what"),
    [
        ("eight", "'eight' is not a quantity"),
        ("", "'' is not a quantity"),
        (" 8 ", "' 8 ' is not a quantity"),
        (True, "true is not a quantity"),
        ([8], "a list is not a quantity"),
        (-1, "-1 is negative"),
        ("0.5", "0.5 is not a whole number"),
    ],
)
def test_amounts_that_are_none(amount: object, what: str) -> None:
    """Whatever the API server can't read as an amount is told, once, and nothing is said about nodes then."""
    (found,) = told(pod(number=amount), "tainted")
    assert (found.rule, found.what) == ("GPU702", f"Pod p: nvidia.com/gpu: {what}")
    assert found.path == 'spec.containers[0].resources.limits["nvidia.com/gpu"]'
    body = pod(number=amount, part="requests")
    body["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": 1, "cpu": None}
    assert ids(body, "plain") == ["GPU702"]


@pytest.mark.parametrize("amount", [0, "0", None])
def test_no_gpu_needs_no_node(amount: object) -> None:
    """Charts that are told to go without GPUs write 0: such a pod runs anywhere."""
    assert ids(pod(number=amount), "tainted") == []


@pytest.mark.parametrize(
    ("resources", "path"),
    [
        (["nvidia.com/gpu"], "spec.containers[0].resources"),
        ({"limits": "8"}, "spec.containers[0].resources.limits"),
        ({"requests": [1]}, "spec.containers[0].resources.requests"),
    ],
)
def test_resources_that_are_no_mapping(resources: object, path: str) -> None:
    """A list or a text in place of a mapping is told where it stands."""
    body = pod()
    body["spec"]["containers"][0]["resources"] = resources
    (found,) = told(body, "plain")
    assert (found.rule, found.path) == ("GPU702", path)


LIMITED = pod(number=16)["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("key", "items", "told_at"),
    [
        ("containers", None, "spec.containers"),
        ("containers", [], "spec.containers"),
        ("containers", "main", "spec.containers"),
        ("containers", {"main": LIMITED}, "spec.containers"),
        ("containers", [None], "spec.containers[0]"),
        ("containers", [LIMITED, "main"], "spec.containers[1]"),
        ("initContainers", {"main": LIMITED}, "spec.initContainers"),
    ],
)
def test_containers_that_are_none(key: str, items: object, told_at: str) -> None:
    """Where a pod of Kubernetes' own kinds has something else for a list of containers, that is told: what they ask for
    can't be looked at. Containers beside it are looked at."""
    body = pod(number=1)
    body["spec"][key] = items
    found = told(body, "plain")
    assert [finding.path for finding in found if finding.rule == "GPU702"] == [told_at]
    assert ("GPU703" in {finding.rule for finding in found}) == (isinstance(items, list) and LIMITED in items)


@pytest.mark.parametrize("content", [{"replicas": 3}, {"template": {"spec": {"nodeSelector": {"pool": "t"}}}}])
def test_patches_are_let_pass(content: dict[str, Any]) -> None:
    """A patch says a part of a Deployment, often without its containers."""
    assert (
        told({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": content}, "two") == []
    )


def test_sidecars_run_beside_initial_containers() -> None:
    """A pod has to have room for an initial container and the sidecars that were started before it."""
    sidecar = {**pod(number=4)["spec"]["containers"][0], "restartPolicy": "Always"}
    first = pod(number=8)["spec"]["containers"][0]
    body = pod("", initContainers=[sidecar, first])
    (found,) = told(body, "plain")
    assert (found.rule, "asks for 12 nvidia.com/gpu" in found.what) == ("GPU703", True)
    assert told(pod("", initContainers=[first, sidecar]), "plain") == []


def test_repeated_values_are_told_once() -> None:
    """What aliases repeat is one value: a file of a few lines that stands for millions of pods has one finding."""
    shared: list[Any] = [
        {"template": {"spec": pod(number=16)["spec"]}},
        {"resources": {"limits": {"nvidia.com/gpu": 16}}},
    ]
    for _ in range(20):
        shared = [shared] * 10
    body = {"apiVersion": "x/v1", "kind": "Group", "metadata": {"name": "a"}, "spec": {"of": shared}}
    assert [finding.rule for finding in told(body, "plain")] == ["GPU703", "GPU703"]


@pytest.mark.parametrize(
    ("name", "network", "plain"),
    [
        ("nvidia.com/hostdev", [], ["GPU701"]),
        ("nvidia.com/gpus", ["GPU701"], ["GPU701"]),
        ("nvidia.com/mig-1g.10gb", ["GPU701"], ["GPU701"]),
    ],
)
def test_network_cards(name: str, network: list[str], plain: list[str]) -> None:
    """Resources of the network operator begin with nvidia.com/ too, and are called as whoever installs it likes."""
    assert ids(pod(name), "network") == network
    assert ids(pod(name), "plain") == plain


ODD: list[Any] = [None, 1, 0.5, True, "x", "", [], {}, [1], {"a": 1}, [None], "1Gi", [[]], {"name": "q"}]
JUNK = st.sampled_from(ODD).map(copy.deepcopy)
WHOLE = pod(
    "nvidia.com/mig-1g.10gb", 2, tolerations=[TOLERATION], nodeSelector={"pool": "x"}, runtimeClassName="nvidia",
    initContainers=[{"name": "i", "image": "a", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}],
    affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["y"]}]}]}}},
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything below VALUE."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in [(*path, key), *places(item, (*path, key))]]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_any_manifest_is_answered(data: st.DataObject) -> None:
    """Manifests of tenants may hold anything anywhere: no rule ends in a traceback."""
    body = copy.deepcopy(WHOLE)
    for _ in range(2):
        path = data.draw(st.sampled_from([found for found in places(body) if found != ("kind",)]))
        target: Any = body
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = data.draw(JUNK)
    for name in ("mixed", "tainted"):
        told(yaml.safe_load(yaml.safe_dump(body)), name)


@pytest.mark.parametrize(
    ("sections", "label"),
    [
        ({"sharing": {"timeSlicing": {"replicas": 4}}}, f"{H100}-SHARED"),
        ({"sharing": {"timeSlicing": {"replicas": 4, "renameByDefault": True}}}, H100),
        ({"sharing": {"mps": {"replicas": 4}}}, f"{H100}-SHARED"),
        ({"sharing": CUT, "mig": "single"}, f"{H100}-MIG-1g.10gb"),
        ({"sharing": {"mig": {"layout": {"1g.10gb+me": 1}}}, "mig": "single"}, f"{H100}-MIG-1g.10gb.me"),
        ({"sharing": {**CUT, "timeSlicing": {"replicas": 2}}, "mig": "single"}, f"{H100}-MIG-1g.10gb-SHARED"),
        ({"sharing": CUT, "mig": "mixed"}, H100),
    ],
)
def test_products_of_shared_and_cut_gpus(sections: dict[str, Any], label: str) -> None:
    """GPU feature discovery's product has -SHARED where a shared GPU keeps its name (plugin-config.yaml) and,
    with strategy single, the profile (gpus/mig.yaml). Another value is told with the right one, which passes."""
    mig: dict[str, Any] = {"mig": {"strategy": sections["mig"]}} if "mig" in sections else {}
    offer = resolve(spec(**mig, nodePools=[{**TRAINING, "sharing": sections["sharing"]}])).offer
    for value in (H100, f"{H100}-SHARED", f"{H100}-MIG-1g.10gb", "NVIDIA-T4"):
        body = pod(next(iter(offer.resources)), nodeSelector={"nvidia.com/gpu.product": value})
        found = [one for one in findings(body, pods_in(body), offer) if one.rule == "GPU706"]
        assert [one.remedy for one in found] == ([] if value == label else [f"write {label}"])
