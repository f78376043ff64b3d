"""Rules about configurations inside a policy: who reads them, where findings point, when they are silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.checks.rule import all_rules
from gpustack.policy.loading.load import load
from gpustack.policy.loading.place import place
from tests.checks.spec_rules import paths, said

PLUGIN = "devicePlugin:\n  config:\n    default: one\n    data:\n      one: |\n"
BROKEN = PLUGIN + "        version: v1\n        sharing: {timeSlicing: {resources: [{name: gpu, replicas: 1}]}}\n"
BROUGHT = """\
devicePlugin: {config: {name: mine, default: one}}
extraObjects:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: mine}
  data:
    one: |
      version: v1
      flags: {renameByDefault: true}
"""

ALERT = """\
extraObjects:
- apiVersion: monitoring.coreos.com/v1
  kind: PrometheusRule
  metadata: {name: a}
  spec:
    groups:
    - name: a
      rules:
      - alert: A
        expr: |
          DCGM_FI_DEV_FB_USED
            / DCGM_FI_DEV_MEM_TOTAL > 0.9
"""
MINE = """\
dcgmExporter: {config: {name: a, data: 'DCGM_FI_DEV_FB_FREE, gauge, x'}}
extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {}}]
"""


def located(folder: Path, text: str, rule: str) -> list[str]:
    """Where what RULE finds in the policy with the spec TEXT stands, as file:line:column."""
    path = folder / "a.yaml"
    head = "apiVersion: gpustack.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n"
    base = "  release: v26.7.0\n  cluster: {kubernetesVersion: '1.34'}\n"
    path.write_text(head + base + "".join(f"  {line}\n" for line in text.splitlines()), encoding="utf-8")
    loaded = load(path, root=folder)
    (found,) = [one for one in all_rules() if one.id == rule]
    return [str(place(loaded, finding).location) for finding in found.findings(loaded.spec)]


@pytest.mark.parametrize(
    ("text", "rule", "expected"),
    [
        (BROKEN, "GPU502", ["a.yaml:13:69"]),
        (BROUGHT, "GPU501", ["a.yaml:15:17"]),
        (
            "dcgmExporter:\n  config:\n    data: |\n      # all\n      DCGM_FI_DEV_GPU_TEMP, guage, x\n",
            "GPU520",
            ["a.yaml:11:31"],
        ),
        (
            ALERT,
            "GPU604",
            ["a.yaml:18:17"],
        ),
    ],
)
def test_findings_point_into_the_text(tmp_path: Path, text: str, rule: str, expected: list[str]) -> None:
    """A finding stands at the line and column of the file that it is about, also inside a block scalar."""
    assert located(tmp_path, text, rule) == expected


@pytest.mark.parametrize(
    "off",
    [
        "devicePlugin: {enabled: false}\ngfd: {enabled: false}\n",
        "gpuCluster: {}\ndevicePlugin: {}\n",
    ],
)
def test_what_nobody_reads_is_not_judged(off: str) -> None:
    """Without the plugin and feature discovery, a configuration may say anything."""
    text = BROKEN.replace("devicePlugin:\n", "").replace("  config:\n", "")
    policy = off.replace("devicePlugin: {", "devicePlugin: {config: {default: one, data: {one: 'version: v2'}}, ")
    assert text
    assert said("GPU502", policy.replace(", }", "}")) == ()
    assert said("GPU502", "devicePlugin: {config: {default: one, data: {one: 'version: v2'}}}")


@pytest.mark.parametrize(
    ("strategy", "name", "remedy"),
    [
        ("mixed", "nvidia.com/mig-1g.10gb", ""),
        ("mixed", "nvidia.com/mig-1g.10gb.me", ""),
        ("single", "nvidia.com/mig-1g.10gb", ""),
        ("single", "nvidia.com/mig-large", "write nvidia.com/mig- and a profile"),
        ("mixed", "nvidia.com/mig-large", "write nvidia.com/mig- and a profile"),
        ("mixed", "nvidia.com/mig-1c.3g.40gb", "write nvidia.com/mig-3g.40gb"),
        ("single", "nvidia.com/gpu.shared", "write nvidia.com/gpu, and renameByDefault: true"),
        ("single", "nvidia.com/gpus", "did you mean nvidia.com/gpu?"),
        ("single", "tesla-t4", "did you mean nvidia.com/gpu?"),
    ],
)
def test_resources_that_no_node_has(strategy: str, name: str, remedy: str) -> None:
    """Names are nvidia.com/gpu and nvidia.com/mig-<profile> (plugin-config.yaml, B33)."""
    text = f"sharing: {{timeSlicing: {{resources: [{{name: {name}, replicas: 2}}]}}}}\n"
    found = said("GPU504", f"mig: {{strategy: {strategy}}}\n{PLUGIN}        {text}")
    assert [finding.remedy.startswith(remedy) for finding in found] == ([True] if remedy else [])


FINE = """
        version: v1
        flags: {migStrategy: mixed}
        sharing:
          timeSlicing:
            resources:
            - {name: nvidia.com/gpu, replicas: 8}
            - {name: nvidia.com/mig-1g.5gb, replicas: 2}
            - {name: nvidia.com/mig-7g.40gb, replicas: 7}
