"""Rules about MIG: for each kind of mistake an input that trips it, and a neighbour that must not."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from gpustack.catalog import texts
from gpustack.checks.rule import all_rules
from gpustack.model import Finding
from gpustack.policy.loading.load import Loaded, load
from gpustack.policy.loading.place import place
from tests.checks.frame import framed

RULES = [rule for rule in all_rules() if rule.id.startswith(("GPU30", "GPU31"))]
H100, H200, A100, L4 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200", "NVIDIA-A100-SXM4-40GB", "NVIDIA-L4"
DEFAULTS = texts.mig_parted_config()


def policy(text: str) -> Loaded:
    """The policy with this text."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path, root=path.parent)


@functools.cache
def _loaded(spec: str) -> Loaded:
    head = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "ClusterPolicy", "metadata": {"name": "example"}}
    return policy(json.dumps({**head, "spec": framed(json.loads(spec))}))


def said(**spec: Any) -> list[Finding]:
    """What the rules say about a policy with SPEC."""
    loaded = _loaded(json.dumps(spec))
    return [finding for rule in RULES for finding in rule.findings(loaded.spec)]


def ids(**spec: Any) -> list[str]:
    """The rules that speak up, each once."""
    return sorted({finding.rule for finding in said(**spec)})


def pool(product: str | None = H100, *, name: str = "training", **fields: Any) -> dict[str, Any]:
    """A node pool with PRODUCT; the keyword `mig` is its sharing.mig, `label` its label nvidia.com/mig.config."""
    found: dict[str, Any] = {"name": name, "os": "ubuntu22.04"}
    if product:
        found["gpuProduct"] = product
    if "mig" in fields:
        found["sharing"] = {"mig": fields.pop("mig")}
    if "label" in fields:
        found["nodeSelector"] = {"nvidia.com/mig.config": fields.pop("label")}
    return {**found, **fields}


def pools(product: str | None = H100, **fields: Any) -> dict[str, Any]:
    """A spec with one node pool."""
    return {"nodePools": [pool(product, **fields)]}


def config(**layouts: Any) -> dict[str, Any]:
    """The MIG manager with a configuration of its own: elements by the name of the layout."""
    text = yaml.safe_dump({"version": "v1", "mig-configs": layouts}, sort_keys=False)
    return {"migManager": {"config": {"data": {"config.yaml": text}}}}


def element(devices: Any = "all", **profiles: int) -> dict[str, Any]:
    """An element of a layout; profiles are written g3_40gb for 3g.40gb."""
    layout = {f"{name[1]}g.{name.partition('_')[2]}": count for name, count in profiles.items()}
    return {"devices": devices, "mig-enabled": bool(layout), **({"mig-devices": layout} if layout else {})}


def reboot(allowed: str) -> dict[str, Any]:
    """The MIG manager with WITH_REBOOT."""
    return {"migManager": {"env": [{"name": "WITH_REBOOT", "value": allowed}]}}


MIXED = {"mig": {"strategy": "mixed"}}
SINGLE = {"mig": {"strategy": "single"}}
NONE = {"mig": {"strategy": "none"}}

TRIGGERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # B38: the profile is of another board
    ("GPU301", pools(H200, mig={"layout": {"1g.10gb": 7}}), pools(H200, mig={"layout": {"1g.18gb": 7}})),
    (
        "GPU301",
        pools(H200, mig={"config": "all-1g.5gb"}) | {"release": "v25.10.1"},
        pools(H200, mig={"config": "all-1g.18gb"}) | {"release": "v25.10.1"},
    ),
    ("GPU301", pools(H100, mig={"layout": {"7g.79gb": 1}}), pools(H100, mig={"layout": {"7g.80gb": 1}})),
    (
        "GPU301",
        pools("NVIDIA-H100-NVL", mig={"layout": {"1g.10gb": 7}}),
        pools("NVIDIA-H100-NVL", mig={"layout": {"1g.12gb": 7}}),
    ),
    (
        "GPU301",
        pools("NVIDIA-GB200", mig={"layout": {"1g.25gb": 7}}),
        pools("NVIDIA-GB200", mig={"layout": {"1g.24gb": 7}}),
    ),
    ("GPU301", pools(H200) | config(seven=[element(g1_10gb=7)]), pools(H200) | config(seven=[element(g1_18gb=7)])),
    (
        "GPU301",
        pools(H200, mig={"devices": [{"indices": [0], "layout": {"1g.10gb": 7}}]}),
        pools(H200, mig={"devices": [{"indices": [0], "layout": {"1g.18gb": 7}}]}) | MIXED,
    ),
    # B38: as many instances as the board can't hold
    ("GPU302", pools(A100, mig={"layout": {"1g.5gb+me": 2}}), pools(A100, mig={"layout": {"1g.5gb+me": 1}})),
    (
        "GPU302",
        pools(mig={"layout": {"4g.40gb": 1, "3g.40gb": 1, "1g.10gb": 1}}),
        pools(mig={"layout": {"4g.40gb": 1, "3g.40gb": 1}}),
    ),
    (
        "GPU302",
        pools() | MIXED | config(big=[element(g3_40gb=2, g1_10gb=1)]),
        pools() | MIXED | config(big=[element(g3_40gb=1, g1_10gb=4)]),
    ),
    (
        "GPU302",
        pools(label="eight") | config(eight=[element(g1_10gb=8)]),
        pools(label="x") | config(x=[element(g1_10gb=7)]),
    ),
    # no MIG at all
    ("GPU303", pools(L4, mig={"layout": {"1g.10gb": 2}}), pools(L4, sharing={"timeSlicing": {"replicas": 2}})),
    ("GPU303", pools(L4, label="all-1g.10gb"), pools(L4, label="all-disabled")),
    # B39: a name that nothing explains
    ("GPU304", pools(H200, mig={"config": "all-1g.10gb"}), pools(H200, mig={"config": "all-1g.18gb"})),
    ("GPU304", pools(mig={"config": "all-1g-10gb"}), pools(mig={"config": "all-1g.10gb"})),
    (
        "GPU304",
        pools(label="seven") | config(sevens=[element(g1_10gb=7)]),
        pools(label="x") | config(x=[element(g1_10gb=7)]),
    ),
    (
        "GPU304",
        pools(mig={"config": "all-balanced"}) | config(other=[element(g1_10gb=7)]),
        pools(mig={"config": "all-balanced"}) | MIXED,
    ),
    # B39: a board that the default configuration has no filter for, in a release that knows no better
    (
        "GPU304",
        pools("NVIDIA-H20-3e", mig={"config": "all-balanced"}) | MIXED | {"release": "v25.10.1"},
        pools("NVIDIA-H20-3e", mig={"config": "all-balanced"}) | MIXED | {"release": "v26.3.0"},
    ),
    # B37: strategy and layout
    (
        "GPU305",
        pools(mig={"layout": {"1g.10gb": 2, "2g.20gb": 1}}) | SINGLE,
        pools(mig={"layout": {"1g.10gb": 2}}) | SINGLE,
    ),
    ("GPU305", pools(mig={"layout": {"1g.10gb": 7}}) | NONE, pools() | NONE),
    (
        "GPU305",
        pools(gpusPerNode=8, mig={"devices": [{"indices": [0], "layout": {"1g.10gb": 7}}]}) | SINGLE,
        pools(gpusPerNode=1, mig={"devices": [{"indices": [0], "layout": {"1g.10gb": 7}}]}) | SINGLE,
    ),
    (
        "GPU310",
        pools() | SINGLE | config(two=[element(g1_10gb=2, g2_20gb=1)]),
        pools() | MIXED | config(two=[element(g1_10gb=2, g2_20gb=1)]),
    ),
    (
        "GPU310",
        pools() | SINGLE | config(half=[element([0, 1], g1_10gb=7), element([2, 3])]),
        pools() | SINGLE | config(half=[element([0, 1], g1_10gb=7), element([2, 3], g1_10gb=7)]),
    ),
    ("GPU305", pools(mig={"layout": {"1c.3g.40gb": 3}}), pools(mig={"layout": {"3g.40gb": 1}})),
    # B39: files that the manager refuses
    (
        "GPU306",
        config(a=[{"devices": "all", "migEnabled": True, "migDevices": {"1g.10gb": 7}}]),
        config(a=[{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}]),
    ),
    (
        "GPU306",
        config(a=[{"devices": "all", "mig-enabled": True}]),
        config(a=[{"devices": "all", "mig-enabled": False}]),
    ),
    ("GPU306", config(**{"a" * 64: [element()]}), config(**{"a" * 63: [element()]})),
    (
        "GPU306",
        {"migManager": {"config": {"data": {"layouts.yaml": DEFAULTS}}}},
        {"migManager": {"config": {"data": {"config.yaml": DEFAULTS}}}},
    ),
    (
        "GPU306",
        {"migManager": {"gpuClientsConfig": {"data": {"clients.yaml": "version: v1\nservices: [a.service]\n"}}}},
        {"migManager": {"gpuClientsConfig": {"data": {"clients.yaml": texts.gpu_clients()}}}},
    ),
    # GPUs that aren't there
    (
        "GPU307",
        pools(gpusPerNode=8, mig={"devices": [{"indices": [7, 8], "layout": {"1g.10gb": 7}}]}),
        pools(gpusPerNode=8, mig={"devices": [{"indices": [6, 7], "layout": {"1g.10gb": 7}}]}),
    ),
    (
        "GPU307",
        pools(gpusPerNode=4, label="a") | MIXED | config(a=[element([0, 4], g1_10gb=7)]),
        pools(gpusPerNode=8, label="a") | MIXED | config(a=[element([0, 4], g1_10gb=7)]),
    ),
    # B41: a change of the mode that needs a reboot
    (
        "GPU308",
        pools(A100, mig={"layout": {"1g.5gb": 7}}) | reboot("false"),
        pools(A100, mig={"layout": {"1g.5gb": 7}}) | reboot("true"),
    ),
    (
        "GPU308",
        pools(A100, mig={"layout": {"1g.5gb": 7}}) | {"cluster": {"platform": "eks-ubuntu"}},
        pools(H100, mig={"layout": {"1g.10gb": 7}}) | {"cluster": {"platform": "eks-ubuntu"}},
    ),
    # what nobody can vouch for
    ("GPU309", pools("NVIDIA-X900", mig={"layout": {"1g.10gb": 7}}), pools(None, mig={"layout": {"1g.10gb": 7}})),
    ("GPU309", pools(None, mig={"layout": {"1g.10gb": 8}}), pools(None, mig={"layout": {"1g.18gb": 7}})),
    (
        "GPU309",
        pools("NVIDIA-RTX-PRO-4500-Blackwell", mig={"layout": {"1g.16gb": 2}}),
        pools("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", mig={"layout": {"1g.24gb": 2}}),
    ),
    (
        "GPU309",
        pools(mig={"layout": {"1g.10gb": 7}}) | {"migManager": {"enabled": False}},
        pools() | {"migManager": {"enabled": False}},
    ),
]


