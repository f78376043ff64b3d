"""Mistakes that were found in public configurations of clusters, each in a small policy of our own.

Most of these files were accepted by Helm, by the operator and by the API server, and then ignored. Here each is told, by
which rule is what the table says.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from gpustack.checks.rule import rules_over
from gpustack.checks.subjects import Written
from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.stack import compile_stack
from gpustack.model import GpustackError
from gpustack.policy.load import load, spec_key
from tests.checks.kinds.embedded import MPS, SLICED, metrics, plugin
from tests.checks.kinds.monitoring import alert, monitor
from tests.checks.snippets import EVERY, findings, loaded

POOL = "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: %s, gpusPerNode: 8}]\n"

MISTAKES: list[tuple[str, str, str]] = [
    # A default that names a key of a ConfigMap which is nowhere
    ("01", "GPU201", "devicePlugin: {config: {name: time-slicing-all, default: any}}"),
    # An alert on the power limit, which no list of metrics has; labels of pods beside honorLabels
    ("05", "GPU605", alert("DCGM_FI_DEV_POWER_USAGE / DCGM_FI_DEV_POWER_MGMT_LIMIT > 0.9")),
    ("05", "GPU607", monitor(", honorLabels: true") + alert('DCGM_FI_DEV_FB_USED{exported_container!="a"} > 1')),
    # Settings that no release heeds any more
    ("07", "GPU104", "operator: {defaultRuntime: containerd}"),
    ("07", "GPU104", "cdi: {enabled: false, default: true}"),
    # What Helm would do with CRDs
    ("11", "GPU016", "operator: {upgradeCRD: true}"),
    # All defaults of a chart of 2023 copied: names of the chart, sections of the operator's pod, settings that cancel out
    ("13", "GPU016", "driver: {upgradePolicy: {gpuPodDeletion: {force: false}}}"),
    ("13", "GPU016", "operator: {cleanupCRD: false, logging: {level: info}}"),
    ("13", "GPU016", "node-feature-discovery: {worker: {}}"),
    ("13", "GPU104", "dcgm: {enabled: true, hostPort: 5555}"),
    (
        "13",
        "GPU470",
        "driver: {upgradePolicy: {autoUpgrade: true}, manager: {env: [{name: ENABLE_AUTO_DRAIN, value: 'true'}]}}",
    ),
    # A toolkit where the node image has one
    ("19", "GPU454", "cluster: {platform: aks-ubuntu}\ntoolkit: {enabled: true}\ndriver: {enabled: true}"),
    # A key twice: the second one wins without a word
    ("21", "GPU004", ""),
    # Keys at the wrong place
    ("23", "GPU016", "driver: {use_ocp_driver_toolkit: true}"),
    ("23", "GPU016", "validator: {enabled: true}"),
    ("71", "GPU016", "driver: {use_ocp_driver_toolkit: true}"),
    # More clients than MPS serves
    ("27", "GPU503", plugin("version: v1\n" + MPS % 49)),
    # Layouts of an H200 on an H100
    (
        "29",
        "GPU301",
        "mig: {strategy: mixed}\n"
        + POOL.replace("8}", "8, sharing: {mig: {layout: {2g.35gb: 3}}}}") % "NVIDIA-H100-80GB-HBM3",
    ),
    # Counters that are commented out, and an alert on them
    ("31", "GPU605", metrics("DCGM_FI_DEV_GPU_TEMP, gauge, Temperature") + alert("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0")),
    # Many configurations and no default; strategies beside the cluster's own
    ("35", "GPU506", "devicePlugin: {config: {data: {v100: 'version: v1', a100: 'version: v1'}}}"),
    ("35", "GPU305", "mig: {strategy: mixed}\n" + plugin("version: v1\nflags: {migStrategy: single}\n")),
    # Values of another chart
    ("37", "GPU016", "config: {map: {default: 'version: v1'}}"),
    ("37", "GPU016", "runtimeClassName: nvidia"),
    # Replicas to turn sharing off
    ("43", "GPU502", plugin("version: v1\n" + SLICED % 0)),
    ("81", "GPU502", plugin("version: v1\n" + MPS % 1)),
    # Tolerations for one value of a taint that has another
    (
        "55",
        "GPU803",
        "daemonsets: {tolerations: [{key: nvidia.com/gpu, operator: Equal, value: present, effect: NoSchedule}]}\n"
        "nodePools: [{name: a, os: ubuntu22.04, taints: [{key: nvidia.com/gpu, value: 'true', effect: NoSchedule}]}]",
    ),
    # camelCase in the MIG manager's file
    (
        "57",
        "GPU306",
        "migManager:\n  config:\n    data:\n      config.yaml: |\n        version: v1\n        mig-configs:\n"
        "          a: [{devices: all, migEnabled: true, migDevices: {1g.10gb: 7}}]\n",
    ),
    # A layout for 80 GB boards, applied to others
    (
        "59",
        "GPU301",
        "mig: {strategy: mixed}\nmigManager:\n  config:\n    data:\n      config.yaml: |\n        version: v1\n"
        "        mig-configs:\n          seven: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]\n"
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-H200, sharing: {mig: {config: seven}}}]\n",
    ),
    # DaemonSets have no affinity
    ("65", "GPU016", "daemonsets: {affinity: {nodeAffinity: {}}}"),
    # A second device plugin beside the stack's own
    (
        "67",
        "GPU809",
        "extraObjects: [{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: plugin}, "
        "spec: {chart: {spec: {chart: nvidia-device-plugin}}}}]",
    ),
    # A whole version number where a branch is asked for
    (
        "73",
        "GPU441",
        "driver: {usePrecompiled: true, version: 580.173.02}\n"
        "nodePools: [{name: a, os: ubuntu22.04, kernel: 5.15.0-141-generic}]",
    ),
    # Keys of 2021
    ("75", "GPU016", "toolkit: {securityContext: {privileged: true}}"),
    ("75", "GPU016", "platform: {openshift: true}"),
    # GPUs that KubeVirt and the device plugin both offer
    (
        "83",
        "GPU160",
        "sandboxWorkloads: {enabled: true}\nkubevirt:\n  target: kubevirt\n"
        "  pciDevices: [{selector: '10DE:2786', resourceName: nvidia.com/RTX_4070}]\n",
    ),
    # Booleans in quotes
    ("85", "GPU017", 'driver: {enabled: "true"}'),
]
"""Number of the file, the rule that tells, and a policy's part with the mistake."""

