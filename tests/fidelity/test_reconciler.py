"""The policies of the measured cases with a reconciler: each compiles, and nothing else in it changes for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.checks.rule import all_rules
from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.stack import Stack, compile_stack
from gpustack.policy.loading.load import load, spec_key
from tests.components.reconciler.common import IMAGE, told_apart
from tests.fidelity import cases
from tests.project import document

ALL = [(release, name) for release in ("v26.7.0", "v26.3.1", "v25.10.1") for name in cases.names(release)]
LAYOUTS = "mig-parted-config"
KEPT = "operands/configmap-gpustack-mig-layouts.yaml"
MANAGER, WRITERS = (
    "operands/daemonset-nvidia-mig-manager.yaml",
    "base/validatingadmissionpolicy-gpustack-configmaps.yaml",
)
"""What else is another where the reconciler keeps the MIG manager's file: who mounts it, and who may write it."""
OWN = (
    "reconciler/",
    "base/networkpolicy-gpustack-reconciler",
    "crds/customresourcedefinition-nodepolicies",
    "monitoring/servicemonitor-gpustack-reconciler",
    "monitoring/prometheusrule-gpustack-reconciler",
    KEPT,
)
"""Where the reconciler's own files are."""
EVICTION = ["- apiGroups:", '  - ""', "  resources:", "  - pods/eviction", "  verbs:", "  - create"]
"""The right that drivers have where no reconciler evicts."""
TOLERATED = {rule.id for rule in all_rules() if not rule.id.startswith("GPU82")}
"""What was measured is not always wise; what is said against a reconciler counts."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all cases: what they share is rendered once."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def compiled(spec: dict[str, Any], folder: Path, store: Store) -> Stack:
    """The stack of a policy that says SPEC, whatever rules warn of."""
    path = folder / "policy.yaml"
    path.write_text(document("ClusterPolicy", "example", spec), encoding="utf-8")
    loaded = load(path, root=folder)
    return compile_stack(loaded.spec, spec_key(loaded.merged), store, TOLERATED)


@pytest.mark.parametrize(("release", "name"), ALL)
def test_cases_compile_with_a_reconciler(release: str, name: str, tmp_path: Path, store: Store) -> None:
    """There is a NodePolicy, and all other objects are what they are without it, but for the name of the driver's
    template on its DaemonSets, the driver's right to evict, which goes where the reconciler does that, and the MIG
    manager's file where it keeps that."""
    spec = told_apart(cases.case(release, name).policy["spec"])
    without = {file.path: file.text for file in compiled(spec, tmp_path, store).files}
    files = {file.path: file.text for file in compiled({**spec, "reconciler": {"image": IMAGE}}, tmp_path, store).files}
    assert any(path.startswith("reconciler/nodepolicy-") for path in files)
    assert {path for path in files if not path.startswith(OWN)} == set(without)
    for path, text in without.items():
        if KEPT in files and path in {MANAGER, WRITERS}:
            assert kept(path, yaml.safe_load(files[path])) == plain(path, yaml.safe_load(text)), path
            continue
        lines = [line for line in files[path].splitlines() if "gpustack.dev/revision" not in line]
        known = [line for line in text.splitlines() if line.strip() != "annotations:"]
        left = [line for line in lines if line.strip() != "annotations:"]
        if path.startswith("driver/clusterrole-") and "  - pods/eviction" not in left and "  - pods/eviction" in known:
            at = known.index("  - pods/eviction") - 3
            assert known[at : at + len(EVICTION)] == EVICTION
            del known[at : at + len(EVICTION)]
        assert left == known, path


def kept(path: str, body: Any) -> Any:
    """BODY, which is rendered to PATH where the reconciler keeps the MIG manager's file, as it is without."""
    if path == WRITERS:
        (rule,) = body["spec"]["validations"]
        rule["expression"], _, added = rule["expression"].partition(" || request.operation == 'UPDATE' && ")
        assert "object.metadata.name == 'gpustack-mig-layouts'" in added
        return body
    (volume,) = (each for each in body["spec"]["template"]["spec"]["volumes"] if each["name"] == LAYOUTS)
    items = [{"key": "config.yaml", "path": "config.yaml"}]
    assert volume["configMap"] == {"name": "gpustack-mig-layouts", "items": items}
    return plain(path, body)


def plain(path: str, body: Any) -> Any:
    """BODY without the volume of layouts."""
    if path == MANAGER:
        spec = body["spec"]["template"]["spec"]
        spec["volumes"] = [each for each in spec["volumes"] if each["name"] != LAYOUTS]
    return body
