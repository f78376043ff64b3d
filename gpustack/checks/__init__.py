"""Rules: what can be said against a policy before anything is written.

A rule is a function with an id, a severity and a docstring, registered with `@rule` (rule.py says over what). It yields
hits and never raises: what can't be used at all is refused where it is read, with an id of errors.py. The docstring
becomes the rule's page in docs/rules/ (pages.py).
"""

RULE_MODULES = (
    "policy",
    "release_fields",
    "in_vain",
    "mirrors",
    "image_names",
    "pools",
    "openshift",
    "drivers",
    "carried",
    "driver_fields",
    "sandbox",
    "kubevirt",
    "dra",
    "dra_exclusions",
    "gaps",
    "mig",
    "mig_manager",
    "support",
    "life_cycle",
    "faults",
    "gpu_drivers",
    "cuda",
    "driver_images",
    "platform",
    "runtime_files",
    "device_lists",
    "host_software",
    "upgrades",
    "reconciler",
    "reconciler_pools",
    "plugin_config",
    "sharing",
    "config_names",
    "metrics_list",
    "vgpu_config",
    "nfd_rules",
    "monitoring",
    "alert_rules",
    "gitops",
    "gitops_engine",
    "argocd_project",
    "placement",
    "twice",
    "pods",
    "api_server",
    "pod_templates",
    "security_context",
    "nulls",
    "workloads",
    "workload_nodes",
    "workload_shares",
)
"""The modules of this package that hold rules. `rule.all_rules` imports them, and nobody else needs to."""

NEVER_KEPT = ("GPU814",)
"""Rules about objects with something in them that must not lie in a cache."""
