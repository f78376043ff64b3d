"""Rules about the reconciler; that each has a bad and a good snippet, test_rules.py sees to."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gpustack.checks.rule import all_rules
from gpustack.checks.subjects import Written
from gpustack.compiler.cache import Store, own_digest
from gpustack.model import Finding
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Part
from tests.checks.snippets import findings, said
from tests.components.common import spec

IMAGE = {"image": "registry.example/reconciler:1"}
POOL = {"name": "p", "os": "ubuntu22.04"}
BARE: dict[str, Any] = {"driver": {"enabled": False}, "migManager": {"enabled": False}}
BY_DISCOVERY = {"labelling": "nodeFeatureRule"}


def found(rule: str, policy: ClusterPolicySpec) -> list[Finding]:
    """What RULE says about POLICY."""
    (chosen,) = (each for each in all_rules() if each.id == rule)
    return list(chosen.findings(policy))


@pytest.mark.parametrize(
    ("reconciler", "refused"),
    [
        ({}, True),
        ({"labelling": "none"}, True),
        ({"repository": "r.example", "version": "1"}, True),
        (IMAGE, False),
        ({"repository": "r.example", "image": "i", "version": "1"}, False),
        (BY_DISCOVERY, False),
    ],
)
def test_image(reconciler: dict[str, Any], refused: bool) -> None:
    """The program has no image to fall back to; labels by node feature discovery need none."""
    assert bool(found("GPU820", spec(reconciler=reconciler))) is refused


@pytest.mark.parametrize("reconciler", [None, BY_DISCOVERY])
def test_budgets_that_nobody_keeps(reconciler: dict[str, Any] | None) -> None:
    """A pool's own budget is refused where no program takes nodes out of service."""
    pools = [POOL, {**POOL, "name": "q", "upgrade": {"maxUnavailable": 1}}]
    sections: dict[str, Any] = {"reconciler": reconciler} if reconciler else {}
    (finding,) = found("GPU821", spec(nodePools=pools, **sections))
    assert (finding.path, finding.severity) == ("spec.nodePools[1].upgrade", "error")
    assert found("GPU821", spec(nodePools=pools, reconciler=IMAGE)) == []


@pytest.mark.parametrize(
    ("sections", "who"),
    [
        (BARE, []),
        ({**BARE, "driver": {"enabled": True}}, ["driver manager"]),
        ({**BARE, "migManager": {"enabled": True}}, ["MIG manager"]),
        ({**BARE, "sandboxWorkloads": {"enabled": True}}, ["managers of vfio-pci and vGPU"]),
        ({"gpuCluster": {}, "drivers": [{"name": "d", "default": True}]}, ["driver manager"]),
        ({"gpuCluster": {}}, []),
    ],
)
def test_labels_that_are_paused(sections: dict[str, Any], who: list[str]) -> None:
    """Node feature discovery may label nodes only where nothing takes labels off them; each that does is named."""
    hits = found("GPU822", spec(nodePools=[POOL], reconciler=BY_DISCOVERY, **sections))
    assert len(hits) == len(who)
    for finding, name in zip(hits, who, strict=True):
        assert name in finding.what
        assert "labelling: program" in finding.remedy
    assert found("GPU822", spec(nodePools=[POOL], reconciler=IMAGE, **sections)) == []


def test_pools_that_discovery_cannot_tell_apart() -> None:
    """Pools with different labels must differ in system or kernel; with equal ones they need not."""
    shared = {**POOL, "name": "q", "nodeSelector": {"a": "b"}, "sharing": {"timeSlicing": {"replicas": 2}}}

    def paths(**changes: Any) -> list[str]:
        policy = spec(nodePools=[POOL, {**shared, **changes}], reconciler=BY_DISCOVERY, **BARE)
        return [finding.path for finding in found("GPU823", policy)]

    assert paths() == ["spec.nodePools[1]"]
    assert paths(os="ubuntu24.04") == []
    assert paths(sharing={}) == []


def written(reconciler: dict[str, Any]) -> Written:
    """A policy with RECONCILER on nodes that bring their driver, and who wrote it."""
    pins = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}}
    merged, _ = assemble([Part("policy", "policy.yaml", {**pins, **BARE, "reconciler": reconciler})])
    return Written(ClusterPolicySpec.model_validate(merged.spec), merged)


