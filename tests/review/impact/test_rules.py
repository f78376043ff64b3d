"""Each rule speaks up about what it is about, and stays quiet about what looks like it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from gpustack.model import Body
from gpustack.policy.language.gitops import GitOps
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.load import load
from gpustack.review.diff.objects import Identity, Objects, Rendered, compare
from gpustack.review.impact.drivers import more
from gpustack.review.impact.effects import Effect, Impact, impact
from gpustack.review.impact.rule import RULES, all_rules
from tests.project import ROOT

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Render = dict[str, Body]
"""Objects by kind/name."""
Edit = Callable[[Render], None]


@functools.cache
def _rendered(cluster: str) -> Render:
    folder = ROOT / "dist" / cluster
    bodies = [yaml.load(path.read_text("utf-8"), Loader=LOADER) for path in sorted(folder.rglob("*.yaml"))]  # noqa: S506
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in bodies}


def rendered(cluster: str) -> Render:
    """The render of an example cluster, to be changed."""
    return copy.deepcopy(_rendered(cluster))


def objects(render: Render) -> Objects:
    """RENDER as a side of a comparison."""
    return {Identity.of(body): Rendered(body, f"stage/{key}.yaml") for key, body in render.items()}


def spec(cluster: str, **more: Any) -> ClusterPolicySpec:
    """The effective spec of an example cluster, with MORE over it; its pools are those of MORE, if that has some."""
    pools = more.pop("nodePools", None)
    found = load(ROOT / "policies" / f"{cluster}.yaml", root=ROOT, overrides=more).spec
    if pools is None:
        return found
    return ClusterPolicySpec.model_validate({**found.model_dump(exclude_none=True), "nodePools": pools})


def found(cluster: str, edit: Edit, before: Any = None, after: Any = None) -> Impact:
    """What it does to EDIT the render of CLUSTER."""
    old, new = rendered(cluster), rendered(cluster)
    edit(new)
    return impact({cluster: compare(objects(old), objects(new))}, {cluster: (before, after)})


NOTES = {
    *("IMP111", "IMP112", "IMP201", "IMP202", "IMP204", "IMP302", "IMP306", "IMP309", "IMP502", "IMP504", "IMP602"),
    *("IMP605", "IMP702", "IMP704", "IMP705", "IMP707", "IMP805", "IMP806", "IMP208"),
}
"""Rules that tell what goes along with nearly every change."""


def pressing(told: Impact) -> tuple[Effect, ...]:
    """The effects of TOLD that no rule of NOTES tells, nor the classifier, which knows fields and no meanings."""
    return tuple(one for one in told.effects if one.rule not in NOTES and not one.rule.startswith("IMP9"))


def rules(effects: tuple[Effect, ...]) -> set[str]:
    """The rules of EFFECTS."""
    return {effect.rule for effect in effects}


DRIVER = "DaemonSet/nvidia-driver-daemonset"
PLUGIN = "DaemonSet/nvidia-device-plugin-daemonset"


def pod(render: Render, key: str) -> Any:
    """The spec of the pods of KEY."""
    return render[key]["spec"]["template"]["spec"]


def digest(render: Render, value: str) -> None:
    """Give both containers of the driver's pod another digest."""
    for one in (*pod(render, DRIVER)["containers"], *pod(render, DRIVER)["initContainers"]):
        for entry in one.get("env", ()):
            if entry["name"] == "DRIVER_CONFIG_DIGEST":
                entry["value"] = value


def put(path: str, value: Any) -> Edit:
    """Set the value at PATH ("Kind/name:spec.a.0.b"); None removes it."""

    def edit(render: Render) -> None:
        key, _, rest = path.partition(":")
        holder: Any = render[key]
        *steps, last = [int(step) if step.isdigit() else step for step in rest.split("|")]
        for step in steps:
            holder = holder.setdefault(step, {}) if isinstance(holder, dict) else holder[step]
        if value is None:
            del holder[last]
        else:
            holder[last] = value

    return edit


