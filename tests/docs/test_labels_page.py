"""docs/labels.md has every label without which a rendered DaemonSet starts nowhere."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from tests.project import ROOT

PAGE = (ROOT / "docs" / "labels.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (.+)\n((?:(?!#).*\n)*)", PAGE, re.MULTILINE))
DEPLOY = "nvidia.com/gpu.deploy."

# operator.md 2.2 and 2.4
SETS = {
    "container": "driver gpu-feature-discovery container-toolkit device-plugin dcgm dcgm-exporter node-status-exporter "
    "operator-validator client mig-manager",
    "vm-passthrough": "sandbox-device-plugin sandbox-validator vfio-manager kata-manager cc-manager client",
    "kata": "kata-sandbox-device-plugin sandbox-validator vfio-manager kata-manager cc-manager client",
    "vm-vgpu": "sandbox-device-plugin vgpu-manager vgpu-device-manager sandbox-validator cc-manager client",
    "DRA": "driver dra-driver dra-validator dcgm-dra dcgm-exporter-dra",
}


def labels(section: str) -> dict[str, str]:
    """The labels that the commands of SECTION set."""
    commands = "".join(re.findall(r"^```sh\n(.*?)^```", SECTIONS[section], re.MULTILINE | re.DOTALL))
    words = shlex.split(commands.replace("\\\n", " "))
    return dict(word.split("=") for word in words if word.startswith("nvidia.com/"))


@pytest.mark.parametrize("section", SETS)
def test_each_workload_has_the_operators_labels(section: str) -> None:
    """The commands set exactly what the operator sets for the workload."""
    found = labels(section)
    assert {key.removeprefix(DEPLOY) for key in found if key.startswith(DEPLOY)} == set(SETS[section].split())
    assert found["nvidia.com/gpu.present"] == "true"
    assert all(value == "true" for key, value in found.items() if key.startswith(DEPLOY))


@pytest.mark.parametrize(
    ("cluster", "sections"),
    [
        ("prod-eks", ["container"]),
        ("train-dgx", ["container"]),
        ("openshift-vgpu", ["container"]),
        ("three-drivers", ["container"]),
        ("vm-kubevirt", ["container", "vm-passthrough", "vm-vgpu"]),
        ("kata-confidential", ["container", "kata", "vm-vgpu"]),
        ("dra-gb200", ["DRA"]),
    ],
)
def test_rendered_daemonsets_find_their_nodes(cluster: str, sections: list[str]) -> None:
    """Each label of NVIDIA's that a DaemonSet of the examples selects by is on the page, and set for its workload."""
    found = {key for section in sections for key in labels(section)}
    daemonsets = sorted((ROOT / "dist" / cluster).glob("*/daemonset-*.yaml"))
    assert daemonsets
    for path in daemonsets:
        selector = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["template"]["spec"].get("nodeSelector", {})
        for key in selector:
            if key.startswith("nvidia.com/") and key != "nvidia.com/mps.capable":  # GPU feature discovery sets that
                assert key in found or f"`{key}=<" in PAGE, f"{path.name}: {key}"
