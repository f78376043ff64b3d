"""The control plane is a real one, and simulated kubelets are good enough for its controllers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.control_plane.api import ApiError
from tests.control_plane.cluster import ROOT, ControlPlane, wait_for
from tests.control_plane.kubelet import SECONDS_ANNOTATION, STOP_ANNOTATION, Kubelets
from tests.control_plane.machine import Machine
from tests.control_plane.objects import budget, daemon_set, is_ready, pod, ready_pods

HASH = "controller-revision-hash"


def test_release(control_plane: ControlPlane) -> None:
    """The API server is the pinned release, and behaves as the one that was asked for."""
    version = control_plane.admin.request("GET", "/version").body
    assert version["gitVersion"] == "v1.37.2"
    assert f"{version['emulationMajor']}.{version['emulationMinor']}" == control_plane.emulated


def test_daemon_set_runs_on_simulated_nodes(control_plane: ControlPlane, kubelets: Kubelets, namespace: str) -> None:
    """A DaemonSet's pods come up on the nodes that it selects; a node that loses the label loses its pod."""
    api = control_plane.admin
    kubelets.add(*(Machine(f"plain-{number}", labels={"role": "gpu"}) for number in range(3)), Machine("other"))
    api.create(daemon_set("operand", namespace, nodeSelector={"role": "gpu"}))
    wait_for(lambda: len(ready_pods(api, namespace, "operand")) == 3, "three pods are ready")
    status = wait_for(
        lambda: (found := api.get("DaemonSet", "operand", namespace)["status"]).get("numberReady") == 3 and found,
        "the controller counts three",
    )
    assert status["desiredNumberScheduled"] == 3
    api.patch("Node", "plain-1", {"metadata": {"labels": {"role": None}}})
    wait_for(lambda: not api.list("Pod", namespace, fields="spec.nodeName=plain-1"), "the pod is gone")
    assert len(ready_pods(api, namespace, "operand")) == 2


def test_on_delete(control_plane: ControlPlane, kubelets: Kubelets, namespace: str) -> None:
    """OnDelete (T3): a new template is a new revision, the pod stays until it is deleted, and comes back as new."""
    api = control_plane.admin
    kubelets.add(Machine("keeps"))
    api.create(daemon_set("driver", namespace, strategy="OnDelete"))
    (old,) = wait_for(lambda: ready_pods(api, namespace, "driver"), "the pod is ready")
    change = {"spec": {"template": {"metadata": {"annotations": {"new": "yes"}}}}}
    changed = api.patch("DaemonSet", "driver", change, namespace)
    wait_for(lambda: len(api.list("ControllerRevision", namespace)) == 2, "there are two revisions")
    wait_for(
        lambda: (
            api.get("DaemonSet", "driver", namespace)["status"]["observedGeneration"]
            == changed["metadata"]["generation"]
        ),
        "the controller has seen the change",
    )
    newest = max(api.list("ControllerRevision", namespace), key=lambda one: int(one["revision"]))
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in api.list("ControllerRevision", namespace)} == {
        changed["metadata"]["uid"]
    }
    (still,) = ready_pods(api, namespace, "driver")
    assert still["metadata"]["uid"] == old["metadata"]["uid"]
    assert still["metadata"]["labels"][HASH] != newest["metadata"]["labels"][HASH]
    api.delete("Pod", old["metadata"]["name"], namespace, uid=old["metadata"]["uid"])
    (new,) = wait_for(
        lambda: [
            one for one in ready_pods(api, namespace, "driver") if one["metadata"]["uid"] != old["metadata"]["uid"]
        ],
        "the new pod is ready",
    )
    assert new["metadata"]["labels"][HASH] == newest["metadata"]["labels"][HASH]


def test_eviction_keeps_to_the_budget(control_plane: ControlPlane, kubelets: Kubelets, namespace: str) -> None:
    """The Eviction API (T2): 429 with the cause DisruptionBudget while a budget forbids it, a dry run too; then 201."""
    api = control_plane.admin
    kubelets.add(Machine("evicts"))
    api.create(pod("job", namespace, labels={"app": "job"}))
    wait_for(lambda: is_ready(api.get("Pod", "job", namespace)), "the pod is ready")
    api.create(budget("job", namespace, {"app": "job"}, 1))
    wait_for(
        lambda: api.get("PodDisruptionBudget", "job", namespace).get("status", {}).get("currentHealthy") == 1,
        "the budget counts the pod",
    )
    for dry_run in (True, False):
        with pytest.raises(ApiError) as refused:
            api.evict("job", namespace, dry_run=dry_run)
        assert refused.value.status == 429
        assert "needs 1 healthy pods and has 1 currently" in "".join(refused.value.causes)
    api.patch("PodDisruptionBudget", "job", {"spec": {"minAvailable": 0}}, namespace)
    wait_for(
        lambda: api.get("PodDisruptionBudget", "job", namespace)["status"]["disruptionsAllowed"] == 1,
        "the budget allows one",
    )
    assert api.evict("job", namespace).status == 201
    wait_for(lambda: api.find("Pod", "job", namespace) is None, "the pod is gone")


