"""Inputs of the RuntimeClasses."""

from ...cluster.resolve import Cluster
from ..parts.common_inputs import Inputs

CDI_CLASSES = ("nvidia-cdi", "nvidia-legacy")


class RuntimeClassesInputs(Inputs):
    """The default class, two more with `cdi`, one for each way of injecting a GPU; others bring those in `brought`."""

    name: str = "nvidia"
    cdi: bool = True
    brought: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((self.name, *(CDI_CLASSES if self.cdi else ()))))


def from_cluster(cluster: Cluster) -> RuntimeClassesInputs | None:
    """None with the NRI plugin, which needs no RuntimeClass (operator.md 5.5)."""
    spec = cluster.spec
    if spec.cdi.nriPluginEnabled:
        return None
    brought = tuple(sorted({one.name for one in spec.references if one.kind == "RuntimeClass"}))
    return RuntimeClassesInputs(name=cluster.runtime_class, cdi=bool(spec.cdi.enabled), brought=brought)


def of_containers(cluster: Cluster) -> tuple[str, ...]:
    """The RuntimeClasses that give a container GPUs; none where claims do, or the NRI plugin."""
    classes = None if cluster.dra else from_cluster(cluster)
    return classes.names if classes else ()