def drop(*keys: str) -> Edit:
    """Remove objects."""

    def edit(render: Render) -> None:
        for key in keys:
            del render[key]

    return edit


def test_what_is_carried_drops_out() -> None:
    """IMP208 names what it was taken from; a DaemonSet that begins to carry says nothing."""
    old, new = rendered("lab-a100"), rendered("lab-a100")
    annotations = old[PLUGIN]["metadata"].setdefault("annotations", {})
    annotations["gpustack.dev/carried"] = "nvidia-device-plugin-1"
    told = impact({"a": compare(objects(old), objects(new))}, {"a": (None, None)})
    (effect,) = (each for each in told.effects if each.rule == "IMP208")
    assert "nvidia-device-plugin-1" in str(effect)
    back = impact({"a": compare(objects(new), objects(old))}, {"a": (None, None)})
    assert "IMP208" not in rules(back.effects)


def renamed(key: str, name: str) -> Edit:
    """Give an object another name."""

    def edit(render: Render) -> None:
        body = render.pop(key)
        body["metadata"]["name"] = name
        render[f"{body['kind']}/{name}"] = body

    return edit


def replaced_driver(render: Render) -> None:
    """The driver's DaemonSet gives way to one of precompiled drivers."""
    body = render.pop(DRIVER)
    body["metadata"]["name"] = "nvidia-driver-daemonset-5.15.0"
    body["spec"]["selector"]["matchLabels"]["app"] = body["metadata"]["name"]
    labels = {"app": body["metadata"]["name"], "nvidia.com/precompiled": "true"}
    body["spec"]["template"]["metadata"]["labels"] |= labels
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "nvcr.io/nvidia/driver:595-5.15.0-generic-ubuntu22.04"
    render["new"] = body


def role(*entries: dict[str, Any]) -> Edit:
    """Grant more by the ClusterRole of MIG manager."""
    return lambda render: render["ClusterRole/nvidia-mig-manager"]["rules"].extend(entries)


IMAGE = "spec|template|spec|containers|0|image"
SELECTOR = "spec|template|spec|nodeSelector|example.com/pool"


def reconciler_off(render: Render) -> None:
    """Without the program, and so without its disruption budget."""
    drop("Deployment/gpustack-reconciler")(render)
    drop("PodDisruptionBudget/gpustack-reconciler")(render)


