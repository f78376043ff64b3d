"""gpustack's own defaults: each stands once, and everybody knows it from there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpustack.api import node_policy
from gpustack.catalog import defaults, releases
from gpustack.model import Path
from gpustack.policy.help.describe import descriptions, nested
from gpustack.policy.language.base import Section
from gpustack.policy.language.reconciler import Reconciler
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.language.verify import Verify
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Part
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