@pytest.mark.parametrize(
    ("rule", "trigger", "neighbour"), TRIGGERS, ids=lambda value: value if type(value) is str else ""
)
def test_each_kind(rule: str, trigger: dict[str, Any], neighbour: dict[str, Any]) -> None:
    """The mistake is found, by its rule alone; what is right next to it isn't one."""
    assert ids(**trigger) == [rule]
    assert ids(**neighbour) == []
    assert all(found.what and found.why and found.remedy for found in said(**trigger))


@pytest.mark.parametrize(
    ("product", "profile", "nearest"),
    [
        (H200, "1g.10gb", "1g.18gb"),
        (H200, "3g.40gb", "3g.71gb"),
        (H100, "7g.79gb", "7g.80gb"),
        (H100, "1g.5gb+me", "1g.10gb+me"),
        (A100, "3g.40gb", "3g.20gb"),
        ("NVIDIA-A30", "7g.80gb", "4g.24gb"),
    ],
)
def test_nearest_profile(product: str, profile: str, nearest: str) -> None:
    """An unknown profile leads to the one of that board that is most like it: as many slices first (B38)."""
    (found,) = said(**pools(product, mig={"layout": {profile: 1}}))
    assert f"the nearest is {nearest}" in found.what
    assert found.path == f'spec.nodePools[0].sharing.mig.layout["{profile}"]'


