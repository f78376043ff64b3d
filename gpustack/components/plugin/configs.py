"""The ConfigMaps compiled from the policy: configurations of plugin and MIG, GPU clients, metrics."""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.kube import config_map
from .configs_inputs import ConfigsInputs


class Configs(Component[ConfigsInputs]):
    """One ConfigMap per component that the policy configures; applied before the pods that mount them."""

    stage = "base"

    def manifests(self, inputs: ConfigsInputs) -> Iterator[Body]:
        for name, data in inputs.config_maps.items():
            yield config_map(name, inputs.namespace, data)
