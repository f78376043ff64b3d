"""gpustack's own defaults: each stands once, and everybody knows it from there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from gpustack.api import node_policy
from gpustack.catalog import defaults, releases
from gpustack.model import Path, dotted
from gpustack.policy.help.describe import descriptions, nested
from gpustack.policy.language.base import Section
from gpustack.policy.language.reconciler import Reconciler
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.language.verify import Verify
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Part
from gpustack.policy.loading.suggest import all_paths
from gpustack.reconciler.core.record import Finish

PINS: dict[str, Any] = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}}


def origin(written: dict[str, Any], path: Path) -> tuple[Any, str]:
    """The value at PATH of a policy that says WRITTEN, and who wrote it."""
    merged, findings = assemble([Part("policy", "policy.yaml", {**PINS, **written})])
    assert findings == []
    value: Any = merged.spec
    for step in path:
        value = value[step]
    found = merged.origin(path)
    return value, found.kind if found else ""


def test_they_are_part_of_a_policy() -> None:
    """`explain` shows a default of gpustack's own as such, in a section that the policy has and in each driver."""
    assert origin({"reconciler": {}}, ("reconciler", "deadlines", "mig")) == (1800, "gpustack")
    assert origin({"reconciler": {"deadlines": {"mig": 60}}}, ("reconciler", "deadlines", "mig")) == (60, "policy")
    assert origin({"reconciler": {"deadlines": {"mig": 60}}}, ("reconciler", "deadlines", "driver"))[1] == "gpustack"
    assert origin({"reconciler": {"replicas": None}}, ("reconciler", "replicas")) == (2, "gpustack")
    listed = {"drivers": [{"name": "a"}, {"name": "b", "driverType": "vgpu"}]}
    assert origin(listed, ("drivers", 0, "driverType")) == ("gpu", "gpustack")
    assert origin(listed, ("drivers", 1, "driverType")) == ("vgpu", "policy")
    assert origin({}, ("nfd", "onGpuNodes")) == ("never", "gpustack")


def test_where_an_engine_looks() -> None:
    """`explain` says where an engine looks that nobody told (docs/gitops.md): the folder dist of the branch main, every
    10 minutes; of an OCI artifact, which is one cluster's, its root and the tag latest, because of the address."""
    git: dict[str, Any] = {"gitops": {"repository": {"url": "https://git.example.com/a.git", "path": None}}}
    oci: dict[str, Any] = {"gitops": {"repository": {"url": "oci://registry.example.com/a"}}}
    assert origin(git, ("gitops", "flux", "interval")) == ("10m", "gpustack")
    assert origin(git, ("gitops", "argocd", "namespace")) == ("argocd", "gpustack")
    for written, revision, path, kind in ((git, "main", "dist", "gpustack"), (oci, "latest", ".", "derived")):
        assert origin(written, ("gitops", "repository", "revision")) == (revision, kind)
        assert origin(written, ("gitops", "repository", "path")) == (path, kind)
    oci["gitops"]["repository"]["path"] = "dist/prod"
    assert origin(oci, ("gitops", "repository", "path")) == ("dist/prod", "policy")


@pytest.mark.parametrize(
    "path",
    [
        "dcgmExporter.hpcJobMapping.directory",
        "daemonsets.priorityClassName",
        "devicePlugin.mps.root",
        "hostPaths.driverInstallDir",
        "hostPaths.kubeletRootDir",
        "hostPaths.rootFS",
        "kataManager.config.artifactsDir",
        "operator.runtimeClass",
        "toolkit.installDir",
        "vgpuDeviceManager.config.default",
    ],
)
def test_an_empty_text_is_an_absent_one(path: str) -> None:
    """Charts write "" for "not set", and the operator then takes its own constant (fields/ClusterPolicy.yaml). So does
    whoever reads the policy; `explain` goes on to show the empty text and its line."""
    written: Any = ""
    for step in reversed(path.split(".")):
        written = {step: written}
    assert origin(written, tuple(path.split("."))) == ("", "policy")
    value: Any = ClusterPolicySpec.model_validate({**PINS, **written})
    for step in path.split("."):
        value = getattr(value, step)
    assert value == defaults.values()[path]


def test_a_section_that_nobody_wrote_stays_absent() -> None:
    """Presence means something there: a default must not switch a reconciler on."""
    merged, _ = assemble([Part("policy", "policy.yaml", PINS)])
    assert "reconciler" not in merged.spec
    assert "drivers" not in merged.spec


