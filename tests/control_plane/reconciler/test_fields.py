"""The program and the GitOps engines never write one field: for each rendered cluster that has the program.

Both engines' own libraries apply the cluster (test_engines.py), as each would on its own. Then the program works on
simulated nodes of the cluster's pools until it has nothing left to write; and then the engines come again.
"""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.reconciler.shell.client import MANAGER as PROGRAM
from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.api import Body
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.conftest import running
from tests.control_plane.machine import Machine
from tests.control_plane.manifests import DIST, Manifest, clusters, manifests, prepare
from tests.control_plane.process import Program
from tests.control_plane.reconciler.stack import Stack
from tests.control_plane.test_engines import objects, remove, verdicts_of
from tests.project import ROOT

ENGINES = {"flux": "kustomize-controller", "argocd": "argocd-controller"}
"""Engine -> the name under which it owns fields."""
PROGRAM_FILE = "reconciler/deployment-gpustack-reconciler.yaml"
RECONCILED = ("lab-a100", "prod-eks", "train-dgx")
NOT_RECONCILED = (
    "dra-gb200",
    "edge-rke2",
    "kata-confidential",
    "mixed-campus",
    "openshift-vgpu",
    "prod-gke",
    "three-drivers",
    "vm-kubevirt",
    "vm-openshift",
)
NODE_POLICY = "gpustack.dev/v1alpha1/NodePolicy"
QUIET_SECONDS = 3.0
WRITES = re.compile(
    r'^gpustack_reconciler_requests_total\{verb="(?:create|patch|delete)",kind="(?P<kind>\w+)".* (?P<n>\d+)$'
)
NO_WRITES = {"leases", "selfsubjectaccessreviews"}
"""Created or patched all the time, and no rendered object or node."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """A control plane of these tests: others have applied other clusters to theirs."""
    with ControlPlane(tmp_path_factory.mktemp("fields"), emulated=emulated) as started:
        yield started


def test_every_cluster_has_been_looked_at() -> None:
    """Each rendered cluster is named here: those with the program, and those without, which have nothing of it."""
    assert sorted((*RECONCILED, *NOT_RECONCILED)) == clusters()
    assert [name for name in clusters() if (DIST / name / PROGRAM_FILE).is_file()] == list(RECONCILED)
    for name in NOT_RECONCILED:
        kinds = {one.body["kind"] for stage in manifests(DIST / name) for one in stage}
        assert "NodePolicy" not in kinds, name


def test_a_shared_field_is_seen() -> None:
    """What two managers own is found: a value, an item of a list by its key; what one alone owns isn't."""
    labels: Body = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}
    item: Body = {"f:spec": {"f:taints": {'k:{"key":"x"}': {".": {}, "f:key": {}}}}}
    fields = {"argocd-controller": {**labels, **item}, PROGRAM: {"f:status": {"f:nodes": {}}, **item}}
    entries = [{"manager": name, "fieldsV1": owned} for name, owned in fields.items()]
    body: Body = {"metadata": {"managedFields": entries}}
    path = 'f:spec f:taints k:{"key":"x"}'
    assert owned_by(body, PROGRAM) & owned_by(body, "argocd-controller") == {f"{path} .", f"{path} f:key"}


@pytest.mark.parametrize("cluster", RECONCILED)
def test_no_field_has_two_writers(plane: ControlPlane, tmp_path: Path, cluster: str) -> None:
    """The program has written statuses, labels and annotations. Of no rendered object it owns a field that an engine
    owns; to both engines nothing differs, what they apply again changes no object; the program writes nothing more.
    """
    stages = list(manifests(DIST / cluster))
    rendered = [one for stage in stages for one in stage]
    plane.folder = tmp_path  # logs of programs
    prepare(plane.admin, stages)
    for engine in ENGINES:
        verdicts_of(engine, plane, cluster)
    with running(gpu_kubelets(plane.admin)) as kubelets:
        stack = Stack(plane, kubelets, tmp_path)
        try:
            program = stack.start()
            kubelets.add(*machines(cluster))
            writes = idle(stack, program)
            before = {str(one): live(stack, one) for one in rendered}
            nodes = stack.api.list("Node")
            _nothing_is_shared(before)
            _program_has_written(stack, nodes)
            _engines_find_nothing(plane, cluster)
            after = {str(one): live(stack, one) for one in rendered}
            assert [name for name in before if before[name] != after[name]] == []
            assert stack.api.list("Node") == nodes
            assert idle(stack, program) == writes
        finally:
            stack.tidy()
            remove(plane, rendered)


