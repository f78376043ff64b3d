"""What a test of a whole rollout needs works together: a plane of its own, nodes, rendered manifests, an outage."""

from __future__ import annotations

from tests.control_plane.actors import labels
from tests.control_plane.cluster import START_SECONDS, wait_for
from tests.control_plane.conftest import NewControlPlane, NewKubelets
from tests.control_plane.machine import Machine
from tests.control_plane.manifests import DIST, apply_cluster
from tests.control_plane.objects import ready_pods
from tests.control_plane.pace import Pace


def test_nodes_outlive_an_outage_of_the_api_server(
    new_control_plane: NewControlPlane, new_kubelets: NewKubelets
) -> None:
    """Three nodes come up though the API server is killed and started again in the middle; nothing is lost."""
    plane = new_control_plane()
    apply_cluster(plane.admin, DIST / "prod-eks")
    nodes = new_kubelets(plane, Pace(start=0.2))
    nodes.add(*(Machine(f"gpu-{n}", labels=labels.deployed(), host_driver=True, toolkit=True) for n in range(3)))
    wait_for(lambda: plane.admin.list("Pod", "gpu-operator", fields="status.phase=Running"), "it has begun")
    plane.programs["kube-apiserver"].kill()
    plane.run("kube-apiserver").wait_until(plane.serves, START_SECONDS)
    wait_for(
        lambda: len(ready_pods(plane.admin, "gpu-operator", "nvidia-operator-validator")) == 3, "all are validated"
    )