def test_no_release_sets_another() -> None:
    """They are below the release, so one of which a release sets another value would hold only for an empty text."""
    for name in releases.names():
        spec: Any = releases.release(name).defaults
        for path, own in defaults.values().items():
            value = spec
            for step in path.split("."):
                value = value.get(step) if isinstance(value, dict) else None
            assert value in (None, own), (name, path)


def test_the_program_takes_the_same_where_nothing_is_said() -> None:
    """A NodePolicy that somebody wrote by hand means what a policy without those fields does."""
    own, spec = defaults.values(), node_policy.Spec()
    assert spec.deadlines.driver == Finish().driverSeconds == own["reconciler.deadlines.driver"]
    assert spec.deadlines.mig == spec.deadlines.migReboot == Finish().migSeconds == own["reconciler.deadlines.mig"]
    assert spec.deadlines.verifying == Finish().verifySeconds == own["reconciler.deadlines.verifying"]
    assert spec.upgrade.maxAttempts == Finish().maxAttempts == own["reconciler.maxAttempts"]
    assert spec.upgrade.breakerFailures == own["reconciler.breakerFailures"]
    assert spec.upgrade.firstAlone == own["reconciler.firstAlone"]
    assert spec.install.maxParallel == own["reconciler.installParallel"]
    assert spec.graceSeconds == own["reconciler.labelGraceSeconds"]
    assert spec.fleet.maxParallel == own["drivers[].upgradePolicy.maxParallelUpgrades"]
    assert spec.fleet.maxUnavailable == own["drivers[].upgradePolicy.maxUnavailable"]
    drain = own["drivers[].upgradePolicy.drain.timeoutSeconds"]
    assert spec.upgrade.drain.timeoutSeconds == drain
    assert spec.upgrade.podDeletion.timeoutSeconds == own["drivers[].upgradePolicy.podDeletion.timeoutSeconds"]


