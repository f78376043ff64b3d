"""DaemonSets as the operator and Helm had written them to a cluster, and what a policy has to carry to keep them.

Each text of a script is replaced by a comment with its length and its SHA-256: the texts are NVIDIA's. The facts of a
case are a merge patch over those of the first case, as in cases.py.

`python -m tests.fidelity.live FOLDER` writes them anew from a folder of measured cases: a List of objects per case.
What the API server writes by itself (uid, status, managed fields) is left out; `managers` says who wrote which.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gpustack.moving.adopt import carry

from .cases import diff_patch, merge_patch

FOLDER = Path(__file__).parent / "live"
FIRST = "01-defaults-ubuntu2204"
Body = dict[str, Any]


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


def taken(live: Body, rendered: Body) -> Body | None:
    """What a policy has to carry so that RENDERED keeps what LIVE is; None where there is nothing."""
    return carry.taken(live, rendered, f"{live['metadata']['name']}-7d8f6c5b9")


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
