"""DaemonSets as the operator and Helm had written them to a cluster, and what a policy has to carry to keep them.

Each text of a script is replaced by a comment with its length and its SHA-256: the texts are NVIDIA's. The facts of a
case are a merge patch over those of the first case, as in cases.py.

`python -m tests.fidelity.live FOLDER` writes them anew from a folder of measured cases: a List of objects per case.
What the API server writes by itself (uid, status, managed fields) is left out; `managers` says who wrote which.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

from gpustack.components.parts.carried import fill, template_hash
from gpustack.policy.language.carried import Carried

from .cases import diff_patch, merge_patch
from .order import OWN_HASH

FOLDER = Path(__file__).parent / "live"
FIRST = "01-defaults-ubuntu2204"
Body = dict[str, Any]

DEFAULTS: dict[str, tuple[Any, ...]] = {
    "apiVersion": ("v1",),
    "creationTimestamp": (None,),
    "defaultMode": (420,),
    "dnsPolicy": ("ClusterFirst",),
    "failureThreshold": (3,),
    "imagePullPolicy": ("IfNotPresent", "Always"),
    "periodSeconds": (10,),
    "protocol": ("TCP",),
    "resources": ({},),
    "restartPolicy": ("Always",),
    "schedulerName": ("default-scheduler",),
    "scheme": ("HTTP",),
    "securityContext": ({},),
    "successThreshold": (1,),
    "terminationGracePeriodSeconds": (30,),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "timeoutSeconds": (1,),
    "type": ("",),
    "value": ("",),
}
"""What the API server writes into a pod template where nothing is said, by field, wherever that stands."""


def names() -> list[str]:
    """The cases, by name."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def daemonsets(name: str) -> dict[str, Body]:
    """The DaemonSets of case NAME, by name."""
    first: dict[str, Body] = json.loads((FOLDER / f"{FIRST}.json").read_text(encoding="utf-8"))
    if name == FIRST:
        return first
    patched: dict[str, Body] = merge_patch(first, json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
    return patched


def manager(body: Body) -> str:
    """Who wrote the DaemonSet BODY."""
    return "gpu-operator" if body["metadata"].get("ownerReferences") else "helm"


def rendered_for(name: str, rendered: dict[str, Body]) -> Body | None:
    """The DaemonSet among RENDERED, by their names, that stands for the live one NAME."""
    stem = OWN_HASH.sub("", name)
    alike = [each for each in rendered if OWN_HASH.sub("", each).startswith(stem)] if "-driver-" in name else []
    return rendered.get(name) or (rendered[alike[0]] if alike else None)


def taken(live: Body, rendered: Body) -> Body | None:
    """What a policy has to carry so that RENDERED keeps what LIVE is; None where there is nothing."""
    pod, ours = live["spec"]["template"]["spec"], copy.deepcopy(rendered["spec"]["template"])
    own = {each["name"] for each in ours["spec"].get("initContainers", [])}
    found: Body = {
        "name": rendered["metadata"]["name"],
        "origin": f"{live['metadata']['name']}-7d8f6c5b9",
        "without": sorted(own - {each["name"] for each in pod.get("initContainers", [])}),
        "texts": {at: {"text": text} for at, text in texts(pod).items() if texts(ours["spec"]).get(at) != text},
    }
    if live["metadata"]["name"] != rendered["metadata"]["name"]:
        found["called"] = live["metadata"]["name"]
        rename(ours, rendered["metadata"]["name"], found["called"])
    if not (found["without"] or found["texts"] or "called" in found):
        return None
    fill(Carried.model_validate(found), ours["spec"])
    return {**found, "template": template_hash(ours)}


def rename(template: Body, before: str, after: str) -> None:
    """Let the pods of TEMPLATE be found under another name."""
    labels = template["metadata"]["labels"]
    template["metadata"]["labels"] = {key: after if value == before else value for key, value in labels.items()}


def texts(pod: Body) -> dict[str, str]:
    """The words of the PodSpec POD, by place."""
    return {
        f"{kind}.{each['name']}.{field}.{index}": word
        for kind in ("initContainers", "containers")
        for each in pod.get(kind, [])
        for field in ("command", "args")
        for index, word in enumerate(each.get(field, []))
    }


def differences(live: Any, ours: Any, path: str = "") -> list[str]:
    """Where OURS isn't LIVE, but for what the API server writes where nothing is said."""
    if isinstance(live, dict) and isinstance(ours, dict):
        return [found for key in sorted({*live, *ours}) for found in _of_key(live, ours, key, f"{path}.{key}")]
    if isinstance(live, list) and isinstance(ours, list) and len(live) == len(ours):
        pairs = enumerate(zip(live, ours, strict=True))
        return [found for index, (a, b) in pairs for found in differences(a, b, f"{path}[{index}]")]
    return [] if live == ours else [f"{path}: {live!r} -> {ours!r}"]


def _of_key(live: Body, ours: Body, key: str, path: str) -> list[str]:
    if key in live and key in ours:
        return differences(live[key], ours[key], path)
    value = live.get(key, ours.get(key))
    copied = key == "serviceAccount" and value == live.get("serviceAccountName")
    return [] if copied or value in DEFAULTS.get(key, ()) else [f"{path}: {live.get(key)!r} -> {ours.get(key)!r}"]


def measured(body: Body) -> Body:
    """The live DaemonSet BODY without what the API server writes by itself."""
    meta = {
        key: body["metadata"][key]
        for key in ("name", "namespace", "labels", "annotations", "ownerReferences")
        if key in body["metadata"]
    }
    meta["annotations"] = {key: text for key, text in meta["annotations"].items() if "deprecated" not in key}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": body["spec"]}


def write(source: Path) -> None:
    """Write the facts anew from the folder SOURCE."""
    FOLDER.mkdir(exist_ok=True)
    every = {
        path.stem: {
            str(body["metadata"]["name"]): measured(body)
            for body in json.loads(path.read_text(encoding="utf-8"))["items"]
            if body["kind"] == "DaemonSet"
        }
        for path in sorted(source.glob("*.json"))
    }
    for name, found in every.items():
        patch = found if name == FIRST else diff_patch(every[FIRST], found)
        if name != FIRST and merge_patch(every[FIRST], patch) != found:
            raise SystemExit(f"{name} does not come back from its patch")
        text = json.dumps(patch, indent=0, sort_keys=True)
        (FOLDER / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