CASES: dict[str, tuple[Edit, set[str]]] = {
    "IMP101": (put(f"{DRIVER}:{SELECTOR}", "a"), {"IMP101"}),
    "IMP102": (put(f"{DRIVER}:spec|template|spec|tolerations", []), {"IMP102"}),
    "IMP103": (put(f"{DRIVER}:spec|selector|matchLabels|x", "y"), {"IMP103"}),
    "IMP104": (replaced_driver, {"IMP104", "IMP105"}),
    "IMP105": (drop(DRIVER), {"IMP105"}),
    "IMP105 renamed": (renamed(DRIVER, "nvidia-driver-b"), {"IMP105"}),
    "IMP106": (put(f"{DRIVER}:spec|updateStrategy|type", "RollingUpdate"), {"IMP106"}),
    "IMP107": (put("NodePolicy/training:spec|components", ["dcgm"]), {"IMP107"}),
    "IMP110": (lambda render: digest(render, "0123"), {"IMP110"}),
    "IMP113": (put("NodePolicy/training:spec|upgrade|maxParallel", 5), {"IMP113"}),
    "IMP113 no limit": (put("NodePolicy/training:spec|upgrade|maxParallel", 0), {"IMP113"}),
    "IMP117": (
        put("NodePolicy/training:spec|health", {"rules": [{"type": "GpuLost", "then": "drain"}], "maxNodes": 1}),
        {"IMP117"},
    ),
    "IMP115": (drop("Deployment/gpustack-reconciler"), {"IMP115"}),
    "IMP115 with its budget": (reconciler_off, {"IMP115"}),
    "IMP503 budget": (drop("PodDisruptionBudget/gpustack-reconciler"), {"IMP503"}),
    "IMP203": (put("Deployment/gpustack-reconciler:spec|template|spec|hostNetwork", True), {"IMP203"}),
    "IMP203 path": (
        lambda render: pod(render, "Deployment/gpustack-reconciler").update(
            volumes=[{"name": "root", "hostPath": {"path": "/"}}]
        ),
        {"IMP203"},
    ),
    "IMP205": (put(f"{PLUGIN}:{IMAGE}", "mirror.example.com/nvidia/k8s-device-plugin:v0.20.0"), {"IMP205"}),
    "IMP206": (drop(PLUGIN), {"IMP206"}),
    "IMP207": (put(f"{PLUGIN}:spec|selector|matchLabels|x", "y"), {"IMP207"}),
    "IMP303": (put("NodePolicy/notebooks:spec|mig|digest", "0"), {"IMP303"}),
    "IMP401": (role({"apiGroups": [""], "resources": ["services"], "verbs": ["list"]}), {"IMP401"}),
    "IMP402": (role({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}), {"IMP402"}),
    "IMP402 wildcard": (role({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}), {"IMP402"}),
    "IMP402 escalate": (
        role({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]}),
        {"IMP402"},
    ),
    "IMP403": (
        lambda render: render["ClusterRoleBinding/nvidia-mig-manager"]["subjects"].append(
            {"kind": "ServiceAccount", "name": "other", "namespace": "default"}
        ),
        {"IMP403"},
    ),
    "IMP404": (
        put("Namespace/gpu-operator:metadata|labels", {"pod-security.kubernetes.io/enforce": "restricted"}),
        {"IMP404"},
    ),
    "IMP405": (drop("ValidatingAdmissionPolicy/gpustack-reconciler-nodes"), {"IMP405"}),
    "IMP503": (drop("Namespace/gpu-operator"), {"IMP503"}),
    "IMP503 class": (drop("RuntimeClass/nvidia"), {"IMP503"}),
    "IMP505": (
        put(
            "CustomResourceDefinition/nodepolicies.gpustack.dev:"
            "spec|versions|0|schema|openAPIV3Schema|properties|spec|properties|upgrade",
            None,
        ),
        {"IMP505"},
    ),
    "IMP505 version": (
        put("CustomResourceDefinition/nodepolicies.gpustack.dev:spec|versions|0|served", False),
        {"IMP505"},
    ),
    "IMP506": (put("RuntimeClass/nvidia:handler", "runc"), {"IMP506"}),
    "IMP603": (
        lambda render: pod(render, "DaemonSet/nvidia-dcgm-exporter")["containers"][0]["env"].append(
            {"name": "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "value": "true"}
        ),
        {"IMP603"},
    ),
    "IMP703": (
        put(f"{DRIVER}:{IMAGE}", "nvcr.io/nvidia/driver:580.65.06-ubuntu22.04"),
        {"IMP703"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_danger_is_told_and_no_other(name: str) -> None:
    """An edit of a rendered cluster gives exactly the dangers that it has."""
    edit, expected = CASES[name]
    assert rules(pressing(found("lab-a100", edit))) == expected


QUIET: dict[str, Edit] = {
    "a selector that widens": lambda render: pod(render, DRIVER).update(nodeSelector={}),
    "a toleration more": lambda render: pod(render, DRIVER)["tolerations"].append({"key": "x", "operator": "Exists"}),
    "the same right in a rule of its own": lambda render: render["ClusterRole/nvidia-mig-manager"]["rules"].append(
        copy.deepcopy(render["ClusterRole/nvidia-mig-manager"]["rules"][0])
    ),
    "a right less": lambda render: render["ClusterRole/nvidia-mig-manager"]["rules"].pop(),
    "a new version of an image": put(f"{PLUGIN}:{IMAGE}", "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"),
    "another key order": lambda render: render[PLUGIN].update(metadata=render[PLUGIN].pop("metadata")),
    "a restart of the driver pod alone": put(f"{DRIVER}:spec|template|metadata|annotations|x", "y"),
}


@pytest.mark.parametrize("name", QUIET)
def test_what_only_looks_like_a_danger(name: str) -> None:
    """Edits that take nothing from anybody and give nobody more are no danger."""
    told = found("lab-a100", QUIET[name])
    assert rules(pressing(told)) == set()


def test_a_right_that_a_wildcard_had_is_none_more() -> None:
    """From `*` to one verb and one resource is less, by whatever name."""
    side = {}
    for name, verb in (("old", "*"), ("new", "get")):
        entry = {"apiGroups": [verb.replace("get", "apps")], "resources": ["*"], "verbs": [verb]}
        body = {"apiVersion": "v1", "kind": "Role", "metadata": {"name": "a"}, "rules": [entry]}
        side[name] = objects({"a": body})
    assert pressing(impact({"a": compare(side["old"], side["new"])}, {})) == ()
    assert rules(pressing(impact({"a": compare(side["new"], side["old"])}, {}))) == {"IMP402"}


def test_what_a_budget_allows_is_compared() -> None:
    """More nodes, a larger share, or no limit any more are more; what can't be compared counts as more."""
    assert all(more(*pair) for pair in [(1, 2), ("10%", "25%"), (1, 0), (1, None), (5, "25%")])
    assert not any(more(*pair) for pair in [(2, 1), ("25%", "10%"), (0, 5), (None, 1), (1, 1)])


def test_a_widening_with_the_digest_unchanged_is_a_restart_alone() -> None:
    """The template of a driver changed and its digest did not: pods restart, drivers stay (reconciler.md U34)."""
    told = found("lab-a100", QUIET["a restart of the driver pod alone"])
    assert rules(told.green) == {"IMP111"}


def test_a_driver_rollout_says_how_many_nodes_and_how_fast() -> None:
    """The numbers are the policy's: count of the pools, maxParallel, maxUnavailable, and whether nodes are drained."""
    windows = [{"days": ["sat"], "start": "22:00", "hours": 6}]
    pool = {"name": "a", "count": 12, "nodeSelector": {"x": "y"}, "upgrade": {"windows": windows}}
    policy = spec("lab-a100", nodePools=[pool])
    told = pressing(found("lab-a100", CASES["IMP110"][0], policy, policy))
    assert [effect.nodes for effect in told] == [(12, 12)]
    assert "at most 1 at once" in told[0].what
    assert "pods that use GPUs are evicted" in told[0].what
    assert "windows" in told[0].what


def test_a_pool_that_goes_gets_no_new_driver() -> None:
    """Nobody manages its nodes any more, so they aren't counted among those that are taken out of service."""
    stays = {"name": "a", "count": 12, "nodeSelector": {"x": "y"}}
    goes = {"name": "b", "count": 4, "nodeSelector": {"x": "z"}}
    before, after = (spec("lab-a100", nodePools=pools) for pools in ([stays, goes], [stays]))
    told = pressing(found("lab-a100", CASES["IMP110"][0], before, after))
    assert [effect.nodes for effect in told if effect.rule == "IMP110"] == [(12, 12)]


def test_without_a_reconciler_pods_stay_as_they_are() -> None:
    """Nothing deletes driver pods then: the change waits for whoever does (OnDelete)."""
    policy = spec("lab-a100").model_copy(update={"reconciler": None})
    told = found("lab-a100", lambda render: digest(render, "0123"), policy, policy)
    assert rules(told.green) >= {"IMP112"}
    assert "reconciler.image" in RULES["IMP112"].page.remedy  # the section has no `enabled`
    assert rules(pressing(told)) == set()


def pools(**sharing: Any) -> ClusterPolicySpec:
    """A cluster with one pool of 4 nodes with 8 A100s each, shared as SHARING says."""
    pool = {"name": "a", "count": 4, "gpusPerNode": 8, "gpuProduct": "NVIDIA-A100-SXM4-80GB", "sharing": sharing}
    return spec("lab-a100", mig={"strategy": "mixed"}, nodePools=[{**pool, "nodeSelector": {"x": "y"}}])


def of_specs(before: ClusterPolicySpec, after: ClusterPolicySpec) -> Impact:
    """What it does to go from one policy to the other, whatever else changes."""
    old, new = rendered("lab-a100"), rendered("lab-a100")
    new[PLUGIN]["metadata"]["annotations"] = {"x": "y"}
    changes = compare(objects(old), objects(new))
    return impact({"lab-a100": changes}, {"lab-a100": (before, after)})


def test_allocatable_before_and_after() -> None:
    """8 GPUs a node become 8 x 2 slices of half a GPU: the old resource is gone, on 4 nodes, and GPUs are cut anew."""
    told = of_specs(pools(), pools(mig={"layout": {"3g.40gb": 2}}))
    assert rules(pressing(told)) == {"IMP301", "IMP303"}
    less = next(effect for effect in pressing(told) if effect.rule == "IMP301")
    assert less.what == "a node advertises 8 nvidia.com/gpu -> 16 nvidia.com/mig-3g.40gb"
    assert less.nodes == (4, 4)


def test_time_slices_are_more_and_shared_otherwise() -> None:
    """Two replicas of each of 8 GPUs are 16; that they are shared from now on is a danger of its own."""
    told = of_specs(pools(), pools(timeSlicing={"replicas": 2}))
    assert rules(pressing(told)) == {"IMP304"}
    more = next(effect for effect in told.green if effect.rule == "IMP302")
    assert more.what == "a node advertises 8 nvidia.com/gpu -> 16 nvidia.com/gpu"


def test_a_pool_that_goes() -> None:
    """Nodes that no pool covers any more are nobody's."""
    before = spec("lab-a100")
    after = spec("lab-a100", nodePools=[{"name": "other", "nodeSelector": {"x": "y"}}])
    assert "IMP305" in rules(pressing(of_specs(before, after)))


SYSTEM: dict[str, Any] = {"name": "a", "os": "ubuntu22.04", "kernel": "5.15.0-1", "nodeSelector": {"x": "y"}}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"os": "ubuntu24.04"}, "operating system ubuntu22.04 -> ubuntu24.04"),
        ({"os": None, "kernel": None}, "operating system ubuntu22.04 -> any, kernel 5.15.0-1 -> any"),
        ({"nodeSelector": {"x": "y", "b": "c"}}, "labels x=y -> b=c,x=y"),
        ({"ostreeVersion": "418.94"}, "RHCOS any -> 418.94"),
    ],
)
def test_a_pool_of_other_nodes(fields: dict[str, Any], told: str) -> None:
    """It is said by which of the pool's fields it selects others."""
    after = {key: value for key, value in {**SYSTEM, **fields}.items() if value is not None}
    impact = of_specs(spec("lab-a100", nodePools=[SYSTEM]), spec("lab-a100", nodePools=[after]))
    assert [each.what for each in pressing(impact) if each.rule == "IMP305"] == [f"the pool selects {told}"]


