"""In which order the operator writes the lists of its pod templates, measured; and its DRIVER_CONFIG_DIGEST.

A ControllerRevision is made of a template as it is written, so another order is another revision, and every pod of it
is outdated. `order` tells the names of a template in their order. The facts of a case are a merge patch over those of
the first case, as in cases.py.

`python -m tests.fidelity.order FOLDER` writes them anew from a folder of measured cases: a JSON file per case, which
has per DaemonSet its containers, volumes and tolerations with their names in the operator's order.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from .cases import diff_patch, merge_patch

FOLDER = Path(__file__).parent / "order"
FIRST = "01-defaults-ubuntu2204"
OWN_HASH = re.compile(r"-[0-9a-f]{8,10}$")
"""What ends the name of a DaemonSet that is made for one of several drivers: a hash of what the name stands for."""
DIGEST = "DRIVER_CONFIG_DIGEST"
Order = dict[str, Any]


def names() -> list[str]:
    """The cases, by name."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def facts(name: str) -> dict[str, Order]:
    """The order of each DaemonSet of case NAME."""
    first: dict[str, Order] = json.loads((FOLDER / f"{FIRST}.json").read_text(encoding="utf-8"))
    if name == FIRST:
        return first
    patched: dict[str, Order] = merge_patch(first, json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
    return patched


def order(template: dict[str, Any]) -> Order:
    """The names in TEMPLATE, a pod template, in their order; init containers called gpustack-* are ours alone."""
    spec = template["spec"]
    init = [each for each in spec.get("initContainers", []) if not each["name"].startswith("gpustack-")]
    found: Order = {
        "initContainers": [each["name"] for each in init],
        "containers": [each["name"] for each in spec["containers"]],
        "volumes": [each["name"] for each in spec.get("volumes", [])],
        "tolerations": [" ".join(f"{key}={each[key]}" for key in sorted(each)) for each in spec.get("tolerations", [])],
        "imagePullSecrets": [each["name"] for each in spec.get("imagePullSecrets", [])],
    }
    for container in [*init, *spec["containers"]]:
        found |= {f"{container['name']}.{key}": names for key, names in lists(container).items()}
    return {key: names for key, names in found.items() if names}


def lists(container: dict[str, Any]) -> dict[str, Any]:
    """The names in the lists of CONTAINER, and its digest."""
    return {
        "env": [each["name"] for each in container.get("env", [])],
        "envFrom": [next(iter(each)) for each in container.get("envFrom", [])],
        "volumeMounts": [f"{each['name']} {each['mountPath']}" for each in container.get("volumeMounts", [])],
        "ports": [each.get("name", str(each["containerPort"])) for each in container.get("ports", [])],
        DIGEST: next((each.get("value") for each in container.get("env", []) if each["name"] == DIGEST), None),
    }


def differences(want: Order, have: Order) -> list[str]:
    """Where HAVE isn't as WANT."""
    return [
        f"{key}: {want.get(key)} but {have.get(key)}"
        for key in sorted({*want, *have})
        if want.get(key) != have.get(key)
    ]


def nearest(name: str, want: Order, rendered: dict[str, Order]) -> list[str]:
    """How the DaemonSet NAME differs from the one that is rendered for it, by its name or, where that ends in a hash of
    what we don't know, by its likeness.
    """
    stem = OWN_HASH.sub("", name)
    alike = [name] if name in rendered else [each for each in rendered if OWN_HASH.sub("", each).startswith(stem)]
    return min((differences(want, rendered[each]) for each in alike), key=len, default=["not rendered"])


def measured(daemonset: dict[str, Any]) -> Order:
    """The facts of a measured DaemonSet, in the form of `order`."""
    found: Order = {key: daemonset.get(key) for key in ("volumes", "tolerations", "imagePullSecrets")}
    for kind in ("initContainers", "containers"):
        found[kind] = [each["name"] for each in daemonset[kind]]
        for each in daemonset[kind]:
            found |= {f"{each['name']}.{key}": names for key, names in each.items() if key != "name"}
    return {key: names for key, names in found.items() if names}


def write(source: Path) -> None:
    """Write the facts anew from the folder SOURCE."""
    FOLDER.mkdir(exist_ok=True)
    every = {
        path.stem: {name: measured(body) for name, body in json.loads(path.read_text(encoding="utf-8")).items()}
        for path in sorted(source.glob("*.json"))
    }
    for name, found in every.items():
        text = json.dumps(found if name == FIRST else diff_patch(every[FIRST], found), indent=0, sort_keys=True)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
