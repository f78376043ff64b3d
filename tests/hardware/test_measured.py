"""What we say of a device-plugin configuration is what NVIDIA's own programs did with it on a real GPU.

The right values are the measured ones (measured/*.json): made by the programs, never by us. tools/hardware.sh makes
them anew.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gpustack.catalog import gpus
from gpustack.checks.rule import Rule, all_rules, rules_over
from gpustack.cluster.offer import Offer
from gpustack.cluster.resolve import resolve
from gpustack.components.reconciler import node_policies_inputs as node_policies
from gpustack.policy.configurations.plugin_text import PluginConfig, read_plugin_config
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.tenants.tenants import pods_in, tenants_of
from tests.cluster.seen import agreed
from tests.components.common import spec
from tests.hardware.measured import FOLDER, Measured, files, load, measured, policy_of, text_of
from tests.hardware.pack.pack import cases
from tests.hardware.page import PAGE, page

ROWS = [row for row in measured() if text_of(row.name) is not None]
STRICTER = {"replicas-010", "replicas-08"}
"""The plugin reads these by eights, or as a number they don't show: GPU502 refuses them, and says what it reads."""
MACHINES = {"imex-required", "list-cdi-annotations", "list-cdi-both", "list-cdi-cri"}
"""The plugin ended for what that machine lacked: an IMEX channel, a driver at the root of its file system."""
TEGRA = "discovery-tegra"
"""The programs then look for another kind of board than this one: one device, and no MIG."""
PLUGIN_ERRORS = {"GPU501", "GPU502", "GPU503"}


def every_case(check: Callable[[Measured], None]) -> Callable[[str], None]:
    """A test for each text: CHECK over every machine and version that it was tried with."""

    @pytest.mark.parametrize("name", sorted({row.name for row in ROWS}))
    def test(name: str) -> None:
        for row in ROWS:
            if row.name == name:
                check(row)

    test.__name__, test.__doc__ = check.__name__, check.__doc__
    return test


@functools.cache
def policy(version: str, product: str, cards: int, env: str) -> ClusterPolicySpec:
    """The effective spec of a machine whose plugin has ENV, as JSON, in its environment, without a text."""
    return spec(**policy_of(version, product, cards, json.loads(env)), reconciler={})


def of(row: Measured) -> tuple[ClusterPolicySpec, PluginConfig]:
    """The policy of ROW, and its text as we read it."""
    text = str(text_of(row.name))
    plain = policy(row.version, row.product, row.cards, json.dumps(cases()[row.name].get("env", {})))
    config = plain.devicePlugin.config.model_copy(update={"data": {"one": text}})
    plugin = plain.devicePlugin.model_copy(update={"config": config})
    return plain.model_copy(update={"devicePlugin": plugin}), read_plugin_config(text, row.version)


def errors(of_spec: ClusterPolicySpec) -> set[str]:
    """The rules about configurations of the device plugin that find an error."""
    return {rule.id for rule in rules() if list(rule.findings(of_spec))}


@functools.cache
def rules() -> list[Rule]:
    """The rules PLUGIN_ERRORS."""
    return [rule for rule in all_rules() if rule.id in PLUGIN_ERRORS]


def wanted(row: Measured) -> Mapping[str, int]:
    """What a node offers: what the plugin did offer, or would once the MPS daemon runs, by GPU feature discovery."""
    if not row.waits:
        found: Mapping[str, int] = row.found.get("offers", {})
        return found
    replicas = int(str(row.labels["nvidia.com/gpu.replicas"]))
    renamed = replicas > 1 and not str(row.labels["nvidia.com/gpu.product"]).endswith("-SHARED")
    return {"nvidia.com/gpu.shared" if renamed else "nvidia.com/gpu": replicas * row.cards}


def test_enough_was_tried() -> None:
    """Each version that a rule tells apart was tried, with at least 109 texts, and what is on file are these cases."""
    versions = {load(file)["plugin"] for file in files()}
    assert {"v0.17.4", "v0.18.2", "v0.19.0"} <= versions
    for file in files():
        assert len(load(file)["cases"]) >= 109
        assert set(load(file)["cases"]) == set(cases())


@every_case
def test_what_the_plugin_refuses(row: Measured) -> None:
    """A configuration makes the plugin exit exactly where lint has an error for it, and then nobody prints a number."""
    of_spec, config = of(row)
    if row.name in MACHINES:
        return
    found = errors(of_spec)
    if row.ends or row.name in STRICTER:
        assert found, config
        assert [pool.per_node for pool in resolve(of_spec).capacity] == [{}]
        assert [pool.resources for pool in resolve(of_spec).offer.pools] == [None]
    elif "GPU502" in found:
        raise AssertionError(config.refused or config.wrong)