@pytest.mark.parametrize(
    ("steps", "more", "told"),
    [
        (("v26.3.1", "v26.7.0"), {}, ["dcgmExporter.serviceMonitor.enabled false -> true"]),
        (("v26.3.1", "v26.7.0"), {"dcgmExporter": {"serviceMonitor": {"enabled": False}}}, []),
        (("v25.10.1", "v26.3.1"), {}, []),  # what flips is for virtual machines
    ],
)
def test_a_release_tells_the_switches_that_flip_here(steps: tuple[str, str], more: Any, told: list[str]) -> None:
    """v26.7.0's chart switches the exporter's ServiceMonitor on (release notes), unless the policy says what it is to
    be; v26.3's switches the manager of confidential computing on, which nothing deploys without virtual machines."""
    old, new = (spec("lab-a100", release=release, **more) for release in steps)
    effects = found("lab-a100", put(f"{PLUGIN}:metadata|annotations|x", "y"), old, new).effects
    flips = [effect.what for effect in effects if effect.rule == "IMP702" and "defaults that flip" in effect.what]
    assert flips == [f"defaults that flip with release {steps[1]}: {each}" for each in told]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "release v26.3.1 -> v26.7.0, driver branch 580 -> 595"),
        ({"driver": {"version": "580.126.20"}}, "release v26.3.1 -> v26.7.0"),
        ({"driver": {"enabled": False}}, "release v26.3.1 -> v26.7.0"),
    ],
)
def test_a_release_tells_the_branch_of_the_drivers_that_it_brings(more: Any, told: str) -> None:
    """v26.3.1 comes with 580.126.20 and v26.7.0 with 595.91.07 (their charts); a policy that says its version keeps
    it, and one whose nodes bring their driver has none (operator.md 1.3)."""
    old, new = (spec("lab-a100", release=release, **more) for release in ("v26.3.1", "v26.7.0"))
    effects = found("lab-a100", put(f"{PLUGIN}:metadata|annotations|x", "y"), old, new).effects
    assert told in {effect.what for effect in effects if effect.rule == "IMP702"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"release": "v26.3.1"}, {"release": "v26.3.2"}, ["spec.dcgmExporter.version", 2]),
        ({"release": "v26.3.2"}, {"release": "v26.3.3"}, None),
        ({"release": "v26.3.2"}, {"release": "v26.7.0"}, ["spec.toolkit", 3]),
        ({"release": "v26.3.1"}, {"toolkit": {"version": "v1.20.0"}, "release": "v26.3.1"}, ["spec.toolkit", 3]),
        ({"toolkit": {"version": "v1.20.0"}}, {"toolkit": {"version": "v1.20.1"}}, None),
        ({"driver": {"version": "580.65.06"}}, {"driver": {"version": "580.126.20"}}, ["pool a", 2]),
        ({"driver": {"version": "580.65.06"}}, {"driver": {"version": "595.91.07"}}, None),
        ({"gds": {"enabled": False}}, {"gds": {"enabled": True}}, ["pool a", 3]),
    ],
)
def test_a_change_into_a_known_fault(old: Any, new: Any, told: list[Any] | None) -> None:
    """Exporters of v26.3.2 and v26.3.3 lack series (NVIDIA/dcgm-exporter issue 700); nvidia-peermem hangs after a
    restart of some drivers before v26.7 (NVIDIA/gpu-operator issues 2619 and 2844); storage on Grace depends on a mode
    of the driver (its release notes); toolkit v1.20 writes into /etc/nvidia (awslabs/amazon-eks-ami issue 2790). A
    fault that was there is no news."""
    pool = {"name": "a", "os": "ubuntu24.04", "gpuProduct": "NVIDIA-GB200", "nodeSelector": {"x": "y"}, "count": 3}
    rdma = {"driver": {"rdma": {"enabled": True}, **new.get("driver", {})}} if "driver" in new else {}
    base = {"release": "v26.3.3", "nodePools": [pool]}
    before, after = (
        spec("lab-a100", **{**base, **side, **({"driver": {**rdma["driver"], **side["driver"]}} if rdma else {})})
        for side in (old, new)
    )
    effects = found("lab-a100", put(f"{PLUGIN}:metadata|annotations|x", "y"), before, after).effects
    assert [[effect.where, effect.tier] for effect in effects if effect.rule == "IMP706"] == ([told] if told else [])


