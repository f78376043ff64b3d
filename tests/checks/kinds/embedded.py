"""Configurations inside a policy: device plugin, DCGM, node feature discovery, vGPU."""

from __future__ import annotations

from textwrap import indent

from tests.checks.kinds import Row

SLICED = "sharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: %s}\n"
MPS = "sharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: %s}\n"
CSV = "dcgmExporter:\n  config:\n    data: |\n"
RULE = """\
extraObjects:
- apiVersion: nfd.k8s-sigs.io/v1alpha1
  kind: NodeFeatureRule
  metadata: {name: gpus}
  spec:
    rules:
    - name: gpus
      labels: {%s: "1"}
      matchFeatures: [{feature: %s, matchExpressions: {vendor: {op: In, value: ["%s"]}}}]
"""


def plugin(text: str, more: str = "") -> str:
    """A policy with TEXT as its one configuration of the device plugin, the default."""
    return f"devicePlugin:\n  config:\n    default: one\n    data:\n      one: |\n{indent(text, ' ' * 8)}{more}"


def metrics(*rows: str) -> str:
    """A policy with ROWS as the exporter's list of metrics."""
    return CSV + indent("\n".join(rows), " " * 6) + "\n"


def vgpu(key: str, default: str = "default") -> str:
    """A policy with a file of the vGPU device manager."""
    text = f"version: v1\nvgpu-configs:\n  default:\n  - devices: all\n    {key}: {{A10-24Q: 1}}\n"
    head = "sandboxWorkloads: {enabled: true}\nvgpuDeviceManager:\n  enabled: true\n  config:\n"
    return f"{head}    default: {default}\n    data:\n      config.yaml: |\n{indent(text, ' ' * 8)}"