@every_case
def test_capacity(row: Measured) -> None:
    """Nodes offer what `gpustack capacity` says, to the number, and what the NodePolicy expects and verifies."""
    of_spec, config = of(row)
    if row.ends or row.name in {*STRICTER, TEGRA} or config.ambiguous:
        return
    (pool,) = resolve(of_spec).capacity
    assert pool.per_node == wanted(row)
    assert resolve(of_spec).offer.pools[0].resources == wanted(row)
    inputs = node_policies.from_cluster(resolve(of_spec))
    assert inputs is not None
    (made,) = inputs.policies
    assert made.spec["gpu"]["resources"] == wanted(row)
    assert agreed(resolve(of_spec).pools[0], made.spec, wanted(row))


@every_case
def test_labels(row: Measured) -> None:
    """GPU feature discovery writes the labels that we expect: -SHARED only where shares keep the name of a GPU."""
    of_spec, config = of(row)
    if not row.labels or row.ends or row.name in {*STRICTER, TEGRA} or config.ambiguous:
        return
    known = resolve(of_spec).offer.pools[0].labels
    for key in ("gpu.product", "gpu.replicas", "gpu.sharing-strategy", "gpu.count", "gpu.family", "mig.capable"):
        assert known[f"nvidia.com/{key}"] == frozenset([row.labels[f"nvidia.com/{key}"]]), key


@every_case
def test_workloads(row: Measured) -> None:
    """A pod that asks for what the node offers is let pass, one that asks for another name is told; so is one that asks
    for two shares where the plugin refuses them."""
    of_spec, config = of(row)
    if row.ends or row.waits or row.name in STRICTER or config.ambiguous:
        return
    ((name, number),) = wanted(row).items()
    other = "nvidia.com/gpu" if name.endswith(".shared") else "nvidia.com/gpu.shared"
    offered = resolve(of_spec).offer
    assert "GPU701" not in told(offered, name, 1)
    assert "GPU701" in told(offered, other, 1)
    if number > 1:
        assert ("GPU709" in told(offered, name, 2)) == (row.found.get("two") == "refused")


def told(offered: Offer, name: str, number: int) -> set[str]:
    """The rules that find something about a pod that asks for NUMBER of NAME."""
    container = {"name": "main", "image": "a", "resources": {"limits": {name: number}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    tenants = tenants_of(body, pods_in(body), offered)
    return {found.rule for tenant in tenants for rule in rules_over("workload") for found in rule.findings(tenant)}


def test_what_nobody_asked_for() -> None:
    """v0.19.0 hands GPUDirect Storage, MOFED and GDRCopy to every container, unless the file or the environment says
    false; older ones don't: the fault that GPU415 names."""
    for file in files():
        body = load(file)
        extras = {"NVIDIA_GDS", "NVIDIA_MOFED", "NVIDIA_GDRCOPY"}
        assert (set(body["allocation"]["envs"]) & extras == extras) == (body["plugin"] == "v0.19.0")
        off = body["cases"]["gds-file-off"].get("allocation", body["allocation"])
        assert not set(off["envs"]) & extras


def test_what_is_asked_for_twice() -> None:
    """The environment wins over the file, and arguments over both."""
    for file in files():
        found = load(file)["cases"]
        assert found["mig-mixed"]["labels"].get("nvidia.com/mig.strategy", "single") == "single"
        assert found["file-mig-mixed-alone"]["labels"]["nvidia.com/mig.strategy"] == "mixed"
        assert "ends" in found["args-over-env-wrong"]
        assert "offers" in found["args-over-file"]


def limits() -> list[Any]:
    """NVML's answers for each card."""
    return [pytest.param(load(path)["cards"][0], id=path.stem) for path in sorted(FOLDER.glob("*-nvml.json"))]


@pytest.mark.parametrize("card", limits())
def test_the_catalogue_has_the_card(card: dict[str, Any]) -> None:
    """Name, PCI id and compute capability of the catalogue are those that NVML and GPU feature discovery say."""
    product = gpus.product(card["name"].replace(" ", "-"))
    assert card["pci_device"][2:6] in product.pci_ids
    assert product.compute_capability == ".".join(map(str, card["compute"]))
    assert product.mig_capable
    assert card["mig"] == [0, 0], "nothing on the card was changed"


@pytest.mark.parametrize("card", limits())
def test_the_catalogues_mig_profiles(card: dict[str, Any]) -> None:
    """Names, ids, numbers, memory, multiprocessors and places of the catalogue's profiles are those of the card."""
    own = {one.name: one for one in gpus.mig_profiles(gpus.product(card["name"].replace(" ", "-")))}
    assert set(own) == {row["name"] for row in card["profiles"]}
    for row in card["profiles"]:
        one = own[row["name"]]
        assert (one.id, one.max, one.slices, one.multiprocessors) == (row["id"], row["max"], row["slices"], row["sm"])
        assert one.starts == tuple(start for start, _ in row["placements"])
        assert {one.size} == {size for _, size in row["placements"]}
        assert one.memory_gib == pytest.approx(row["memory_mib"] / 1024, abs=0.01)


def test_the_page_is_current() -> None:
    """docs/measured.md is what `python -m tests.hardware.page` writes of these results."""
    assert PAGE.read_text(encoding="utf-8") == page()