def test_what_a_driver_is_installed_anew_for() -> None:
    """A mount is in the digest of an installation as the driver's image is (reconciler.md U34): only with the latter
    is the driver another one."""

    def mount(render: Render) -> None:
        digest(render, "0123")
        pod(render, DRIVER)["containers"][0]["volumeMounts"].append({"name": "run-nvidia", "mountPath": "/x"})

    def image(render: Render) -> None:
        digest(render, "0123")
        pod(render, DRIVER)["containers"][0]["image"] = "nvcr.io/nvidia/driver:595.99.01-ubuntu22.04"

    def mirror(render: Render) -> None:
        digest(render, "0123")
        main = pod(render, DRIVER)["containers"][0]
        main["image"] = main["image"].replace("nvcr.io", "mirror.example.com")

    (told,) = (effect.what for effect in found("lab-a100", mirror).effects if effect.rule == "IMP110")
    assert "because of containers[nvidia-driver-ctr].image" in told
    assert "new driver" not in told
    (told,) = (effect.what for effect in found("lab-a100", mount).effects if effect.rule == "IMP110")
    assert "because of containers[nvidia-driver-ctr].volumeMounts[/x]" in told
    assert "new driver" not in told
    (told,) = (effect.what for effect in found("lab-a100", image).effects if effect.rule == "IMP110")
    assert "get a new driver" in told


