"""What happens to nodes from outside: node feature discovery that flaps, an autoscaler, somebody's cordon."""

from __future__ import annotations

from tests.control_plane.api import Api
from tests.control_plane.kubelet import Kubelets
from tests.control_plane.machine import Machine, nfd_labels


def lose_nfd_labels(api: Api, *machines: Machine) -> None:
    """Node feature discovery restarts and takes its labels from the nodes (P32)."""
    for machine in machines:
        api.patch("Node", machine.name, {"metadata": {"labels": dict.fromkeys(nfd_labels(machine))}})


def set_nfd_labels(api: Api, *machines: Machine) -> None:
    """Node feature discovery has looked at the nodes (again)."""
    for machine in machines:
        machine.nfd = True
        api.patch("Node", machine.name, {"metadata": {"labels": nfd_labels(machine)}})


def scale_up(kubelets: Kubelets, name: str, count: int, **machine: object) -> list[Machine]:
    """An autoscaler adds bare nodes: Ready, and not yet labelled by anybody but the cloud."""
    added = [Machine(f"{name}-{number}", nfd=False, **machine) for number in range(count)]  # type: ignore[arg-type]  # any field of Machine
    kubelets.add(*added)
    return added


def cordon(api: Api, machine: Machine, *, yes: bool = True) -> None:
    """Somebody cordons a node, or takes that back."""
    api.patch("Node", machine.name, {"spec": {"unschedulable": yes or None}})
