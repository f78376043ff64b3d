"""Inputs of the container toolkit and of the RuntimeClasses: a function for each component, called as it is."""

from ...cluster.resolve import CDI_CLASSES, Cluster
from ..parts.common_inputs import Inputs, OperandInputs, operand


def toolkit(cluster: Cluster) -> OperandInputs | None:
    """None where the nodes bring the toolkit. It takes no arguments, whatever the policy says (operator.md 5.2)."""
    spec = cluster.spec
    section = spec.toolkit
    if not section.enabled:
        return None
    return OperandInputs(**operand(spec, section, "toolkit") | {"args": ()})


class RuntimeClassesInputs(Inputs):
    """The default class, two more with `cdi`, one for each way of injecting a GPU; others bring those in `brought`."""

    name: str = "nvidia"
    cdi: bool = True
    brought: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((self.name, *(CDI_CLASSES if self.cdi else ()))))


def runtime_classes(cluster: Cluster) -> RuntimeClassesInputs | None:
    """None with the NRI plugin, which needs no RuntimeClass (operator.md 5.5)."""
    spec = cluster.spec
    if spec.cdi.nriPluginEnabled:
        return None
    brought = tuple(sorted({one.name for one in spec.references if one.kind == "RuntimeClass"}))
    return RuntimeClassesInputs(name=cluster.runtime_class, cdi=bool(spec.cdi.enabled), brought=brought)


def of_containers(cluster: Cluster) -> tuple[str, ...]:
    """The RuntimeClasses that give a container GPUs; none where claims do, or the NRI plugin."""
    classes = None if cluster.dra else runtime_classes(cluster)
    return classes.names if classes else ()
