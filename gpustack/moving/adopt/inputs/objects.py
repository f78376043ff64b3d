"""Objects of a cluster: the operator's custom resources, what runs, and what OLM or Helm keep of an installation."""

import base64
import binascii
import json
import re
import zlib
from typing import Any

from gpustack.model import Path
from gpustack.policy.loading.envelope import API_VERSION

from ....api import keys
from ..documents import Item
from ..installation import Leaves, Said, lay
from ..names import unfilled
from .context import CHART, Context

LIMIT = 16 * 1024 * 1024
"""Bytes of a Helm release, unpacked."""
CERTIFIED = "gpu-operator-certified"
OPERATOR = {"gpu-operator", CERTIFIED}


def cluster_policy(item: Item, context: Context) -> None:
    """Read the operator's ClusterPolicy, or one of gpustack's own, which is written anew, as short as it can be."""
    installation = context.installation
    if item.get("apiVersion") == API_VERSION:
        if item.get("spec", "extends"):
            installation.tell("layers", "spec.extends", item.where("spec"))
        lay(installation.spec, {path: said for path, said in item.leaves("spec").items() if path[0] != "extends"})
        return
    if keys.INERT in (item.get("metadata", "annotations") or {}):
        installation.tell("inert", item.file, item.where())
        return
    _custom_resource(item, context)
    labels = item.get("metadata", "labels") or {}
    by_helm = labels.get("app.kubernetes.io/managed-by") == "Helm" or "helm.sh/chart" in labels
    installation.defaults = "chart" if by_helm else "operator"
    installation.namespace = installation.namespace or item.text_at("status", "namespace")
    lay(installation.spec, written(item, context))
    for field in ("operator", "daemonsets", "driver", "toolkit", "devicePlugin", "dcgmExporter"):
        if item.get("spec") and item.get("spec", field) is None and not by_helm:
            installation.tell("patch", item.file, item.where("spec"), field=field)
            break


def driver(item: Item, context: Context) -> None:
    """Read an NVIDIADriver."""
    installation = context.installation
    _custom_resource(item, context)
    position = len({path[1] for path in installation.spec if path[0] == "drivers"})
    at: Path = ("drivers", position)
    name = item.said("metadata", "name")
    if name is None or unfilled(("metadata", "name"), name, installation):
        name = Said(f"driver-{position + 1}", item.where("metadata"))
    installation.spec[(*at, "name")] = name
    installation.spec |= {(*at, *path): said for path, said in written(item, context).items()}


def gpu_cluster(item: Item, context: Context) -> None:
    """Read a GPUCluster."""
    _custom_resource(item, context)
    context.installation.spec |= {("gpuCluster", *path): said for path, said in written(item, context).items()}


def written(item: Item, context: Context) -> Leaves:
    """The spec of the custom resource ITEM; in a template, what nobody filled in is asked for."""
    leaves = item.leaves("spec")
    if item.get("metadata", "uid"):
        return leaves
    return {path: said for path, said in leaves.items() if not unfilled(path, said, context.installation)}


def _custom_resource(item: Item, context: Context) -> None:
    installation = context.installation
    labels, annotations = (item.get("metadata", each) or {} for each in ("labels", "annotations"))
    installation.helm_release = installation.helm_release or str(annotations.get("meta.helm.sh/release-name", ""))
    installation.namespace = installation.namespace or str(annotations.get("meta.helm.sh/release-namespace", ""))
    version = labels.get("app.kubernetes.io/version") or str(labels.get("helm.sh/chart", "")).removeprefix(f"{CHART}-")
    if version and installation.version is None:
        installation.version = Said(version, item.where("metadata", "labels"))
    if item.get("metadata", "namespace"):
        installation.tell("namespaced", "metadata.namespace", item.where("metadata", "namespace"))


def other(item: Item, context: Context) -> None:
    """Keep an object that runs, or that stands beside the values. Of a Secret only its keys are kept."""
    if not isinstance(item.get("metadata"), dict) or not item.text_at("metadata", "name"):
        return
    maps = (item.get(*path) for path in (("metadata", "labels"), ("data",), ("spec",), ("status",)))
    if any(not isinstance(each, dict | None) for each in maps):
        return
    context.installation.objects.append((item.data, item.where()))
    if item.text_at("kind") == "Deployment" and item.text_at("metadata", "name") == CHART:
        context.version(item, "metadata", "labels", "app.kubernetes.io/version")


def secret(item: Item, context: Context) -> None:
    """Read a Helm release, if the Secret holds one; of any other its keys are known, and nothing else."""
    if item.get("type") == "helm.sh/release.v1":
        if item.text_at("metadata", "labels", "status") in {"deployed", ""}:
            _release(item, context)
        return
    keys = {key: "" for part in ("data", "stringData") for key in item.get(part) or {}}
    hidden = {**item.data, "data": keys, "stringData": {}}
    other(Item(item.file, item.text, hidden, item.at, item.outer), context)


def _release(item: Item, context: Context) -> None:
    """The values and the chart's version in a release of Helm: base64, twice, of a gzip archive of JSON."""
    try:
        packed = base64.b64decode(base64.b64decode(item.text_at("data", "release")))
        unpacking = zlib.decompressobj(wbits=31)
        release: Any = json.loads(unpacking.decompress(packed, LIMIT))
        chart = release["chart"]["metadata"]
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError):
        context.installation.tell("helm secret", item.text_at("metadata", "name"), item.where())
        return
    if chart.get("name") != CHART:
        return
    installation, made = context.installation, Item(item.file, item.text, {"values": release.get("config") or {}})
    where = item.where("data", "release")
    installation.version = installation.version or Said(str(chart.get("appVersion") or chart.get("version")), where)
    installation.helm_release = installation.helm_release or str(release.get("name", ""))
    installation.namespace = installation.namespace or str(release.get("namespace", ""))
    leaves: Leaves = {path: Said(each.value, where) for path, each in made.leaves("values").items()}
    context.take(leaves)


def subscription(item: Item, context: Context) -> None:
    """Read OLM's Subscription: a release by the name of its CSV, or a line by its channel."""
    if item.text_at("spec", "name") not in OPERATOR:
        return
    installation = context.installation
    other(item, context)
    installation.openshift, installation.defaults = True, "operator"
    installation.namespace = installation.namespace or item.text_at("metadata", "namespace")
    path = ("spec", "startingCSV") if item.get("spec", "startingCSV") else ("spec", "channel")
    if (said := item.said(*path)) and installation.version is None and re.search(r"\d", str(said.value)):
        installation.version = Said(str(said.value).partition(".v")[2] or said.value, said.where)


def service_version(item: Item, context: Context) -> None:
    """Read a ClusterServiceVersion: the release, and the example that it carries where nothing else is there."""
    if not item.text_at("metadata", "name").startswith(tuple(OPERATOR)):
        return
    context.installation.openshift = True
    context.version(item, "spec", "version")
    examples = item.embedded("metadata", "annotations", "alm-examples")
    if examples is None or any(each.text_at("kind") in {"ClusterPolicy", "GPUCluster"} for each in context.items):
        return
    for index, body in enumerate(examples.data if isinstance(examples.data, list) else []):
        if isinstance(body, dict) and body.get("kind") == "ClusterPolicy":
            cluster_policy(examples.part(index), context)