def test_a_layout_that_is_too_large_says_why() -> None:
    """The reason in words, and a layout that fits (B38)."""
    (found,) = said(**pools(mig={"layout": {"4g.40gb": 1, "3g.40gb": 1, "1g.10gb": 1}}))
    assert "4g.40gb + 3g.40gb + 1g.10gb need 8 of 7 compute slices" in found.what
    assert "{4g.40gb: 1, 3g.40gb: 1}" in found.remedy


EMBEDDED = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: example}
spec:
  release: v26.7.0
  cluster: {kubernetesVersion: "1.34"}
  nodePools:
  - {name: training, os: ubuntu22.04, gpuProduct: NVIDIA-H200, gpusPerNode: 8}
  migManager: {config: {name: layouts}}
  extraObjects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: layouts}
    data:
      config.yaml: |
        version: v1
        mig-configs:
          seven:
          - devices: all
            mig-enabled: true
            mig-devices:
              1g.18gb: 6
              "1g.10gb": 1
          typo:
          - devices: all
            mig-enable: true
"""


def test_findings_point_into_the_text() -> None:
    """What is wrong in a file inside of the policy is shown at its own line and column."""
    loaded = policy(EMBEDDED)
    found = {
        (placed.rule, placed.location.line, placed.location.column)
        for rule in RULES
        for finding in rule.findings(loaded.spec)
        if (placed := place(loaded, finding)).location
    }
    lines = EMBEDDED.splitlines()
    profile, key = lines.index('              "1g.10gb": 1'), lines.index("            mig-enable: true")
    assert ("GPU301", profile + 1, 15) in found
    assert ("GPU306", key + 1, 13) in found


def test_copies_of_the_default_are_no_mistakes() -> None:
    """Who copies the release's layouts and adds one has layouts for boards of others among them."""
    data = yaml.safe_load(DEFAULTS)
    data["mig-configs"]["mine"] = [element(g1_18gb=7)]
    own = {"migManager": {"config": {"data": {"config.yaml": yaml.safe_dump(data)}}}}
    assert ids(**pools(H200), **own) == []
    data["mig-configs"]["mine"] = [element(g1_10gb=7)]
    own = {"migManager": {"config": {"data": {"config.yaml": yaml.safe_dump(data)}}}}
    assert ids(**pools(H200), **own) == ["GPU301"]


def test_a_layout_for_one_of_several_boards() -> None:
    """A layout that nobody asks for yet is right if it is right for some pool, or if its filter says for which."""
    both = {"nodePools": [pool(H100), pool(H200, name="other")]}
    assert ids(**both, **config(seven=[element(g1_18gb=7)])) == []
    assert ids(**both, **config(seven=[element(g1_12gb=7)])) == ["GPU301"]
    for_nvl = {**element(g1_12gb=7), "device-filter": "0x232110DE"}
    assert ids(**both, **config(seven=[for_nvl])) == []
    one_unknown = {"nodePools": [pool(H100), pool(None, name="other")]}
    assert ids(**one_unknown, **config(seven=[element(g1_12gb=7)])) == []


@pytest.mark.parametrize(
    ("release", "product", "name", "known"),
    [
        ("v26.7.0", "NVIDIA-RTX-PRO-4500-Blackwell", "all-1g.16gb", True),
        ("v25.10.1", "NVIDIA-RTX-PRO-4500-Blackwell", "all-1g.16gb", False),
        ("v26.7.0", None, "all-1g.99gb", True),
        ("v26.7.0", None, "all-of-them", False),
        ("v26.7.0", "NVIDIA-GB200", "all-1g.24gb", True),
        ("v26.7.0", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "all-1g.24gb.me.all", True),
        ("v26.7.0", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "all-1g.24gb-me", True),
        ("v26.7.0", H100, "all-enabled", True),
    ],
)
def test_layouts_that_the_manager_makes(release: str, product: str | None, name: str, known: bool) -> None:
    """From v26.3 on the manager makes all-PROFILE of what its GPUs have, unless it has a file (reconciler.md M26)."""
    assert ("GPU304" in ids(release=release, **pools(product, mig={"config": name}))) is not known
    own = {"nodePools": [pool(product, mig={"config": name}), pool(H100, name="own", mig={"layout": {"1g.10gb": 7}})]}
    if name == "all-1g.16gb":
        assert "GPU304" in ids(release=release, **own)