@pytest.mark.parametrize("path", defaults.values())
def test_the_documentation_says_them(path: str) -> None:
    """What a field's text says of its absence is the default. Amounts of resources stand in that of the whole section,
    where it is of one container: master, worker and gc have theirs in common.
    """
    if ".resources." in path:
        text = descriptions(Verify if path.startswith("verify.") else Reconciler)["resources"]
        assert path.startswith("nfd.") or str(defaults.values()[path]) in text, text
        return
    model: type[Section] = ClusterPolicySpec
    *way, last = path.replace("[]", "").split(".")
    for step in way:
        model = nested(model.model_fields[step].annotation)[0]
    value = defaults.values()[path]
    text = descriptions(model)[last].replace("\n", " ").replace("`", "")
    shown = {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    assert re.search(rf"Absent(?: or empty)?: (?:the default of the release, )?{re.escape(shown)}(?!\w)", text), text


EVERYTHING: dict[str, Any] = {
    **PINS,
    "gpuCluster": {},
    "computeDomains": {},
    "reconciler": {"health": {}},
    "gitops": {"argocd": {}, "flux": {}, "repository": {"url": "https://git.example.com/a.git"}},
    "alerts": {},
    "dashboards": {},
    "verify": {},
    "tenancy": {},
    "kubevirt": {},
    "drivers": [{"name": "a"}],
    **{name: {"config": {"data": {"a": "b"}}} for name in ("devicePlugin", "dcgmExporter", "vgpuDeviceManager")},
    "migManager": {"config": {"data": {"a": "b"}}, "gpuClientsConfig": {"data": {"a": "b"}}},
}
"""What has a default only where something else is said."""


OF_OTHERS = {
    name: reason
    for reason, names in {
        "a part of an object that goes into manifests as written; the API server or Prometheus fills the rest": """
            EnvVar ResourceRequirements Toleration PodSecurityContext AppArmorProfile SELinuxOptions SeccompProfile
            WindowsOptions Probe RestartingProbe Relabeling Window RemoteKey""",
        "Karpenter's, cluster-autoscaler's or the cloud's, in whose words `gpustack nodes` and the render say it": """
            Karpenter NodeClass NodeGroup""",
        "of each alert, which says it in the table of docs/alerts.md": "AlertSettings PoolAlert",
    }.items()
    for name in names.split()
}
"""Models whose fields somebody else fills in."""
SAID_OTHERWISE = {
    **dict.fromkeys(
        ["vgpuManager.repository", "vgpuManager.version", "kataManager.repository", "kataManager.image"],
        "no release has such an image, and a rule asks for one",
    ),
    "kataManager.version": "no release has such an image, and a rule asks for one",
    **dict.fromkeys(
        ["reconciler.health.logMonitorNamespace", "reconciler.kured", "reconciler.prepull"],
        "a section that is there or not",
    ),
    "operator.metrics.serviceMonitor.interval": "the operator isn't there",
    "operator.metrics.serviceMonitor.scrapeTimeout": "the operator isn't there",
    "nodePools[].containerRuntime": "the cluster's, of the same name",
    "nodePools[].upgrade.maxUnavailable": "the cluster's, of the same name",
    "nodePools[].upgrade.maxParallel": "the cluster's, of the same name",
    "dashboards.namespace": "that of the stack is `cluster.namespace`",
    "tenancy.tenants[].namespace": "the item's own name",
    "kubevirt.pciDevices": "a list that follows from all pools",
    "kubevirt.mediatedDevices": "a list that follows from all pools",
    "reconciler.health.owner": "where somebody else may do so, a rule (GPU844) asks who it is",
    "reconciler.health.reportOnlyUntil": "a day that the cluster knows",
    "gitops.argocd.project": "an object that is rendered, called after the cluster, which is no part of a spec",
    "gitops.flux.source": "an object that is rendered, called after the cluster, which is no part of a spec",
    "nodePools[].arch": "that of the board, which the pool's GPU tells",
    "cluster.crds": "of each CRD alone",
    "carried[].called": "of each DaemonSet alone",
    "carried[].digest": "computed of each DaemonSet",
    "carried[].tolerations": "the field above it in the description",
}
NO_VALUE = re.compile(
    r"(none|no|not|nothing|nobody|any|all|every|tags alone|as (said|it is|long as they do)|never|the built-in ones?|"
    r"see the other two|one pod per GPU|(the )?GPUs stay whole|the \w+'s own|the system's own|the plain behaviour|"
    r"the data source knows one|others bring|whoever comes|the device plugin offers|the list is left|its configuration|"
    r"ownership stays|the operator's order|they hold it up|Flux('s own| runs)|alerts name|the cluster is not|"
    r"what gpustack)\b"
)
"""How a description says that absence is a state and no value that could be written instead."""


def leaves(model: type[Section], path: str, above: tuple[type[Section], ...]) -> Iterator[tuple[str, str, Any, str]]:
    """Every field of the language from MODEL at PATH down that says what its absence means: its path, its model, the
    default of the model, and what it says."""
    for name, field in model.model_fields.items():
        here = f"{path}.{name}" if path else name
        said = re.search(r"Absent(?: or empty)?(?::| is) (.*)", descriptions(model)[name])
        if said and not field.is_required():
            yield here, model.__name__, field.get_default(call_default_factory=True), said[1]
        for inner in nested(field.annotation):
            if inner not in above:
                yield from leaves(inner, here + "[]" * ("list[" in str(field.annotation)), (*above, inner))


def test_explain_shows_every_default() -> None:
    """What a field's text says that its absence means is shown by `explain` with its source, wherever that is a value:
    by a part of the policy, or by the model. Else the text names another field, or the lists above say why not.
    """
    merged = [assemble([Part("policy", "", EVERYTHING | {"release": name})])[0] for name in releases.names()]
    shown = {re.sub(r"\[\d+\]", "[]", dotted(path)) for each in merged for path in each.origins}
    sections = {shorter for path in shown for shorter in (path, *prefixes(path))}
    fields = set(all_paths(ClusterPolicySpec))
    silent = {
        path: said
        for path, model, default, said in leaves(ClusterPolicySpec, "", (ClusterPolicySpec,))
        if default in (None, {}, [])
        and path not in sections
        and model not in OF_OTHERS
        and path not in SAID_OTHERWISE
        and not path.startswith("nodePools[].driver.")  # over the field of `driver` of the same name
        and not NO_VALUE.match(said)
        and not any(
            f"{where}{name}" in fields
            for name in re.findall(r"`([\w.]+)`", said)
            for where in ("", path[: path.rfind(".") + 1])
        )
    }
    assert silent == {}


def prefixes(path: str) -> Iterator[str]:
    """The sections that PATH is in."""
    for match in re.finditer(r"\.|\[\]", path):
        yield path[: match.start()]
