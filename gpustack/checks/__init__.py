"""Rules: what can be said against a policy before anything is written.

A rule is a function with an id, a severity and a docstring, registered with `@rule` (rule.py says over what). It yields
hits and never raises: what can't be used at all is refused where it is read, with an id of errors.py. The docstring
becomes the rule's page in docs/rules/ (pages.py).
"""

RULE_MODULES = (
    "checks.language.policy",
    "checks.language.release_fields",
    "checks.language.in_vain",
    "checks.platforms.mirrors",
    "checks.objects.image_names",
    "checks.pools.pools",
    "checks.platforms.node_runtimes",
    "checks.platforms.openshift",
    "checks.drivers.drivers",
    "checks.drivers.carried",
    "checks.drivers.driver_fields",
    "checks.sandbox.sandbox",
    "checks.sandbox.kubevirt",
    "checks.dra.dra",
    "checks.dra.dra_exclusions",
    "checks.objects.gaps",
    "checks.mig.mig",
    "checks.mig.mig_manager",
    "checks.platforms.support",
    "checks.platforms.life_cycle",
    "checks.platforms.faults",
    "checks.drivers.gpu_drivers",
    "checks.drivers.cuda",
    "checks.drivers.driver_images",
    "checks.platforms.platform",
    "checks.platforms.runtime_files",
    "checks.plugin.device_lists",
    "checks.platforms.host_software",
    "checks.drivers.upgrades",
    "checks.pools.reconciler",
    "checks.pools.reconciler_pools",
    "checks.plugin.plugin_config",
    "checks.plugin.sharing",
    "checks.plugin.config_names",
    "checks.monitoring.metrics_list",
    "checks.sandbox.vgpu_config",
    "checks.nfd.nfd_rules",
    "checks.monitoring.monitoring",
    "checks.monitoring.alert_rules",
    "checks.monitoring.rule_objects",
    "checks.gitops.gitops",
    "checks.gitops.gitops_engine",
    "checks.gitops.argocd_project",
    "checks.pools.placement",
    "checks.objects.twice",
    "checks.objects.pods",
    "checks.objects.api_server",
    "checks.objects.pod_templates",
    "checks.objects.security_context",
    "checks.language.nulls",
    "tenants.workloads",
    "tenants.workload_nodes",
    "tenants.workload_shares",
)
"""The modules that hold rules, here and in `tenants`. `rule.all_rules` imports them, and nobody else needs to."""

NEVER_KEPT = ("GPU814",)
"""Rules about objects with something in them that must not lie in a cache."""