def test_nearest_layout() -> None:
    """The name of another board's layout leads to that of this board."""
    (found,) = said(**pools(H200, mig={"config": "all-3g.40gb"}))
    assert found.what == f"no MIG layout is called 'all-3g.40gb' on {H200}"
    assert "all-3g.71gb" in found.remedy


def test_labels_of_rules() -> None:
    """A NodeFeatureRule that labels nodes with a layout names one that there is (B39)."""

    def rule(name: str) -> dict[str, Any]:
        return {
            "extraObjects": [
                {
                    "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
                    "kind": "NodeFeatureRule",
                    "metadata": {"name": "mig"},
                    "spec": {"rules": [{"name": "a", "labels": {"nvidia.com/mig.config": name}}]},
                }
            ]
        }

    assert ids(**pools(A100), **rule("all-1g.5gb")) == []
    (found,) = said(**pools(A100), **rule("all-1g-5gb"))
    assert found.rule == "GPU304"
    assert found.path == 'spec.extraObjects[0].spec.rules[0].labels["nvidia.com/mig.config"]'
    assert "all-1g.5gb" in found.remedy


def test_what_others_bring() -> None:
    """A ConfigMap that isn't in the policy is nobody's mistake: its layouts aren't known."""
    reference = {"references": [{"kind": "ConfigMap", "name": "layouts"}]}
    manager = {"migManager": {"config": {"name": "layouts"}, "gpuClientsConfig": {"name": "layouts"}}}
    assert ids(**pools(H100, mig={"config": "ours"}), **manager, **reference) == []


def test_without_mig_nothing_is_looked_at() -> None:
    """A policy that says nothing about MIG costs nothing, and with a gpuCluster there is no MIG manager."""
    assert ids(nodePools=[]) == []
    assert ids(**pools(H100, sharing={"timeSlicing": {"replicas": 4}})) == []


def test_what_is_hidden_by_a_name() -> None:
    """A device index counts against the largest node that gets the layout, not the smallest."""
    layouts = config(a=[element([0, 5], g1_10gb=7)])
    small, large = pool(gpusPerNode=4, label="a", name="small"), pool(gpusPerNode=8, label="a", name="large")
    assert ids(nodePools=[small, large], **layouts, **MIXED) == []
    assert ids(nodePools=[small], **layouts, **MIXED) == ["GPU307"]


NAMED = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: a}
spec:
  release: v26.7.0
  cluster: {kubernetesVersion: "1.34"}
  daemonsets: {labels: {app.kubernetes.io/instance: gpus}}
  reconciler: {image: "registry.example.com/gpustack-reconciler:1"}
  nodePools:
  - name: a
    os: ubuntu22.04
    gpuProduct: NVIDIA-H200
    gpusPerNode: 2
    nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}
    sharing:
      mig:
        devices:
        - {indices: [0, 1], layout: {1g.10gb: 7}}
  extraObjects:
  - apiVersion: nfd.k8s-sigs.io/v1alpha1
    kind: NodeFeatureRule
    metadata: {name: gpus}
    spec:
      rules:
      - {name: gpus, labels: {kubernetes.io/gpu: "1", bare: "1"}, matchFeatures: []}
"""


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ("GPU301", "1g.10gb: 7"),
        ("GPU530", "kubernetes.io/gpu"),
        ("GPU531", "bare:"),
        ("GPU801", "app.kubernetes.io/instance"),
        ("GPU827", "nvidia.com/gpu.product"),
    ],
)
def test_a_wrong_name_is_shown_at_the_name(rule: str, shown: str) -> None:
    """A profile, a label's key: the caret is under what is wrong, and not under the value behind it."""
    loaded = policy(NAMED)
    found = next(one for one in all_rules() if one.id == rule)
    (first, *_) = found.findings(loaded.spec)
    location = place(loaded, first).location
    assert location is not None
    assert location.text is not None
    assert location.text[(location.column or 1) - 1 :].startswith(shown)