def test_settings_of_no_program() -> None:
    """Each setting of a program that isn't rendered is a note; who labels counts."""
    (rule,) = (each for each in all_rules() if each.id == "GPU824")
    hits = rule.findings(written({**BY_DISCOVERY, **IMAGE, "replicas": 2, "deadlines": {"mig": 60}}))
    assert {finding.path for finding in hits} == {
        "spec.reconciler.image",
        "spec.reconciler.replicas",
        "spec.reconciler.deadlines",
    }
    assert list(rule.findings(written(BY_DISCOVERY))) == []


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all: what they share is rendered once."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        ("{}", "{}", "GPU825"),
        ("{}", "{a: b}", "GPU825"),
        ("{a: b}", "{}", "GPU825"),
        ("{a: b}", "{c: d}", "GPU826"),
        ("{a: b}", "{a: c}", ""),
        ("{a: b, c: d}", "{a: c}", ""),
    ],
)
def test_pools_that_share_nodes(first: str, second: str, rule: str, store: Store) -> None:
    """Two pools whose nodes may be the same are an error where they surely are, and else a warning, unless they want
    the same."""
    pools = """
    reconciler: {image: "r.example/r:1"}
    nodePools:
    - {name: p, os: ubuntu22.04, nodeSelector: %s}
    - {name: q, os: ubuntu22.04, nodeSelector: %s, sharing: {timeSlicing: {replicas: %s}}}
    """
    hits = {each.rule for each in findings(pools % (first, second, 2), store)} & {"GPU825", "GPU826"}
    assert hits == ({rule} if rule else set())
    alike = (pools % ("{}", "{}", 2)).replace(", sharing: {timeSlicing: {replicas: 2}}", "")
    assert not {each.rule for each in findings(alike, store)} & {"GPU825", "GPU826"}


def test_selected_by_labels_of_nvidias() -> None:
    """Every such label of every pool, where the program runs."""
    pools = [POOL, {**POOL, "name": "q", "nodeSelector": {"nvidia.com/gpu.product": "x", "a": "b"}}]
    (finding,) = found("GPU827", spec(nodePools=pools, reconciler=IMAGE))
    assert finding.path == 'spec.nodePools[1].nodeSelector["nvidia.com/gpu.product"]'
    assert found("GPU827", spec(nodePools=pools)) == []


def test_time_zones() -> None:
    """A zone that nobody knows is an error at its own place, with the one that may be meant."""
    windows = [{"start": "22:00", "hours": 1}, {"start": "22:00", "hours": 1, "timeZone": "Europe/Berln"}]
    pool = {**POOL, "upgrade": {"windows": [{"start": "22:00", "hours": 1, "timeZone": "Mars/Base"}]}}
    first, second = found("GPU828", spec(nodePools=[pool], reconciler={**IMAGE, "windows": windows}))
    assert first.path == "spec.reconciler.windows[1].timeZone"
    assert "Europe/Berlin" in first.remedy
    assert second.path == "spec.nodePools[0].upgrade.windows[0].timeZone"
    good = [{"start": "22:00", "hours": 1, "timeZone": zone} for zone in ("UTC", "America/New_York", "Asia/Kolkata")]
    assert found("GPU828", spec(reconciler={**IMAGE, "windows": good})) == []


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("nodeSelector: {zone: b}, sharing: {timeSlicing: {replicas: 2}}", True),
        ("nodeSelector: {zone: b}, sharing: {mig: {config: all-1g.5gb}}", True),
        ("nodeSelector: {zone: b}, driver: {version: 580.126.20}", True),
        ("nodeSelector: {zone: b}, count: 3", False),  # the same labels on its nodes
        ("nodeSelector: {pool: b}, sharing: {timeSlicing: {replicas: 2}}", False),
        ("nodeSelector: {pool: a, zone: b}, sharing: {timeSlicing: {replicas: 2}}", False),  # for certain: GPU147
    ],
)
def test_nodes_of_two_pools_without_the_reconciler(store: Store, second: str, told: bool) -> None:
    """Labels have one value, so a node that may be of two pools gets the driver, layout and sharing of one of them."""
    pools = "nodePools:\n- {name: one, os: ubuntu22.04, nodeSelector: {pool: a}}\n- {name: two, os: ubuntu22.04, %s}\n"
    hits = [each for each in findings(pools % second, store) if each.rule == "GPU826"]
    assert [(each.path, each.severity) for each in hits] == [("spec.nodePools[1].nodeSelector", "warning")] * told
    assert all("comes last" in each.why and "reconciler" not in each.why for each in hits)


