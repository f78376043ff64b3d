"""gpustack why: from what one sees of a pod, a node or a NodePolicy to its cause, and to the line of the policy.

Solves: "0/12 nodes are available" is true of twelve nodes for five reasons, and a container that waits says so in the
words of whoever refused it. Each cause is told with what it was seen by. Where none is found, what was looked at is
listed: "I don't know" is an answer, and a guess isn't.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..api import keys
from ..api.objects import count
from ..cluster.expectations import Expected
from ..cluster.scheduling import excluded, kept_away, tolerations_of
from ..model import Body, Finding, few
from ..tenants.tenants import findings as of_tenants
from ..tenants.tenants import pods_in, tenants_of
from .nodes import condition, has_gpu, of_pools
from .nodes import ready as works
from .objects import missing, of_pods, of_policies, ready, taints_of
from .state import State, called, labels, name_of
from .verify import folded, texts, verify

KINDS = {"pod": "Pod", "node": "Node", "daemonset": "DaemonSet", "nodepolicy": "NodePolicy"}
NAMED = 5
RUNNING = ""
"""What is said of a container that runs and should have ended."""
SENTENCE = re.compile(r"NVRM:[^\n]*(?:\n\s*NVRM:\s+(?:[a-z]|System)[^\n]*)+")
"""What the kernel's driver says over several lines."""
LINE = 1 << 12
"""Letters of each end of a line that are looked at: in one long line words may begin everywhere."""
VARYING = re.compile(r"[0-9a-f-]*[0-9][0-9a-f-]*")
"""Times, numbers and UIDs, by which messages of one cause differ."""
WINDOW = 300
"""Letters of a line that are shown."""