def test_a_release_that_goes_back() -> None:
    """v26.7.0 to v26.3.1 is a danger; the way up is a note, with the driver branches."""
    new, old = spec("train-dgx", release="v26.7.0"), spec("train-dgx", release="v26.3.1")
    assert "IMP701" in rules(pressing(of_specs(new, old)))
    up = of_specs(old, new)
    assert "IMP701" not in rules(pressing(up))
    assert any("driver branch 580 -> 595" in effect.what for effect in up.green)


def test_a_cluster_that_goes_is_one_danger() -> None:
    """All its objects are removed; saying what each of them was for helps nobody."""
    changes = compare(objects(rendered("lab-a100")), {})
    assert rules(pressing(impact({"a": changes}, {}, gone={"a"}))) == {"IMP501"}
    synced = spec("lab-a100").model_copy(update={"gitops": GitOps.model_validate({"engine": "argocd"})})
    (told,) = pressing(impact({"a": changes}, {"a": (synced, None)}, gone={"a"}))
    assert told.what.endswith("removed; what is rendered for argocd leaves them in the cluster")
    changes = compare({}, objects(rendered("lab-a100")))
    told_of_new = impact({"a": changes}, {"a": (None, spec("lab-a100"))}, new={"a"})
    assert rules(pressing(told_of_new)) == set()


