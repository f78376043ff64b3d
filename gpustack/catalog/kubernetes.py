"""Kubernetes versions that gpustack knows, and where the JSON schema of a kind lies.

One file per minor version and kind, and one per custom resource::

    schemas/kubernetes/1.33/daemonset-apps-v1.json
    schemas/kubernetes/1.33/pod-v1.json
    schemas/crds/servicemonitor-monitoring.coreos.com-v1.json
    schemas/index.json                                   digest of what counts for each minor version

The names hold group and version, so that equal kinds of different groups don't clash, and are such that kubeconform
finds the files through `FILE_TEMPLATE`. A new custom resource is a file in schemas/crds/ (tools/make_schemas.py).
A store keyed by digest would be smaller, but kubeconform's template can't follow an alias.
"""

import json
import re
from functools import lru_cache
from pathlib import Path

from gpustack.model import Finding, InputError, MissingToolError

MINORS: tuple[str, ...] = ("1.29", "1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
"""Supported minor versions, oldest first: those of which schemas/ holds the API."""

FILE_TEMPLATE = "{{.ResourceKind}}{{if ne .Group .ResourceAPIVersion}}-{{.Group}}{{end}}-{{.ResourceAPIVersion}}.json"
"""`file_name` in the words of kubeconform's -schema-location. For the core group its .Group is the version."""

CLUSTER_SCOPED = frozenset({
    "APIService", "CertificateSigningRequest", "ClusterPolicy", "ClusterQueue", "ClusterRole",
    "ClusterRoleBinding", "ClusterRules", "CustomResourceDefinition", "DeviceClass", "FlowSchema", "IngressClass",
    "MachineConfig", "MutatingWebhookConfiguration", "Namespace", "Node", "NodeFeatureRule",
    "NodeOverlay", "NodePolicy", "NodePool", "NodeReadinessRule", "PersistentVolume",
    "PriorityClass", "PriorityLevelConfiguration", "Queue", "ResourceFlavor", "RuntimeClass",
    "SecurityContextConstraints", "StorageClass", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", })  # fmt: skip
"""Kinds without a namespace, of the core APIs and of those that a GPU stack meets. Every other kind with a schema here
has one. Kinds without a schema are not rendered, so that nothing is assumed of them."""

_VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?:\.\d+)?(?:[-+].*)?", re.ASCII)
_API_VERSION = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?v[0-9][a-z0-9]*")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NAME_BYTES = 200  # file systems refuse to look for names above 255
SYSTEMS = ("kube-", "openshift-")
"""What the names of a cluster's own namespaces begin with, beside `default`."""


def is_own(namespace: str) -> bool:
    """Whether NAMESPACE is the cluster's own. None of those is rendered: a prune would delete it."""
    return namespace == "default" or namespace.startswith(SYSTEMS)


def minor(version: str) -> str:
    """Return the minor version that VERSION belongs to: "v1.33.1+k3s1" -> "1.33". A leading v, a patch number and what
    distributions append (-eks-113cf36, -gke.100, +rke2r1, a bare +) are accepted. Raises InputError when VERSION can't
    be read, and when its minor version is not one of MINORS."""
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        why = "a version reads 1.33 or v1.33.1-eks-113cf36"
        raise InputError(_refusal(f"{version!r} is not a Kubernetes version", why))
    short = f"{int(match[1])}.{int(match[2])}"
    if short in MINORS:
        return short
    why = f"gpustack has the API of Kubernetes {MINORS[0]} to {MINORS[-1]}"
    if f"{short}0" in MINORS and match[0] == short:
        why += f"; YAML reads {short}0 without quotes as the number {short}"
        raise InputError(_refusal(f"no schemas for Kubernetes {short}", why, f'put it in quotes: "{short}0"'))
    raise InputError(_refusal(f"no schemas for Kubernetes {short}", why, _way_out(int(match[1]), int(match[2]))))


def knows_policies(version: str) -> bool:
    """Whether an API server of VERSION has the kind ValidatingAdmissionPolicy, and tokens that tell their node: from
    1.30 on. Raises InputError as `minor` does."""
    return tuple(int(number) for number in minor(version).split(".")) >= (1, 30)


def _way_out(major: int, minor: int) -> str:
    """What to do about a version that is older or newer than all of MINORS, or none that Kubernetes ever had."""
    first, last = ((int(one) for one in known.split(".")) for known in (MINORS[0], MINORS[-1]))
    if major != 1:
        return CORRECT
    if [major, minor] < [*first]:
        return f"upgrade the cluster to {MINORS[0]} or later"
    newest = f'"{MINORS[-1]}"'
    assert [major, minor] > [*last], "what lies between is known"  # noqa: S101 - MINORS has no gaps
    return (
        f"use a version of gpustack that knows it; until then write {newest}, the newest known, whose API a newer "
        "cluster serves but for what was removed. If the version is mistyped, correct it"
    )


CORRECT = (
    "write the version that `kubectl version` calls the server's, in quotes, such as "
    f'"{MINORS[-1]}"; a distribution\'s own number (OpenShift 4.20) is another one'
)


def _refusal(what: str, why: str, remedy: str = CORRECT) -> Finding:
    return Finding.error("GPU900", what, path="spec.cluster.kubernetesVersion", why=why, remedy=remedy)


@lru_cache(maxsize=1)
def schema_root() -> Path:
    """Return the folder with the schemas: inside an installed package, or at the root of a checkout. Raises
    MissingToolError when neither has them."""
    package = Path(__file__).resolve().parent.parent
    for root in (package / "schemas", package.parent / "schemas"):
        if (root / "index.json").is_file():
            return root
    raise MissingToolError.of(
        "GPU908",
        "gpustack's JSON schemas are missing",
        why=f"neither {package / 'schemas'} nor {package.parent / 'schemas'} has an index.json",
        remedy="install gpustack again, or restore schemas/ from Git",
    )


def file_name(api_version: str, kind: str) -> str:
    """Return the name of a kind's schema file: ("apps/v1", "DaemonSet") -> "daemonset-apps-v1.json"."""
    return f"{kind.lower()}-{api_version.replace('/', '-')}.json"


@lru_cache(maxsize=4096)
def schema_path(api_version: str, kind: str, minor: str) -> Path | None:
    """Return the schema file of a kind in Kubernetes MINOR, or None where that version doesn't have the kind. What
    isn't the name of an API version or kind has no file either: names never lead out of schemas/."""
    if not is_kind(api_version, kind):
        return None
    name = file_name(api_version, kind)
    kinds, customs = schema_folders(minor)
    if (kinds / name).is_file():
        return kinds / name
    return customs / name if _is_ours(customs / name) else None


def is_kind(api_version: str, kind: str) -> bool:
    """Whether the words are an API version and a kind, and short enough to be looked for."""
    names = _API_VERSION.fullmatch(api_version) and _KIND.fullmatch(kind)
    return bool(names) and len(file_name(api_version, kind)) <= _NAME_BYTES


@lru_cache(maxsize=4096)
def having(api_version: str, kind: str) -> tuple[str, ...]:
    """The minor versions of whose clusters gpustack has the schema of a kind."""
    return tuple(minor for minor in MINORS if schema_path(api_version, kind, minor))


ADDED = "x-gpustack-scope"
"""A word in schemas that a user added (kinds.py), and in none of ours."""


@lru_cache(maxsize=256)
def _is_ours(path: Path) -> bool:
    """Whether PATH is a schema of gpustack's own: in a checkout that holds policies too, users' lie beside them."""
    return path.is_file() and ADDED.encode() not in path.read_bytes()


def schema_folders(minor: str) -> tuple[Path, Path]:
    """Return the folders that hold the kinds of a cluster of Kubernetes MINOR: its own, then the custom resources."""
    return schema_root() / "kubernetes" / minor, schema_root() / "crds"


@lru_cache
def schema_digest(minor: str) -> str:
    """Return the content digest (sha256, hex) of all schemas that count for Kubernetes MINOR, with custom resources.
    Read from schemas/index.json, which tools/make_schemas.py writes and a test compares with the files."""
    index: dict[str, str] = json.loads((schema_root() / "index.json").read_bytes())
    return index[minor]
