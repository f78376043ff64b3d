"""The file of the vGPU device manager is read as the manager reads it."""

from __future__ import annotations

import pytest

from gpustack.catalog import texts
from gpustack.policy.configurations.mig_configs import read_vgpu_config

HEAD = "version: v1\nvgpu-configs:\n  default:\n"


@pytest.mark.parametrize("release", ["v26.7.0", "v26.3.1", "v25.10.1"])
def test_the_releases_files_are_good(release: str) -> None:
    """What the operator ships has nothing wrong with it."""
    assert read_vgpu_config(texts.vgpu_devices_config(release)) == ()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (HEAD + "  - {devices: all, vgpuDevices: {A10-24Q: 1}}\n", "vgpuDevices is unknown"),
        (HEAD + "  - {vgpu-devices: {A10-24Q: 1}}\n", "devices is missing"),
        (HEAD + "  - {devices: all}\n", "vgpu-devices is missing"),
        (HEAD + "  - {devices: some, vgpu-devices: {}}\n", "devices is 'some'"),
        (HEAD + "  - {devices: all, vgpu-devices: {A10_24Q: 1}}\n", "A10_24Q is not a type of vGPU"),
        (HEAD + "  - {devices: all, vgpu-devices: {A10-24Q: 0}}\n", "the number of A10-24Q is 0"),
        (HEAD + "  - {devices: all, vgpu-devices: {A100-5C: 1, A100-1-5C: 1}}\n", "types that share a GPU in time"),
        (HEAD + '  - {devices: all, device-filter: "0x10DE2236", vgpu-devices: {}}\n', "is not a GPU of NVIDIA"),
        (HEAD + "    []\n", "the set default is empty"),
        ("vgpu-configs: {a: [{devices: all, vgpu-devices: {}}]}\n", "version is missing"),
        ("version: v2\nvgpu-configs: {a: [{devices: all, vgpu-devices: {}}]}\n", "version is not v1"),
        ("version: v1\n", "vgpu-configs is missing"),
        ("version: v1\nvgpu-configs: {}\n", "vgpu-configs is empty"),
        (
            "version: v1\nmig-configs: {}\nvgpu-configs: {a: [{devices: all, vgpu-devices: {}}]}\n",
            "mig-configs is unknown",
        ),
        (HEAD.replace("default", "-x") + "  - {devices: all, vgpu-devices: {}}\n", "no node can ask for the set"),
    ],
)
def test_what_it_refuses(text: str, what: str) -> None:
    """Every mistake is told once (NVIDIA/vgpu-device-manager, api/spec/v1 and pkg/types)."""
    (problem,) = read_vgpu_config(text)
    assert what in problem.what