def test_series_before_and_after() -> None:
    """A list with one metric less and one label more: both are told, with numbers."""
    old, new = rendered("lab-a100"), rendered("lab-a100")
    text = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature\nDCGM_FI_DEV_POWER_USAGE, gauge, Power\n"
    for side, csv in ((old, text), (new, text.partition("\n")[0] + "\nDCGM_FI_DRIVER_VERSION, label, Driver\n")):
        metadata = {"name": "metrics", "namespace": "gpu-operator"}
        side["m"] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"dcgm-metrics.csv": csv}}
    told = pressing(impact({"a": compare(objects(old), objects(new))}, {}))
    assert rules(told) == {"IMP601", "IMP603"}
    assert "2 -> 1 metrics; no longer DCGM_FI_DEV_POWER_USAGE" in told[0].what
    # dcgm.yaml: 6 labels of a GPU beside the driver's version, 3 of the pod; 7 of the scrape.
    assert "about 16 -> 17 labels per series" in told[1].what


def test_labels_of_a_scrape_that_honors_them() -> None:
    """With honorLabels the exporter's namespace, pod and container are the scrape's, so that there are 3 less."""
    honored = spec("lab-a100", dcgmExporter={"serviceMonitor": {"enabled": True, "honorLabels": True}})
    old, new = rendered("lab-a100"), rendered("lab-a100")
    pod(new, "DaemonSet/nvidia-dcgm-exporter")["containers"][0]["env"].append(
        {"name": "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "value": "true"}
    )
    for given, number in (((spec("lab-a100"),) * 2, 17), ((honored,) * 2, 14)):
        told = pressing(impact({"a": compare(objects(old), objects(new))}, {"a": given}))
        assert any(f"about {number} labels per series" in one.what for one in told)


def test_a_namespace_that_is_another_one() -> None:
    """Everything moves: one danger says how much, beside that drivers die."""

    def edit(render: Render) -> None:
        for body in render.values():
            if body["metadata"].get("namespace"):
                body["metadata"]["namespace"] = "other"

    assert {"IMP507", "IMP105"} <= rules(pressing(found("lab-a100", edit)))


def test_routine_is_what_is_known_to_be_harmless() -> None:
    """A scrape interval of the policy is routine. An edit that no policy explains isn't, whatever it is."""
    before = spec("lab-a100")
    after = spec("lab-a100", dcgmExporter={"serviceMonitor": {"interval": "61s"}})
    interval = put("ServiceMonitor/nvidia-dcgm-exporter:spec|endpoints|0|interval", "61s")
    assert found("lab-a100", interval, before, after).routine
    assert not found("lab-a100", put(f"{PLUGIN}:metadata|annotations", {"x": "1"}), before, after).routine
    for edit in (drop(PLUGIN), put(f"{PLUGIN}:metadata|labels|app", "other"), put(f"{PLUGIN}:spec|x", "y")):
        assert found("lab-a100", edit).tier in {1, 2}
        assert found("lab-a100", edit, before, before).tier in {1, 2}
    assert impact({}, {}).tier is None


def test_effects_of_many_clusters_are_one() -> None:
    """Equal effects are told once, with all clusters and the sum of their nodes."""
    old, new = rendered("lab-a100"), rendered("lab-a100")
    digest(new, "0123")
    changes = compare(objects(old), objects(new))
    specs = {}
    for number in range(1, 4):
        pool = {"name": "a", "count": number, "nodeSelector": {"x": "y"}}
        policy = spec("lab-a100", nodePools=[pool])
        specs[f"c{number}"] = (policy, policy)
    told = pressing(impact(dict.fromkeys(specs, changes), specs))
    assert [(effect.rule, effect.clusters, effect.nodes) for effect in told] == [("IMP110", ("c1", "c2", "c3"), (6, 6))]


def test_every_object_of_others_is_survived() -> None:
    """Folders may hold anything: values of the wrong type are no traceback."""
    odd: list[Any] = [None, "x", 1, [], {}, [None], ["x"], {"x": None}, [{"name": None}]]
    for key in ("spec", "rules", "subjects", "metadata", "data"):
        for kind in (
            "DaemonSet",
            "Role",
            "RoleBinding",
            "ConfigMap",
            "NodePolicy",
            "CustomResourceDefinition",
            "Secret",
        ):
            for one, two in zip(odd, odd[1:] + odd[:1], strict=True):
                sides = []
                for value in (one, two):
                    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, key: value}
                    sides.append({Identity("", kind, "", "a"): Rendered(body, "a")})
                impact({"a": compare(*sides)}, {})


def test_ids_are_in_order_and_every_danger_has_a_case() -> None:
    """The list of rules is known, and no danger stays untried in this file."""
    assert all(rule.id.startswith("IMP") and rule.id[3:].isdigit() for rule in all_rules())
    tried = {name.partition(" ")[0] for name in CASES}
    elsewhere = {"IMP301", "IMP304", "IMP305", "IMP501", "IMP507", "IMP601", "IMP701", "IMP706"}
    elsewhere |= {"IMP114", "IMP406", "IMP508", "IMP509", "IMP604"}  # test_rules_elsewhere.py
    elsewhere |= {"IMP307", "IMP308", "IMP310"}  # test_mig.py
    elsewhere |= {"IMP720", "IMP721", "IMP722"}  # test_hosts.py
    elsewhere |= {"IMP116", "IMP209", "IMP807"}  # test_requests.py
    elsewhere |= {f"IMP80{number}" for number in (1, 2, 3, 4, 8)}  # test_engines.py
    assert {name for name in RULES if name not in NOTES and not name.startswith(("IMP0", "IMP9"))} == tried | elsewhere
