"""ConfigMaps that the policy's sharing and inline data compile to (plugin-config.yaml, operator.md 7.4, 7.9)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpustack.catalog import gpus
from gpustack.cluster.resolve import resolve
from gpustack.components import Configs
from gpustack.components.plugin import configs_inputs as configs
from gpustack.components.plugin.plugin_inputs import gfd as gfd_from_cluster
from gpustack.components.plugin.plugin_inputs import plugin_config
from gpustack.model import FindingsError
from tests.components.common import render, spec

PLUGIN, MIG = "gpustack-device-plugin-config", "gpustack-mig-parted-config"
A100 = "NVIDIA-A100-SXM4-80GB"


def pool(name: str = "p", **sharing: Any) -> dict[str, Any]:
    """A pool of A100s that shares them so."""
    return {"name": name, "os": "ubuntu22.04", "gpuProduct": A100, "sharing": sharing}


def maps(*pools: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """The data of each ConfigMap that is rendered, by its name; texts are read as YAML."""
    inputs = configs.from_cluster(resolve(spec(nodePools=list(pools), **sections)))
    found = render(Configs, inputs).values() if inputs else []
    return {
        body["metadata"]["name"]: {key: yaml.safe_load(text) for key, text in body["data"].items()} for body in found
    }


def test_nothing_to_configure() -> None:
    """Pools that share nothing need no ConfigMap, and none is rendered."""
    assert maps() == {}
    assert maps(pool()) == {}
    assert maps(pool(timeSlicing={"replicas": 2}), devicePlugin={"enabled": False}) == {}
    assert maps(pool(mig={"layout": {"1g.10gb": 7}}), migManager={"enabled": False}) == {}


def test_time_slicing() -> None:
    """One configuration per pool that shares, under the pool's name, and one for all other nodes, which is the default;
    options are written only where they are given."""
    pools = (
        pool("a", timeSlicing={"replicas": 4}),
        pool("b"),
        pool("c", timeSlicing={"replicas": 8, "renameByDefault": True}),
    )
    found = maps(*pools)[PLUGIN]
    resources = {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}
    assert found == {
        "exclusive": {"version": "v1"},
        "a": {"version": "v1", "sharing": {"timeSlicing": resources}},
        "c": {
            "version": "v1",
            "sharing": {
                "timeSlicing": {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 8}]}
            },
        },
    }
    in_effect = plugin_config(spec(nodePools=list(pools)))
    assert in_effect is not None
    assert (in_effect.config_map, in_effect.default) == (PLUGIN, "exclusive")


def test_nodes_without_a_label_may_get_a_pools_sharing() -> None:
    """Where all pools share, `config.default` may name one of them: its configuration is that of nodes without the
    label. Where a pool shares nothing, its nodes have no label, so that is refused, as is what is no pool."""
    shares = [pool("a", timeSlicing={"replicas": 4}), pool("b", mps={"replicas": 2})]
    section: dict[str, Any] = {"devicePlugin": {"config": {"default": "b"}}}
    in_effect = plugin_config(spec(nodePools=shares, **section))
    assert in_effect is not None
    assert (in_effect.config_map, in_effect.default) == (PLUGIN, "b")
    for pools in ([*shares, pool("c")], shares[:1]):
        with pytest.raises(FindingsError) as refused:
            maps(*pools, **section)
        assert [each.path for each in refused.value.findings] == ["spec.devicePlugin.config.default"]


def test_mps() -> None:
    """MPS is written as MPS, with its own option."""
    found = maps(pool(mps={"replicas": 10, "failRequestsGreaterThanOne": False}))[PLUGIN]["p"]
    resources = [{"name": "nvidia.com/gpu", "replicas": 10}]
    assert found["sharing"] == {"mps": {"failRequestsGreaterThanOne": False, "resources": resources}}


@pytest.mark.parametrize(
    ("mig", "per_node", "strategy", "expected"),
    [
        ({"layout": {"1g.10gb": 7}}, 8, "single", ["nvidia.com/gpu"]),
        ({"layout": {"1g.10gb": 7}}, 8, "mixed", ["nvidia.com/mig-1g.10gb"]),
        ({"layout": {"3g.40gb": 1, "2g.20gb": 2}}, 8, "mixed", ["nvidia.com/mig-2g.20gb", "nvidia.com/mig-3g.40gb"]),
        ({"layout": {"1g.10gb+me": 1}}, 8, "mixed", ["nvidia.com/mig-1g.10gb.me"]),
        (
            {"devices": [{"indices": [0], "layout": {"7g.80gb": 1}}]},
            8,
            "mixed",
            ["nvidia.com/gpu", "nvidia.com/mig-7g.80gb"],
        ),
        ({"devices": [{"indices": [0], "layout": {"7g.80gb": 1}}]}, 1, "mixed", ["nvidia.com/mig-7g.80gb"]),
        (
            {"config": "all-balanced"},
            8,
            "mixed",
            ["nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb", "nvidia.com/mig-3g.40gb"],
        ),
        ({"config": "all-disabled"}, 8, "mixed", ["nvidia.com/gpu"]),
    ],
)
def test_time_slicing_on_instances(mig: dict[str, Any], per_node: int, strategy: str, expected: list[str]) -> None:
    """What is shared are the resources that the nodes advertise: instances by profile with strategy mixed, GPUs that
    stay whole beside them, and GPUs of one kind with strategy single (plugin-config.yaml)."""
    shared = {**pool(mig=mig, timeSlicing={"replicas": 2}), "gpusPerNode": per_node}
    found = maps(shared, mig={"strategy": strategy})[PLUGIN]["p"]
    assert [resource["name"] for resource in found["sharing"]["timeSlicing"]["resources"]] == expected
    assert {resource["replicas"] for resource in found["sharing"]["timeSlicing"]["resources"]} == {2}


def test_names_go_by_the_version_inside_a_whole_image() -> None:
    """Until v0.20.0 the plugin counts an instance with media extensions as the plain one (issue 16, number 5)."""
    shared = pool(mig={"layout": {"1g.24gb": 3, "1g.24gb+me": 1}}, timeSlicing={"replicas": 2})
    shared["gpuProduct"] = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"
    for version, names in (("v0.18.2", ["1g.24gb"]), ("v0.20.0", ["1g.24gb", "1g.24gb.me"])):
        plugin = {"repository": "", "version": "", "image": f"nvcr.io/nvidia/k8s-device-plugin:{version}"}
        found = maps(shared, mig={"strategy": "mixed"}, devicePlugin=plugin)[PLUGIN]["p"]
        resources = found["sharing"]["timeSlicing"]["resources"]
        assert [each["name"] for each in resources] == [f"nvidia.com/mig-{name}" for name in names]


def test_mig_layouts() -> None:
    """Own layouts stand beside the release's, under the names of their pools; a pool that names a layout needs none."""
    release = gpus.default_mig_config("v26.7.0")
    pools = (
        pool("a", mig={"layout": {"3g.40gb": 1, "2g.20gb": 2}}),
        pool("b", mig={"config": "all-1g.10gb"}),
        {
            **pool("c", mig={"devices": [{"indices": [1, 3], "layout": {"7g.80gb": 1}}, {"indices": [0]}]}),
            "gpusPerNode": 6,
        },
    )
    found = maps(*pools)[MIG]["config.yaml"]
    assert found["version"] == "v1"
    own = {name: found["mig-configs"].pop(name) for name in ("a", "c")}
    assert found["mig-configs"] == release["mig-configs"]
    assert own["a"] == [{"devices": "all", "mig-enabled": True, "mig-devices": {"2g.20gb": 2, "3g.40gb": 1}}]
    assert own["c"] == [
        {"devices": [1, 3], "mig-enabled": True, "mig-devices": {"7g.80gb": 1}},
        {"devices": [0], "mig-enabled": False},
        {"devices": [2, 4, 5], "mig-enabled": False},
    ]


