"""What the reconciler makes of nodes is what the operator was seen to put on them, but for what is meant.

Each node of a measured case begins in three ways: `new` (its GPUs have never worked, so it is installed), `adopted`
(its GPUs work, and it has no labels of the operator's) and `taken-over` (its GPUs work, and it has the operator's
labels). cooperative.py says what of the cluster is simulated. Compared are the labels and annotations of nvidia.com
that are different from the bare node's, and whether an operation is open still. The differences that are meant stand in
nodes.yaml.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.compiler.cache import Store, own_digest
from tests.components.reconciler.common import IMAGE, told_apart
from tests.fidelity import cases
from tests.fidelity.cooperative import Cluster, Labels
from tests.fidelity.facts import Deviation, Facts, differences
from tests.fidelity.test_reconciler import ALL, compiled

STARTS = ("new", "adopted", "taken-over")
OPERATION = "gpustack.dev/op"
PCI = "feature.node.kubernetes.io/pci-10de.present"
WORKLOAD = "nvidia.com/gpu.workload.config"
WORKLOADS = {"container", "vm-passthrough", "vm-vgpu"}
OTHERS = {"nvidia.com/mig.config.state"}
"""What the MIG manager writes: the operator was measured without one."""
REMOVED = "removed"

Seen = tuple[dict[str, Facts], dict[str, Facts]]
"""What the operator changed on each node, and what the reconciler did."""


class Lab:
    """All cases, each brought to rest once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, Store(folder / "store", own_digest())
        self.known: dict[tuple[str, str], Seen] = {}

    def seen(self, release: str, name: str) -> Seen:
        """What happened to the nodes of a case."""
        if (release, name) not in self.known:
            self.known[release, name] = self._seen(cases.case(release, name))
        return self.known[release, name]

    def _seen(self, case: cases.Case) -> Seen:
        spec = {**told_apart(case.policy["spec"]), "reconciler": {"image": IMAGE}}
        files = compiled(spec, self.folder, self.store).files
        wanted = [file for file in files if file.path.startswith(("reconciler/nodepolicy-", "driver/daemonset-"))]
        objects = [yaml.load(file.text, yaml.CSafeLoader) for file in wanted]
        entries = {entry["name"]: entry for entry in case.nodes}
        bare = {node["name"]: labelled(spec["nodePools"], case, node["labels"]) for node in case.cluster}
        expected, made = dict[str, Facts](), dict[str, Facts]()
        for start in STARTS:
            cluster = Cluster.of(objects, working=start != "new")
            for node, labels in bare.items():
                left = entries[node] if start == "taken-over" else {}
                cluster.add(node, after(labels, left, "labels"), after({}, left, "annotations"))
            cluster.rest()
            for node, labels in bare.items():
                entry, metadata = entries[node], cluster.nodes[node]["metadata"]
                by_operator = after(labels, entry, "labels"), after({}, entry, "annotations")
                expected[f"{start} {node}"] = changes(labels, *by_operator)
                made[f"{start} {node}"] = changes(labels, metadata["labels"], metadata["annotations"])
        return expected, made


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """All cases."""
    return Lab(tmp_path_factory.mktemp("nodes"))


def labelled(pools: list[dict[str, Any]], case: cases.Case, labels: Labels) -> Labels:
    """LABELS of a node, with that of its pool where `told_apart` gave POOLS one: the pool with its workload type and
    GPUs. A type that there isn't is none, as the operator sees it (L11)."""
    if pools == case.policy["spec"]["nodePools"] or PCI not in labels:
        return labels
    serves = labels[WORKLOAD] if labels.get(WORKLOAD) in WORKLOADS else None
    wanted = (serves, labels.get("nvidia.com/gpu.product"))
    same = [pool for pool in pools if (pool.get("workload"), pool.get("gpuProduct")) == wanted]
    (mine,) = same if len(pools) > 1 else pools
    return {**labels, **mine["nodeSelector"]}


def after(before: Labels, entry: dict[str, Any], of: str) -> Labels:
    """BEFORE with what the operator did to it, by the ENTRY of a measured node."""
    made = {**before, **entry.get(f"{of}Added", {}), **entry.get(f"{of}Changed", {})}
    return {key: value for key, value in made.items() if key not in entry.get(f"{of}Removed", ())}


def changes(bare: Labels, labels: Labels, annotations: Labels) -> Facts:
    """What of nvidia.com is different from the BARE node's labels, and the operation that is open."""
    found: Facts = {
        key: labels.get(key, REMOVED)
        for key in bare.keys() | labels.keys()
        if key.startswith("nvidia.com/") and key not in OTHERS and bare.get(key) != labels.get(key)
    }
    found |= {key: value for key, value in annotations.items() if key.startswith("nvidia.com/")}
    return {**found, "operation": annotations.get(OPERATION, "")}


def read_deviations() -> list[Deviation]:
    """The differences that are meant."""
    entries = yaml.safe_load(Path(__file__).with_name("nodes.yaml").read_text(encoding="utf-8"))
    return [Deviation(**entry) for entry in entries]


@pytest.mark.parametrize(("release", "name"), ALL)
def test_nodes_get_what_the_operator_puts_on_them(release: str, name: str, lab: Lab) -> None:
    """However a node begins, it comes to rest with the measured labels and annotations and without an open operation,
    but for what is listed with a reason."""
    assert differences(f"{release}/{name}", *lab.seen(release, name), read_deviations()) == []


def test_every_difference_is_needed(lab: Lab) -> None:
    """A difference that no case needs is out of date; one without a reason is none."""
    deviations = read_deviations()
    for release, name in ALL:
        differences(f"{release}/{name}", *lab.seen(release, name), deviations)
    assert [each.path for each in deviations if not each.used or not each.reason.strip()] == []


def test_nodes_are_compared(lab: Lab) -> None:
    """All cases have nodes, and there is something to compare on each that has a GPU."""
    for release, name in ALL:
        entries, nodes = cases.case(release, name).nodes, cases.case(release, name).cluster
        assert {entry["name"] for entry in entries} == {node["name"] for node in nodes}
        expected, _ = lab.seen(release, name)
        gpus = [node["name"] for node in nodes if PCI in node["labels"]]
        assert gpus
        assert all(len(expected[f"{start} {node}"]) > 1 for start in STARTS for node in gpus)
