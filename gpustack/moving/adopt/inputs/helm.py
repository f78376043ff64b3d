"""Values of the operator's chart in a file: by themselves, or below the name of the chart in those of another one."""

from typing import Any

from gpustack.model import InputError, Path, dotted
from gpustack.policy.loading.foreign import is_values

from ..documents import Item
from .context import CHART, Context, words


def recognised(item: Item) -> bool:
    """Whether ITEM holds values of the operator's chart, or of one that bundles it."""
    return isinstance(item.data, dict) and bool(is_values(item.data) or wrapper(item.data))


def is_plugins(item: Item) -> bool:
    """Whether ITEM holds values of the device plugin's own chart."""
    config = item.get("config")
    return (
        isinstance(config, dict)
        and bool({"map", "name", "default"} & set(config))
        and not {"driver", "toolkit", "operator"} & set(item.data)
    )


def is_networks(item: Item) -> bool:
    """Whether ITEM holds values of the Network Operator's chart, which has an `nfd` and an `operator` as well."""
    return isinstance(item.data, dict) and len({*item.data} & {*words("network")}) > 1


def another(item: Item, context: Context) -> None:
    """Say what these values are of: another chart."""
    context.installation.tell("plugin chart" if is_plugins(item) else "network chart", item.file, item.where())


def wrapper(data: Any, depth: int = 3) -> Path:
    """Where the chart's values stand in those of a chart that bundles it, () for nowhere."""
    from gpustack.catalog import chart

    if not isinstance(data, dict) or not depth:
        return ()
    known = [key for key in data if key in chart.wrappers()]
    others = {key: each for key, each in data.items() if isinstance(each, dict) and not is_values({key: None})}
    alias = [key for key, below in others.items() if len({*below} & {*words("sections")}) > 1]
    if known or alias:
        return ([*known, *alias][0],)
    return next(((key, *path) for key, each in others.items() if (path := wrapper(each, depth - 1))), ())


def dependency(item: Item) -> str:
    """What the operator's chart is called in the Chart.yaml ITEM that bundles it, "" where it doesn't."""
    found = item.get("dependencies")
    charts = (each for each in (found if isinstance(found, list) else []) if isinstance(each, dict))
    return next((str(each.get("alias") or CHART) for each in charts if each.get("name") == CHART), "")


def aliased(item: Item, context: Context) -> str:
    """The alias that a Chart.yaml among the inputs has for the operator's chart, where ITEM has such a key."""
    keys = (dependency(each) for each in context.items)
    return next((key for key in keys if key and key != CHART and isinstance(item.get(key), dict)), "")


def take(item: Item, context: Context, alias: Path = ()) -> None:
    """Read a file of values. Those of the chart that bundles ours, below ALIAS or its name, are listed."""
    below = alias or (wrapper(item.data))
    if not below or item.get(*below) is None:
        context.take(item.leaves())
        return
    leaves = item.leaves(*below)
    switch = leaves.pop(("enabled",), None)
    if switch is not None and switch.value is False:
        context.installation.tell("switched off", f"{dotted(below)}.enabled", switch.where)
    context.take(leaves)
    for key in item.data:
        if key != below[0]:
            context.installation.tell("bundling", str(key), item.where(str(key)), below=dotted(below))


def held(context: Context) -> None:
    """Take values that a ConfigMap holds, where nothing else tells of an installation and who reads it."""
    for item in (each for each in context.items if each.text_at("kind") == "ConfigMap"):
        for key in item.get("data") or {}:
            try:
                inner = item.embedded("data", key)
            except InputError:
                continue
            if inner is not None and recognised(inner):
                context.installation.tell("held", key, item.where("data", key), name=item.text_at("metadata", "name"))
                take(inner, context)
