"""What a Prometheus of the cluster says of the rules and monitors that are rendered.

Solves: rules are objects that somebody's selector has to find. One that it doesn't is as quiet as a cluster where all
is well, and so is a monitor that nobody scrapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..model import MONITORS, RULES, Body
from .nodes import Hit
from .objects import ready
from .state import State, labels, name_of

UP = 'sum by (job) (up{namespace="%s"})'
"""How many targets answer, by the name of their Service: monitors take it for the job."""
NAMED = 5


def of_prometheus(rendered: Sequence[Body], namespace: str, state: State) -> Iterator[Hit]:
    """What it has not loaded, can't evaluate, or doesn't scrape; nothing where nobody asked it."""
    said = state.prometheus
    if "error" in said:
        yield Hit("LIV804", f"{said['error']}")
    for body in rendered if "rules" in said else ():
        if body["kind"] in RULES:
            yield from _loaded(body, said["rules"])
        elif body["kind"] in MONITORS and "up" in said:
            yield from _scraped(body, namespace, said["up"], state)


def _loaded(body: Body, groups: Sequence[Any]) -> Iterator[Hit]:
    what = f"{body['kind']} {'/'.join(filter(None, name_of(body)))}"
    for group in body["spec"]["groups"]:
        wanted = Counter(str(one.get("alert") or one.get("record")) for one in group["rules"])
        there = [one for each in groups if each.get("name") == group["name"] for one in each.get("rules") or []]
        lacking = wanted - Counter(str(one.get("name")) for one in there)
        if lacking:
            names = ", ".join([*lacking][:NAMED])
            yield Hit("LIV801", f"{what}: {lacking.total()} of {wanted.total()} rules are not loaded: {names}")
        for one in there:
            if one.get("health") == "err" and one.get("name") in wanted:
                yield Hit("LIV802", f"{what}: {one['name']}: {one.get('lastError')}")


def _scraped(body: Body, namespace: str, up: Mapping[str, float], state: State) -> Iterator[Hit]:
    app = body["spec"]["selector"].get("matchLabels", {}).get("app")
    pods = sum(labels(pod).get("app") == app and ready(pod) for pod in state.of("Pod", namespace))
    if up.get(str(app), 0) < pods:
        what = f"{body['kind']} {'/'.join(filter(None, name_of(body)))}"
        yield Hit("LIV803", f"{what}: {up.get(str(app), 0):g} of {pods} pods that are ready answer")
