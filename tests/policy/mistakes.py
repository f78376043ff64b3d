"""Typical mistakes in one field of a policy, for the models and for the JSON schema: both have to refuse them.

Each is (spec, place, a word of the message). The message is the models'; a schema's is the editor's own.
"""

from __future__ import annotations

from typing import Any

Mistake = tuple[dict[str, Any], tuple[str | int, ...], str]


def pool(**fields: Any) -> dict[str, Any]:
    """A spec with one node pool that has FIELDS."""
    return {"nodePools": [{"name": "a", **fields}]}


def _env(**entry: Any) -> dict[str, Any]:
    return {"driver": {"env": [entry]}}


def deep(levels: int) -> Any:
    """Mappings in mappings."""
    return {"a": deep(levels - 1)} if levels else "x"


MISTAKES: list[Mistake] = [
    # types
    ({"driver": {"enabled": "true"}}, ("driver", "enabled"), "boolean"),
    ({"driver": {"enabled": 1}}, ("driver", "enabled"), "boolean"),
    ({"driver": {"version": 595}}, ("driver", "version"), "string"),
    ({"cluster": {"kubernetesVersion": 1.34}}, ("cluster", "kubernetesVersion"), "string"),
    (
        {"driver": {"upgradePolicy": {"maxParallelUpgrades": "1"}}},
        ("driver", "upgradePolicy", "maxParallelUpgrades"),
        "",
    ),
    (
        {"driver": {"upgradePolicy": {"maxParallelUpgrades": True}}},
        ("driver", "upgradePolicy", "maxParallelUpgrades"),
        "",
    ),
    (_env(name="A", value=True), ("driver", "env", 0, "value"), "string"),
    (_env(value="a"), ("driver", "env", 0, "name"), "required"),
    ({"driver": {"imagePullSecrets": [{"name": "a"}]}}, ("driver", "imagePullSecrets", 0), "string"),
    ({"driver": {"env": {"A": "1"}}}, ("driver", "env"), "list"),
    ({"driver": []}, ("driver",), "dictionary"),
    ({"daemonsets": {"rollingUpdate": {"maxUnavailable": 1}}}, ("daemonsets", "rollingUpdate", "maxUnavailable"), ""),
    (pool(count="3"), ("nodePools", 0, "count"), "number of nodes"),
    (pool(count=-1), ("nodePools", 0, "count"), "number of nodes"),
    (pool(count=True), ("nodePools", 0, "count"), "number of nodes"),
    # unknown keys
    ({"drivr": {}}, ("drivr",), "not permitted"),
    ({"driver": {"nvidiaDriverCRD": {"enabled": True}}}, ("driver", "nvidiaDriverCRD"), "not permitted"),
    ({"operator": {"resources": {}}}, ("operator", "resources"), "not permitted"),
    ({"gds": {"resources": {}}}, ("gds", "resources"), "not permitted"),
    ({"validator": {"enabled": True}}, ("validator", "enabled"), "not permitted"),
    (pool(sharing={"timeslicing": {"replicas": 2}}), ("nodePools", 0, "sharing", "timeslicing"), "not permitted"),
    # values
    ({"mig": {"strategy": "Mixed"}}, ("mig", "strategy"), "'mixed'"),
    ({"driver": {"imagePullPolicy": "always"}}, ("driver", "imagePullPolicy"), "'Always'"),
    ({"migManager": {"config": {"default": "all-1g.5gb"}}}, ("migManager", "config", "default"), "all-disabled"),
    ({"driver": {"startupProbe": {"periodSeconds": 0}}}, ("driver", "startupProbe", "periodSeconds"), "greater"),
    ({"dcgm": {"hostPort": 70000}}, ("dcgm", "hostPort"), "less"),
    # names
    ({"cluster": {"namespace": "GPU"}}, ("cluster", "namespace"), "DNS label"),
    ({"cluster": {"namespace": "a.b"}}, ("cluster", "namespace"), "DNS label"),
    ({"driver": {"certConfig": {"name": "a_b"}}}, ("driver", "certConfig", "name"), "object name"),
    ({"daemonsets": {"priorityClassName": "High"}}, ("daemonsets", "priorityClassName"), "object name"),
    ({"daemonsets": {"labels": {"a/b/c": "x"}}}, ("daemonsets", "labels", "a/b/c", "[key]"), "label or annotation key"),
    ({"daemonsets": {"labels": {"a": "b c"}}}, ("daemonsets", "labels", "a"), "label value"),
    ({"daemonsets": {"labels": {"a": "b" * 64}}}, ("daemonsets", "labels", "a"), "63 characters"),
    (_env(name="1A", value=""), ("driver", "env", 0, "name"), "environment variable"),
    (_env(name="A=B", value=""), ("driver", "env", 0, "name"), "environment variable"),
    (
        {"devicePlugin": {"config": {"data": {"a b": ""}}}},
        ("devicePlugin", "config", "data", "a b", "[key]"),
        "ConfigMap key",
    ),
    (
        {"devicePlugin": {"config": {"data": {"..": ""}}}},
        ("devicePlugin", "config", "data", "..", "[key]"),
        "ConfigMap key",
    ),
    # images
    ({"driver": {"repository": "https://a.b/c"}}, ("driver", "repository"), "without scheme"),
    ({"driver": {"repository": "a.b/c/"}}, ("driver", "repository"), "without scheme"),
    ({"driver": {"image": "My Driver"}}, ("driver", "image"), "lower-case"),
    ({"driver": {"version": "sha256:abc"}}, ("driver", "version"), "64 hex digits"),
    ({"driver": {"version": "1.0+a"}}, ("driver", "version"), "tag"),
    # numbers with units
    ({"driver": {"resources": {"limits": {"memory": "4GB"}}}}, ("driver", "resources", "limits", "memory"), "quantity"),
    ({"driver": {"resources": {"limits": {"cpu": 0.5}}}}, ("driver", "resources", "limits", "cpu"), "quantity"),
    ({"driver": {"resources": {"limits": {"cpu": "-1"}}}}, ("driver", "resources", "limits", "cpu"), "quantity"),
    ({"driver": {"resources": {"limits": {"cpu": ""}}}}, ("driver", "resources", "limits", "cpu"), "quantity"),
    (
        {"dcgmExporter": {"serviceMonitor": {"interval": "15"}}},
        ("dcgmExporter", "serviceMonitor", "interval"),
        "duration",
    ),
    (
        {"dcgmExporter": {"serviceMonitor": {"interval": "5s1m"}}},
        ("dcgmExporter", "serviceMonitor", "interval"),
        "duration",
    ),
    (
        {"driver": {"upgradePolicy": {"maxUnavailable": "1"}}},
        ("driver", "upgradePolicy", "maxUnavailable"),
        "percentage",
    ),
    (
        {"driver": {"upgradePolicy": {"maxUnavailable": "101%"}}},
        ("driver", "upgradePolicy", "maxUnavailable"),
        "percentage",
    ),
    (
        {"daemonsets": {"rollingUpdate": {"maxUnavailable": "0"}}},
        ("daemonsets", "rollingUpdate", "maxUnavailable"),
        "number",
    ),
    (
        {"daemonsets": {"rollingUpdate": {"maxUnavailable": "many"}}},
        ("daemonsets", "rollingUpdate", "maxUnavailable"),
        "",
    ),
    # more than the API holds
    (
        {"driver": {"upgradePolicy": {"maxUnavailable": 2**31}}},
        ("driver", "upgradePolicy", "maxUnavailable"),
        "too large",
    ),
    (
        {"daemonsets": {"rollingUpdate": {"maxUnavailable": "9" * 10}}},
        ("daemonsets", "rollingUpdate", "maxUnavailable"),
        "number",
    ),
    ({"driver": {"startupProbe": {"periodSeconds": 2**31}}}, ("driver", "startupProbe", "periodSeconds"), "less"),
    ({"driver": {"startupProbe": {"successThreshold": 2}}}, ("driver", "startupProbe", "successThreshold"), "once"),
    (
        {"daemonsets": {"podSecurityContext": {"runAsUser": 2**31}}},
        ("daemonsets", "podSecurityContext", "runAsUser"),
        "less",
    ),
    (pool(count=2**31), ("nodePools", 0, "count"), "number of nodes"),
    (
        pool(sharing={"mig": {"layout": {f"1g.{'9' * 5000}gb": 1}}}),
        ("nodePools", 0, "sharing", "mig", "layout", f"1g.{'9' * 5000}gb", "[key]"),
        "MIG profile",
    ),
    # what no process can be given
    (_env(name="A", value="a\0b"), ("driver", "env", 0, "value"), "NUL"),
    ({"toolkit": {"args": ["a\0b"]}}, ("toolkit", "args", 0), "NUL"),
    # places
    ({"hostPaths": {"rootFS": "host"}}, ("hostPaths", "rootFS"), "absolute path"),
    ({"hostPaths": {"rootFS": "/a/../b"}}, ("hostPaths", "rootFS"), "absolute path"),
    ({"hostPaths": {"rootFS": "/.."}}, ("hostPaths", "rootFS"), "absolute path"),
    ({"toolkit": {"installDir": "/a\x00b"}}, ("toolkit", "installDir"), "absolute path"),
    ({"toolkit": {"installDir": "~/nvidia"}}, ("toolkit", "installDir"), "absolute path"),
    (
        {
            "daemonsets": {
                "podSecurityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "../../etc/passwd"}}
            }
        },
        ("daemonsets", "podSecurityContext", "seccompProfile", "localhostProfile"),
        "path of a profile",
    ),
    (
        {"daemonsets": {"podSecurityContext": {"sysctls": [{"name": "Net Core", "value": "1"}]}}},
        ("daemonsets", "podSecurityContext", "sysctls", 0, "name"),
        "kernel parameter",
    ),
    (
        {"daemonsets": {"podSecurityContext": {"windowsOptions": {"gmsaCredentialSpecName": "http://a/"}}}},
        ("daemonsets", "podSecurityContext", "windowsOptions", "gmsaCredentialSpecName"),
        "object name",
    ),
    (
        {"daemonsets": {"podSecurityContext": {"windowsOptions": {"runAsUserName": "example.com/a"}}}},
        ("daemonsets", "podSecurityContext", "windowsOptions", "runAsUserName"),
        "Windows user",
    ),
    # clusters and pools
    ({"cluster": {"kubernetesVersion": "latest"}}, ("cluster", "kubernetesVersion"), "Kubernetes version"),
    ({"cluster": {"containerRuntime": "podman"}}, ("cluster", "containerRuntime"), "container runtime"),
    ({"release": "26.7.0"}, ("release",), "operator release"),
    (pool(os="Ubuntu 22.04"), ("nodePools", 0, "os"), "operating system"),
    (pool(gpuProduct="NVIDIA A100"), ("nodePools", 0, "gpuProduct"), "label value"),
    (pool(ostreeVersion="418.94_A"), ("nodePools", 0, "ostreeVersion"), "version of RHCOS"),
    (
        {"cluster": {"openshift": {"proxy": {"httpsProxy": "http://me:hunter2@proxy.example.com:3128"}}}},
        ("cluster", "openshift", "proxy", "httpsProxy"),
        "no user and no password",
    ),
    (pool(gpusPerNode=0), ("nodePools", 0, "gpusPerNode"), "greater"),
    (pool(taints=[{"key": "a"}]), ("nodePools", 0, "taints", 0, "effect"), "required"),
    (
        pool(sharing={"timeSlicing": {"replicas": 1}}),
        ("nodePools", 0, "sharing", "timeSlicing", "replicas"),
        "2 or more",
    ),
    (pool(sharing={"mps": {"replicas": 49}}), ("nodePools", 0, "sharing", "mps", "replicas"), "48"),
    (
        pool(sharing={"mig": {"layout": {"all-1g.10gb": 1}}}),
        ("nodePools", 0, "sharing", "mig", "layout", "all-1g.10gb", "[key]"),
        "MIG profile",
    ),
    (
        pool(sharing={"mig": {"layout": {"1g.10gb": 0}}}),
        ("nodePools", 0, "sharing", "mig", "layout", "1g.10gb"),
        "greater",
    ),
    (pool(sharing={"mig": {"layout": {}}}), ("nodePools", 0, "sharing", "mig", "layout"), "at least one profile"),
    (
        pool(upgrade={"windows": [{"start": "24:00", "hours": 6}]}),
        ("nodePools", 0, "upgrade", "windows", 0, "start"),
        "time of day",
    ),
    # what others bring
    ({"extraObjects": [{"kind": "ConfigMap"}]}, ("extraObjects", 0), "without apiVersion and metadata.name"),
    ({"references": [{"kind": "secret", "name": "a"}]}, ("references", 0, "kind"), "capital letter"),
]

