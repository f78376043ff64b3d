"""Objects that an installation counts on: ConfigMaps of the inputs are rendered along, all else is referred to."""

from collections.abc import Iterable
from typing import Any

from gpustack.catalog import kubernetes
from gpustack.checks.objects.references import needed, provided
from gpustack.checks.subjects import Render
from gpustack.model import Body
from gpustack.policy.loading.load import load_values

from .installation import Said
from .pieces import about
from .spec import NOWHERE, Draft


def bring(made: Draft) -> None:
    """Put the ConfigMaps of the inputs that MADE names into `extraObjects`. The operator's own are rendered anyway."""
    installation = made.installation
    names = {said.value for said in made.leaves.values() if isinstance(said.value, str)}
    objects = list(made.spec.get("extraObjects", []))
    taken = {(body["kind"], body["metadata"]["name"]) for body in objects}
    for body, where in installation.objects:
        meta = body["metadata"]
        if body["kind"] != "ConfigMap" or meta["name"] not in names or meta.get("ownerReferences"):
            what = about(body)
            if what and body["kind"] not in {"Namespace", "Subscription"}:
                installation.note("dropped", f"{body['kind']} {meta['name']}", *what, where)
            continue
        if ("ConfigMap", meta["name"]) in taken or not body.get("data"):
            continue
        plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": meta["name"]}, "data": body["data"]}
        objects.append(plain)
        made.leaves["extraObjects",] = Said(objects, where)


def refer(made: Draft, bodies: Iterable[Body]) -> None:
    """Refer to what BODIES name and nobody renders: in a cluster that runs it is there."""
    rendered = list(bodies)
    if not rendered:
        return
    spec = load_values(made.spec)
    have = [item for body in rendered for item in provided(body)]
    need = [item for body in rendered for item in needed(body)]
    gaps = Render(spec, kubernetes.minor(spec.cluster.kubernetesVersion), have, need, list).gaps.named
    references = list(made.spec.get("references", []))
    for kind, namespace, name in dict.fromkeys((gap.kind, gap.namespace, gap.name) for gap in gaps if not gap.key):
        entry: dict[str, Any] = {"kind": kind, "name": name}
        if namespace not in {"", spec.cluster.namespace}:
            entry["namespace"] = namespace
        live = next((body for body in made.installation.of_kind(kind) if body["metadata"]["name"] == name), None)
        if live is not None and kind in {"ConfigMap", "Secret"}:
            entry["keys"] = sorted(live.get("data") or {})
        else:
            path = f"spec.references[{len(references)}]"
            made.installation.tell("counts as there", path, kind=kind, name=name)
        references.append(entry)
    if references:
        made.leaves["references",] = Said(references, NOWHERE)