@dataclass(frozen=True)
class Target:
    """What is asked about."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(each for each in (self.kind.lower(), self.namespace, self.name) if each)


def cause(key: str, what: str, /, *, path: str = "", **words: str) -> Finding:
    """The cause KEY of the data file, seen by WHAT; WORDS stand in what to do."""
    said = texts("why")["causes"][key]
    severity, remedy = said.get("severity", "error"), said["do"] % words
    return Finding(said["id"], severity, what, path=path, why=said["why"], remedy=remedy)


def why(expected: Expected, state: State, target: Target, log: str = "") -> list[Finding]:
    """The causes of what is amiss with TARGET, by the objects of STATE and the LOG of a container, if there is one."""
    there = state.of(target.kind, target.namespace)
    body = next((each for each in there if each["metadata"]["name"] == target.name), None)
    if body is None:
        where = "is not there" if state.looked(target.kind) else f"may be there: no {target.kind} was looked at"
        return [cause("absent", f"{target} {where}"), *(_quotas(state, target.namespace) if target.namespace else ())]
    if target.kind == "Pod":
        signs = [*_pod(expected, state, body, log)]
    elif target.kind == "DaemonSet":
        signs = [*_signs(_app(body), log), *_daemons(expected, state, body)]
    else:
        signs = [*_by_name(expected, state, target)]
    if signs:
        return [*dict.fromkeys(signs)]
    well = target.kind != "Pod" or ready(body)
    return [cause("well" if well else "unknown", f"{target}: looked at {_looked(state)}")]


def _looked(state: State) -> str:
    numbers: Counter[str] = Counter()
    for kind, bodies in state.objects.items():
        numbers[kind.kind] = max(numbers[kind.kind], len(bodies))
    return ", ".join(f"{kind} ({number})" for kind, number in sorted(numbers.items()) if number) or "nothing"


def _by_name(expected: Expected, state: State, target: Target) -> Iterator[Finding]:
    """What `verify` finds of a node, what its pods say, and why the reconciler does nothing there."""
    if target.kind == "Node":
        space = expected.namespace
        hits = (*of_pools(expected, state), *missing(space, state), *of_pods(space, state))
        yield from folded((each for each in hits if each.node == target.name), space, texts())
        yield from _faults(state, target.name)
        for pod in state.of("Pod", expected.namespace):
            if (pod.get("spec") or {}).get("nodeName") == target.name and not ready(pod):
                yield from _pod(expected, state, pod)
    for policy in state.of("NodePolicy"):
        name = policy["metadata"]["name"]
        if target == Target("NodePolicy", name):
            yield from folded((hit for hit in of_policies([policy]) if hit.id != "LIV603"), expected.namespace, texts())
        for wait in (policy.get("status") or {}).get("waiting") or []:
            if target.name in (name, *(wait.get("nodes") or [])):
                yield cause("waits", f"NodePolicy {name}: {wait.get('reason')}: {wait.get('message')}")


def _faults(state: State, name: str) -> Iterator[Finding]:
    """The conditions by which the node NAME tells of a fault of a GPU, as a NodePolicy has them."""
    sections = ((policy.get("spec") or {}).get("health") or {} for policy in state.of("NodePolicy"))
    told = {(rule["type"], rule.get("status", "True")) for each in sections for rule in each.get("rules") or []}
    node = next((each for each in state.of("Node") if each["metadata"]["name"] == name), {})
    for each in (node.get("status") or {}).get("conditions") or []:
        if (each.get("type"), each.get("status")) in told:
            said = ": ".join(filter(None, (each.get("reason"), each.get("message"))))
            yield cause("fault", f"condition {each['type']} is {each['status']}" + (f" ({said})" if said else ""))


def _daemons(expected: Expected, state: State, body: Body) -> Iterator[Finding]:
    """What `verify` finds of a DaemonSet, and why its pods are not ready: each reason once, with the nodes."""
    yield from (each for each in verify(expected, state) if called(body) in each.what)
    wanted = (body.get("status") or {}).get("desiredNumberScheduled")
    if wanted is None or wanted > (body["status"].get("numberReady") or 0):
        yield from _signs(_app(body), "\n".join(state.events.get(name_of(body), [])))
    alike: dict[tuple[str, str], tuple[Finding, list[str]]] = {}
    for pod in state.of("Pod", body["metadata"].get("namespace")):
        owners = {each.get("uid") for each in pod["metadata"].get("ownerReferences") or []}
        if body["metadata"].get("uid") in owners and not ready(pod):
            for each in _pod(expected, state, pod):
                said = VARYING.sub("", each.what.replace(pod["metadata"]["name"], ""))
                node = (pod.get("spec") or {}).get("nodeName") or "no node yet"
                alike.setdefault((each.rule, said), (each, []))[1].append(node)
    yield from (replace(each, what=f"{few(nodes, NAMED)}: {each.what}") for each, nodes in alike.values())


def _app(body: Body) -> str:
    return str(labels(body).get("app") or body["metadata"]["name"])


def _pod(expected: Expected, state: State, pod: Body, log: str = "") -> Iterator[Finding]:
    """The causes of what is amiss with POD, of which somebody brought the LOG."""
    name, space = pod["metadata"]["name"], pod["metadata"].get("namespace") or "default"
    status, placed = pod.get("status") or {}, (pod.get("spec") or {}).get("nodeName")
    words = [*(text for _, text in _states(pod)), f"{status.get('reason')}: {status.get('message')}"]
    again = any(each.get("lastState") for each in status.get("containerStatuses") or [])
    if again or not ready(pod):  # what was amiss while a pod came up, its events tell for an hour more
        words += state.events.get((space, name), [])
    told = [*_signs(_app(pod), "\n".join([log, *words, "" if ready(pod) else state.logs.get(name, "")]))]
    yield from told
    if not placed and status.get("phase", "Pending") == "Pending":
        yield from _pending(expected, state, pod)
    for container, text in _states(pod):
        waits = texts("why")["init"].get(container)
        if waits and text == RUNNING:
            yield cause("waits-inside", f"{_app(pod)}: {container} has not ended: {waits}")
        elif not told and text != RUNNING:
            yield cause("container", f"{name}: {container}: {text}", namespace=space, name=name)
    slow = [each["name"] for each in status.get("containerStatuses") or [] if _works(each) and not each.get("ready")]
    if slow and not told:
        yield cause("starting", f"{name}: {', '.join(slow)}", namespace=space, name=name)
    if "deletionTimestamp" in pod["metadata"]:
        yield cause("leaving", f"{name}: since {pod['metadata']['deletionTimestamp']}, on {placed or 'no node'}")


def _works(container: Mapping[str, Any]) -> bool:
    return "running" in (container.get("state") or {})


def _states(pod: Body) -> Iterator[tuple[str, str]]:
    """The containers of POD that don't work, with what is said of them: state, reason, message."""
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(kind) or []:
            state, last = each.get("state") or {}, (each.get("lastState") or {}).get("terminated") or {}
            if _works(each) and last.get("reason") == "OOMKilled":
                yield str(each["name"]), f"OOMKilled, {each.get('restartCount')} restarts"
            for form, said in state.items():
                well = form == "running" and (kind == "containerStatuses" or each.get("ready"))
                well = well or (form == "terminated" and said.get("exitCode") == 0)
                if well or (said or {}).get("reason") in {"PodInitializing", "ContainerCreating"}:
                    continue
                words = [str(of.get(key) or "") for of in (said or {}, last) for key in ("reason", "message")]
                told = ": ".join(dict.fromkeys(word for word in words if word))
                yield str(each.get("name")), told if form != "running" else RUNNING