"""


@pytest.mark.parametrize(("strategy", "idle"), [("single", 2), ("none", 2), ("mixed", 0)])
def test_the_sample_for_several_models(strategy: str, idle: int) -> None:
    """NVIDIA's time-slicing-config-fine (its GPU operator documentation, gpu-sharing) works with any strategy: entries
    for instances that nobody has share nothing, and that is told and not refused."""
    policy = f"mig: {{strategy: {strategy}}}\n{PLUGIN}{FINE}"
    assert said("GPU504", policy) == said("GPU502", policy) == ()
    told = [finding for finding in said("GPU509", policy) if "mig-" in finding.what]
    assert [finding.severity for finding in told] == ["warning"] * idle
    assert all("set spec.mig.strategy: mixed" in finding.remedy for finding in told)


@pytest.mark.parametrize(
    ("flag", "more", "effect"),
    [
        ("failOnInitError: true", "", True),
        ("failOnInitError: false", "", False),
        ("plugin: {deviceListStrategy: envvar}", "cdi: {enabled: false}\n", True),
        ("plugin: {deviceListStrategy: envvar}", "cdi: {enabled: true}\n", False),
        ("plugin: {deviceListStrategy: [cdi-cri, cdi-annotations]}", "cdi: {enabled: true}\n", True),
        ("gfd: {sleepInterval: 120s}", "", False),
        ("gfd: {sleepInterval: 120s}", "gfd: {env: [{name: GFD_SLEEP_INTERVAL, value: 120s}]}\n", True),
        ("gfd: {noTimestamp: true}", "", True),
    ],
)
def test_flags_and_the_environment(flag: str, more: str, effect: bool) -> None:
    """The environment of the stack's pods wins over a flag; the same value is no contradiction (operator.md 7.4)."""
    assert (said("GPU509", f"{more}{PLUGIN}        flags: {{{flag}}}\n") == ()) is effect


def test_pools_that_choose_a_configuration() -> None:
    """A pool's label, or a rule of node feature discovery, must name a key; a pool that labels needs no default."""
    data = "devicePlugin: {config: {data: {a100: 'version: v1'}}}\n"
    pool = "nodePools: [{name: a, os: ubuntu22.04, nodeSelector: {nvidia.com/device-plugin.config: %s}}]\n"
    assert paths("GPU505", data + pool % "a10") == ['spec.nodePools[0].nodeSelector["nvidia.com/device-plugin.config"]']
    assert said("GPU505", data + pool % "a10")[0].remedy == "did you mean a100?"
    assert paths("GPU505", data + pool % "a100") == []
    assert paths("GPU506", data + pool % "a100") == []
    rule = (
        "extraObjects: [{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureRule, metadata: {name: a}, "
        "spec: {rules: [{name: a, labels: {nvidia.com/device-plugin.config: %s}}]}}]\n"
    )
    assert paths("GPU505", data + rule % "t4") == [
        'spec.extraObjects[0].spec.rules[0].labels["nvidia.com/device-plugin.config"]'
    ]
    assert paths("GPU506", data + rule % "a100") == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("migManager: {config: {create: true, name: a}}", []),  # nothing to write: GPU532
        (
            "dcgmExporter: {config: {create: false, data: 'DCGM_FI_DEV_FB_FREE, gauge, x'}}",
            ["spec.dcgmExporter.config.data"],
        ),
        ("migManager: {enabled: false, config: {create: true, name: a}}", []),
        (
            MINE,
            ["spec.dcgmExporter.config.data"],
        ),
        ("devicePlugin: {config: {create: false}}", []),
        ("devicePlugin: {config: {default: ''}}", []),
    ],
)
def test_config_maps_given_through_the_wrong_fields(policy: str, expected: list[str]) -> None:
    """Every section with a ConfigMap of its own is looked at, where its component is on (B35)."""
    assert paths("GPU507", policy) == expected