def test_inline_data() -> None:
    """`config.data` of a component becomes a ConfigMap, under the name that is given or one of ours; `create: false`
    renders nothing and names it."""
    sections = {
        "devicePlugin": {"config": {"data": {"any": "version: v1"}}},
        "migManager": {"config": {"name": "mine", "data": {"config.yaml": "version: v1"}}},
        "dcgmExporter": {"config": {"data": {"dcgm-metrics.csv": "DCGM_FI_DEV_GPU_UTIL, gauge, x"}}},
    }
    found = maps(**sections)
    assert found["gpustack-device-plugin-config"] == {"any": {"version": "v1"}}
    assert found["mine"] == {"config.yaml": {"version": "v1"}}
    assert "gpustack-dcgm-metrics" in found
    assert maps(devicePlugin={"config": {"name": "x", "create": False, "data": {"a": "b: c"}}}) == {}
    assert maps(devicePlugin={"config": {"name": "x", "create": True}}) == {"x": {}}  # as NVIDIA's chart does
    named = plugin_config(spec(devicePlugin={"config": {"name": "x"}}))
    assert named is not None
    assert (named.config_map, named.content) == ("x", "")


def test_map_that_the_policy_brings_along() -> None:
    """A ConfigMap of extraObjects that a component names is not rendered twice, and its content is known."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b: c"}}
    policy = spec(devicePlugin={"config": {"name": "x"}}, extraObjects=[body])
    assert configs.from_cluster(resolve(policy)) is None
    found = plugin_config(policy)
    assert found is not None
    assert found.content != ""


def test_plugin_and_discovery_read_the_same() -> None:
    """GFD labels what the plugin advertises: both get one configuration, and another name for another content."""
    contents = set()
    for replicas in (2, 3):
        policy = spec(nodePools=[pool(timeSlicing={"replicas": replicas})])
        gfd = gfd_from_cluster(resolve(policy))
        assert gfd is not None
        assert gfd.config == plugin_config(policy) is not None
        assert gfd.config is not None
        contents.add(gfd.config.content)
    assert len(contents) == 2


@pytest.mark.parametrize(
    ("pools", "sections", "path"),
    [
        ([pool(timeSlicing={"replicas": 2})], {"devicePlugin": {"config": {"name": "x"}}}, "spec.devicePlugin.config"),
        ([pool(mig={"layout": {"1g.10gb": 7}})], {"migManager": {"config": {"name": "x"}}}, "spec.migManager.config"),
        ([pool(), pool("exclusive", timeSlicing={"replicas": 2})], {}, "spec.nodePools[1].name"),
        ([pool("all-1g.10gb"), pool("all-balanced", mig={"layout": {"1g.10gb": 7}})], {}, "spec.nodePools[1].name"),
    ],
)
def test_contradictions(pools: list[dict[str, Any]], sections: dict[str, Any], path: str) -> None:
    """Sharing beside a ConfigMap of the user's own, and names that would hide another configuration, are errors at the
    place, with a remedy."""
    if path == "spec.nodePools[1].name":
        pools = [
            {**each, "name": each["name"].replace(".", "-") if index == 0 else each["name"]}
            for index, each in enumerate(pools)
        ]
    with pytest.raises(FindingsError) as caught:
        maps(*pools, **sections)
    (finding,) = caught.value.findings
    assert finding.path == path
    assert finding.remedy
