"""Kubernetes versions and the schemas that stand for them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog import kubernetes
from gpustack.model import InputError, MissingToolError
from tools.kubernetes_words import FILLED, NEEDED, WORDS

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "schemas"
FILES = sorted(SCHEMAS.glob("kubernetes/*/*.json")) + sorted(SCHEMAS.glob("crds/*.json"))

RENDERED = {
    "v1": "Namespace ServiceAccount ConfigMap Secret Service Pod ResourceQuota LimitRange PersistentVolumeClaim",
    "apps/v1": "DaemonSet Deployment StatefulSet",
    "batch/v1": "Job CronJob",
    "rbac.authorization.k8s.io/v1": "Role ClusterRole RoleBinding ClusterRoleBinding",
    "node.k8s.io/v1": "RuntimeClass",
    "scheduling.k8s.io/v1": "PriorityClass",
    "policy/v1": "PodDisruptionBudget",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io/v1": "NetworkPolicy",
    "coordination.k8s.io/v1": "Lease",
    "monitoring.coreos.com/v1": "ServiceMonitor PodMonitor PrometheusRule",
    "nfd.k8s-sigs.io/v1alpha1": "NodeFeatureRule NodeFeature NodeFeatureGroup",
    "nfd.openshift.io/v1": "NodeFeatureDiscovery",
    "security.openshift.io/v1": "SecurityContextConstraints",
}
"""Kinds that gpustack renders for every version."""
SINCE = {  # Source: Kubernetes' release notes; the kind became v1 in that version.
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): "1.30",
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"): "1.30",
    ("resource.k8s.io/v1", "DeviceClass"): "1.34",
    ("resource.k8s.io/v1", "ResourceClaim"): "1.34",
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): "1.34",
}
INERT = "clusterpolicy-nvidia.com-v1.json"
"""Nothing acts on it, so it is open."""


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.33", "1.33"),
        ("v1.33", "1.33"),
        ("1.33.1+k3s1", "1.33"),
        ("v1.30.4-eks-113cf36", "1.30"),
        ("v1.31.2-gke.1058000", "1.31"),
        ("1.29.15+rke2r1", "1.29"),
        ("1.34+", "1.34"),
        (" v1.37.0 ", "1.37"),
        ("1.37.0-rc.1", "1.37"),
    ],
)
def test_minor_reads_what_clusters_report(version: str, expected: str) -> None:
    """A version as a server, a distribution or a person writes it names its minor version."""
    assert kubernetes.minor(version) == expected


@given(st.sampled_from(kubernetes.MINORS), st.integers(0, 99), st.text(alphabet="abcr0123456789.-+", max_size=12))
def test_minor_ignores_patch_and_suffix(minor: str, patch: int, suffix: str) -> None:
    """Whatever stands behind the patch number after - or +, the minor version is the same."""
    assert kubernetes.minor(f"v{minor}.{patch}+{suffix}") == minor
    assert kubernetes.minor(f"{minor}.{patch}-{suffix}") == minor


@pytest.mark.parametrize("version", ["1.28", "1.28.9", "1.38", "v1.99.0", "2.0", "1.290"])
def test_minor_refuses_versions_without_schemas(version: str) -> None:
    """A version that gpustack has no schemas for is bad input that names the supported ones."""
    with pytest.raises(InputError) as refused:
        kubernetes.minor(version)
    (finding,) = refused.value.findings
    assert finding.what == f"no schemas for Kubernetes {'.'.join(version.lstrip('v').split('.')[:2])}"
    assert "1.29 to 1.37" in finding.why
    assert finding.path == "spec.cluster.kubernetesVersion"
    assert finding.remedy


@pytest.mark.parametrize(
    "version", ["", "latest", "1", "1.33.1 beta", "1.x", "1.33.1.2", "1,33", "1.33\n1", "\uff11.33"]
)
def test_minor_refuses_what_is_no_version(version: str) -> None:
    """Text that is not a version is bad input that shows what one looks like."""
    with pytest.raises(InputError) as refused:
        kubernetes.minor(version)
    assert "is not a Kubernetes version" in refused.value.findings[0].what
    assert "1.33" in refused.value.findings[0].why


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("1.28", "upgrade the cluster to 1.29 or later"),
        ("1.38", "use a version of gpustack that knows it"),
        ("1.99", "use a version of gpustack that knows it"),
        ("4.20", "`kubectl version`"),
        ("latest", "`kubectl version`"),
    ],
)
def test_the_way_out_fits_the_version(version: str, told: str) -> None:
    """A cluster that is too old is upgraded; for one that is too new gpustack is; what is neither is corrected."""
    with pytest.raises(InputError) as refused:
        kubernetes.minor(version)
    remedy = refused.value.findings[0].remedy
    assert told in remedy
    assert ("upgrade the cluster" in remedy) == (version == "1.28")


def test_minor_knows_the_trap_of_yaml_numbers() -> None:
    """1.30 without quotes arrives as 1.3, and the error says so."""
    with pytest.raises(InputError) as refused:
        kubernetes.minor("1.3")
    assert "1.30 without quotes" in refused.value.findings[0].why
    assert '"1.30"' in refused.value.findings[0].remedy


@pytest.mark.parametrize("minor", kubernetes.MINORS)
def test_schema_path_has_every_kind_that_is_rendered(minor: str) -> None:
    """Every kind that gpustack renders has a schema for every supported version, and it is that of the kind."""
    for api_version, kinds in RENDERED.items():
        for kind in kinds.split():
            path = kubernetes.schema_path(api_version, kind, minor)
            assert path is not None, (api_version, kind)
            properties = json.loads(path.read_bytes())["properties"]
            assert properties["apiVersion"]["enum"] == [api_version]
            assert properties["kind"]["enum"] == [kind]


@pytest.mark.parametrize(("key", "since"), SINCE.items())
def test_schema_path_is_none_before_the_kind_existed(key: tuple[str, str], since: str) -> None:
    """A kind has a schema from the version on that made it v1, and none before."""
    having = [minor for minor in kubernetes.MINORS if kubernetes.schema_path(*key, minor)]
    assert having == list(kubernetes.MINORS[kubernetes.MINORS.index(since) :])


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Unknown"),
        ("apps/v1beta1", "DaemonSet"),
        ("v1alpha1", "../../crds/nodefeature-nfd.k8s-sigs.io"),
        ("apps-v1", "DaemonSet"),
        ("../x/v1", "Pod"),
        ("", "Pod"),
        ("v1", ""),
        ("apps/v1\n", "DaemonSet"),
        ("x" * 5000 + "/v1", "Pod"),
    ],
)
def test_schema_path_is_none_for_other_names(api_version: str, kind: str) -> None:
    """Names that are no kind, or no names at all, have no schema and lead nowhere."""
    assert kubernetes.schema_path(api_version, kind, "1.33") is None


def test_index_is_current() -> None:
    """schemas/index.json has the digest of exactly the files that are there, for each supported version."""
    expected = {}
    for minor in kubernetes.MINORS:
        total = hashlib.sha256()
        for folder in (SCHEMAS / "kubernetes" / minor, SCHEMAS / "crds"):
            for path in sorted(folder.iterdir()):
                total.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
        expected[minor] = total.hexdigest()
    assert json.loads((SCHEMAS / "index.json").read_bytes()) == expected, "run `make schemas`"
    assert {minor: kubernetes.schema_digest(minor) for minor in kubernetes.MINORS} == expected
    assert sorted(path.name for path in (SCHEMAS / "kubernetes").iterdir()) == list(kubernetes.MINORS)


def test_schemas_are_what_the_pinned_packages_give() -> None:
    """The committed schemas are the ones that the tool makes of the installed wheel; nobody edits them by hand."""
    own = ROOT / ".tools" / "schemas-venv" / "bin" / "python"
    python = sys.executable if importlib.util.find_spec("kubernetes_validate") else str(own)
    if not Path(python).exists():
        pytest.fail("kubernetes-validate is not installed: run `make venv-schemas`")
    command = [python, "tools/make_schemas.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), "run `make schemas`"


def _parts(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside SCHEMA, with its place."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for key in ("properties", "definitions"):
        for name, part in schema.get(key, {}).items():
            yield from _parts(part, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        yield from _parts(schema.get(key), f"{path}.*")
    for part in schema.get("anyOf", ()):
        yield from _parts(part, path)


def test_words_are_of_fields_that_there_are() -> None:
    """Each field that the tool knows more about is one of the newest version, and the schemas have what it knows."""
    every = [part for file in FILES for _, part in _parts(json.loads(file.read_bytes()))]
    known = {
        (name, str(field.get("enum") or field.get("items", {}).get("enum")))
        for part in every
        for name, field in part.get("properties", {}).items()
        if isinstance(field, dict)
    }
    for fields in WORDS.values():
        for name, words in fields.items():
            assert (name, str(["", *sorted(words.split())])) in known
    needed = {name for part in every for name in part.get("required", ())}
    assert {name for names in NEEDED.values() for name in names} <= needed
    filled = {name for part in every for name, field in part.get("properties", {}).items() if field.get("minItems")}
    assert {name for names in FILLED.values() for name in names} <= filled


def test_schemas_are_strict_and_hold_structure_only() -> None:
    """Every mapping says which fields it has; no prose, no formats, no null; references stay inside their file."""
    allowed = {
        "$ref", "$schema", "additionalProperties", "anyOf", "definitions", "enum", "items", "maxItems", "maxLength",
        "maxProperties", "maximum", "minItems", "minLength", "minimum", "pattern", "properties", "required", "type",
    }  # fmt: skip
    open_ended = set()
    for file in FILES:
        for path, part in _parts(json.loads(file.read_bytes())):
            assert part.keys() <= allowed, (file, path, part.keys() - allowed)
            assert "null" not in part.get("type", "")
            assert part.get("$ref", "#/definitions/JSONSchemaProps") == "#/definitions/JSONSchemaProps"
            if part.get("type") == "object" and "additionalProperties" not in part:
                open_ended.add(path.rpartition(".")[2])
                assert path.rpartition(".")[2] not in {"spec", "status"} or file.name == INERT, path
    open_ended -= {"spec", "status"}
    # managedFields' fieldsV1, and what drivers of devices read and report: the API knows no fields there.
    assert open_ended == {"fieldsV1", "parameters", "data"}


def test_schemas_are_small_and_written_one_way() -> None:
    """One line of sorted, compact JSON a file, below 6 MB together, so that the repository stays small."""
    assert sum(path.stat().st_size for path in FILES) < 6_000_000
    for path in FILES:
        text = path.read_text("utf-8")
        assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder in which gpustack seems to be installed."""
    monkeypatch.setattr(kubernetes, "__file__", str(tmp_path / "gpustack" / "catalog" / "kubernetes.py"))
    kubernetes.schema_root.cache_clear()
    yield tmp_path
    kubernetes.schema_root.cache_clear()


@pytest.mark.parametrize("folder", ["schemas", "gpustack/schemas"])
def test_schema_root_in_checkout_and_package(placed: Path, folder: str) -> None:
    """The schemas are found at the root of a checkout and inside an installed package."""
    (placed / folder).mkdir(parents=True)
    (placed / folder / "index.json").write_text("{}")
    assert kubernetes.schema_root() == placed / folder


def test_schema_root_missing(placed: Path) -> None:
    """An installation without schemas is an error with a remedy, not a render without validation."""
    with pytest.raises(MissingToolError) as missing:
        kubernetes.schema_root()
    assert missing.value.findings[0].remedy
