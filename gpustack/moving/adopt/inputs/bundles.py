"""Fleet's fleet.yaml."""

from __future__ import annotations

from ..documents import Item
from .context import CHART, Context


def is_fleet(item: Item) -> bool:
    """Whether ITEM is a fleet.yaml with a chart."""
    return isinstance(item.get("helm"), dict) and bool(item.get("helm", "chart") or item.get("helm", "releaseName"))


def fleet(item: Item, context: Context) -> None:
    """Read a fleet.yaml. What it says for some clusters alone is listed."""
    installation = context.installation
    helm = item.part("helm")
    if CHART not in f"{helm.text_at('chart')} {helm.text_at('releaseName')} {helm.text_at('repo')}":
        installation.tell("another chart", item.file, item.where("helm"))
        return
    installation.namespace = item.text_at("namespace") or item.text_at("defaultNamespace") or installation.namespace
    installation.helm_release = helm.text_at("releaseName") or installation.helm_release
    context.version(helm, "version")
    for name in helm.get("valuesFiles") or []:
        context.take(context.file(item, str(name)))
    context.take(helm.leaves("values"))
    for index, target in enumerate(item.get("targetCustomizations") or []):
        values = (
            f"values for the clusters of {target.get('name', index)} alone" if isinstance(target, dict) else "unknown"
        )
        where = item.where("targetCustomizations", index)
        installation.tell("customized", f"targetCustomizations[{index}]", where, values=values)


KINDS: dict[str, object] = {}
FILES = ((is_fleet, fleet),)
