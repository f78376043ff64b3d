"""A further release, platform, GPU, alert and GitOps engine are one file of the package each. Docs and tests of their
own come with them: an alert needs a runbook and a case in which it fires.

They are made up, in a copy of the package and of the tests, in which a pytest of its own runs the tests that hold for
every catalogue.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.project import policy

ROOT = Path(__file__).parents[1]
PARTS = ("gpustack", "tests", "schemas", "policies", "pyproject.toml", "docs/reconciler.md")
FOLDERS = ("catalog", "checks", "cluster", "gitops", "policy", "tenants")
"""Whose modules are tried, all that aren't SPECIAL, but for random tests of properties: what holds of any catalogue."""
SPECIAL = re.compile(r"gpustack\.compiler|import.*\bProject\b|dist/|export\(\)")
"""What stands in modules that aren't tried: they compile clusters, for minutes, or are about generated files."""
MORE = (
    "tests/cli/test_releases.py::test_list",
    "tests/gitops/test_record.py",
    "tests/moving/adopt/test_shapes.py",
    "tests/policy/test_load.py::test_a_policy_pins_its_release",
)
GENERATED = "tests/catalog/test_kubernetes.py::test_schemas_are_what_the_pinned_packages_give"
RELEASE = """\
# Made up.
base: v26.7.0
date: "2027-01-20"
notes: []
images:
  gpu-operator: {version: v27.1.0}
  device-plugin: {version: v0.21.0}
"""
PLATFORM = """\
# Made up.
title: Made-up Kubernetes Service
confidence: documented
machines: virtual
brings:
  driver: {sure: true, what: its node image has the driver}
presets:
- defaults: {driver: {enabled: false}}
"""
GPU = """\
Z900-300GB:
  family: blackwell
  capability: "10.3"
  memory_gb: 300
  products:
    NVIDIA-Z900: {board: Z900 300GB, pci: ["3FFF"]}
"""
ALERT = """
  ReconcilerMadeUp:
    severity: ticket
    plain: warning
    needs: [reconciler]
    bad: max by (policy) (gpustack_reconciler_breaker_open) > 2
    lasts: 5m
    page: breaker-open
    summary: Something that can't be
    description: It is.
"""
POLICY: dict[str, Any] = {
    "release": "v27.1.0",
    "cluster": {"kubernetesVersion": "1.34", "platform": "made-up", "monitoring": True},
    "gitops": {"engine": "carrier", "repository": {"url": "https://git.example.com/gpu.git"}},
    "nodePools": [{"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-Z900", "nodeSelector": {"pool": "a"}}],
    "reconciler": {"image": "registry.example.com/gpu/gpustack-reconciler:1"},
    "devicePlugin": {"enabled": True},
    "dcgmExporter": {"enabled": False},
    "driver": {},
}
ENGINE = '''\
"""A made-up engine, which reads one ConfigMap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...model import Body, Resource
from ...policy.language.base import Section
from ...policy.language.types import DnsLabel
from ...registry.media import Media
from ..engine import Accounts, Engine, Roots, Told, annotated
from ..reads import Reads

if TYPE_CHECKING:
    from ...policy.language.gitops import GitOps
    from ..plan import Plan


class Carrier(Section):
    """How Carrier syncs the cluster."""

    namespace: DnsLabel | None = None
    """Namespace of Carrier. Absent: carrier."""


class CarrierEngine(Engine[Carrier]):
    """Carrier."""

    name = "carrier"
    title = "Carrier"
    settings = Carrier
    media = Media("application/vnd.carrier.layer", "application/vnd.carrier.config")
    kinds = {"ConfigMap": Told("What Carrier reads.", syncs="the cluster", reads=(("data", "url"),))}
    annotations = ("carrier.example.com/",)

    def accounts(self, given: GitOps) -> Accounts | None:
        return Accounts(groups=(f"system:serviceaccounts:{self.namespace(given)}",))

    def destination(self, given: GitOps) -> tuple[str, ...]:
        return ()

    def mark(self, resource: Resource, *, keep: bool) -> Body:
        return annotated(resource.body, {"carrier.example.com/keep": "true"}) if keep else resource.body

    def guarded(self, notes: Mapping[str, Any]) -> str:
        return "; Carrier keeps it" if notes.get("carrier.example.com/keep") == "true" else ""

    def objects(self, plan: Plan, cluster: str) -> list[Body]:
        meta = {"name": f"carrier-{cluster}", "namespace": self.namespace(plan.settings)}
        data = {"url": plan.url, "path": plan.cluster_path(cluster)}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}]

    def roots(self, plan: Plan, cluster: str) -> list[Body]:
        return self.objects(plan, cluster)

    def runs_inside(self, plan: Plan) -> bool:
        return True

    def rooted(self, plan: Plan) -> Roots:
        return "one"

    def namespace(self, given: GitOps) -> str:
        return self.of(given).namespace or "carrier"

    def reads(self, bodies: Sequence[Any]) -> Reads | None:
        for body in bodies:
            if body["metadata"]["name"].startswith("carrier-"):
                return Reads(self.name, body["data"]["url"], "main", body["data"]["path"])
        return None


ENGINE = CarrierEngine()
'''


def further(root: Path) -> None:
    """Add one of each to the copy in ROOT, each by one file."""
    data = root / "gpustack" / "catalog" / "data"
    (data / "releases" / "v27.1.0.yaml").write_text(RELEASE, encoding="utf-8")
    (data / "platforms" / "made-up.yaml").write_text(PLATFORM, encoding="utf-8")
    with (data / "gpus" / "products.yaml").open("a", encoding="utf-8") as file:
        file.write(GPU)
    (root / "gpustack" / "gitops" / "engines" / "carrier.py").write_text(ENGINE, encoding="utf-8")
    with (data / "alerts.yaml").open("a", encoding="utf-8") as file:
        file.write(ALERT)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is needed, with one more of each."""
    root = tmp_path_factory.mktemp("further")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.ambr"))
        else:
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    further(root)
    return root


def run(root: Path, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `python -m WORDS` in FOLDER with the package of the copy in ROOT."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder or root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_general_tests_pass(copy: Path) -> None:
    """None of them thinks that the newest release is the one of today, and no list elsewhere names what is added."""
    modules = [path for folder in FOLDERS for path in sorted((copy / "tests" / folder).rglob("test_*.py"))]
    general = [str(path) for path in modules if not SPECIAL.search(path.read_text(encoding="utf-8"))]
    options = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not hypothesis", "--deselect", GENERATED)
    done = run(copy, "pytest", *options, *general, *MORE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_policy_has_all_of_it(copy: Path, tmp_path: Path) -> None:
    """It renders: with the engine's object and marks, the release's image, the alert, and without the driver, which the
    platform brings; and no rule finds fault with it.
    """
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text(policy("a", **POLICY), encoding="utf-8")
    done = run(copy, "gpustack", "render", "--today", "2027-02-01", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    dist = tmp_path / "dist"
    assert "url: https://git.example.com/gpu.git" in (dist / ".gitops/carrier/a/configmap-carrier-a.yaml").read_text()
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((dist / "a").rglob("*.yaml")))
    assert "carrier.example.com/keep" in text
    assert "k8s-device-plugin:v0.21.0" in text
    assert "GPUStackReconcilerMadeUp" in text
    assert "nvidia-driver-daemonset" not in {path.stem for path in dist.rglob("*.yaml")}
    assert "NVIDIA-Z900" not in done.stderr, "the GPU is known"