def _signs(app: str, text: str) -> Iterator[Finding]:
    """What known words in TEXT, of a pod whose label app is APP, stand for. A sentence of the kernel's is one line, and
    of a line whoever wrote it means most at its ends."""
    text = "\n".join(line if len(line) < LINE else f"{line[:LINE]}...{line[-LINE:]}" for line in text.split("\n"))
    text = SENTENCE.sub(lambda said: re.sub(r"\n\s*NVRM:\s+", " ", said[0]), text)
    for name, said in texts("why")["signs"].items():
        meant = re.fullmatch(said.get("app", ".*"), app)
        if meant and (match := re.search(said["seen"], text, re.IGNORECASE)):
            yield cause(name, f"{app}: {_line(text, match.start())}", path=said.get("path", ""))


def _line(text: str, at: int) -> str:
    """The line of TEXT around the place AT, cut where it is long."""
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    line = text[begin : end if end >= 0 else len(text)]
    first = max(0, at - begin - WINDOW // 3)
    cut = line[first : first + WINDOW]
    return f"{'...' if first else ''}{' '.join(cut.split())}{'...' if first + WINDOW < len(line) else ''}"


def _pending(expected: Expected, state: State, pod: Body) -> Iterator[Finding]:
    """Why no node takes POD: what no node ever could, then what each node lacks now, and the scheduler's own words."""
    offer = expected.cluster.offer
    never = [each for each in of_tenants(pod, pods_in(pod), offer) if each.severity == "error"]
    yield from (Finding(each.rule, "error", each.what, why=each.why, remedy=each.remedy) for each in never)
    wanted: Mapping[str, int] = next((each.wanted for each in tenants_of(pod, pods_in(pod), offer)), {})
    reasons: dict[str, list[str]] = {}
    holders: dict[str, dict[str, None]] = {}
    holding = taken(state, wanted) if wanted else {}
    for node in state.of("Node") if wanted else ():
        if has_gpu(node):
            why_not, who = _refuses(node, pod, wanted, holding)
            reasons.setdefault(why_not, []).append(node["metadata"]["name"])
            holders.setdefault(why_not, {}).update(dict.fromkeys(who))
    free = reasons.pop("", [])
    for reason, names in sorted(reasons.items(), key=lambda each: -len(each[1])):
        by = f", by {few([*holders[reason]], NAMED)}" if holders[reason] else ""
        yield cause("refused", f"{few(names, NAMED)}: {reason}{by}")
    if free:
        yield cause("room", f"{few(free, NAMED)}: room for {', '.join(f'{n} {name}' for name, n in wanted.items())}")
    said = condition(pod, "PodScheduled")
    if said.get("status") == "False":
        yield cause("scheduler", f"{said.get('reason')}: {said.get('message')}")


def _quotas(state: State, space: str) -> Iterator[Finding]:
    """The quotas of a namespace that have no GPU left: pods beyond them are never made."""
    for quota in state.of("ResourceQuota", space):
        status = quota.get("status") or {}
        for key, most in (status.get("hard") or {}).items():
            used = str((status.get("used") or {}).get(key, "0"))
            if keys.NVIDIA in key and count(used) >= count(str(most)):
                yield cause("quota", f"{called(quota)}: {used} of {most} {key} are used")


Taken = dict[tuple[str, str], dict[str, int]]
"""Who holds how many of a resource on a node, by the names of node and resource."""


def taken(state: State, wanted: Mapping[str, int]) -> Taken:
    """Who holds the resources that are WANTED."""
    made: Taken = {}
    for pod in state.of("Pod"):
        spec = pod.get("spec") or {}
        node, containers = spec.get("nodeName"), spec.get("containers") or []
        if not node or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            continue
        limits = [(each.get("resources") or {}).get("limits") or {} for each in containers]
        for resource in wanted:
            if number := sum(count(str(each.get(resource, "0"))) for each in limits):
                made.setdefault((node, resource), {})["/".join(name_of(pod))] = number
    return made


def _refuses(node: Body, pod: Body, wanted: Mapping[str, int], taken: Taken) -> tuple[str, list[str]]:
    """Why NODE doesn't take POD, and who has what it wants; "" where it would."""
    spec, given = node.get("spec") or {}, labels(node)
    if not works(node):
        return "not Ready", []
    if spec.get("unschedulable"):
        ours = keys.CORDONED in (node["metadata"].get("annotations") or {})
        return ("the reconciler works on it" if ours else "cordoned"), []
    if repelling := kept_away(taints_of(node), tolerations_of(pod["spec"])):
        return f"the pod doesn't tolerate {repelling[0].key}", []
    if excluded(pod["spec"], given, whole=True):
        return "the pod's nodeSelector or affinity is for other labels", []
    offers = (node.get("status") or {}).get("allocatable") or {}
    for resource, number in wanted.items():
        has, holders = count(str(offers.get(resource, "0"))), taken.get((node["metadata"]["name"], resource), {})
        if has < number:
            return f"offers {has} {resource}", []
        if has - sum(holders.values()) < number:
            return f"{sum(holders.values())} of {has} {resource} are taken", [*holders]
    return "", []