@pytest.mark.parametrize(
    ("version", "wanted", "refused"), [("1.29", True, True), ("1.29", None, False), ("1.30", True, False)]
)
def test_admission_policy(version: str, wanted: bool | None, refused: bool) -> None:
    """What was asked for by name is not left out without a word."""
    section = {**IMAGE, **({"admissionPolicy": wanted} if wanted is not None else {})}
    assert bool(found("GPU829", spec(cluster={"kubernetesVersion": version}, reconciler=section))) is refused
    guarded = spec(cluster={"kubernetesVersion": version}, guards={"mode": "Audit" if wanted else None})
    assert bool(found("GPU829", guarded)) is refused
    tenancy = {"tenants": [{"name": "a"}], "admission": {"mode": "Deny" if wanted else None}}
    assert bool(found("GPU829", spec(cluster={"kubernetesVersion": version}, tenancy=tenancy))) is refused


def test_budgets() -> None:
    """A budget of nothing, and one above the whole cluster's, are warnings at their own place."""

    def paths(rule: str, upgrade: dict[str, Any], limits: dict[str, Any]) -> list[str]:
        policy = spec(nodePools=[{**POOL, "upgrade": upgrade}], driver={"upgradePolicy": limits}, reconciler=IMAGE)
        return [finding.path for finding in found(rule, policy)]

    own = "spec.nodePools[0].upgrade"
    assert paths("GPU830", {"maxUnavailable": "0%"}, {"maxUnavailable": 0}) == [
        "spec.driver.upgradePolicy.maxUnavailable",
        f"{own}.maxUnavailable",
    ]
    assert paths("GPU830", {"maxUnavailable": 1}, {}) == []
    assert paths("GPU831", {"maxParallel": 2}, {}) == [f"{own}.maxParallel"]
    assert paths("GPU831", {"maxParallel": 2}, {"maxParallelUpgrades": 0}) == []
    assert paths("GPU831", {"maxUnavailable": 3}, {"maxUnavailable": 2}) == [f"{own}.maxUnavailable"]
    assert paths("GPU831", {"maxUnavailable": 3}, {"maxUnavailable": "25%"}) == []
    wide = spec(nodePools=[{**POOL, "upgrade": {"maxParallel": 2}}], reconciler=IMAGE)
    (told,) = found("GPU831", wide)
    assert "2 nodes in an operation at a time" in told.what


OFF: dict[str, Any] = {"driver": {"enabled": False}}


@pytest.mark.parametrize(
    ("product", "sections", "vain"),
    [
        ("NVIDIA-L4", {}, False),
        ("NVIDIA-L4", OFF, True),
        ("NVIDIA-L4", {**OFF, "reconciler": None}, False),
        ("NVIDIA-H100-80GB-HBM3", OFF, False),
        (None, OFF, False),
        ("NVIDIA-H100-80GB-HBM3", {**OFF, "migManager": {"enabled": False}}, True),
        ("NVIDIA-L4", {"sandboxWorkloads": {"enabled": True, "defaultWorkload": "vm-passthrough"}}, True),
    ],
)
def test_an_upgrade_of_nothing(product: str | None, sections: dict[str, Any], vain: bool) -> None:
    """Where neither a driver nor a MIG layout is rolled out to a pool, its budget says so; an unknown GPU may be cut.

    Without the program another rule refuses it (GPU821).
    """
    pool = {**POOL, "upgrade": {"maxUnavailable": 1}, **({"gpuProduct": product} if product else {})}
    asked = {"reconciler": IMAGE, **sections}
    policy = spec(nodePools=[pool], **{name: value for name, value in asked.items() if value is not None})
    told = [finding.path for finding in found("GPU837", policy)]
    assert told == (["spec.nodePools[0].upgrade"] if vain else [])


@pytest.mark.parametrize(
    ("driver", "pools", "vain"),
    [
        ({}, [POOL], False),
        ({}, [], False),
        ({"enabled": False}, [POOL], True),
        ({"upgradePolicy": {"autoUpgrade": False}}, [POOL], True),
    ],
)
def test_images_for_nobody(driver: dict[str, Any], pools: list[Any], vain: bool) -> None:
    """Where no driver is rolled, nobody waits for its images."""
    hits = found("GPU846", spec(nodePools=pools, driver=driver, reconciler={**IMAGE, "prepull": {}}))
    assert [each.path for each in hits] == ["spec.reconciler.prepull"] * vain
    assert not found("GPU846", spec(nodePools=pools, driver=driver, reconciler=IMAGE))


@pytest.mark.parametrize(("reconciler", "vain"), [("", True), ('reconciler: {image: "r.example/r:1"}', False)])
def test_the_budget_counts_without_a_driver(reconciler: str, vain: bool, store: Store) -> None:
    """Nodes that bring their driver are taken out of service for MIG layouts, within the same budget."""
    text = f"{reconciler}\ndriver: {{enabled: false, upgradePolicy: {{maxParallelUpgrades: 4}}}}\n"
    assert bool(said(next(each for each in all_rules() if each.id == "GPU108"), text, store)) is vain


