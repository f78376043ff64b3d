"""gpustack why: from what one sees of a pod, a node or a NodePolicy to its cause, and to the line of the policy.

Solves: "0/12 nodes are available" is true of twelve nodes for five reasons, and a container that waits says so in the
words of whoever refused it. Each cause is told with what it was seen by. Where none is found, what was looked at is
listed: "I don't know" is an answer, and a guess isn't.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..api import keys
from ..api.objects import Taint, count
from ..catalog import _data
from ..cluster.scheduling import excluded, kept_away, tolerations_of
from ..model import Body, Finding
from ..tenants.tenants import findings as of_tenants
from ..tenants.tenants import pods_in, tenants_of
from .nodes import has_gpu, labels
from .state import State, name_of
from .verify import Expected, verify

KINDS = {"pod": "Pod", "node": "Node", "daemonset": "DaemonSet", "nodepolicy": "NodePolicy"}
NAMED = 5


@dataclass(frozen=True)
class Target:
    """What is asked about."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(each for each in (self.kind.lower(), self.namespace, self.name) if each)


@cache
def facts() -> Any:
    """The data file: texts of causes, signs in messages, and what containers wait for."""
    return _data.read(Path(__file__).with_name("why.yaml"))


def cause(key: str, what: str, /, *, path: str = "", **words: str) -> Finding:
    """The cause KEY of the data file, seen by WHAT; WORDS stand in what to do."""
    said = facts()["causes"][key]
    return Finding(
        said["id"], said.get("severity", "error"), what, path=path, why=said["why"], remedy=said["do"] % words
    )


def why(expected: Expected, state: State, target: Target, log: str = "") -> list[Finding]:
    """The causes of what is amiss with TARGET, by the objects of STATE and the LOG of a container, if there is one."""
    body = next(
        (each for each in state.of(target.kind, target.namespace) if each["metadata"]["name"] == target.name), None
    )
    if body is None:
        return [cause("absent", f"{target} is not there")]
    found = [*_signs(_app(body), log)] if log else []
    if target.kind == "Pod":
        found += _pod(expected, state, body)
    elif target.kind == "DaemonSet":
        for pod in _pods_of(state, body):
            found += _pod(expected, state, pod)
    else:
        found += _by_name(expected, state, target)
    return [*dict.fromkeys(found)] or [cause("unknown", f"{target}: nothing known; looked at {_looked(state)}")]


def _looked(state: State) -> str:
    told = sorted({f"{len(bodies)} {kind.plural}" for kind, bodies in state.objects.items() if bodies})
    return ", ".join(told) or "nothing"


def _by_name(expected: Expected, state: State, target: Target) -> Iterator[Finding]:
    """What `verify` finds of a node or a NodePolicy, and why the reconciler does nothing there."""
    if target.kind == "Node":
        alone = State(
            {
                key: {at: body for at, body in bodies.items() if key.kind != "Node" or at[1] == target.name}
                for key, bodies in state.objects.items()
            }
        )
        yield from (each for each in verify(expected, alone) if each.what.startswith(f"{target.name}: "))
    for policy in state.of("NodePolicy"):
        for wait in (policy.get("status") or {}).get("waiting") or []:
            mine = target.name in (wait.get("nodes") or []) or target.name == policy["metadata"]["name"]
            if mine:
                yield cause(
                    "waits", f"NodePolicy {policy['metadata']['name']}: {wait.get('reason')}: {wait.get('message')}"
                )


def _pods_of(state: State, owner: Body) -> Iterator[Body]:
    """The pods of a DaemonSet that are not ready, one for each reason."""
    seen = set()
    for pod in state.of("Pod", owner["metadata"].get("namespace")):
        owners = {each.get("uid") for each in pod["metadata"].get("ownerReferences") or []}
        waits = str([[*_states(pod)], (pod.get("status") or {}).get("phase")])
        if owner["metadata"].get("uid") in owners and waits not in seen:
            seen.add(waits)
            yield pod


def _app(body: Body) -> str:
    return str((body["metadata"].get("labels") or {}).get("app") or body["metadata"]["name"])


def _pod(expected: Expected, state: State, pod: Body) -> Iterator[Finding]:
    """The causes of what is amiss with POD."""
    name, space = pod["metadata"]["name"], pod["metadata"].get("namespace") or "default"
    status, placed = pod.get("status") or {}, (pod.get("spec") or {}).get("nodeName")
    texts = [text for _, text in _states(pod)]
    events = [
        f"{each.get('reason')} {each.get('note') or each.get('message')}"
        for each in state.of("Event", space)
        if (each.get("regarding") or each.get("involvedObject") or {}).get("name") == name
    ]
    told = [*_signs(_app(pod), "\n".join([*texts, *events]))]
    yield from told
    if not placed and status.get("phase", "Pending") == "Pending":
        yield from _pending(expected, state, pod, space)
    for container, text in _states(pod):
        waits = facts()["init"].get(_app(pod), {}).get(container)
        if waits and text.startswith("running"):
            yield cause("waits-inside", f"{_app(pod)}: {container} has not ended: {waits}")
        elif not told and not text.startswith("running"):
            yield cause("container", f"{name}: {container} is in {text}", namespace=space, name=name)


