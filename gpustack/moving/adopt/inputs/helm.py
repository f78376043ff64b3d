"""Values of the operator's chart in a file: by themselves, or below the name of the chart in those of another one."""

from __future__ import annotations

from gpustack.model import InputError
from gpustack.policy.loading.foreign import is_values

from ..documents import Item
from .context import CHART, Context, words


def recognised(item: Item) -> bool:
    """Whether ITEM holds values of the operator's chart, or of one that bundles it."""
    return isinstance(item.data, dict) and bool(item.data) and (is_values(item.data) or wrapper(item) is not None)


def is_plugins(item: Item) -> bool:
    """Whether ITEM holds values of the device plugin's own chart."""
    config = item.get("config")
    return (
        isinstance(config, dict)
        and bool({"map", "name", "default"} & set(config))
        and not {"driver", "toolkit", "operator"} & set(item.data)
    )


def plugins(item: Item, context: Context) -> None:
    """Say what these values are of: another chart, whose plugin would be a second one."""
    context.installation.tell("plugin chart", item.file, item.where())


def wrapper(item: Item) -> str | None:
    """The key below which the chart's values stand in those of a chart that bundles it."""
    from gpustack.catalog import chart

    known = [key for key in item.data if key in chart.wrappers()]
    alias = [
        key
        for key, below in item.data.items()
        if isinstance(below, dict) and len(set(below) & {*words("sections")}) > 1
    ]
    return next((str(key) for key in [*known, *alias]), None)


def aliased(item: Item, context: Context) -> str | None:
    """The alias that a Chart.yaml among the inputs has for the operator's chart, where ITEM has such a key."""
    lists = (each.get("dependencies") for each in context.items)
    charts = (each for found in lists if isinstance(found, list) for each in found if isinstance(each, dict))
    keys = [str(each.get("alias")) for each in charts if each.get("name") == CHART]
    return next((key for key in keys if isinstance(item.get(key), dict)), None)


def below_alias(item: Item, context: Context) -> None:
    """Read values below an alias."""
    take(item, context, aliased(item, context))


def take(item: Item, context: Context, alias: str | None = None) -> None:
    """Read a file of values. Those of the chart that bundles ours, below ALIAS or its name, are listed."""
    below = alias or wrapper(item)
    if below is None or item.get(below) is None:
        context.take(item.leaves())
        return
    leaves = item.leaves(below)
    switch = leaves.pop(("enabled",), None)
    if switch is not None and switch.value is False:
        context.installation.tell("switched off", f"{below}.enabled", switch.where)
    context.take(leaves)
    for key in item.data:
        if key != below:
            context.installation.tell("bundling", str(key), item.where(str(key)), below=below)


def held(context: Context) -> None:
    """Take values that a ConfigMap holds, where nothing else tells of an installation: what reads it isn't among the
    inputs."""
    for item in (each for each in context.items if each.text_at("kind") == "ConfigMap"):
        for key in item.get("data") or {}:
            try:
                inner = item.embedded("data", key)
            except InputError:
                continue
            if inner is not None and recognised(inner):
                context.installation.tell("held", key, item.where("data", key), name=item.text_at("metadata", "name"))
                take(inner, context)


KINDS: dict[str, object] = {}
FILES = ((is_plugins, plugins), (recognised, take))