@pytest.mark.parametrize(
    ("reconciler", "notes"), [(None, 1), ({**IMAGE, "labelling": "none"}, 1), (IMAGE, 0), (BY_DISCOVERY, 0)]
)
def test_nodes_need_labels(reconciler: dict[str, Any] | None, notes: int) -> None:
    """That nobody labels nodes is a note where that is so."""
    sections: dict[str, Any] = {"reconciler": reconciler} if reconciler else {}
    hits = found("GPU106", spec(nodePools=[POOL], **sections))
    assert len(hits) == notes
    own = reconciler is not None and reconciler.get("labelling") == "none"
    assert all(("your tooling" in hit.remedy) is own for hit in hits)


def test_startup_taints_are_tolerated(store: Store) -> None:
    """A taint that is there until the pods of the stack have run must not keep them away."""
    taints = """
    reconciler: {image: "r.example/r:1", startupTaints: [{key: example.com/wait, effect: NoSchedule}]}
    """
    tolerated = """
    daemonsets:
      tolerations: [{key: nvidia.com/gpu, operator: Exists}, {key: example.com/wait, operator: Exists}]
    """
    assert "GPU803" in {each.rule for each in findings(taints, store)}
    assert "GPU803" not in {each.rule for each in findings(taints + tolerated, store)}


@pytest.mark.parametrize(
    ("platform", "health", "refused"),
    [
        ("eks-al2023", {"detectors": ["eks"]}, True),
        ("eks-bottlerocket", {"detectors": ["nodeProblemDetector"]}, True),
        ("generic", {"detectors": ["eks"]}, True),
        ("eks-al2023", {"detectors": ["eks"], "owner": "platform"}, False),
        ("eks-ubuntu", {"detectors": ["eks"], "owner": "reconciler"}, False),
        ("generic", {"detectors": ["nvsentinel"]}, True),
        ("generic", {"detectors": ["nvsentinel"], "owner": "nvsentinel"}, False),
        ("generic", {"detectors": ["nodeProblemDetector"]}, False),
    ],
)
def test_one_repairs_nodes(platform: str, health: dict[str, Any], refused: bool) -> None:
    """Where somebody else may repair nodes by himself, the policy says who does."""
    policy = spec(cluster={"platform": platform}, reconciler={**IMAGE, "health": health})
    assert bool(found("GPU844", policy)) is refused


LOST = {"type": "GpuLost", "then": "drain"}


@pytest.mark.parametrize(
    ("health", "place"),
    [
        ({}, ()),
        ({"conditions": [{**LOST, "type": "Ready"}]}, ("conditions", 0, "type")),
        ({"conditions": [{**LOST, "type": "not a type"}]}, ("conditions", 0, "type")),
        ({"conditions": [{**LOST, "status": "Unknown"}]}, ("conditions", 0, "status")),
        ({"conditions": [{**LOST, "then": "report", "request": "reset"}]}, ("conditions", 0, "request")),
        ({"conditions": [LOST, {**LOST, "messages": ["*x*"]}]}, ("conditions", 1, "then")),
        ({"conditions": [LOST], "owner": "platform"}, ("conditions", 0, "then")),
        ({"detectors": ["dcgm"]}, ("detectors", 0)),
        ({"detectors": ["aks"], "reportOnlyUntil": "soon"}, ("reportOnlyUntil",)),
        ({"detectors": ["aks"], "maxShare": "0%"}, ("maxShare",)),
        ({"detectors": ["aks"], "maxNodes": 0}, ("maxNodes",)),
        ({"detectors": ["aks"], "maxShare": "30%"}, ("maxShare",)),
    ],
)
def test_health_that_could_not_work(health: dict[str, Any], place: tuple[str | int, ...]) -> None:
    """What nobody could act on is refused while reading, at its place."""
    with pytest.raises(ValidationError) as refused:
        spec(reconciler={**IMAGE, "health": health})
    assert [error["loc"] for error in refused.value.errors()] == [("reconciler", "health", *place)]


def test_health_that_works() -> None:
    """Of entries for one type those with patterns come first; each may be for another status."""
    first = {**LOST, "messages": ["*RESTART*"]}
    section = {"conditions": [first, LOST, {**LOST, "status": "False", "then": "report"}]}
    assert spec(reconciler={**IMAGE, "health": section}).reconciler