def test_life_of_a_pod(control_plane: ControlPlane, kubelets: Kubelets, namespace: str) -> None:
    """A job succeeds after its time; a pod that does not end is killed at the end of its grace period."""
    api = control_plane.admin
    kubelets.add(Machine("lives"))
    job = pod("job", namespace, restartPolicy="Never")
    job["metadata"]["annotations"] = {SECONDS_ANNOTATION: "0.2"}
    api.create(job)
    wait_for(lambda: api.get("Pod", "job", namespace)["status"]["phase"] == "Succeeded", "the job is done")
    slow = pod("slow", namespace)
    slow["metadata"]["annotations"] = {STOP_ANNOTATION: "3600"}
    api.create(slow)
    wait_for(lambda: is_ready(api.get("Pod", "slow", namespace)), "the pod is ready")
    begun = time.monotonic()
    api.delete("Pod", "slow", namespace, grace=1)
    wait_for(lambda: api.find("Pod", "slow", namespace) is None, "the pod is gone")
    assert time.monotonic() - begun >= 1


def test_node_that_is_down(control_plane: ControlPlane, kubelets: Kubelets, namespace: str) -> None:
    """On a node that is down a deleted pod stays, and the node is tainted as unreachable; then it comes back."""
    api, machine = control_plane.admin, Machine("dies")
    kubelets.add(machine)
    api.create(pod("app", namespace))
    wait_for(lambda: is_ready(api.get("Pod", "app", namespace)), "the pod is ready")
    kubelets.add(Machine("lives-on"))  # where all nodes of a zone are down, Kubernetes suspects itself and taints none
    kubelets.down(machine)
    wait_for(
        lambda: (
            {"NoSchedule", "NoExecute"}
            <= {
                taint["effect"]
                for taint in api.get("Node", "dies")["spec"].get("taints", [])
                if taint["key"] == "node.kubernetes.io/unreachable"
            }
        ),
        "the node is tainted",
    )
    api.delete("Pod", "app", namespace, grace=1)
    time.sleep(1.5)  # longer than the grace period: that nothing happens can't be waited for
    assert "deletionTimestamp" in api.get("Pod", "app", namespace)["metadata"]
    kubelets.up(machine)
    wait_for(lambda: api.find("Pod", "app", namespace) is None, "the pod is gone")
    wait_for(lambda: not api.get("Node", "dies")["spec"].get("taints"), "the taints are gone")


CHILD = """\
import sys
from pathlib import Path
from tests.control_plane.process import Program
print(Program("sleeper", ["/bin/sh", "-c", "exec sleep 600"], Path(sys.argv[1])).process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_killed_test_run_leaves_no_program(tmp_path: Path) -> None:
    """When the test run is killed (SIGKILL), the programs that it started end too."""
    parent = subprocess.Popen(
        [sys.executable, "-c", CHILD, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_for(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n", "the program runs")
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{child}/exe").exists(), "the program has ended")


PROGRAM = """\
import os, sys, yaml
from tests.control_plane.api import Api, ApiError
config = yaml.safe_load(open(os.environ["KUBECONFIG"]))
where = config["clusters"][0]["cluster"]
api = Api(int(where["server"].rpartition(":")[2]), where["certificate-authority"], config["users"][0]["user"]["token"])
for node in api.list("Node"):
    print("sees", node["metadata"]["name"], flush=True)
try:
    api.list("Secret")
except ApiError as error:
    print("is refused", error.status, flush=True)
"""


def test_program_under_an_account(control_plane: ControlPlane, kubelets: Kubelets, namespace: str) -> None:
    """A program that a test starts has exactly the rights of its ServiceAccount."""
    api = control_plane.admin
    kubelets.add(Machine("seen"))
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": namespace}})
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": namespace}}
    api.create(
        {**role, "kind": "ClusterRole", "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]}
    )
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    api.create({**role, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": ref})
    kubeconfig = control_plane.account("reader", namespace)
    program = control_plane.python("reader", "-W", "ignore", "-c", PROGRAM, kubeconfig=kubeconfig)
    wait_for(lambda: not program.running, "the program has ended")
    assert program.log.read_text().splitlines() == ["sees seen", "is refused 403"]
