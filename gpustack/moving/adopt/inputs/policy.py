"""A policy of gpustack's own: it is written anew, as short as it can be."""

from __future__ import annotations

from gpustack.policy.loading.envelope import API_VERSION

from ..documents import Item
from ..installation import lay
from . import objects
from .context import Context


def cluster_policy(item: Item, context: Context) -> None:
    """Read a ClusterPolicy: gpustack's or the operator's."""
    if item.get("apiVersion") != API_VERSION:
        theirs = item.text_at("apiVersion").partition("/")[0] in {"nvidia.com", ""}
        (objects.cluster_policy if theirs else objects.other)(item, context)
        return
    installation = context.installation
    if item.get("spec", "extends"):
        installation.tell("layers", "spec.extends", item.where("spec"))
    lay(installation.spec, {path: said for path, said in item.leaves("spec").items() if path[0] != "extends"})


KINDS = {"ClusterPolicy": cluster_policy}
