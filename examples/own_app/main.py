"""gpustack's constructs in a cdk8s app of your own: `python main.py FOLDER` writes the manifests to FOLDER.

The app has one chart with two constructs: NVIDIA's device plugin as gpustack renders it, and a ConfigMap of your own
that the plugin reads. Nothing here needs a policy file.
"""

from __future__ import annotations

import sys

import cdk8s
from constructs import Construct

from gpustack.components import DevicePlugin
from gpustack.components.parts.common_inputs import Common, Validation
from gpustack.components.plugin.device_plugin_inputs import DevicePluginInputs, PluginConfig

NAMESPACE = "gpu-operator"
PLUGIN = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
VALIDATOR = "nvcr.io/nvidia/gpu-operator:v26.7.0"

SHARED = """\
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""


class SharingConfig(Construct):
    """A construct as you would write it yourself: the configurations that nodes may choose from."""

    def __init__(self, scope: Construct, id: str, name: str) -> None:  # noqa: A002 - cdk8s' own name for it
        super().__init__(scope, id)
        config_map = cdk8s.ApiObject(
            self,
            "configs",
            api_version="v1",
            kind="ConfigMap",
            metadata=cdk8s.ApiObjectMetadata(name=name, namespace=NAMESPACE),
        )
        config_map.add_json_patch(cdk8s.JsonPatch.add("/data", {"exclusive": "version: v1\n", "shared": SHARED}))


def main(folder: str) -> None:
    """Write the chart to FOLDER."""
    app = cdk8s.App(outdir=folder)
    chart = cdk8s.Chart(app, "gpus", disable_resource_name_hashes=True)
    config = SharingConfig(chart, "sharing", "gpu-sharing")
    plugin = DevicePlugin(
        chart,
        "device-plugin",
        DevicePluginInputs(
            common=Common(namespace=NAMESPACE, driver=False, validation=Validation(image=VALIDATOR)),
            image=PLUGIN,
            mig_strategy="single",
            config=PluginConfig(config_map="gpu-sharing", default="exclusive", image=PLUGIN),
        ),
    )
    plugin.node.add_dependency(config)
    app.synth()


if __name__ == "__main__":
    main(sys.argv[1])