def _nothing_is_shared(bodies: dict[str, Body]) -> None:
    for name, body in bodies.items():
        for engine in ENGINES.values():
            assert owned_by(body, engine) & owned_by(body, PROGRAM) == set(), name
            assert owned_by(body, engine) or body["kind"] == "Namespace", name  # of a bare one there is nothing to own


def _program_has_written(stack: Stack, nodes: list[Body]) -> None:
    """It has: the status of every NodePolicy and nothing else there; labels and annotations of every node."""
    for one in stack.api.list(NODE_POLICY):
        assert {path.split()[0] for path in owned_by(one, PROGRAM)} == {"f:status"}
    for node in nodes:
        written = {" ".join(path.split()[:2]) for path in owned_by(node, PROGRAM)}
        assert {"f:metadata f:labels", "f:metadata f:annotations"} <= written


def _engines_find_nothing(plane: ControlPlane, cluster: str) -> None:
    flux, argocd = (verdicts_of(engine, plane, cluster) for engine in ENGINES)
    assert [one for one in flux if one["action"] != "unchanged"] == []
    assert {name: len([one for one in flux if one["pass"] == name]) for name in ("apply", "again", "diff")} == (
        dict.fromkeys(("apply", "again", "diff"), objects(cluster))
    )
    assert [one["modified"] for one in argocd] == [False] * objects(cluster)


def owned_by(body: Body, manager: str) -> set[str]:
    """The fields of an object that MANAGER owns, each as the way to it."""
    entries = [one for one in body["metadata"].get("managedFields", []) if one["manager"] == manager]
    return {path for one in entries for path in _leaves(one["fieldsV1"])}


def _leaves(fields: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, below in fields.items():
        here = f"{path} {name}".strip()
        if below:
            yield from _leaves(below, here)
        elif name != "." or "k:" in path or "v:" in path:  # a map that is there is nobody's alone
            yield here


def live(stack: Stack, one: Manifest) -> Body:
    """The object as it is on the server."""
    return stack.api.get(one.kind, one.name, one.namespace)


def machines(cluster: str) -> list[Machine]:
    """Two nodes for each pool of the policy, as the policy describes them."""
    spec = yaml.safe_load((ROOT / f"policies/{cluster}.yaml").read_text(encoding="utf-8"))["spec"]
    rendered = {path.stem for path in (DIST / cluster / "reconciler").glob("nodepolicy-*.yaml")}
    assert rendered == {f"nodepolicy-{pool['name']}" for pool in spec["nodePools"]}
    return [_machine(pool, number) for pool in spec["nodePools"] for number in range(2)]


def _machine(pool: dict[str, Any], number: int) -> Machine:
    named = re.fullmatch(r"ubuntu(.*)", pool.get("os", ""))
    slicing = pool.get("sharing", {}).get("timeSlicing", {})
    return Machine(
        f"{pool['name']}-{number}",
        gpus=pool["gpusPerNode"],
        product=pool["gpuProduct"],
        mig_capable=pool["gpuProduct"] != "NVIDIA-L4",
        labels=pool.get("nodeSelector", {}),
        os=("ubuntu", named[1]) if named else ("amzn", "2023"),
        host_driver=not named,
        toolkit=not named,
        replicas=slicing.get("replicas", 1),
        renamed=slicing.get("renameByDefault", False),
    )


def idle(stack: Stack, program: Program) -> int:
    """Wait until every node is as its policy wants and the program has written nothing for a while; how many times it
    has written.
    """

    def current() -> bool:
        found = [one.get("status", {}) for one in stack.api.list(NODE_POLICY)]
        return bool(found) and all(one.get("nodes") == one.get("current") == 2 for one in found)

    def quiet() -> bool:
        if not current():
            return False
        before = written(stack)
        time.sleep(QUIET_SECONDS)
        return current() and written(stack) == before

    wait_for(quiet, "the program has nothing more to write")
    assert program.running
    return written(stack)


def written(stack: Stack) -> int:
    """How many times the program has written anything but its Lease, by its own count."""
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.ports['reconciler']}/metrics", timeout=10) as page:
        lines = [WRITES.match(line) for line in page.read().decode().splitlines()]
    return sum(int(one["n"]) for one in lines if one and one["kind"] not in NO_WRITES)
