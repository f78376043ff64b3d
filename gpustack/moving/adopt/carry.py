"""What the DaemonSets that run must keep of what they are, so that none of their pods is replaced (docs/revisions.md).

A DaemonSet is carried only where that makes its template the one that runs. Where something else differs as well, a
new release's image perhaps, its pods are replaced in any case; then its name alone is kept.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpustack.catalog import _data
from gpustack.catalog.texts import releases_with
from gpustack.components.parts.carried import fill, template_hash
from gpustack.model import Body
from gpustack.policy.language.carried import Carried, digests

OWN_HASH = re.compile(r"-[0-9a-f]{8,10}$")
"""What ends the name of a DaemonSet that is made for one of several drivers: a hash of what the name stands for."""


def carried(
    live: Iterable[Body], rendered: Mapping[str, Body], revisions: Iterable[Body]
) -> tuple[list[Body], dict[str, list[str]]]:
    """The entries of `carried` for the LIVE DaemonSets; by name the fields that differ, "" if it isn't rendered."""
    entries, rolls = [], {}
    known = list(revisions)
    for body in live:
        name = str(body["metadata"]["name"])
        ours = rendered_for(name, rendered)
        if ours is None:
            rolls[name] = [""]
            continue
        entry = taken(body, ours, origin_of(body, known))
        rolls[name] = left(body, ours, entry)
        if rolls[name] and entry is not None:
            entry = (
                {key: entry[key] for key in ("name", "origin", "called") if key in entry} if "called" in entry else None
            )
        entries += [entry] if entry is not None else []
    return entries, rolls


def origin_of(live: Body, revisions: Iterable[Body]) -> str:
    """The ControllerRevision among REVISIONS that LIVE has now, else its own name."""
    uid, name = live["metadata"].get("uid"), live["metadata"]["name"]
    own = [
        each
        for each in revisions
        if any(owner.get("uid") == uid for owner in each["metadata"].get("ownerReferences", []))
    ]
    newest = max(own, key=lambda each: int(each.get("revision", 0)), default=None)
    return str(newest["metadata"]["name"] if newest else name)


def rendered_for(name: str, rendered: Mapping[str, Body]) -> Body | None:
    """The DaemonSet among RENDERED, by their names, that stands for the live one NAME."""
    stem = OWN_HASH.sub("", name)
    alike = [each for each in rendered if OWN_HASH.sub("", each).startswith(stem)] if "-driver-" in name else []
    return rendered.get(name) or (rendered[alike[0]] if alike else None)


def taken(live: Body, rendered: Body, origin: str) -> Body | None:
    """What a policy has to carry so that RENDERED keeps what LIVE is; None where there is nothing."""
    pod, ours = live["spec"]["template"]["spec"], copy.deepcopy(rendered["spec"]["template"])
    own = {each["name"] for each in ours["spec"].get("initContainers", [])}
    have = texts(ours["spec"])
    entry: Body = {"name": rendered["metadata"]["name"], "origin": origin}
    without = sorted(own - {each["name"] for each in pod.get("initContainers", [])})
    changed = {at: _text(at, text) for at, text in texts(pod).items() if at in have and have[at] != text}
    more = {
        "without": [each for each in without if each.startswith("gpustack-")],
        "texts": changed,
        **_beside(pod, ours["spec"]),
    }
    entry |= {key: value for key, value in more.items() if value}
    if live["metadata"]["name"] != rendered["metadata"]["name"]:
        entry["called"] = live["metadata"]["name"]
        rename(ours, rendered["metadata"]["name"], entry["called"])
    if set(entry) == {"name", "origin"}:
        return None
    fill(Carried.model_validate(entry), ours["spec"])
    return {**entry, "template": template_hash(ours)}


def _text(at: str, text: str) -> Body:
    """TEXT, which stands AT a place, with the newest release that has it there, where one is known."""
    known = releases_with(text, at)
    return {"release": known[-1], "text": text} if known else {"text": text}


def _beside(pod: Body, ours: Body) -> Body:
    """What a pod may carry besides texts: its driver's digest, and the order of its volumes."""
    extras: Body = {}
    live, own = ([each.get("value") for each in digests(each_pod)] for each_pod in (pod, ours))
    if live and own and live[0] != own[0]:
        extras["digest"] = live[0]
    names, mine = ([each["name"] for each in each_pod.get("volumes", [])] for each_pod in (pod, ours))
    if names != mine and sorted(names) == sorted(mine):
        extras["volumes"] = names
    return extras


def left(live: Body, rendered: Body, entry: Body | None) -> list[str]:
    """The fields by which the template of RENDERED differs from that of LIVE, with ENTRY carried in it."""
    template = copy.deepcopy(rendered["spec"]["template"])
    if entry is not None:
        if "called" in entry:
            rename(template, rendered["metadata"]["name"], entry["called"])
        fill(Carried.model_validate(entry), template["spec"])
    return fields(live, template)


def fields(live: Body, template: Body) -> list[str]:
    """The fields by which TEMPLATE differs from that of the DaemonSet LIVE."""
    return [line.partition(": ")[0].removeprefix(".") for line in differences(live["spec"]["template"], template)]


def rename(template: Body, before: str, after: str) -> None:
    """Let the pods of TEMPLATE be found under another name."""
    labels = template["metadata"]["labels"]
    template["metadata"]["labels"] = {key: after if value == before else value for key, value in labels.items()}


def texts(pod: Body) -> dict[str, str]:
    """The words of the PodSpec POD, by place."""
    return {
        f"{kind}.{each['name']}.{field}.{index}": word
        for kind in ("initContainers", "containers")
        for each in pod.get(kind, [])
        for field in ("command", "args")
        for index, word in enumerate(each.get(field, []))
    }


def differences(live: Any, ours: Any, path: str = "") -> list[str]:
    """Where OURS isn't LIVE, but for what the API server writes where nothing is said."""
    if isinstance(live, dict) and isinstance(ours, dict):
        return [each for key in sorted({*live, *ours}) for each in _of_key(live, ours, key, f"{path}.{key}")]
    if isinstance(live, list) and isinstance(ours, list) and len(live) == len(ours):
        pairs = enumerate(zip(live, ours, strict=True))
        return [each for index, (a, b) in pairs for each in differences(a, b, f"{path}[{index}]")]
    return [] if live == ours else [f"{path}: {live!r} -> {ours!r}"]


def _of_key(live: Body, ours: Body, key: str, path: str) -> list[str]:
    if key in live and key in ours:
        return differences(live[key], ours[key], path)
    value = live.get(key, ours.get(key))
    defaults = _data.read(Path(__file__).with_suffix(".yaml"))
    copied = key == "serviceAccount" and value == live.get("serviceAccountName")
    return [] if copied or value in defaults.get(key, ()) else [f"{path}: {live.get(key)!r} -> {ours.get(key)!r}"]
