"""MIG: layouts, strategies, the manager's files."""

from __future__ import annotations

from tests.checks.kinds import Row

POOL = "nodePools: [{{name: a, os: ubuntu22.04, gpuProduct: {}, gpusPerNode: 8, sharing: {{mig: {{layout: {}}}}}}}]\n"
H100, H200, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200", "NVIDIA-A100-SXM4-40GB"
MIXED = "mig: {strategy: mixed}\n"
FILE = """\
migManager:
  config:
    data:
      config.yaml: |
        version: v1
        mig-configs:
          %s:
          - devices: all
            %s: true
            %s: {1g.10gb: 7}
"""

ROWS = [
    Row(
        "B37",
        "GPU305",
        "mig: {strategy: single}\n" + POOL.format(H100, "{1g.10gb: 2, 2g.20gb: 1}"),
        MIXED + POOL.format(H100, "{1g.10gb: 2, 2g.20gb: 1}"),
    ),
    Row(
        "B37",
        "GPU305",
        "mig: {strategy: none}\n" + POOL.format(H100, "{1g.10gb: 7}"),
        "mig: {strategy: single}\n" + POOL.format(H100, "{1g.10gb: 7}"),
        "with strategy none the instances are hidden",
    ),
    Row("B38", "GPU301", MIXED + POOL.format(H200, "{1g.10gb: 7}"), MIXED + POOL.format(H200, "{1g.18gb: 7}")),
    Row(
        "B38",
        "GPU302",
        MIXED + POOL.format(H100, "{4g.40gb: 1, 3g.40gb: 1, 1g.10gb: 1}"),
        MIXED + POOL.format(H100, "{4g.40gb: 1, 3g.40gb: 1}"),
    ),
    Row("B38", "GPU302", MIXED + POOL.format(A100, "{1g.5gb+me: 2}"), MIXED + POOL.format(A100, "{1g.5gb+me: 1}")),
    Row(
        "B39",
        "GPU306",
        FILE % ("seven", "migEnabled", "migDevices"),
        FILE % ("seven", "mig-enabled", "mig-devices"),
        "camelCase keys",
    ),
    Row(
        "B39",
        "GPU304",
        MIXED + POOL.format(H100, "{1g.10gb: 7}").replace("layout: {1g.10gb: 7}", "config: all-1g-10gb"),
        MIXED + POOL.format(H100, "{1g.10gb: 7}").replace("layout: {1g.10gb: 7}", "config: all-1g.10gb"),
        "a layout that is in no file",
    ),
    Row(
        "B41",
        "GPU308",
        'migManager: {env: [{name: WITH_REBOOT, value: "false"}]}\n' + MIXED + POOL.format(A100, "{1g.5gb: 7}"),
        'migManager: {env: [{name: WITH_REBOOT, value: "true"}]}\n' + MIXED + POOL.format(A100, "{1g.5gb: 7}"),
    ),
]