@pytest.mark.parametrize(
    ("labels", "match", "whats"),
    [
        (
            "feature.node.kubernetes.io/gpu: 'true'",
            "feature: pci.device, matchExpressions: {class: {op: In, value: ['0300']}}",
            [],
        ),
        ("node.kubernetes.io/gpu: 'true'", "feature: pci.device", ["drops the label node.kubernetes.io/gpu"]),
        ("example.com/a: 'not a value!'", "feature: pci.device", ["is not a valid label value"]),
        ("example.com/a: '@pci.device.class'", "feature: pci.device", []),
        ("example.com/a: 'x'", "feature: pci.devices", ["there is no feature 'pci.devices'"]),
        (
            "example.com/a: 'x'",
            "feature: pci.device, matchExpressions: {vendors: {op: Exists}}",
            ["has no attribute 'vendors'"],
        ),
        ("example.com/a: 'x'", "feature: kernel.config, matchExpressions: {ANY_THING: {op: Exists}}", []),
        (
            "example.com/a: 'x'",
            "feature: kernel.version, matchExpressions: {major: {op: Gt, value: ['5', '6']}}",
            ["with 2 values"],
        ),
        ("example.com/a: 'x'", "feature: cpu.cpuid, matchName: {op: In}", ["with 0 values"]),
        (
            "example.com/a: 'x'",
            "feature: pci.device, matchExpressions: {class: {op: In, value: ['30']}}",
            ["'30' equals no class"],
        ),
        (
            "example.com/a: 'x'",
            "feature: system.name, matchExpressions: {nodename: {op: InRegexp, value: ['-mig1-']}}",
            [],
        ),
    ],
)
def test_rules_of_node_feature_discovery(labels: str, match: str, whats: list[str]) -> None:
    """What is dropped or never matches, and no more (NFD, customization guide; B28)."""
    rule = f"name: a, labels: {{{labels}}}, matchAny: [{{matchFeatures: [{{{match}}}]}}]"
    meta = "apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureRule, metadata: {name: a}"
    found = said("GPU530", f"extraObjects: [{{{meta}, spec: {{rules: [{{{rule}}}]}}}}]")
    assert [what in finding.what for what, finding in zip(whats, found, strict=True)] == [True] * len(whats)


def test_taints_of_rules() -> None:
    """Our installation of node feature discovery sets no taints; another one may."""
    body = (
        "extraObjects: [{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureRule, metadata: {name: a}, "
        "spec: {rules: [{name: a, taints: [{key: a, effect: NoSchedule}], matchFeatures: [{feature: pci.device}]}]}}]\n"
    )
    assert paths("GPU530", body) == ["spec.extraObjects[0].spec.rules[0].taints"]
    assert paths("GPU530", body + "nfd: {enabled: false}\n") == []


def test_metrics_that_the_exporter_fetches() -> None:
    """A ConfigMap that the exporter is told to read itself has its list under another key."""
    text = (
        "dcgmExporter: {env: [{name: DCGM_EXPORTER_CONFIGMAP_DATA, value: 'gpu-operator:mine'}]}\n"
        "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}, data: {metrics: 'DCGM_X, gauge, x'}}]"
    )
    assert paths("GPU520", text) == ["spec.extraObjects[0].data.metrics"]


def test_one_field_by_two_names() -> None:
    """The old and the new name of a field are one field."""
    rows = "DCGM_FI_DEV_GPU_TEMP, gauge, x\n      DCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, x"
    (found,) = said("GPU522", f"dcgmExporter:\n  config:\n    data: |\n      {rows}\n")
    assert found.what == "DCGM_FI_DEV_GPU_TEMP_CELSIUS is DCGM_FI_DEV_GPU_TEMP"
    assert found.inside == (2, 1)
