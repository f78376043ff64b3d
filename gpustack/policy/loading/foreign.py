"""Recognises what somebody took for a policy: objects of the operator, chart values, objects of GitOps engines, lists.

Solves: "apiVersion must be gpustack.dev/v1alpha1" is true and leaves the reader alone with a ClusterPolicy from a
running cluster, most of which could be used as it is. Imported only when a file is not a policy.
"""

from typing import Any

from gpustack.model import Finding, dotted
from gpustack.policy.loading.envelope import API_VERSION, KEYS, Kind, closest
from gpustack.text.positions import locate
from gpustack.text.read import Document
from gpustack.text.refusals import Texts

TEXTS = Texts(__file__)


def recognise(document: Document, kind: Kind) -> Finding:
    """Return what to say about DOCUMENT, which should be of KIND and is not."""
    data = document.data
    api, actual = data.get("apiVersion"), data.get("kind")
    if api == API_VERSION:
        return _other_kind(document, actual, kind)
    if isinstance(api, str) and api.partition("/")[0].lower() == "gpustack.dev":
        return _said("version", document, kind, "apiVersion")
    if api is None and actual is None:
        return _values(document, kind) if is_values(data) else _nothing(document, kind)
    if (isinstance(actual, str) and actual.endswith("List")) or isinstance(data.get("items"), list):
        return _said("list", document, kind, "kind")
    if isinstance(api, str) and api.startswith("nvidia.com/"):
        own = actual in ("NVIDIADriver", "GPUCluster")
        return _said(str(actual) if own else "operator", document, kind, "apiVersion")
    if missing := next((key for key, said in (("apiVersion", api), ("kind", actual)) if said is None), None):
        return _said("half", document, kind, "kind" if missing == "apiVersion" else "apiVersion", missing=missing)
    if actual == kind:
        return _said("no such", document, kind, "apiVersion")
    if known := TEXTS.table["kinds"].get(str(actual)):
        return _said("known kind", document, kind, "kind", remedy=known)
    return _said("kind", document, kind, "kind")


def _said(case: str, document: Document, kind: Kind, at: str, *, key: bool = False, **words: Any) -> Finding:
    """What the table says of CASE, with WORDS and those that every case has, about the value (KEY: the key) AT."""
    api, actual = document.data.get("apiVersion"), document.data.get("kind")
    where = locate(document.text, document.file, (at,), key=key)
    known: dict[str, Any] = {"kind": kind, "api": api, "actual": actual, "version": API_VERSION}
    known["frame"] = f"start the file with `apiVersion: {API_VERSION}` and `kind: {kind}`"
    known["add"] = "add spec.release and spec.cluster.kubernetesVersion"
    return TEXTS.finding("GPU012", case, where, at=dotted((at,)), **known, **words)


def _other_kind(document: Document, actual: object, kind: Kind) -> Finding:
    if {str(actual), kind} == {"PolicyLayer", "ClusterPolicy"}:
        return _said("layer" if actual == "PolicyLayer" else "policy", document, kind, "kind")
    if place := TEXTS.table["places"].get(str(actual)):
        return _said("elsewhere", document, kind, "kind", place=place)
    guess = closest(str(actual), TEXTS.table["places"]) or kind
    return _said("no kind" if actual is None else "other kind", document, kind, "kind", guess=guess)


def _values(document: Document, kind: Kind) -> Finding:
    from gpustack.catalog import chart

    wrapper = next((key for key in document.data if key in chart.wrappers()), None)
    moved = f"move what stands below {wrapper} to `spec:`" if wrapper else "indent everything below `spec:`"
    return _said("values", document, kind, wrapper or next(iter(document.data)), key=True, moved=moved)


def is_values(data: dict[str, Any]) -> bool:
    """Whether DATA, which is not an object, has sections of the operator's chart at its top."""
    from gpustack.catalog import chart, releases

    sections = set(releases.release(releases.latest()).defaults) | {"nfd", "operator", "platform", "extraObjects"}
    sections |= {path.partition(".")[0] for path in [*chart.renamed(), *chart.dropped(), *chart.wrappers()]}
    return bool(sections & set(data))


def _nothing(document: Document, kind: Kind) -> Finding:
    for wrong in document.data:
        if right := closest(wrong, ("apiVersion", "kind"), 0.85):
            return _said("misspelt", document, kind, wrong, key=True, right=right, wrong=wrong)
    for top, (sort, remedy) in TEXTS.table["files"].items():
        if top in document.data:
            return _said("file", document, kind, top, key=True, sort=sort, remedy=remedy)
    return _said("nothing", document, kind, next(iter(document.data), ""), key=True, keys=", ".join(KEYS))