DOCUMENTS = {
    "ClusterPolicy of the operator": "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec: {}\n",
    "NVIDIADriver of the operator": "apiVersion: nvidia.com/v1alpha1\nkind: NVIDIADriver\nmetadata: {name: a}\nspec: {}\n",
    "HelmRelease": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec: {values: {}}\n",
    "Application with a variable": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n"
    "spec: {source: {helm: {valuesObject: ${VALUES}}}}\n".replace("{VALUES}}}}", "{VALUES}"),
    "values of a chart around the chart": "gpu-operator: {driver: {enabled: false}}\n",
    "values": "driver: {enabled: false}\ntoolkit: {enabled: false}\n",
    "a configuration of the device plugin": "version: v1\nsharing: {mps: {}}\n",
    "a part of KubeVirt's configuration": "permittedHostDevices: {mediatedDevices: []}\n",
}
"""Files that are no policy, but something that people have."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all renders."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def told(snippet: str, store: Store) -> set[str]:
    """The ids of everything that is said about a policy with SNIPPET."""
    try:
        policy = loaded(snippet)
    except GpustackError as error:
        return {finding.rule for finding in error.findings}
    written = Written(policy.spec, policy.merged)
    origins = {finding.rule for rule in rules_over("origins") for finding in rule.findings(written)}
    return origins | {finding.rule for finding in findings(snippet, store)}


def written(folder: Path, text: str) -> Path:
    """A file with TEXT."""
    path = folder / "a.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("file", "rule", "snippet"), [row for row in MISTAKES if row[2]])
def test_the_mistake_is_told(file: str, rule: str, snippet: str, store: Store) -> None:
    """By the rule that the table names."""
    assert rule in told(snippet, store), file


def test_a_key_that_stands_twice(tmp_path: Path) -> None:
    """The same section twice: both places are named."""
    text = "apiVersion: gpustack.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n"
    sections = (
        "vgpuDeviceManager:\n  enabled: true\nmig: {strategy: single}\nvgpuDeviceManager:\n  config: {name: mine}\n"
    )
    with pytest.raises(GpustackError) as caught:
        load(written(tmp_path, text + indent(sections, "  ")), root=tmp_path)
    (finding,) = caught.value.findings
    assert (finding.rule, finding.location and finding.location.line) == ("GPU004", 8)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_no_policy_is_recognised(name: str, tmp_path: Path) -> None:
    """Whoever hands us what they have is told what it is, and how to make a policy of it."""
    with pytest.raises(GpustackError) as caught:
        load(written(tmp_path, DOCUMENTS[name]), root=tmp_path)
    assert [finding.rule for finding in caught.value.findings] == ["GPU012"]
    assert caught.value.findings[0].remedy


GOOD = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: a}
spec:
  release: v26.7.0
  cluster: {kubernetesVersion: "1.34", platform: k3s, containerRuntime: containerd}
  driver: {enabled: false}
  toolkit:
    env:
    - {name: CONTAINERD_SET_AS_DEFAULT, value: "false"}
  nodePools: [{name: a, os: ubuntu24.04}]
"""


def test_a_file_without_a_mistake(tmp_path: Path, store: Store) -> None:
    """One of the files does everything right (17: k3s with a driver on the host), and so nothing is told off."""
    policy = load(written(tmp_path, GOOD), root=tmp_path)
    found = compile_stack(policy.spec, spec_key(policy.merged), store, EVERY).findings
    assert [finding.rule for finding in found if finding.severity != "note"] == []
