"""The policy's own form, GitOps, namespaces, taints: what is refused while reading, and rules over the render."""

from __future__ import annotations

from tests.checks.kinds import Row

TAINTED = "nodePools: [{name: gpu-a, os: ubuntu22.04, taints: [{key: %s, value: '%s', effect: NoSchedule}]}]\n"
WORKER = "nfd: {worker: {tolerations: [{key: nvidia.com/gpu, operator: %s, effect: NoSchedule%s}]}}\n"
POD = """\
extraObjects:
- apiVersion: v1
  kind: Pod
  metadata: {name: probe%s}
  spec:
    runtimeClassName: %s
    containers:
    - {name: main, image: registry.example.com/probe:1, resources: {%s: {nvidia.com/gpu: 1}}}
"""

ROWS = [
    Row(
        "B05",
        "GPU017",
        "toolkit: {env: [{name: CONTAINERD_SET_AS_DEFAULT, value: true}]}",
        "toolkit: {env: [{name: CONTAINERD_SET_AS_DEFAULT, value: 'true'}]}",
    ),
    Row("B05", "GPU017", "driver: {enabled: 'true'}", "driver: {enabled: true}", "the other way round"),
    Row("B08", "GPU017", "toolkit: {enabled: ture}", "toolkit: {enabled: true}"),
    Row(
        "B08",
        "GPU102",
        "cdi: {enabled: false, nriPluginEnabled: true}",
        "cdi: {enabled: true, nriPluginEnabled: true}",
        "the NRI plugin without CDI",
    ),
    Row(
        "B09",
        "GPU705",
        "cdi: {enabled: true, nriPluginEnabled: true}\n" + POD % ("", "nvidia", "limits"),
        "cdi: {enabled: true, nriPluginEnabled: false}\n" + POD % ("", "nvidia", "limits"),
        "with the NRI plugin there is no RuntimeClass",
    ),
    Row("B10", "GPU016", "hostPath: {kubeletRootDir: /data}", "hostPaths: {kubeletRootDir: /data}", "no key is lost"),
    Row(
        "B10",
        "GPU107",
        "release: v26.3.1\nhostPaths: {kubeletRootDir: /data/kubelet}",
        "release: v26.7.0\nhostPaths: {kubeletRootDir: /data/kubelet}",
        "a field that the release's CRD would prune",
    ),
    Row("B12", "GPU810", "devicePlugin: {env: }", "devicePlugin: {env: []}", "nothing behind the colon"),
    Row(
        "B13",
        "GPU104",
        "operator: {defaultRuntime: containerd}",
        "cluster: {containerRuntime: containerd}",
    ),
    Row(
        "B15",
        "GPU016",
        "driver: {maxParallelUpgrades: 4}",
        "driver: {upgradePolicy: {maxParallelUpgrades: 4}}",
        "one level too high",
    ),
    Row("B15", "GPU016", "daemonsets: {affinity: {}}", "daemonsets: {labels: {a: b}}", "a key that there never was"),
    Row(
        "B15",
        "GPU104",
        "driver: {useOpenKernelModules: true}",
        "driver: {kernelModuleType: open}",
        "a key that does nothing any more",
    ),
    Row(
        "B17",
        "GPU044",
        'dcgmExporter: {config: {data: "' + "# 32 bytes of a comment, no more\\n" * 35_000 + '"}}',
        'dcgmExporter: {config: {data: "' + "# 32 bytes of a comment, no more\\n" * 3_000 + '"}}',
        "a list of metrics of 1.1 MB",
    ),
    Row("B19", "GPU016", "operator: {upgradeCRD: true}", "operator: {runtimeClass: nvidia}"),
    Row(
        "B19",
        "GPU806",
        POD % (", annotations: {helm.sh/hook: pre-install}", "nvidia", "limits"),
        POD % (", annotations: {example.com/hook: pre-install}", "nvidia", "limits"),
    ),
    Row(
        "B20",
        "GPU801",
        "daemonsets: {labels: {app.kubernetes.io/instance: gpu-stack}}",
        "daemonsets: {labels: {app.kubernetes.io/part-of: gpu-stack}}",
    ),
    Row(
        "B20",
        "GPU801",
        "daemonsets: {annotations: {argocd.argoproj.io/tracking-id: x}}",
        "daemonsets: {annotations: {example.com/tracking-id: x}}",
    ),
    Row(
        "B21",
        "GPU802",
        "devicePlugin: {env: [{name: LEVEL, value: '${LEVEL:=4}'}]}",
        "devicePlugin: {env: [{name: LEVEL, value: 'at $1 or ${'}]}",
    ),
    Row(
        "B21",
        "GPU502",
        "devicePlugin:\n  config:\n    default: a\n    data:\n      a: |\n        version: v1\n        sharing:\n"
        "          timeSlicing:\n            resources:\n            - name: nvidia.com/gpu\n"
        "              replicas: ${replicas:=4}\n",
        "devicePlugin:\n  config:\n    default: a\n    data:\n      a: |\n        version: v1\n        sharing:\n"
        "          timeSlicing:\n            resources:\n            - name: nvidia.com/gpu\n"
        "              replicas: 4\n",
        "inside a configuration",
    ),
    Row(
        "B23",
        "GPU805",
        "extraObjects: [{apiVersion: v1, kind: Namespace, metadata: {name: gpu-operator, "
        "labels: {pod-security.kubernetes.io/enforce: baseline}}}]",
        "extraObjects: [{apiVersion: v1, kind: Namespace, metadata: {name: team-a, "
        "labels: {pod-security.kubernetes.io/enforce: baseline}}}]",
        "only the stack's own namespace matters",
    ),
    Row(
        "B25",
        "GPU803",
        WORKER % ("Equal", ", value: present") + TAINTED % ("nvidia.com/gpu", "true"),
        WORKER % ("Exists", "") + TAINTED % ("nvidia.com/gpu", "true"),
        "the worker tolerates another value",
    ),
    Row(
        "B26",
        "GPU803",
        TAINTED % ("sku", "gpu"),
        "daemonsets: {tolerations: [{key: sku, operator: Equal, value: gpu, effect: NoSchedule}]}\n"
        + TAINTED % ("sku", "gpu"),
    ),
    Row(
        "B26",
        "GPU016",
        "operator: {tolerations: [{key: sku, operator: Equal, value: gpu, effect: NoSchedule}]}",
        "daemonsets: {tolerations: [{key: sku, operator: Equal, value: gpu, effect: NoSchedule}]}",
        "the operator's own pod is not there",
    ),
    Row(
        "B27",
        "GPU804",
        "references: [{kind: DaemonSet, name: node-feature-discovery-worker, namespace: nfd}]",
        "nfd: {enabled: false}\nreferences: [{kind: DaemonSet, name: node-feature-discovery-worker, namespace: nfd}]",
    ),
    Row(
        "B46",
        "GPU130",
        "driver: {useNvidiaDriverCRD: true}\ndrivers: [{name: all}, {name: some, nodeSelector: {pool: a}}]\n"
        "release: v25.10.1\nnodePools: [{name: a, os: ubuntu22.04, nodeSelector: {pool: a}}]",
        "driver: {useNvidiaDriverCRD: true}\n"
        "drivers: [{name: all, nodeSelector: {pool: b}}, {name: some, nodeSelector: {pool: a}}]\n"
        "release: v25.10.1\nnodePools: [{name: a, os: ubuntu22.04, nodeSelector: {pool: a}}, "
        "{name: b, os: ubuntu22.04, nodeSelector: {pool: b}}]",
    ),
    Row(
        "B46",
        "GPU131",
        "driver: {useNvidiaDriverCRD: true}\ndrivers: [{name: a, default: true}, {name: b, default: true}]",
        "driver: {useNvidiaDriverCRD: true}\ndrivers: [{name: a, default: true}]",
    ),
    Row("B59", "GPU014", "cluster: {kubernetesVersion: '1.99'}", "cluster: {kubernetesVersion: '1.34'}"),
]
