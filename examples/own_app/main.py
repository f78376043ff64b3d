"""gpustack's constructs in a cdk8s app of your own: `python main.py FOLDER` writes the manifests to FOLDER.

The app has one chart with two constructs: NVIDIA's device plugin as gpustack renders it, and a ConfigMap of your own
that the plugin reads. The cluster is described here; a policy file would do as well.
"""

from __future__ import annotations

import sys

import cdk8s
from constructs import Construct

from gpustack.cluster import from_values
from gpustack.components import DevicePlugin

NAMESPACE = "gpu-operator"
CLUSTER = from_values(
    {
        "release": "v26.7.0",
        "cluster": {"kubernetesVersion": "1.34", "namespace": NAMESPACE},
        "driver": {"enabled": False},
        "devicePlugin": {"config": {"name": "gpu-sharing", "default": "exclusive"}},
    }
)
"""What a policy file would say; `from_policy` reads one."""

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
    plugin = DevicePlugin(chart, "device-plugin", CLUSTER)
    plugin.node.add_dependency(config)
    app.synth()


if __name__ == "__main__":
    main(sys.argv[1])