COMBINATIONS: list[Mistake] = [
    (
        pool(upgrade={"windows": [{"days": ["mon", "tue", "mon"], "start": "01:00", "hours": 1}]}),
        ("nodePools", 0, "upgrade", "windows", 0, "days", 2),
        "twice",
    ),
    # texts of a form that are more than the API holds
    ({"driver": {"resources": {"limits": {"cpu": "1e1000000"}}}}, ("driver", "resources", "limits", "cpu"), "quantity"),
    ({"driver": {"resources": {"limits": {"cpu": "9" * 5000}}}}, ("driver", "resources", "limits", "cpu"), "quantity"),
    ({"driver": {"resources": {"limits": {"cpu": "8Ei"}}}}, ("driver", "resources", "limits", "cpu"), "quantity"),
    (
        {"dcgmExporter": {"serviceMonitor": {"interval": "300y"}}},
        ("dcgmExporter", "serviceMonitor", "interval"),
        "292 years",
    ),
    (_env(name="HTTPS_PROXY", value="http://me:hunter2@proxy:3128"), ("driver", "env", 0, "value"), "password"),
    (
        {"toolkit": {"env": [{"name": "CONTAINERD_CONFIG", "value": "etc/containerd/config.toml"}]}},
        ("toolkit", "env", 0, "value"),
        "absolute path",
    ),
    (
        {"toolkit": {"env": [{"name": "RUNTIME_CONFIG_SOURCE", "value": "command, file=/etc/../a"}]}},
        ("toolkit", "env", 0, "value"),
        "absolute path",
    ),
    (
        {"kataManager": {"env": [{"name": "CONTAINERD_SOCKET", "value": "/run/../containerd.sock"}]}},
        ("kataManager", "env", 0, "value"),
        "absolute path",
    ),
    (
        {"daemonsets": {"annotations": {"example.com/a": "x" * 256 * 1024}}},
        ("daemonsets", "annotations"),
        "262144 in all",
    ),
    # how fields go together
    (
        pool(sharing={"mps": {"replicas": 2}, "mig": {"config": "all-1g.10gb"}}),
        ("nodePools", 0, "sharing"),
        "mps and mig exclude each other",
    ),
    (
        pool(sharing={"mps": {"replicas": 2}, "timeSlicing": {"replicas": 2}}),
        ("nodePools", 0, "sharing"),
        "mps and timeSlicing exclude each other",
    ),
    (pool(sharing={"mig": {}}), ("nodePools", 0, "sharing", "mig"), "neither config nor layout nor devices"),
    (
        pool(sharing={"mig": {"config": "all-1g.10gb", "layout": {"1g.10gb": 7}}}),
        ("nodePools", 0, "sharing", "mig"),
        "config and layout",
    ),
    (
        pool(sharing={"mig": {"devices": [{"indices": [0, 1]}, {"indices": [2, 1]}]}}),
        ("nodePools", 0, "sharing", "mig", "devices", 1, "indices", 1),
        "GPU 1 is in two groups",
    ),
    (pool(count={"min": 3, "max": 1}), ("nodePools", 0, "count"), "min 3 is more than max 1"),
    ({"nodePools": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, ("nodePools", 2, "name"), "two node pools"),
    (
        {"daemonsets": {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}},
        ("daemonsets", "tolerations", 0),
        "Exists has no value",
    ),
    ({"daemonsets": {"tolerations": [{"effect": "NoSchedule"}]}}, ("daemonsets", "tolerations", 0), "without a key"),
    (
        {"daemonsets": {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]}},
        ("daemonsets", "tolerations", 0),
        "NoExecute only",
    ),
    (
        {"extraObjects": [{"apiVersion": "v1", "kind": "List", "metadata": {"name": "a"}, "items": [None]}]},
        ("extraObjects", 0),
        "empty item",
    ),
    (
        {"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "../a"}}]},
        ("extraObjects", 0, "metadata", "name"),
        "not a valid name of a Kubernetes object",
    ),
    (
        {"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "A_b"}}]},
        ("extraObjects", 0, "metadata", "namespace"),
        "DNS label",
    ),
    (
        {
            "extraObjects": [
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "metadata": {"name": "nvidia-device-plugin", "namespace": "gpu-operator"},
                }
            ]
        },
        ("extraObjects", 0, "metadata", "namespace"),
        "of the whole cluster",
    ),
    (
        {
            "extraObjects": [
                {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"a": {"b": deep(70)}}}
            ]
        },
        ("extraObjects", 0, "spec", "a", "b"),
        "64 levels",
    ),
]
