"""What tenants are given: quotas over the names that nodes offer, queues from the same table, and their pods' rules."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from pydantic import ValidationError

from gpustack.cluster.resolve import resolve
from gpustack.components.base.namespace import Namespace
from gpustack.components.tenancy.queues import Queues
from gpustack.components.tenancy.tenancy import Tenancy
from gpustack.model import Body
from tests.components.common import chart, spec

H100 = {"os": "ubuntu24.04", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "count": 2}
A100 = {"os": "ubuntu24.04", "gpuProduct": "NVIDIA-A100-SXM4-80GB", "gpusPerNode": 8, "count": 1}
OS = "feature.node.kubernetes.io/system-os_release."
TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
WHOLE = {"name": "whole", "nodeSelector": {"example.com/pool": "whole"}, "taints": [TAINT], **H100}
CUT = {
    "name": "cut",
    "nodeSelector": {"example.com/pool": "cut"},
    "sharing": {"mig": {"layout": {"3g.40gb": 2}}},
    **A100,
}
SHARED = {"name": "shared", "nodeSelector": {"example.com/pool": "shared"}, **H100}
SHARED["sharing"] = {"timeSlicing": {"replicas": 4}}


def objects(*tenants: Body, pools: tuple[Body, ...] = (WHOLE, CUT), **tenancy: Any) -> dict[str, Body]:
    """The objects of a policy with these tenants, by kind and name, those of a namespace by that too."""
    cluster = resolve(
        spec(nodePools=list(pools), mig={"strategy": "mixed"}, tenancy={"tenants": list(tenants), **tenancy})
    )
    assert not cluster.tenancy[1], "a test's tenants are given what there is"
    made = [*Tenancy(chart(), f"t-{next(_ids)}", cluster).resources()]
    made += Queues(chart(), f"q-{next(_ids)}", cluster).resources()
    return {"/".join(filter(None, (each.kind, each.namespace, each.name))): each.body for each in made}


_ids = itertools.count()


def hard(found: dict[str, Body], namespace: str) -> dict[str, str]:
    """The quota of NAMESPACE."""
    return dict(found[f"ResourceQuota/{namespace}/gpustack-gpus"]["spec"]["hard"])


def test_a_quota_names_every_resource() -> None:
    """What a tenant isn't given is bounded by 0: a quota leaves free what it doesn't name. It counts extended
    resources as requests (kubernetes.io/docs/concepts/policy/resource-quotas).
    """
    found = objects({"name": "team-a", "pools": {"whole": {"gpus": 4}}})
    assert hard(found, "team-a") == {"requests.nvidia.com/gpu": "4", "requests.nvidia.com/mig-3g.40gb": "0"}


def test_names_follow_the_pools() -> None:
    """Slices of a pool are counted by the name that its nodes offer them under; a share is of all that the pool has:
    8 GPUs with 2 instances each.
    """
    found = objects(
        {"name": "team-a", "namespace": "lab", "pools": {"cut": {"slices": {"3g.40gb": 3}}}},
        {"name": "team-b", "pools": {"cut": {"share": "30%"}, "whole": {"gpus": 1}}},
    )
    assert hard(found, "lab") == {"requests.nvidia.com/gpu": "0", "requests.nvidia.com/mig-3g.40gb": "3"}
    assert hard(found, "team-b") == {"requests.nvidia.com/gpu": "1", "requests.nvidia.com/mig-3g.40gb": "4"}


def test_shares_of_whole_gpus() -> None:
    """Time slices are counted under the name of GPUs: 16 GPUs in 4 shares each are 64, of which a half is 32."""
    found = objects({"name": "team-a", "pools": {"shared": {"share": "50%"}}}, pools=(SHARED,))
    assert hard(found, "team-a") == {"requests.nvidia.com/gpu": "32"}


@pytest.mark.parametrize(
    ("part", "pools", "reason"),
    [
        ({"gpus": 1}, (CUT,), "nodes of cut offer no gpu"),
        ({"gpus": 1}, (SHARED,), "GPUs of shared are not handed out whole"),
        ({"slices": {"1g.10gb": 1}}, (CUT,), "nodes of cut offer no 1g.10gb"),
        ({"share": "1%"}, ({**CUT, "gpusPerNode": 1},), "1% of 2 nvidia.com/gpu is less than one"),
        ({"share": "50%"}, ({**CUT, "count": None},), "a share of cut can't be told"),
        ({"gpus": 1}, ({**WHOLE, "name": "other"},), "there is no node pool"),
    ],
)
def test_what_is_not_there(part: Body, pools: tuple[Body, ...], reason: str) -> None:
    """A tenant that is given what the nodes don't offer is told so, and no quota is rendered for it."""
    name = "whole" if pools[0]["name"] == "other" else pools[0]["name"]
    cluster = resolve(spec(nodePools=list(pools), tenancy={"tenants": [{"name": "a", "pools": {name: part}}]}))
    held, ((path, unheld),) = cluster.tenancy
    assert not held
    assert path == f"spec.tenancy.tenants[0].pools.{name}"
    assert reason in unheld.why