def _states(pod: Body) -> Iterator[tuple[str, str]]:
    """The containers of POD that don't work, with what is said of them: state, reason, message."""
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(kind) or []:
            state, last = each.get("state") or {}, (each.get("lastState") or {}).get("terminated") or {}
            for form, said in state.items():
                if form == "running" and (kind == "containerStatuses" or each.get("ready")):
                    continue
                if form == "terminated" and said.get("exitCode") == 0:
                    continue
                if said and said.get("reason") in {"PodInitializing", "ContainerCreating"}:
                    continue
                words = [form, *(str((said or {}).get(key) or "") for key in ("reason", "message"))]
                words += [str(last.get(key) or "") for key in ("reason", "message")]
                yield str(each.get("name")), " ".join(word for word in words if word)


def _signs(app: str, text: str) -> Iterator[Finding]:
    """What known words in TEXT, of a pod whose label app is APP, stand for."""
    for name, said in facts()["signs"].items():
        if said.get("app", app) != app:
            continue
        match = re.search(said["seen"], text, re.IGNORECASE)
        if match:
            line = next((each for each in text.splitlines() if match[0].splitlines()[0] in each), match[0])
            yield cause(name, f"{app}: {' '.join(line.split())[:200]}", path=said.get("path", ""))


def _pending(expected: Expected, state: State, pod: Body, space: str) -> Iterator[Finding]:
    """Why no node takes POD: what no node ever could, then what each node lacks now, then quotas."""
    offer = expected.cluster.offer
    never = [each for each in of_tenants(pod, pods_in(pod), offer) if each.severity == "error"]
    yield from (Finding(each.rule, "error", each.what, why=each.why, remedy=each.remedy) for each in never)
    wanted: Mapping[str, int] = next((each.wanted for each in tenants_of(pod, pods_in(pod), offer)), {})
    if not wanted:
        return
    reasons: dict[str, list[str]] = {}
    taken = _taken(state, wanted)
    for node in state.of("Node"):
        if has_gpu(node):
            reasons.setdefault(_refuses(node, pod, wanted, taken), []).append(node["metadata"]["name"])
    for reason, names in sorted(reasons.items(), key=lambda each: -len(each[1])):
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        if reason:
            yield cause("refused", f"{', '.join(names[:NAMED])}{more}: {reason}")
    for quota in state.of("ResourceQuota", space):
        status = quota.get("status") or {}
        for key, most in (status.get("hard") or {}).items():
            number = wanted.get(key.removeprefix("requests."), 0)
            used = count(str((status.get("used") or {}).get(key, "0")))
            if number and used + number > count(str(most)):
                yield cause(
                    "quota", f"ResourceQuota {space}/{quota['metadata']['name']}: {used} of {most} {key} are used"
                )


Taken = dict[tuple[str, str], dict[str, int]]
"""Who holds how many of a resource on a node, by the names of node and resource."""


def _taken(state: State, wanted: Mapping[str, int]) -> Taken:
    """Who holds the resources that are WANTED."""
    made: Taken = {}
    for pod in state.of("Pod"):
        node = (pod.get("spec") or {}).get("nodeName")
        if not node or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            continue
        for resource in wanted:
            if number := _asks(pod, resource):
                made.setdefault((node, resource), {})["/".join(name_of(pod))] = number
    return made


def _refuses(node: Body, pod: Body, wanted: Mapping[str, int], taken: Taken) -> str:
    """Why NODE doesn't take POD; "" where it would."""
    spec, given = node.get("spec") or {}, labels(node)
    if spec.get("unschedulable"):
        ours = keys.CORDONED in (node["metadata"].get("annotations") or {})
        return "the reconciler works on it" if ours else "cordoned"
    taints: list[Any] = [
        Taint(key=each["key"], effect=each.get("effect", ""), value=each.get("value") or "")
        for each in spec.get("taints") or []
        if each.get("effect") != "PreferNoSchedule"
    ]
    if repelling := kept_away(taints, tolerations_of(pod["spec"])):
        return f"the pod doesn't tolerate {repelling[0].key}"
    selector = pod["spec"].get("nodeSelector") or {}
    if any(given.get(key) != value for key, value in selector.items()) or excluded(pod["spec"], given):
        return "the pod's nodeSelector or affinity is for other labels"
    offers = (node.get("status") or {}).get("allocatable") or {}
    for resource, number in wanted.items():
        has, holders = count(str(offers.get(resource, "0"))), taken.get((node["metadata"]["name"], resource), {})
        if has < number:
            return f"offers {has} {resource}"
        if has - sum(holders.values()) < number:
            who = ", ".join([*holders][:NAMED]) + (" and others" if len(holders) > NAMED else "")
            return f"{sum(holders.values())} of {has} {resource} are taken, by {who}"
    return ""


def _asks(pod: Body, resource: str) -> int:
    """How many of RESOURCE the containers of POD hold together."""
    containers = (pod.get("spec") or {}).get("containers") or []
    limits = ((each.get("resources") or {}).get("limits") or {} for each in containers)
    return sum(count(str(each.get(resource, "0"))) for each in limits)