ROWS = [
    Row(
        "B29",
        "GPU505",
        "devicePlugin: {config: {default: any, data: {a100: 'version: v1', t4: 'version: v1'}}}",
        "devicePlugin: {config: {default: t4, data: {a100: 'version: v1', t4: 'version: v1'}}}",
    ),
    Row(
        "B29",
        "GPU505",
        "devicePlugin: {config: {name: ts, default: any}}\nreferences: [{kind: ConfigMap, name: ts, keys: [a, b]}]",
        "devicePlugin: {config: {name: ts, default: any}}\nreferences: [{kind: ConfigMap, name: ts}]",
        "the keys of somebody else's ConfigMap count where they are said",
    ),
    Row(
        "B29",
        "GPU506",
        "devicePlugin: {config: {data: {a100: 'version: v1', t4: 'version: v1'}}}",
        "devicePlugin: {config: {default: t4, data: {a100: 'version: v1', t4: 'version: v1'}}}",
        "several keys and no default",
    ),
    Row(
        "B30",
        "GPU501",
        plugin("version: v1\nflags: {renameByDefault: true}\n" + SLICED % 4),
        plugin("version: v1\n" + SLICED % 4),
    ),
    Row(
        "B30",
        "GPU501",
        plugin("version: v1\n" + SLICED.replace("    resources", "    replicas: 4\n    resources") % 4),
        plugin("version: v1\n" + SLICED % 4),
        "replicas above the list of resources",
    ),
    Row("B31", "GPU502", plugin("version: v1\n" + MPS % 1), plugin("version: v1\n" + MPS % 2)),
    Row("B31", "GPU502", plugin("version: v1\n" + SLICED % 0), plugin("version: v1\n")),
    Row("B32", "GPU503", plugin("version: v1\n" + MPS % 49), plugin("version: v1\n" + MPS % 48)),
    Row(
        "B32",
        "GPU503",
        plugin("version: v1\n" + MPS % 2 + SLICED.partition("\n")[2] % 2),
        plugin("version: v1\n" + MPS % 2),
        "timeSlicing beside mps",
    ),
    Row(
        "B32",
        "GPU503",
        plugin("version: v1\n" + MPS % 2, "mig: {strategy: mixed}\n"),
        plugin("version: v1\n" + MPS % 2, "mig: {strategy: single}\n"),
    ),
    Row(
        "B32",
        "GPU503",
        plugin(
            "version: v1\n" + MPS % 17,
            "nodePools: [{name: old, os: ubuntu22.04, gpuProduct: Tesla-V100-SXM2-32GB}]\n",
        ),
        plugin("version: v1\n" + MPS % 17, "nodePools: [{name: new, os: ubuntu22.04, gpuProduct: Tesla-T4}]\n"),
        "16 clients below compute capability 7.5",
    ),
    Row(
        "B32",
        "GPU509",
        plugin("version: v1\n" + MPS.replace("mps:", "mps:\n    failRequestsGreaterThanOne: false") % 4).replace(
            "devicePlugin:", "devicePlugin:\n  version: v0.19.2"
        ),
        plugin("version: v1\n" + MPS.replace("mps:", "mps:\n    failRequestsGreaterThanOne: false") % 4),
        "heeded from v0.20.0 on",
    ),
    Row(
        "B33",
        "GPU501",
        plugin("version: v1\n" + SLICED.replace("}", ", rename: nvidia.com/team-a}") % 4),
        plugin("version: v1\n" + SLICED % 4),
    ),
    Row(
        "B33",
        "GPU501",
        plugin("version: v1\n" + SLICED.replace("}", ", devices: [0, 1]}") % 4),
        plugin("version: v1\n" + SLICED.replace("}", ", devices: all}") % 4),
    ),
    Row(
        "B33",
        "GPU504",
        plugin("version: v1\n" + SLICED.replace("nvidia.com/gpu", "nvidia.com/a100") % 4),
        plugin("version: v1\n" + SLICED % 4),
    ),
    Row(
        "B35",
        "GPU507",
        "devicePlugin: {config: {default: time-slicing-config}}",
        "devicePlugin: {config: {name: time-slicing-config}}\n"
        "references: [{kind: ConfigMap, name: time-slicing-config}]",
    ),
    Row(
        "B35",
        "GPU532",
        "devicePlugin: {config: {create: true, name: ts, default: a}}",
        "devicePlugin: {config: {create: true, name: ts, default: a, data: {a: 'version: v1'}}}",
    ),
    Row(
        "B35",
        "GPU507",
        "devicePlugin: {config: {create: false, name: ts, data: {a: 'version: v1'}}}",
        "devicePlugin: {config: {create: false, name: ts}}\nreferences: [{kind: ConfigMap, name: ts}]",
    ),
    Row(
        "B53",
        "GPU520",
        metrics("DCGM_FI_DEV_GPU_TEMP, gauge, Temperature, in C"),
        metrics("DCGM_FI_DEV_GPU_TEMP, gauge, Temperature in C"),
    ),
    Row(
        "B53",
        "GPU520",
        metrics("DCGM_FI_DEV_GPU_TEMP, gauge, Temperature", "  # note"),
        metrics("DCGM_FI_DEV_GPU_TEMP, gauge, Temperature", "# note"),
        "an indented comment is data",
    ),
    Row(
        "B53",
        "GPU520",
        metrics("DCGM_FI_DEV_GPU_TMP, gauge, Temperature"),
        metrics("DCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, Temperature"),
        "new names are names as well",
    ),
    Row(
        "B53",
        "GPU520",
        metrics("DCGM_FI_DEV_GPU_TEMP, guage, Temperature"),
        metrics("DCGM_FI_DEV_GPU_TEMP, summary, Temperature"),
    ),
    Row(
        "B53",
        "GPU521",
        metrics("DCGM_FI_DEV_MIG_GI_INFO, gauge, Instances"),
        metrics("DCGM_FI_DEV_MIG_MODE, gauge, Mode"),
    ),
    Row(
        "B53",
        "GPU522",
        metrics("DCGM_FI_PROF_SM_ACTIVE, gauge, Busy")
        + "nodePools: [{name: desk, os: ubuntu22.04, gpuProduct: NVIDIA-GeForce-RTX-4090}]\n",
        metrics("DCGM_FI_PROF_SM_ACTIVE, gauge, Busy")
        + "nodePools: [{name: desk, os: ubuntu22.04, gpuProduct: NVIDIA-L4}]\n",
    ),
    Row(
        "B28",
        "GPU530",
        RULE % ("kubernetes.io/gpu", "pci.device", "10de"),
        RULE % ("example.com/gpu", "pci.device", "10de"),
    ),
    Row(
        "B28",
        "GPU530",
        RULE.replace("{vendor", "{app") % ("example.com/gpu", "kubernetes.label", "gpu"),
        RULE.replace("{vendor", "{app") % ("example.com/gpu", "local.label", "gpu"),
    ),
    Row(
        "B28",
        "GPU530",
        RULE % ("example.com/gpu", "pci.device", "0x10DE"),
        RULE % ("example.com/gpu", "pci.device", "10de"),
    ),
    Row("B28", "GPU531", RULE % ("gpu", "pci.device", "10de"), RULE % ("example.com/gpu", "pci.device", "10de")),
    Row("B58", "GPU540", vgpu("vgpuDevices"), vgpu("vgpu-devices")),
    Row("B58", "GPU154", vgpu("vgpu-devices", "A10-24Q"), vgpu("vgpu-devices"), "a default that the file lacks"),
    Row(
        "B58",
        "GPU153",
        "sandboxWorkloads: {enabled: true}\nvgpuDeviceManager: {enabled: true}\n"
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-L40S, workload: vm-vgpu}]",
        "sandboxWorkloads: {enabled: true}\nvgpuDeviceManager: {enabled: true}\n"
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-A10, workload: vm-vgpu}]",
        "no mediated devices from Ada on with new kernels",
    ),
    Row(
        "B58",
        "GPU152",
        "sandboxWorkloads: {enabled: true}\nvgpuDeviceManager: {enabled: true}\n"
        "nodePools: [{name: a, os: ubuntu24.04, kernel: 6.8.0-60-generic, gpuProduct: NVIDIA-L40S, workload: vm-vgpu}]",
        "sandboxWorkloads: {enabled: true}\nvgpuDeviceManager: {enabled: true}\n"
        "nodePools: [{name: a, os: ubuntu22.04, kernel: 5.15.0-1-generic, gpuProduct: NVIDIA-L40S, workload: vm-vgpu}]",
    ),
    Row(
        "B58",
        "GPU138",
        "driver: {licensingConfig: {configMapName: licence}}\n"
        "references: [{kind: ConfigMap, name: licence, keys: [gridd.conf]}]",
        "driver: {licensingConfig: {secretName: licence}}\n"
        "references: [{kind: Secret, name: licence, keys: [gridd.conf, client_configuration_token.tok]}]",
    ),
    Row(
        "B58",
        "GPU541",
        "sandboxWorkloads: {enabled: true}\nvgpuManager: {enabled: true, version: ''}",
        "sandboxWorkloads: {enabled: true}\n"
        "vgpuManager: {enabled: true, repository: registry.example.com/nvidia, version: 580.105.06}",
        "there is no public image",
    ),
    Row(
        "B57",
        "GPU160",
        "sandboxWorkloads: {enabled: true}\nkubevirt:\n  target: kubevirt\n  pciDevices: [{selector: '10DE:2236', "
        "resourceName: nvidia.com/GA102GL_A10, externalResourceProvider: false}]",
        "sandboxWorkloads: {enabled: true}\nkubevirt:\n  target: kubevirt\n  pciDevices: [{selector: '10DE:2236', "
        "resourceName: nvidia.com/GA102GL_A10, externalResourceProvider: true}]",
    ),
    Row(
        "B57",
        "GPU161",
        "sandboxWorkloads: {enabled: true}\nkubevirt:\n  target: kubevirt\n  pciDevices: [{selector: '10DE:2236', "
        "resourceName: nvidia.com/A10, externalResourceProvider: true}]",
        "sandboxWorkloads: {enabled: true}\nkubevirt:\n  target: kubevirt\n  pciDevices: [{selector: '10DE:2236', "
        "resourceName: nvidia.com/GA102GL_A10, externalResourceProvider: true}]",
    ),
]