def test_queues_of_kai_count_whole_gpus() -> None:
    """The KAI scheduler counts nvidia.com/gpu: GPUs under another name would be nobody's quota."""
    renamed = {**SHARED, "sharing": {"timeSlicing": {"replicas": 4, "renameByDefault": True}}}
    tenants = [{"name": "a", "pools": {"shared": {"slices": {"gpu": 8}}}}]
    for pool, refused in ((renamed, True), (SHARED, False)):
        cluster = resolve(spec(nodePools=[pool], tenancy={"tenants": tenants, "queues": {"kind": "kai"}}))
        assert bool(cluster.tenancy[1]) is refused


@pytest.mark.parametrize("namespace", ["gpu-operator", "kube-system", "openshift-monitoring"])
def test_namespaces_of_the_cluster(namespace: str) -> None:
    """The stack's namespace is no tenant's: a quota of 0 there would end the validator's pods."""
    cluster = resolve(spec(tenancy={"tenants": [{"name": "a", "namespace": namespace}]}))
    assert [path for path, _ in cluster.tenancy[1]] == ["spec.tenancy.tenants[0]"]


def test_a_cohort_lends() -> None:
    """Where a queue borrows, its pods may have what the whole cohort has, so the quota doesn't stand in the way; the
    queue's nominal quota is what is its own.
    """
    tenants = [{"name": "a", "pools": {"whole": {"gpus": 4}}}, {"name": "b", "pools": {"whole": {"gpus": 12}}}]
    found = objects(*tenants, queues={"kind": "kueue"})
    assert hard(found, "a")["requests.nvidia.com/gpu"] == "16"
    resources = found["ClusterQueue/a"]["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert resources[-1] == {"name": "nvidia.com/gpu", "nominalQuota": "4"}
    closed = objects(*tenants, queues={"kind": "kueue", "borrow": False})
    assert hard(closed, "a")["requests.nvidia.com/gpu"] == "4"
    resources = closed["ClusterQueue/a"]["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert resources[-1] == {"name": "nvidia.com/gpu", "nominalQuota": "4", "borrowingLimit": "0"}


def test_a_cohort_lends_what_a_queue_covers() -> None:
    """Of what a tenant's queue doesn't cover it can borrow nothing, so its quota of that stays 0."""
    found = objects(
        {"name": "a", "pools": {"whole": {"gpus": 4}}},
        {"name": "b", "pools": {"cut": {"slices": {"3g.40gb": 2}}}},
        queues={"kind": "kueue"},
    )
    assert hard(found, "b") == {"requests.nvidia.com/gpu": "0", "requests.nvidia.com/mig-3g.40gb": "2"}


@pytest.mark.parametrize(
    "tenancy",
    [
        {"priorities": [{"name": "system-gpu", "value": 1}]},
        {"queues": {"kind": "kueue", "beside": {"nvidia.com/gpu": 8}}},
        {"tenants": [{"name": "a", "limits": {"max": {"nvidia.com/gpu": 1}}}]},
        {"tenants": [{"name": "a", "limits": {"default": {"cpus": 1}}}]},
        {"tenants": [{"name": "a", "limits": {"default": {"cpu": 8}, "max": {"cpu": "4000m"}}}]},
        {"tenants": [{"name": "a", "limits": {"defaultRequest": {"memory": "2Gi"}, "default": {"memory": "1Gi"}}}]},
        {"tenants": [{"name": "a", "pools": {"p": {"gpus": 1, "share": "50%"}}}]},
        {"tenants": [{"name": "a"}, {"name": "b", "namespace": "a"}]},
    ],
)
def test_what_the_api_server_would_refuse(tenancy: Body) -> None:
    """What Kubernetes or Kueue would refuse, or take for something else, is refused while reading."""
    with pytest.raises(ValidationError):
        spec(tenancy=tenancy)


def test_a_limit_on_gpus_is_told_before_what_is_misspelt() -> None:
    """It has a remedy of its own: a LimitRange's max refuses every pod without a GPU."""
    with pytest.raises(ValidationError, match=r"nvidia\.com/gpu in a LimitRange") as error:
        spec(tenancy={"tenants": [{"name": "a", "limits": {"max": {"cpus": 1, "nvidia.com/gpu": 1}}}]})
    assert "use maxPerPod" in str(error.value.errors())


def test_beside_adds() -> None:
    """What a policy says of processors leaves memory as it is: a queue without it admits no job that asks for some."""
    tenant = {"name": "a", "pools": {"whole": {"gpus": 4}}}
    found = objects(tenant, queues={"kind": "kueue", "beside": {"cpu": 4}})
    resources = found["ClusterQueue/a"]["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert {each["name"]: each["nominalQuota"] for each in resources} == {
        "cpu": "4",
        "memory": "1Pi",
        "ephemeral-storage": "1Pi",
        "nvidia.com/gpu": "4",
    }


def test_kueue() -> None:
    """A pool is a flavor with its labels and tolerations; every flavor of a group names all of the group's resources in
    their order, as Kueue demands.
    """
    tenant = {"name": "a", "pools": {"whole": {"gpus": 4}, "cut": {"slices": {"3g.40gb": 2}}}}
    found = objects(tenant, queues={"kind": "kueue"})
    assert found["ResourceFlavor/whole"]["spec"] == {
        "nodeLabels": {"example.com/pool": "whole", f"{OS}ID": "ubuntu", f"{OS}VERSION_ID": "24.04"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    (group,) = found["ClusterQueue/a"]["spec"]["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["whole", "cut"]
    for flavor in group["flavors"]:
        assert [each["name"] for each in flavor["resources"]] == group["coveredResources"]
    assert {"cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-3g.40gb"} <= set(group["coveredResources"])
    assert found["LocalQueue/a/default"]["spec"]["clusterQueue"] == "a"


def test_kai() -> None:
    """A queue of the KAI scheduler for each tenant, below one for all, in GPUs."""
    found = objects({"name": "a", "pools": {"whole": {"gpus": 4}}}, queues={"kind": "kai", "borrow": False})
    assert found["Queue/a"]["spec"]["parentQueue"] == "gpus"
    assert found["Queue/a"]["spec"]["resources"]["gpu"] == {"quota": 4, "limit": 4, "overQuotaWeight": 1}
    assert found["Queue/gpus"]["spec"]["resources"]["gpu"]["quota"] == -1


def test_namespaces_are_somebody_elses() -> None:
    """A namespace is rendered where the policy asks for it, and never otherwise: a prune would empty it."""
    assert "Namespace/a" not in objects({"name": "a"})
    assert "Namespace/a" in objects({"name": "a", "createNamespace": True})


def test_priorities() -> None:
    """A PriorityClass says whether its pods evict others."""
    found = objects(priorities=[{"name": "low", "value": 5, "preempts": False}, {"name": "high", "value": 9}])
    assert found["PriorityClass/low"]["preemptionPolicy"] == "Never"
    assert found["PriorityClass/high"] | {"metadata": {}} == {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {},
        "value": 9,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def test_admission_begins_softly() -> None:
    """The policy over tenants' pods warns until the policy says Deny, and isn't there where it says Off."""
    name = "ValidatingAdmissionPolicyBinding/gpustack-tenant-pods"
    assert objects({"name": "a"})[name]["spec"]["validationActions"] == ["Audit", "Warn"]
    assert objects({"name": "a"}, admission={"mode": "Deny"})[name]["spec"]["validationActions"] == ["Deny"]
    assert name not in objects({"name": "a"}, admission={"mode": "Off"})


def test_exceptions_of_other_engines() -> None:
    """Kyverno is told of the stack's namespace alone, of each policy that is named; Gatekeeper by a label, which a
    namespace that isn't rendered can't have. Without them there is neither."""
    said = {"kyverno": ["disallow-host-path", "disallow-privileged-containers"], "gatekeeper": True}
    found = objects(exceptions=said)
    body = found["PolicyException/gpu-operator/gpustack"]
    assert [(each["policyName"], each["ruleNames"]) for each in body["spec"]["exceptions"]] == [
        ("disallow-host-path", ["*"]),
        ("disallow-privileged-containers", ["*"]),
    ]
    (match,) = body["spec"]["match"]["any"]
    assert match["resources"]["namespaces"] == ["gpu-operator"]
    assert not [name for name in objects({"name": "a"}) if "PolicyException" in name]
    for tenancy, labels in (({"exceptions": said}, {"admission.gatekeeper.sh/ignore": "gpustack"}), ({}, {})):
        (made, *_) = Namespace(chart(), f"n-{next(_ids)}", resolve(spec(tenancy=tenancy))).resources()
        assert made.body["metadata"].get("labels", {}) == labels
    elsewhere = resolve(spec(cluster={"namespace": "kube-system"}, tenancy={"exceptions": {"gatekeeper": True}}))
    assert [path for path, _ in elsewhere.tenancy[1]] == ["spec.tenancy.exceptions.gatekeeper"]
