"""Support matrix, drivers, platforms, container runtimes, upgrades."""

from __future__ import annotations

from tests.checks.kinds import Row

RKE2 = "cluster: {platform: rke2}\n"
RANCHER = "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"

ROWS = [
    Row(
        "B01",
        "GPU463",
        RKE2 + "toolkit: {env: [{name: CONTAINERD_SOCKET, value: /run/k3s/containerd/containerd.sock}, "
        "{name: CONTAINERD_CONFIG, value: /etc/containerd/config.toml}]}",
        RKE2 + "toolkit: {env: [{name: CONTAINERD_SOCKET, value: /run/k3s/containerd/containerd.sock}, "
        f"{{name: CONTAINERD_CONFIG, value: {RANCHER}}}]}}",
        "k3s and RKE2 share the socket, not the configuration",
    ),
    Row(
        "B01",
        "GPU456",
        RKE2 + "toolkit: {env: [{name: CONTAINERD_CONFIG, "
        "value: /var/lib/rancher/k3s/agent/etc/containerd/config.toml}]}",
        "cluster: {platform: k3s}\ntoolkit: {env: [{name: CONTAINERD_CONFIG, "
        "value: /var/lib/rancher/k3s/agent/etc/containerd/config.toml}]}",
    ),
    Row(
        "B02",
        "GPU458",
        RKE2 + f"toolkit: {{env: [{{name: CONTAINERD_CONFIG, value: {RANCHER}.tmpl}}]}}",
        RKE2 + f"toolkit: {{env: [{{name: CONTAINERD_CONFIG, value: {RANCHER}}}]}}",
    ),
    Row(
        "B02",
        "GPU459",
        f"toolkit: {{env: [{{name: CONTAINERD_CONFIG, value: {RANCHER}.tmpl}}]}}",
        f"toolkit: {{env: [{{name: CONTAINERD_CONFIG, value: {RANCHER}}}]}}",
        "without a platform nobody knows what the template stands for",
    ),
    Row("B03", "GPU414", "cluster: {platform: k0s}\ntoolkit: {version: v1.17.5}", "cluster: {platform: k0s}"),
    Row(
        "B03",
        "GPU415",
        "release: v25.10.0\ncluster: {platform: k0s}",
        "release: v26.7.0\ncluster: {platform: k0s}",
    ),
    Row("B04", "GPU460", "cluster: {platform: kubeone}", "cluster: {platform: kubeone}\ntoolkit: {enabled: false}"),
    Row(
        "B06",
        "GPU465",
        "devicePlugin: {env: [{name: DEVICE_LIST_STRATEGY, value: volume-mounts}]}",
        "cdi: {enabled: false}\ndevicePlugin: {env: [{name: DEVICE_LIST_STRATEGY, value: volume-mounts}]}",
    ),
    Row(
        "B07",
        "GPU404",
        "release: v25.10.1\ncluster: {containerRuntime: 'containerd://1.6.39'}",
        "release: v25.10.1\ncluster: {containerRuntime: 'containerd://1.7.0'}",
    ),
    Row(
        "B07",
        "GPU404",
        "cluster: {containerRuntime: 'containerd://2.1.0'}\n"
        "nodePools: [{name: a, os: ubuntu22.04, containerRuntime: 'containerd://1.6.39'}]",
        "cluster: {containerRuntime: 'containerd://2.1.0'}\ncdi: {enabled: false}\n"
        "nodePools: [{name: a, os: ubuntu22.04, containerRuntime: 'containerd://1.6.39'}]",
    ),
    Row(
        "B08",
        "GPU465",
        'devicePlugin: {env: [{name: DEVICE_LIST_STRATEGY, value: "envvar, cdi-annotations, cdi-cri"}]}',
        'devicePlugin: {env: [{name: DEVICE_LIST_STRATEGY, value: "cdi-annotations,cdi-cri"}]}',
        "enabled: ture is not a boolean, which the models refuse",
    ),
    Row(
        "B08",
        "GPU464",
        "devicePlugin: {env: [{name: DEVICE_LIST_STRATEGY, value: volume-mount}]}",
        "cdi: {enabled: false}\ndevicePlugin: {env: [{name: DEVICE_LIST_STRATEGY, value: envvar}]}",
    ),
    Row(
        "B24",
        "GPU461",
        "cluster: {containerRuntime: cri-o}\ntoolkit: {env: [{name: CONTAINERD_SOCKET, value: /run/x.sock}]}",
        "toolkit: {env: [{name: CONTAINERD_SOCKET, value: /run/x.sock}]}",
        "on OpenShift it is GPU120",
    ),
    Row("B36", "GPU473", "devicePlugin: {enabled: false}", "devicePlugin: {enabled: true}"),
    Row(
        "B36",
        "GPU474",
        "driver: {enabled: false}\ntoolkit: {enabled: false}",
        "cluster: {platform: eks-al2023}",
        "the node image of EKS has both",
    ),
    Row(
        "B42",
        "GPU435",
        "driver: {version: 550.90.07}\nnodePools: [{name: a, os: debian12}]",
        "driver: {version: 550.90.07, repository: registry.example.com/nvidia}\nnodePools: [{name: a, os: debian12}]",
        "who has a registry of their own knows what is in it",
    ),
    Row("B42", "GPU435", "nodePools: [{name: a, os: ubuntu21.10}]", "nodePools: [{name: a, os: ubuntu22.04}]"),
    Row(
        "B42",
        "GPU435",
        "driver: {version: 535.309.01}\nnodePools: [{name: a, os: ubuntu24.04}]",
        "driver: {version: 550.163.01}\nnodePools: [{name: a, os: ubuntu24.04}]",
    ),
    Row("B43", "GPU437", "driver: {version: 565.57.01-ubuntu22.04}", "driver: {version: 550.90.07-grid}"),
    Row(
        "B43",
        "GPU441",
        f'driver: {{version: "sha256:{"4" * 64}"}}\n'
        "nodePools: [{name: a, os: ubuntu22.04, nodeSelector: {p: a}}, {name: b, os: rhel9.4, nodeSelector: {p: b}}]",
        f'driver: {{version: "sha256:{"4" * 64}"}}\n'
        f"nodePools: [{{name: a, os: ubuntu22.04, nodeSelector: {{p: a}}}}, {{name: b, os: rhel9.4, nodeSelector: "
        f'{{p: b}}, driver: {{version: "sha256:{"5" * 64}"}}}}]',
    ),
    Row(
        "B44",
        "GPU438",
        "driver: {usePrecompiled: true, version: 550.90.07}\n"
        "nodePools: [{name: a, os: ubuntu22.04, kernel: 5.15.0-105-generic}]",
        'driver: {usePrecompiled: true, version: "580"}\n'
        "nodePools: [{name: a, os: ubuntu22.04, kernel: 5.15.0-105-generic}]",
        "usePrecompiled with a number is a number, and the models want text",
    ),
    Row(
        "B44",
        "GPU440",
        'driver: {usePrecompiled: true, version: "580"}\n'
        "nodePools: [{name: a, os: ubuntu22.04, kernel: 5.15.0-1061-gke}]",
        'driver: {usePrecompiled: true, version: "580"}\n'
        "nodePools: [{name: a, os: ubuntu22.04, kernel: 5.15.0-1061-oracle}]",
    ),
    Row(
        "B45",
        "GPU421",
        "driver: {kernelModuleType: proprietary}\n"
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition}]",
        "driver: {kernelModuleType: open}\n"
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition}]",
    ),
    Row(
        "B45",
        "GPU421",
        "driver: {version: 580.173.02, kernelModuleType: open}\n"
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: Tesla-P40}]",
        "driver: {version: 580.173.02, kernelModuleType: proprietary}\n"
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: Tesla-P40}]",
    ),
    Row(
        "B45",
        "GPU420",
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: Tesla-V100-SXM2-32GB}]",
        "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: Tesla-T4}]",
        "R595, the driver of v26.7.0, dropped Maxwell, Pascal and Volta",
    ),
    Row("B45", "GPU422", "driver: {version: 550.163.01}", "driver: {version: 570.211.01}"),
    Row(
        "B47",
        "GPU447",
        "cluster: {platform: gke-ubuntu}\nnodePools: [{name: a, os: ubuntu22.04}]",
        "cluster: {platform: gke-ubuntu}\nnodePools: [{name: a, os: ubuntu22.04, "
        'nodeSelector: {gke-no-default-nvidia-gpu-device-plugin: "true"}}]',
    ),
    *(
        Row(
            "B47",
            "GPU445",
            f"cluster: {{platform: {platform}}}\n{section}: {{enabled: true}}\nnodePools: [{{name: a, os: {os}}}]",
            f"cluster: {{platform: {platform}}}\nnodePools: [{{name: a, os: {os}}}]",
        )
        for platform, section, os in (
            ("eks-al2023", "driver", "amzn2023"),
            ("eks-bottlerocket", "devicePlugin", "bottlerocket1.40"),
            ("gke-cos", "driver", "cos121"),
            ("aks-ubuntu-managed-driver", "toolkit", "ubuntu22.04"),
            ("talos", "driver", "talos1.11"),
            ("dgx-os-bcm", "driver", "ubuntu24.04"),
        )
    ),
    Row(
        "B47",
        "GPU446",
        "cluster: {platform: flatcar}\ndriver: {enabled: true}\nnodePools: [{name: a, os: flatcar4081.2}]",
        "cluster: {platform: flatcar}\nnodePools: [{name: a, os: flatcar4081.2}]",
    ),
    Row(
        "B48",
        "GPU454",
        "driver: {enabled: false}\nnodePools: [{name: a, os: amzn2}]",
        "driver: {enabled: false}\ntoolkit: {version: v1.14.6-centos7}\nnodePools: [{name: a, os: amzn2}]",
    ),
    Row(
        "B48",
        "GPU455",
        "toolkit: {version: v1.18.1-ubuntu20.04}",
        "toolkit: {version: v1.17.8-ubuntu20.04}",
    ),
    Row(
        "B49",
        "GPU466",
        "driver: {rdma: {enabled: true}}",
        "driver: {rdma: {enabled: true, useHostMofed: true}}",
        "that the ConfigMap of module parameters exists is GPU201's",
    ),
    Row(
        "B49",
        "GPU467",
        "driver: {kernelModuleConfig: {name: p}}\nextraObjects: [{apiVersion: v1, kind: ConfigMap, "
        'metadata: {name: p}, data: {nvidia.conf: "options nvidia A=1"}}]',
        "driver: {kernelModuleConfig: {name: p}}\nextraObjects: [{apiVersion: v1, kind: ConfigMap, "
        "metadata: {name: p}, data: {nvidia.conf: A=1}}]",
    ),
    Row(
        "B50",
        "GPU470",
        'driver: {upgradePolicy: {autoUpgrade: true}, manager: {env: [{name: ENABLE_AUTO_DRAIN, value: "true"}]}}',
        'driver: {upgradePolicy: {autoUpgrade: false}, manager: {env: [{name: ENABLE_AUTO_DRAIN, value: "true"}]}}',
        "a warning: the operator accepts both and ignores one (case 34)",
    ),
    Row(
        "B52",
        "GPU471",
        "driver: {upgradePolicy: {drain: {enable: true, deleteEmptyDir: false}}}",
        "driver: {upgradePolicy: {drain: {enable: false, deleteEmptyDir: false}}}",
    ),
    Row(
        "B52",
        "GPU472",
        "driver: {upgradePolicy: {maxUnavailable: 25%}}\nnodePools: [{name: a, os: ubuntu22.04, count: 3}]",
        "driver: {upgradePolicy: {maxUnavailable: 25%}}\nnodePools: [{name: a, os: ubuntu22.04, count: 4}]",
    ),
    Row(
        "B56",
        "GPU453",
        "hostPaths: {kubeletRootDir: /var/lib/k0s/kubelet}",
        "hostPaths: {kubeletRootDir: /var/lib/kubelet/}",
    ),
    Row(
        "B56",
        "GPU452",
        "cluster: {platform: microk8s}",
        "cluster: {platform: rke2}",
    ),
]
