"""Recognises what somebody took for a policy: objects of the operator, chart values, objects of GitOps engines, lists.

Solves: "apiVersion must be gpustack.dev/v1alpha1" is true and leaves the reader alone with a ClusterPolicy from a
running cluster, most of which could be used as it is. Imported only when a file is not a policy.
"""

from __future__ import annotations

import difflib
import pathlib
from typing import Any

from gpustack.catalog import _data
from gpustack.model import Finding, Path
from gpustack.policy.loading.envelope import API_VERSION, KEYS, Kind, finding
from gpustack.text.read import Document

_FOREIGN = pathlib.Path(__file__).with_suffix(".yaml")
_FRAME = f"start the file with `apiVersion: {API_VERSION}` and `kind: {{kind}}`"
_ADD = "add spec.release and spec.cluster.kubernetesVersion"


def recognise(document: Document, kind: Kind) -> Finding:
    """Return what to say about DOCUMENT, which should be of KIND and is not."""
    data = document.data
    api, actual = data.get("apiVersion"), data.get("kind")
    if api == API_VERSION:
        return _other_kind(document, actual, kind)
    if isinstance(api, str) and api.partition("/")[0].lower() == "gpustack.dev":
        remedy = f"write `apiVersion: {API_VERSION}`"
        return finding(document, ("apiVersion",), "GPU012", f"there is no version {api}", remedy)
    if api is None and actual is None:
        return _values(document, kind) if is_values(data) else _nothing(document, kind)
    if (isinstance(actual, str) and actual.endswith("List")) or isinstance(data.get("items"), list):
        return _list(document, kind)
    if isinstance(api, str) and api.startswith("nvidia.com/"):
        return _operators(document, str(actual), kind)
    if api is None or actual is None or actual == kind:
        return _half(document, kind)
    remedy = (
        _data.read(_FOREIGN)["kinds"].get(str(actual))
        or f"{_FRAME.format(kind=kind)}, or name the file that holds the policy"
    )
    what = f"this is an object of kind {actual} ({api}), not a {kind}"
    return finding(document, ("kind",), "GPU012", what, remedy, why=f"a policy has apiVersion {API_VERSION}")


def _other_kind(document: Document, actual: object, kind: Kind) -> Finding:
    path: Path = ("kind",)
    if actual == "PolicyLayer":
        return finding(
            document,
            path,
            "GPU012",
            "this is a layer, not the policy of a cluster",
            "move it to layers/ beside the policies; to make it a cluster, write `kind: ClusterPolicy`",
            why="a layer holds what clusters share; it is rendered through the policies that name it under extends",
        )
    if actual == "ClusterPolicy":
        return finding(
            document,
            path,
            "GPU012",
            "this is the policy of a cluster, not a layer",
            "write `kind: PolicyLayer` and delete metadata.name, or take it off extends",
            why="extends names files of kind PolicyLayer",
        )
    near = difflib.get_close_matches(str(actual).lower(), ["clusterpolicy", "policylayer"], n=1)
    what = f"there is no kind {actual}" if actual is not None else "the file has no kind"
    guess = {"clusterpolicy": "ClusterPolicy", "policylayer": "PolicyLayer"}[near[0]] if near else kind
    return finding(document, path, "GPU012", what, f"write `kind: {guess}`")


def _operators(document: Document, actual: str, kind: Kind) -> Finding:
    """An object of NVIDIA's operator."""
    if actual == "NVIDIADriver":
        remedy = "put its spec into the list spec.drivers of a policy, with a name"
    elif actual == "GPUCluster":
        remedy = "put its spec below spec.gpuCluster of a policy"
    else:
        remedy = (
            f"{_FRAME.format(kind=kind)}; set metadata.name to the cluster's name and delete the rest of metadata and "
            f"status; {_ADD}; the fields of spec keep their names. Delete every repository, image and version that you "
            "did not choose: they hold the components at the versions of the operator that wrote them. Where no chart "
            "wrote it (OLM, kubectl apply), add `defaults: operator` to spec"
        )
    return finding(
        document,
        ("apiVersion",),
        "GPU012",
        f"this is a {actual} of NVIDIA's GPU operator, not a {kind} of gpustack",
        remedy,
        why="gpustack's own says of which release and for which cluster the manifests are made",
    )


def _list(document: Document, kind: Kind) -> Finding:
    return finding(
        document,
        ("kind",),
        "GPU012",
        f"this is a list of objects ({document.data.get('kind')}), not a {kind}",
        f"take one object of its items: {_FRAME.format(kind=kind)}, and {_ADD}",
        why="that is what `kubectl get -o yaml` prints without a name",
    )


def _values(document: Document, kind: Kind) -> Finding:
    from gpustack.catalog import chart

    wrapper = next((key for key in document.data if key in chart.wrappers()), None)
    moved = f"move what stands below {wrapper} to `spec:`" if wrapper else "indent everything below `spec:`"
    return finding(
        document,
        (wrapper or next(iter(document.data)),),
        "GPU012",
        "these are values of the GPU operator's Helm chart, not a policy",
        f"{_FRAME.format(kind=kind)}, {moved} and {_ADD}",
        why=f"a {kind} has them below spec; most keep their names; those that don't are named when the policy is read",
        key=True,
    )


def is_values(data: dict[str, Any]) -> bool:
    """Whether DATA, which is no object, has sections of the operator's chart at its top."""
    from gpustack.catalog import chart, releases

    sections = set(releases.release(releases.latest()).defaults) | {"nfd", "operator", "platform", "extraObjects"}
    sections |= {path.partition(".")[0] for path in [*chart.renamed(), *chart.dropped(), *chart.wrappers()]}
    return bool(sections & set(data))


def _nothing(document: Document, kind: Kind) -> Finding:
    near = {
        key: difflib.get_close_matches(key.lower(), ["apiversion", "kind"], n=1, cutoff=0.85) for key in document.data
    }
    for key, match in near.items():
        if match:
            right = "apiVersion" if match[0] == "apiversion" else "kind"
            remedy = f"write {right} instead of {key}"
            what = f"unknown key {key}"
            return finding(
                document, (key,), "GPU012", what, remedy, why=f"a {kind} needs apiVersion and kind", key=True
            )
    for key, (sort, remedy) in _data.read(_FOREIGN)["files"].items():
        if key in document.data:
            return finding(document, (key,), "GPU012", f"this is {sort}, not a {kind}", remedy, key=True)
    what = f"{document.file} has neither apiVersion nor kind"
    why = "nothing says what the file is"
    remedy = f"{_FRAME.format(kind=kind)}; a {kind} has the keys {', '.join(KEYS)}"
    return finding(document, (next(iter(document.data), ""),), "GPU012", what, remedy, why=why, key=True)


def _half(document: Document, kind: Kind) -> Finding:
    missing = next((key for key in ("apiVersion", "kind") if document.data.get(key) is None), None)
    if missing:
        what = f"{document.file} has no {missing}"
        return finding(
            document,
            ("kind" if missing == "apiVersion" else "apiVersion",),
            "GPU012",
            what,
            _FRAME.format(kind=kind) + ".",
        )
    what = f"there is no {kind} with apiVersion {document.data['apiVersion']}"
    return finding(document, ("apiVersion",), "GPU012", what, f"write `apiVersion: {API_VERSION}`")
