"""What runs stays running: a cluster of the operator, taken over by an engine, gets no new ControllerRevision.

The DaemonSets are those that the operator and Helm had written to real clusters (tests/fidelity/live), with owners, and
with who wrote which field. Then comes what a policy renders that carries what has to be carried. A ControllerRevision
is made by Kubernetes itself, of the template as the server has it.
"""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from gpustack.compiler.cache import Store, own_digest
from tests.control_plane.api import JSON_PATCH, Api, ApiError, Body
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.manifests import Manifest, established, foreign_crd, make_namespace
from tests.control_plane.test_engines import PROGRAMS, TOOLS
from tests.fidelity.live import daemonsets, manager, names
from tests.fidelity.test_live import ROLLS, carrying, rendered
from tests.readers.go_reader import built

ENGINE = "argocd-controller"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with its controllers, and without nodes: revisions are made all the same."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as found:
        yield found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all cases."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def install(api: Api, live: dict[str, Body]) -> None:
    """Write the DaemonSets LIVE as the operator and Helm have done it, with owners that exist."""
    for body in live.values():
        make_namespace(api, body["metadata"]["namespace"])
        found = copy.deepcopy(body)
        for owner in found["metadata"].get("ownerReferences", []):
            owner["uid"] = owner_of(api, owner)["metadata"]["uid"]
        api.create(found, fieldManager=manager(body))


def owner_of(api: Api, reference: Body) -> Body:
    """The custom resource that REFERENCE names; made, with its kind, where it isn't there."""
    body = {key: reference[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": reference["name"]}}
    kind = f"{reference['apiVersion']}/{reference['kind']}"
    if not api.knows(reference["apiVersion"], reference["kind"]):
        crd = api.create(foreign_crd(Manifest(Path("owner"), b"", body)))["metadata"]["name"]
        wait_for(lambda: established(api, crd), f"{crd} is served")
        wait_for(lambda: api.knows(reference["apiVersion"], reference["kind"]), f"{crd} is listed")
    return api.find(kind, reference["name"]) or api.create(body)


def revisions(api: Api, live: dict[str, Body]) -> dict[str, int]:
    """How many ControllerRevisions each of the DaemonSets LIVE has, once their controller has seen them."""
    found = Counter[str]()
    for name, body in live.items():
        namespace = body["metadata"]["namespace"]
        wait_for(lambda: seen(api, name, namespace), f"the controller has seen {name}")  # noqa: B023 - called at once
    for each in api.list("ControllerRevision"):
        found[each["metadata"]["ownerReferences"][0]["name"]] += 1
    return {name: found[name] for name in live}


def seen(api: Api, name: str, namespace: str) -> bool:
    """Whether the controller of DaemonSets has seen the newest template of NAME."""
    body = api.get("DaemonSet", name, namespace)
    return bool(body.get("status", {}).get("observedGeneration") == body["metadata"]["generation"])


def remove(api: Api, live: dict[str, Body]) -> None:
    """Make room for the next case, revisions too: the garbage collector would take its time."""
    for name, body in live.items():
        if api.find("DaemonSet", name, body["metadata"]["namespace"]):
            api.delete("DaemonSet", name, body["metadata"]["namespace"])
    for each in api.list("ControllerRevision"):
        with contextlib.suppress(ApiError):  # the collector was faster
            api.delete("ControllerRevision", each["metadata"]["name"], each["metadata"]["namespace"])


def orphan(api: Api, live: dict[str, Body]) -> None:
    """Take the owners away, as the first step of a move (moving.md M6)."""
    for name, body in live.items():
        api.patch("DaemonSet", name, {"metadata": {"ownerReferences": None}}, body["metadata"]["namespace"])


def applied(plane: ControlPlane, have: dict[str, Body], folder: Path) -> None:
    """Apply HAVE as Argo CD does it, then make its fields the engine's alone and apply again, as it would in time."""
    for body in have.values():
        plane.admin.apply(body, manager=ENGINE)
    for name, body in have.items():
        namespace = body["metadata"]["namespace"]
        fields = plane.admin.get("DaemonSet", name, namespace)["metadata"]["managedFields"]
        others = [each for each in fields if "status" in each.get("subresource", "")]
        (before,) = [each for each in fields if each["manager"] in ("gpu-operator", "helm")]
        taken = {**before, "manager": ENGINE, "operation": "Apply"}
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": [taken, *others]}]
        plane.admin.patch("DaemonSet", name, patch, namespace, how=JSON_PATCH)
        plane.admin.apply(body, manager=ENGINE)


def flux(plane: ControlPlane, have: dict[str, Body], folder: Path) -> None:
    """Apply HAVE with Flux's library, the operator and Helm among the managers whose fields it takes over."""
    for name, body in have.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    program = built(PROGRAMS / "flux", TOOLS / "flux-engine")
    command = [program, "-override", "gpu-operator,helm", plane.kubeconfig("admin", plane.token), "moved", folder]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    changed = {(each["pass"], each["subject"]) for each in verdicts if each["action"] != "unchanged"}
    assert [subject for when, subject in changed if when != "apply"] == []


def managers(api: Api, live: dict[str, Body]) -> set[str]:
    """Whose fields the DaemonSets LIVE have."""
    metas = [api.get("DaemonSet", name, body["metadata"]["namespace"])["metadata"] for name, body in live.items()]
    return {str(each["manager"]) for meta in metas for each in meta["managedFields"]}


@pytest.mark.parametrize("engine", [applied, flux])
@pytest.mark.parametrize("name", names())
def test_what_runs_stays_running(
    engine: Callable[..., None], name: str, plane: ControlPlane, tmp_path: Path, store: Store
) -> None:
    """No DaemonSet has a new revision, drivers and vGPU managers least of all, but those whose fields are listed."""
    (tmp_path / "policy").mkdir()
    (tmp_path / "out").mkdir()
    have = rendered(carrying(name, tmp_path / "policy", store), tmp_path / "policy", store)
    live = daemonsets(name)
    try:
        install(plane.admin, live)
        assert set(revisions(plane.admin, live).values()) == {1}
        orphan(plane.admin, live)
        engine(plane, have, tmp_path / "out")
        after = revisions(plane.admin, live)
        assert {each for each, count in after.items() if count > 1} == ROLLS.keys() & live.keys()
        assert not managers(plane.admin, live) & {"gpu-operator", "helm"}
    finally:
        remove(plane.admin, live)


def test_without_what_is_carried_pods_are_replaced(plane: ControlPlane, tmp_path: Path, store: Store) -> None:
    """The comparison can fail: the plain render makes new revisions of operands, and of the driver none even then."""
    name = "01-defaults-ubuntu2204"
    policy = carrying(name, tmp_path, store)
    policy["spec"]["carried"] = []
    have, live = rendered(policy, tmp_path, store), daemonsets(name)
    try:
        install(plane.admin, live)
        orphan(plane.admin, live)
        revisions(plane.admin, live)
        for body in have.values():
            plane.admin.apply(body, manager=ENGINE)
        after = revisions(plane.admin, live)
        assert after["nvidia-driver-daemonset"] == 1
        assert {each for each, count in after.items() if count > 1} == set(live) - {"nvidia-driver-daemonset"}
    finally:
        remove(plane.admin, live)
