"""Manifests that the policy brings along under `extraObjects`. What others refer to is applied before them."""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.common_inputs import Whole

EARLY = {
    *("ConfigMap", "ServiceAccount", "PersistentVolumeClaim"),
    *("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
}


class ExtraObjects(Component[Whole]):
    """Objects that pods of later stages may name: applied with the base."""

    stage = "base"

    def manifests(self, inputs: Whole) -> Iterator[Body]:
        yield from (body for body in inputs.bodies if body["kind"] in EARLY)


class ExtraWorkloads(Component[Whole]):
    """All other objects: applied with the operands."""

    def manifests(self, inputs: Whole) -> Iterator[Body]:
        yield from (body for body in inputs.bodies if body["kind"] not in EARLY)
