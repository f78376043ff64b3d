"""Fleet's fleet.yaml."""

from typing import Any

from ..documents import Item
from .context import CHART, Context
from .releases import from_objects


def is_fleet(item: Item) -> bool:
    """Whether ITEM is a fleet.yaml with a chart."""
    return isinstance(item.get("helm"), dict) and bool(item.get("helm", "chart") or item.get("helm", "releaseName"))


def fleet(item: Item, context: Context) -> None:
    """Read a fleet.yaml: with what it says of the cluster that CONTEXT is about; else that is listed."""
    installation = context.installation
    helm = item.part("helm")
    if CHART not in f"{helm.text_at('chart')} {helm.text_at('releaseName')} {helm.text_at('repo')}":
        installation.tell("another chart", item.file, item.where("helm"))
        return
    targets = members(item)
    chosen = [item.part(*targets[context.member])] if context.member in targets else []
    context.installs(item)
    for section in (*chosen, item):
        installation.namespace = (
            installation.namespace or section.text_at("namespace") or section.text_at("defaultNamespace")
        )
        context.version(section.part("helm"), "version")
    for section in (item, *chosen):
        helm = section.part("helm")
        installation.helm_release = helm.text_at("releaseName") or installation.helm_release
        for name in helm.get("valuesFiles") or []:
            context.take(context.file(item, str(name)))
        context.take(helm.leaves("values"))
        context.take(from_objects(helm.part("valuesFrom"), context))
        for key in {"kustomize", "yaml", "overlays"} & set(section.data):
            installation.tell("post-renderers", key, section.where(key))
    for name, path in targets.items() if not chosen else ():
        installation.tell("customized", ".".join(map(str, path)), item.where(*path), values=f"values for {name} alone")


def members(item: Item) -> dict[str, tuple[Any, ...]]:
    """Where ITEM says what is different on some clusters, by the name of those."""
    targets = item.get("targetCustomizations")
    return {
        str(each.get("name", index)): ("targetCustomizations", index)
        for index, each in enumerate(targets if isinstance(targets, list) else [])
        if isinstance(each, dict) and not each.get("doNotDeploy")
    }
