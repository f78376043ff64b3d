"""What the API server asks of the fields of its own kinds and their published description leaves out.

WORDS are the enumerations of Kubernetes 1.37's own Go types, as its API server serves them under /openapi/v3 (the
published description has none), and those that only its validation has (k8s.io/kubernetes/pkg/apis/*/validation): kinds
of subjects, operators, types of metrics. Words are only ever added in Kubernetes, so the newest ones hold for all
versions. "" is always taken, as the decoder treats it as absent.

FILLED are lists and maps that must not be empty, NEEDED fields that must be there, NAMES fields that hold a DNS label.
Source: the same validation, each tried on an API server of 1.35 by leaving it out.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

CORE, APPS, BATCH, NETWORK = (
    "io.k8s.api.core.v1.",
    "io.k8s.api.apps.v1.",
    "io.k8s.api.batch.v1.",
    "io.k8s.api.networking.v1.",
)
RBAC, STORAGE, SCALING = "io.k8s.api.rbac.v1.", "io.k8s.api.storage.v1.", "io.k8s.api.autoscaling.v2."
ADMISSION = "io.k8s.api.admissionregistration.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

_PROTOCOLS, _PULLS = "TCP UDP SCTP", "Always IfNotPresent Never"
_ACCESS = "ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod"
_SCOPES = (
    "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating VolumeAttributesClass"
)

WORDS: dict[str, dict[str, str]] = {
    CORE + "PodSpec": {
        "dnsPolicy": "ClusterFirst ClusterFirstWithHostNet Default None",
        "preemptionPolicy": "Never PreemptLowerPriority",
        "restartPolicy": "Always Never OnFailure",
    },
    CORE + "Container": {
        "imagePullPolicy": _PULLS,
        "terminationMessagePolicy": "FallbackToLogsOnError File",
    },
    CORE + "ContainerPort": {"protocol": _PROTOCOLS},
    CORE + "HTTPGetAction": {"scheme": "HTTP HTTPS"},
    CORE + "ImageVolumeSource": {"pullPolicy": _PULLS},
    CORE + "VolumeMount": {"mountPropagation": "Bidirectional HostToContainer None"},
    CORE + "HostPathVolumeSource": {
        "type": "BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate Socket"
    },
    CORE + "PodSecurityContext": {
        "fsGroupChangePolicy": "Always OnRootMismatch",
        "supplementalGroupsPolicy": "Merge Strict",
    },
    CORE + "SecurityContext": {"procMount": "Default Unmasked"},
    CORE + "AppArmorProfile": {"type": "Localhost RuntimeDefault Unconfined"},
    CORE + "SeccompProfile": {"type": "Localhost RuntimeDefault Unconfined"},
    CORE + "Toleration": {"effect": "NoExecute NoSchedule PreferNoSchedule", "operator": "Equal Exists Gt Lt"},
    CORE + "TopologySpreadConstraint": {
        "nodeAffinityPolicy": "Honor Ignore",
        "nodeTaintsPolicy": "Honor Ignore",
        "whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
    },
    CORE + "NodeSelectorRequirement": {"operator": "DoesNotExist Exists Gt In Lt NotIn"},
    CORE + "PersistentVolumeClaimSpec": {"accessModes": _ACCESS, "volumeMode": "Block Filesystem"},
    CORE + "PersistentVolumeSpec": {
        "accessModes": _ACCESS,
        "persistentVolumeReclaimPolicy": "Delete Recycle Retain",
        "volumeMode": "Block Filesystem",
    },
    CORE + "ResourceQuotaSpec": {"scopes": _SCOPES},
    CORE + "ScopedResourceSelectorRequirement": {"operator": "DoesNotExist Exists In NotIn", "scopeName": _SCOPES},
    CORE + "ServicePort": {"protocol": _PROTOCOLS},
    CORE + "ServiceSpec": {
        "externalTrafficPolicy": "Cluster Local",
        "internalTrafficPolicy": "Cluster Local",
        "ipFamilies": "IPv4 IPv6",
        "ipFamilyPolicy": "PreferDualStack RequireDualStack SingleStack",
        "sessionAffinity": "ClientIP None",
        "type": "ClusterIP ExternalName LoadBalancer NodePort",
    },
    APPS + "DaemonSetUpdateStrategy": {"type": "OnDelete RollingUpdate"},
    APPS + "DeploymentStrategy": {"type": "Recreate RollingUpdate"},
    APPS + "StatefulSetSpec": {"podManagementPolicy": "OrderedReady Parallel"},
    APPS + "StatefulSetUpdateStrategy": {"type": "OnDelete Recreate RollingUpdate"},
    BATCH + "CronJobSpec": {"concurrencyPolicy": "Allow Forbid Replace"},
    BATCH + "JobSpec": {
        "completionMode": "Indexed NonIndexed",
        "podReplacementPolicy": "Failed TerminatingOrFailed",
    },
    BATCH + "PodFailurePolicyRule": {"action": "Count FailIndex FailJob Ignore"},
    BATCH + "PodFailurePolicyOnExitCodesRequirement": {"operator": "In NotIn"},
    NETWORK + "HTTPIngressPath": {"pathType": "Exact ImplementationSpecific Prefix"},
    NETWORK + "NetworkPolicyPort": {"protocol": _PROTOCOLS},
    NETWORK + "NetworkPolicySpec": {"policyTypes": "Egress Ingress"},
    "io.k8s.api.policy.v1.PodDisruptionBudgetSpec": {"unhealthyPodEvictionPolicy": "AlwaysAllow IfHealthyBudget"},
    SCALING + "MetricSpec": {"type": "ContainerResource External Object Pods Resource"},
    SCALING + "MetricTarget": {"type": "AverageValue Utilization Value"},
    RBAC + "RoleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole Role"},
    RBAC + "Subject": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group ServiceAccount User"},
    "io.k8s.api.scheduling.v1.PriorityClass": {"preemptionPolicy": "Never PreemptLowerPriority"},
    STORAGE + "StorageClass": {
        "reclaimPolicy": "Delete Retain",
        "volumeBindingMode": "Immediate WaitForFirstConsumer",
    },
    ADMISSION + "ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail Ignore"},
    ADMISSION + "ValidatingAdmissionPolicyBindingSpec": {"validationActions": "Audit Deny Warn"},
    ADMISSION + "ValidatingWebhook": {
        "failurePolicy": "Fail Ignore",
        "matchPolicy": "Equivalent Exact",
        "sideEffects": "None NoneOnDryRun Some Unknown",
    },
    ADMISSION + "MutatingWebhook": {
        "failurePolicy": "Fail Ignore",
        "matchPolicy": "Equivalent Exact",
        "reinvocationPolicy": "IfNeeded Never",
        "sideEffects": "None NoneOnDryRun Some Unknown",
    },
    META + "LabelSelectorRequirement": {"operator": "DoesNotExist Exists In NotIn"},
}

FILLED: dict[str, tuple[str, ...]] = {
    CORE + "PodSpec": ("containers",),
    CORE + "NodeSelector": ("nodeSelectorTerms",),
    CORE + "PersistentVolumeClaimSpec": ("accessModes",),
    CORE + "ExecAction": ("command",),
    RBAC + "PolicyRule": ("verbs",),
    NETWORK + "HTTPIngressRuleValue": ("paths",),
}

NEEDED: dict[str, tuple[str, ...]] = {
    CORE + "Container": ("image",),
    CORE + "ExecAction": ("command",),
    CORE + "PersistentVolumeClaimSpec": ("accessModes", "resources"),
    CORE + "VolumeResourceRequirements": ("requests",),
    BATCH + "CronJobSpec": ("jobTemplate", "schedule"),
}

NAMES: dict[str, tuple[str, ...]] = {
    CORE + "Container": ("name",),
    CORE + "Volume": ("name",),
    CORE + "ServicePort": ("name",),
    "io.k8s.api.node.v1.RuntimeClass": ("handler",),
}
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"

LABELS: dict[str, str] = {CORE + "PodSpec": "nodeSelector", META + "LabelSelector": "matchLabels"}
"""Maps of labels. (Those of metadata are looked at by a rule, GPU811.)"""
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"


def told(name: str, schema: Schema) -> Schema:
    """SCHEMA of the definition NAME, with what is known besides."""
    properties = dict(schema.get("properties", {}))
    for field, words in WORDS.get(name, {}).items():
        if field in properties:
            properties[field] = _of(properties[field], ["", *sorted(words.split())])
    for field in FILLED.get(name, ()):
        properties[field] = {**properties[field], "minItems": 1}
    for field in NAMES.get(name, ()):
        properties[field] = {**properties[field], "pattern": DNS_LABEL}
    if name in LABELS:
        properties[LABELS[name]] = {
            **properties[LABELS[name]],
            "additionalProperties": {"type": "string", "pattern": LABEL_VALUE},
        }
    needed = sorted({*schema.get("required", ()), *NEEDED.get(name, ())})
    return {**schema, **({"properties": properties} if properties else {}), **({"required": needed} if needed else {})}


def _of(schema: Schema, words: list[str]) -> Schema:
    """SCHEMA of a text, or of a list of texts, held to WORDS."""
    return {**schema, "items": _of(schema["items"], words)} if "items" in schema else {**schema, "enum": words}
