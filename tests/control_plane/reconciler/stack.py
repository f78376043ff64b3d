"""The stack that policy.yaml renders to, on a control plane, and the reconciler's program beside it.

What is applied is what `gpustack render` writes, from the files' own bytes: definition, rights, guards, DaemonSets and
NodePolicies. The program runs as its Deployment would run it, under the rendered ServiceAccount. Only what a test is
about is changed: `render(more)` takes a part of a policy that goes over policy.yaml.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from gpustack.api import keys
from gpustack.reconciler.shell.lease import NAME as LEASE
from tests.control_plane.api import Api, ApiError, Body
from tests.control_plane.cluster import ROOT, ControlPlane, free_ports, wait_for
from tests.control_plane.kubelet import STOP_ANNOTATION, Kubelets
from tests.control_plane.machine import Machine
from tests.control_plane.manifests import Manifest, apply_all, manifests, prepare
from tests.control_plane.objects import is_ready, pod, ready_pods
from tests.control_plane.process import Program
from tests.control_plane.reconciler.proxy import Proxy

POLICY = Path(__file__).with_name("policy.yaml")
NS = "gpu-operator"
ACCOUNT = "gpustack-reconciler"
DRIVER = "nvidia-driver-daemonset"
VALIDATOR = "nvidia-operator-validator"
NEW_DRIVER = {"driver": {"version": "595.91.07"}}
"""What a rollout of the driver changes in the policy."""
POOL = "example.com/pool"
NUMBERS = itertools.count(1)


def over(base: Any, more: Any) -> Any:
    """MORE laid over BASE: mappings are merged, everything else is replaced."""
    if not (isinstance(base, Mapping) and isinstance(more, Mapping)):
        return more
    return {**base, **{key: over(base.get(key), value) for key, value in more.items()}}


def pools(more: Mapping[str, Any]) -> list[Any]:
    """The pools of policy.yaml, with MORE for those that it names."""
    found = yaml.safe_load(POLICY.read_text(encoding="utf-8"))["spec"]["nodePools"]
    return [over(one, more.get(one["name"], {})) for one in found]


def render(folder: Path, more: Mapping[str, Any] | None = None) -> Path:
    """Render policy.yaml with MORE of a spec over it; the folder of the rendered cluster."""
    policy = yaml.safe_load(POLICY.read_text(encoding="utf-8"))
    policy["spec"] = over(policy["spec"], more or {})
    folder.mkdir(parents=True)
    (folder / "rollout.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    command = [sys.executable, "-m", "gpustack", "render", "rollout.yaml", "--out", "dist"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "dist/rollout"


@dataclass
class Stack:
    """The rendered stack on a control plane."""

    plane: ControlPlane
    kubelets: Kubelets
    folder: Path
    applied: list[Manifest] = field(default_factory=list)
    shorten: Body = field(default_factory=dict)
    """Goes over each NodePolicy's spec: times that no policy file may ask for."""
    programs: list[Program] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def api(self) -> Api:
        """The API server, as admin."""
        return self.plane.admin

    # --- what Git does ------------------------------------------------------------------------------------------------

    def apply(self, rendered: Path, *, only: str = "", without: str = "") -> None:
        """Apply a rendered cluster, or the objects of one kind, or those of other names, as a GitOps engine does."""
        stages = [
            [self._shortened(one) for one in stage if only in ("", one.body["kind"]) and one.name != without]
            for stage in manifests(rendered)
        ]
        prepare(self.api, stages)
        refused = [f"{one}: {said}" for one, said in apply_all(self.api, stages).items() if isinstance(said, ApiError)]
        assert refused == []
        self.applied = [one for stage in stages for one in stage]
        driver = self.api.get("DaemonSet", DRIVER, NS)["metadata"]["generation"]
        wait_for(
            lambda: self.api.get("DaemonSet", DRIVER, NS).get("status", {}).get("observedGeneration") == driver,
            "the DaemonSet controller has seen the driver",
        )

    def layouts_are_read(self, name: str) -> None:
        """Wait until the MIG managers' file has a layout whose name begins so. Kubelets hand a changed ConfigMap on
        within two minutes; here they have done so at once.
        """
        wait_for(lambda: any(each.startswith(name) for each in self.layouts()), f"{name} is written")
        noted = {"metadata": {"annotations": {keys.LAYOUTS_AT: "2026-01-01T00:00:00+00:00"}}}
        self.api.patch("ConfigMap", keys.LAYOUTS, noted, NS)

    def layouts(self) -> dict[str, Any]:
        """The layouts that the MIG managers read, by name."""
        text = self.api.get("ConfigMap", keys.LAYOUTS, NS)["data"].get(keys.LAYOUTS_FILE)
        return dict(json.loads(text)["mig-configs"]) if text else {}

    def _shortened(self, one: Manifest) -> Manifest:
        if one.body["kind"] != "NodePolicy":
            return one
        together = over(one.body, {"spec": {"upgrade": {"firstAlone": False}}})  # all of a test's nodes at once
        body = over(together, {"spec": self.shorten})
        return Manifest(one.path, json.dumps(body).encode(), body)

    def newest(self) -> str:
        """The hash of the driver DaemonSet's newest revision."""
        uid = self.api.get("DaemonSet", DRIVER, NS)["metadata"]["uid"]
        owned = [
            one
            for one in self.api.list("ControllerRevision", NS)
            if one["metadata"]["ownerReferences"][0]["uid"] == uid
        ]
        return str(max(owned, key=lambda one: int(one["revision"]))["metadata"]["labels"][keys.HASH])

    def policy(self, name: str) -> Body:
        """A NodePolicy."""
        return self.api.get("gpustack.dev/v1alpha1/NodePolicy", name)

    def reason(self, policy: str, machine: Machine) -> str:
        """The message of what the node waits for, as `reason: message`; "" where it waits for nothing."""
        for one in self.policy(policy).get("status", {}).get("waiting", []):
            if machine.name in one["nodes"]:
                return f"{one['reason']}: {one['message']}"
        return ""

    def condition(self, policy: str, kind: str) -> Body:
        """A condition of the NodePolicy, empty where it has none."""
        found = self.policy(policy).get("status", {}).get("conditions", [])
        return next((one for one in found if one["type"] == kind), {})

    def annotate_policy(self, name: str, **annotations: str | None) -> None:
        """What `gpustack rollout pause` and its like write on a NodePolicy."""
        changes = {f"{keys.DOMAIN}/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.api.patch("gpustack.dev/v1alpha1/NodePolicy", name, {"metadata": {"annotations": changes}})

    # --- the program --------------------------------------------------------------------------------------------------

    def start(self, name: str = "reconciler", *more: str, kubeconfig: Path | None = None, **env: str) -> Program:
        """Start the program under the rendered account."""
        (port,) = free_ports(1)
        self.ports[name] = port
        arguments = ["-m", "gpustack.reconciler", "--namespace", NS, "--port", str(port), "--lease-seconds", "6", *more]
        account = kubeconfig or self.plane.account(ACCOUNT, NS)
        program = self.plane.python(name, *arguments, kubeconfig=account, **env)
        self.plane.programs[f"{name}-{next(NUMBERS)}"] = program
        self.programs.append(program)
        return program

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What `gpustack rollout ARGUMENTS` says to somebody who may do everything."""
        config = self.plane.kubeconfig("admin", self.plane.token)
        command = [sys.executable, "-m", "gpustack", "rollout", *arguments, "--kubeconfig", str(config), "-n", NS]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=env, check=False)

    def behind(self, proxy: Proxy) -> Path:
        """A kubeconfig of the program's account, by way of the proxy."""
        return self.plane.kubeconfig("behind", self.api.token_for(ACCOUNT, NS), server=proxy.address)

    def passes(self, proxy: Proxy, time: timedelta, machine: Machine) -> None:
        """So much TIME passes for the program behind PROXY, and it looks at what that means. Where nothing else happens
        it does so once a minute: so MACHINE is touched, once the Lease shows that it knows the time.
        """
        proxy.behind -= time
        now = proxy.now()

        def known() -> bool:
            renewed = self.api.get("Lease", LEASE, NS)["spec"]["renewTime"]
            return datetime.fromisoformat(renewed) > now - timedelta(seconds=30)

        wait_for(known, "the program knows the time")
        self.api.patch("Node", machine.name, {"metadata": {"annotations": {"example.com/touched": now.isoformat()}}})

    def log(self, program: Program) -> list[Body]:
        """What the program said."""
        lines = program.log.read_text("utf-8", "replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def leads(self, program: Program) -> bool:
        """Whether it says that it leads."""
        said = [line["message"] for line in self.log(program) if line["message"] in {"leading", "no longer leading"}]
        return bool(said) and said[-1] == "leading"

    def lease(self) -> Body:
        """The program's Lease."""
        return self.api.get("Lease", LEASE, NS)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def add(self, count: int, pool: str = "training", **machine: Any) -> list[Machine]:
        """Add bare nodes to a pool: with NFD's labels, and none of ours."""
        number = next(NUMBERS)
        added = [Machine(f"{pool}-{number}-{n}", labels={POOL: pool}, **machine) for n in range(count)]
        self.kubelets.add(*added)
        return added

    def node(self, machine: Machine) -> Body:
        """The Node."""
        return self.api.get("Node", machine.name)

    def labels(self, machine: Machine) -> dict[str, str]:
        """The Node's labels."""
        return dict(self.node(machine)["metadata"]["labels"])

    def annotations(self, machine: Machine) -> dict[str, str]:
        """The Node's annotations."""
        return dict(self.node(machine)["metadata"].get("annotations", {}))

    def phase(self, machine: Machine) -> str:
        """The phase of the Node's open operation, "" where none is open."""
        return self.labels(machine).get(keys.PHASE, "")

    def operation(self, machine: Machine) -> Body:
        """The record of the Node's open operation, empty where none is."""
        return dict(json.loads(self.annotations(machine).get(keys.OPERATION, "{}")))

    def last(self, machine: Machine) -> Body:
        """How the Node's last operation ended."""
        return dict(json.loads(self.annotations(machine).get(keys.LAST, "{}")))

    def driver_hash(self, machine: Machine) -> str:
        """The revision of the node's driver pod, if that is ready."""
        pods = ready_pods(self.api, NS, DRIVER, node=machine.name)
        return str(pods[0]["metadata"]["labels"][keys.HASH]) if len(pods) == 1 else ""

    def done(self, machine: Machine, *, outcome: str = "done") -> bool:
        """Whether the node is as it should be: no operation, no cordon, the newest driver, validated."""
        node = self.node(machine)
        return (
            keys.OPERATION not in node["metadata"].get("annotations", {})
            and not node["spec"].get("unschedulable")
            and self.last(machine).get("outcome") == outcome
            and self.driver_hash(machine) == self.newest()
            and bool(ready_pods(self.api, NS, VALIDATOR, node=machine.name))
        )

    def all_done(self, *machines: Machine, seconds: float = 120) -> None:
        """Wait until all nodes are as they should be; if not, the failure says what the program waits for."""
        for machine in machines:
            try:
                wait_for(lambda machine=machine: self.done(machine), f"{machine.name} is done", seconds, every=0.2)  # type: ignore[misc]
            except AssertionError as error:
                plan = self.start("why", "--plan", "--identity", "why")
                plan.process.wait(30)
                raise AssertionError(f"{error}; it waits:\n{plan.tail()}") from None

    def reaches(self, machine: Machine, phase: str, seconds: float = 60) -> None:
        """Wait until the node's operation is in PHASE."""
        wait_for(
            lambda: self.phase(machine) == phase, f"{machine.name} is in {phase or 'no phase'}", seconds, every=0.05
        )

    def wait_reason(self, policy: str, reason: str, seconds: float = 60) -> Body:
        """Wait until the NodePolicy's status says that nodes wait for REASON; that part of it."""

        def found() -> Body | None:
            waiting = self.policy(policy).get("status", {}).get("waiting", [])
            return next((one for one in waiting if one["reason"] == reason), None)

        answer = wait_for(found, f"nodes of {policy} wait: {reason}", seconds)
        assert answer is not None
        return answer

    def gpu_pod(self, machine: Machine, name: str = "", *, ends_in: int = 0, **more: Any) -> Body:
        """A running pod with a GPU on the node, which may take its time to end. Evicted, it does not come again."""
        name = name or f"job-{next(NUMBERS)}"
        body = pod(name, "default", gpus=1, nodeSelector={"kubernetes.io/hostname": machine.name}, **more)
        if ends_in:
            body["metadata"]["annotations"] = {STOP_ANNOTATION: str(ends_in)}
            body["spec"]["terminationGracePeriodSeconds"] = ends_in
        self.api.create(body)
        return wait_for(lambda: self._running(name), f"{name} runs")

    def _running(self, name: str) -> Body:
        found = self.api.find("Pod", name, "default")
        return found if found and is_ready(found) else {}

    # --- the end ------------------------------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Leave nothing to the next test: no program, node, pod, budget, Lease, or annotation of a NodePolicy."""
        for program in self.programs:
            if program.running:
                program.kill()
        self.programs.clear()
        for machine in self.kubelets.machines.values():
            with contextlib.suppress(ApiError):  # or it would stay, deleted, into the next test
                self.api.patch("Node", machine.name, {"metadata": {"finalizers": None}})
        self.kubelets.remove(*list(self.kubelets.machines.values()))
        for kind, space in (("Pod", NS), ("Pod", "default"), ("PodDisruptionBudget", "default"), ("Lease", NS)):
            for one in self.api.list(kind, space):
                with contextlib.suppress(ApiError):
                    self.api.delete(kind, one["metadata"]["name"], space, grace=0)
        for one in self.api.list("gpustack.dev/v1alpha1/NodePolicy"):
            self.api.delete("gpustack.dev/v1alpha1/NodePolicy", one["metadata"]["name"])
