"""RuntimeClasses: by their handlers the container runtime finds NVIDIA's runtime (operator.md 1.4, 5.5)."""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.kube import metadata
from .toolkit_inputs import RuntimeClassesInputs


class RuntimeClasses(Component[RuntimeClassesInputs]):
    """The default class, and with CDI the two that pick a mode explicitly; handlers are called like the classes."""

    stage = "base"

    def manifests(self, inputs: RuntimeClassesInputs) -> Iterator[Body]:
        for name in inputs.names:
            if name in inputs.brought:
                continue
            labels = {keys.COMPONENT: "gpu-operator"}
            yield {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": metadata(name, labels=labels),
                "handler": name,
            }
