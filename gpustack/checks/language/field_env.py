"""Rules about variables and arguments of a component that a field of the policy, or its own script, is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..rule import Hit, hit, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster

OWNED = {
    "KERNEL_MODULE_TYPE": "kernelModuleType",
    "OPEN_KERNEL_MODULES_ENABLED": "kernelModuleType",
    "GPU_DIRECT_RDMA_ENABLED": "rdma.enabled",
    "USE_HOST_MOFED": "rdma.useHostMofed",
}
"""Variables of the driver's container, and the field that sets them (operator.md 7.1)."""
SCRIPTS = ("devicePlugin", "migManager", "toolkit")
"""Components whose container is a shell that runs /bin/entrypoint.sh (operator.md 5.2)."""


@rule("GPU190", "warning")
def variable_of_a_field(cluster: Cluster) -> Iterator[Hit]:
    """A variable of the driver that a field of the policy sets."""
    spec = cluster.spec
    sections: list[tuple[str, Any]] = (
        [(f"drivers[{index}]", driver) for index, driver in enumerate(spec.drivers)] if cluster.listed else []
    )
    if not cluster.listed and spec.driver.enabled:
        sections = [("driver", spec.driver)]
    for path, section in sections:
        for index, entry in enumerate(section.env or ()):
            if entry.name in OWNED:
                field = f"spec.{path}.{OWNED[entry.name]}"
                yield hit(f"spec.{path}.env[{index}]", section=path, entry=entry.name, setting=field)


@rule("GPU191", "warning")
def arguments_of_a_shell(cluster: Cluster) -> Iterator[Hit]:
    """Arguments for a component whose container is a shell."""
    for name in SCRIPTS[:2]:
        section = getattr(cluster.spec, name)
        if section.enabled and section.args and "entrypoint.sh" not in section.args[0]:
            yield hit(f"spec.{name}.args", name=name, argument=repr(section.args[0]))
