"""What runs in the stack's namespace, and whether it is what is rendered."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..api import keys
from ..api.expectations import Expectation, kind_of
from ..api.objects import Taint
from ..api.taints import excluded, kept_away, required_terms, tolerations_of
from ..model import MONITORS, RULES, Body, Path, dotted, few
from .nodes import Hit, busy, condition
from .nodes import ready as works
from .state import State, called, labels, name_of

OPERATOR = "gpu-operator"
FIELDS = 3
"""How many fields of an object are named, or rules."""
UP = 'sum by (job) (up{namespace="%s"})'
"""How many targets answer, by the name of their Service: monitors take it for the job."""
DRIVER = "nvidia-driver"
"""What the DaemonSets of drivers are called by their label."""
NOTHING: tuple[Any, ...] = ({}, [], "", None, False, 0)
"""What the API leaves out where it is the default."""


def of_kinds(state: State) -> Iterator[Hit]:
    """The kinds that could not be listed."""
    for kind, why in state.unread.items():
        where = f" in {kind.namespace}" if kind.namespace else ""
        yield Hit("LIV001", f"{kind.plural}{where} can't be listed: {why}")


def of_server(expected: Expectation, state: State) -> Iterator[Hit]:
    """Another version of Kubernetes than that which the policy says."""
    if "error" in state.server:
        yield Hit("LIV001", f"the API server's version can't be read: {state.server['error']}")
    elif expected.kubernetes and state.version not in {"", expected.kubernetes}:
        whole = str(state.server.get("gitVersion"))
        does = "has" if whole.startswith(f"v{state.version}.") else "emulates"
        what = f"the API server {does} {state.version} ({whole}); the policy says {expected.kubernetes}"
        yield Hit("LIV105", what, path="spec.cluster.kubernetesVersion")


def unseen(state: State) -> Iterator[Hit]:
    """The kinds that tell most, and that nobody looked at: a dump may lack them."""
    lacking = [kind for kind in ("Node", "Pod", "DaemonSet") if not state.looked(kind)]
    if lacking and not state.unread:
        yield Hit("LIV002", f"no {', no '.join(lacking)} was looked at")


def drift(rendered: Sequence[Body], state: State) -> Iterator[Hit]:
    """Objects that are missing, or differ from what is rendered."""
    for body in rendered:
        kind = kind_of(body)
        if kind not in state.objects:
            continue
        live = state.find(body)
        if live is None:
            yield Hit("LIV101", f"{called(body)} is not there")
            continue
        changed = [*differences(body, live)]
        if changed and (kind, name_of(body)) not in state.settled:
            parts = [f"{dotted(path)} is {_short(has)}, rendered {_short(want)}" for path, want, has in changed]
            yield Hit("LIV102", f"{called(body)}: {few(parts, FIELDS, '; ')}")


def differences(wanted: Any, live: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Where LIVE lacks something of WANTED, or has another value: path, what is rendered, what is there."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        for key, value in wanted.items():
            if key in live:
                yield from differences(value, live[key], (*path, key))
            elif value not in NOTHING:
                yield (*path, key), value, None
    elif isinstance(wanted, list) and isinstance(live, list):
        yield from _lists(wanted, live, path)
    elif wanted != live and not (wanted in NOTHING and live in NOTHING):
        yield path, wanted, live


def _lists(wanted: Sequence[Any], live: Sequence[Any], path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Named entries are compared by their names, in whatever order; all others one by one, and those of which two have
    one name: a volume may be mounted twice."""
    names = [each.get("name") if isinstance(each, dict) else None for each in live]
    named = all(names) and len(set(map(str, names))) == len(names)
    if wanted and named and all(isinstance(each, dict) and each.get("name") for each in wanted):
        for each in wanted:
            at = (*path, str(each["name"]))
            if each["name"] in names:
                yield from differences(each, live[names.index(each["name"])], at)
            else:
                yield at, each, None
        return
    if len(wanted) != len(live):
        yield path, f"{len(wanted)} entries", f"{len(live)} entries"
        return
    for number, (one, two) in enumerate(zip(wanted, live, strict=True)):
        yield from differences(one, two, (*path, number))


def _short(value: Any) -> str:
    if value is None:
        return "absent"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def operator(rendered: Sequence[Body], namespace: str, state: State) -> Iterator[Hit]:
    """The operator's Deployment, while a pod of it works, or where it would find a copy of ours to act on."""
    copied = any(body["kind"] == "ClusterPolicy" for body in rendered)
    for body in state.of("Deployment", namespace):
        if not is_operator(body):
            continue
        if (body.get("status") or {}).get("readyReplicas"):
            yield Hit("LIV103", f"{called(body)} runs")
        if copied:
            yield Hit("LIV104", f"{called(body)} is there, and compat.clusterPolicy")


def is_operator(body: Body) -> bool:
    """Whether BODY is called as the operator is, or is a part of it that is."""
    return OPERATOR in {body["metadata"]["name"], labels(body).get(keys.COMPONENT)}


def missing(namespace: str, state: State) -> Iterator[Hit]:
    """Nodes on which a DaemonSet of the stack has no pod though they have its labels, and it tolerates their taints."""
    if not (state.looked("Pod") and state.looked("Node")):
        return
    there = {(_owner(pod).get("uid"), (pod.get("spec") or {}).get("nodeName")) for pod in state.of("Pod", namespace)}
    for body in state.of("DaemonSet", namespace):
        spec = ((body.get("spec") or {}).get("template") or {}).get("spec") or {}
        chosen, status = spec.get("nodeSelector") or required_terms(spec), body.get("status") or {}
        for node in state.of("Node"):
            fits = chosen and not excluded(spec, labels(node), whole=True)
            gone = (body["metadata"].get("uid"), node["metadata"]["name"]) not in there
            if fits and gone and not busy(node) and works(node) and not repelled(spec, node):
                yield Hit("LIV404", f"{called(body)} has no pod there", node["metadata"]["name"])
        wanted, new = (int(status.get(key) or 0) for key in ("desiredNumberScheduled", "updatedNumberScheduled"))
        driver = labels(body).get(keys.COMPONENT) == DRIVER
        if driver and new < wanted and not state.looked("ControllerRevision"):
            yield Hit("LIV403", f"{called(body)}: {wanted - new} of {wanted} pods are made from an older template")


def repelled(spec: Body, node: Body) -> bool:
    """Whether pods of SPEC don't tolerate a taint of NODE; those of the kubelet a DaemonSet's pods always do."""
    taints = (each for each in taints_of(node) if not each.key.startswith("node.kubernetes.io/"))
    return bool(kept_away(taints, tolerations_of(spec)))


def taints_of(node: Body) -> list[Taint]:
    """The taints of NODE."""
    return [
        Taint(key=each["key"], effect=each.get("effect", ""), value=each.get("value") or "")
        for each in (node.get("spec") or {}).get("taints") or []
    ]


def of_pods(namespace: str, state: State) -> Iterator[Hit]:
    """Pods of the stack's DaemonSets and Deployments that are not ready, by what they wait for, and old drivers. What
    has ended stays: pods of a Job (verify's own, which found something once), and those that were evicted."""
    worked_on = {node["metadata"]["name"] for node in state.of("Node") if busy(node)}
    newest = _newest(state)
    for pod in state.of("Pod", namespace):
        owner = _owner(pod)
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        once = owner.get("kind") != "DaemonSet" and (pod.get("status") or {}).get("phase") == "Failed"
        if not owner or node in worked_on or "deletionTimestamp" in pod["metadata"] or once:
            continue
        who = labels(pod).get("app") or owner.get("name")
        if why := _waits(pod):
            yield Hit("LIV401", f"{who}: {why}", node)
        if owner.get("uid") in newest and labels(pod).get(keys.HASH, "") != newest[owner["uid"]]:
            yield Hit("LIV403", f"{who} is made from an older template", node)


def _owner(body: Body) -> Body:
    """The owner that manages BODY; empty for none."""
    owners: list[Body] = body["metadata"].get("ownerReferences") or []
    return next((each for each in owners if each.get("controller")), {})


def _newest(state: State) -> dict[str, str]:
    """The hash of the newest template of each driver DaemonSet, by its UID."""
    sets = state.of("DaemonSet")
    drivers = {body["metadata"].get("uid") for body in sets if labels(body).get(keys.COMPONENT) == DRIVER}
    newest: dict[str, tuple[int, str]] = {}
    for each in state.of("ControllerRevision"):
        uid, number = str(_owner(each).get("uid")), int(each.get("revision") or 0)
        if uid in drivers and number > newest.get(uid, (0, ""))[0]:
            newest[uid] = number, labels(each).get(keys.HASH) or each["metadata"]["name"].rpartition("-")[2]
    return {uid: mark for uid, (_, mark) in newest.items()}


def ready(pod: Body) -> bool:
    """Whether POD is ready, or has done its work."""
    return works(pod) or (pod.get("status") or {}).get("phase") == "Succeeded"


def _waits(pod: Body) -> str:
    """Why POD is not ready: the first container that doesn't work, with its reason; "" where it is."""
    status, scheduled = pod.get("status") or {}, condition(pod, "PodScheduled")
    if ready(pod):
        return ""
    if scheduled.get("status") == "False":
        return f"not scheduled: {scheduled.get('message') or scheduled.get('reason')}"
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(kind) or []:
            state = each.get("state") or {}
            if waiting := state.get("waiting"):
                if waiting.get("reason") not in {"PodInitializing", "ContainerCreating"}:
                    return f"{each['name']} is in {waiting.get('reason')}"
            elif kind == "initContainerStatuses" and "running" in state:
                return f"{each['name']} has not ended"
    return "not ready"


def of_policies(policies: Iterable[Body]) -> Iterator[Hit]:
    """What NodePolicies say of themselves."""
    for body in policies:
        status, name = body.get("status") or {}, body["metadata"]["name"]
        stalled = condition(body, "Stalled")
        if stalled.get("status") == "True":
            yield Hit("LIV601", f"NodePolicy {name}: {stalled.get('message') or stalled.get('reason')}")
        if status.get("quarantined"):
            yield Hit("LIV602", f"NodePolicy {name}: {status['quarantined']} in quarantine")
        waiting = ", ".join(f"{each.get('count')} {each.get('reason')}" for each in status.get("waiting") or [])
        if waiting:
            yield Hit("LIV603", f"NodePolicy {name}: {waiting}")


def of_prometheus(rendered: Sequence[Body], namespace: str, state: State) -> Iterator[Hit]:
    """What it has not loaded, can't evaluate, or doesn't scrape; nothing where nobody asked it."""
    said = state.prometheus
    if "error" in said:
        yield Hit("LIV804", str(said["error"]))
    for body in rendered if "rules" in said else ():
        if body["kind"] in RULES:
            yield from _loaded(body, said["rules"])
        elif body["kind"] in MONITORS and "up" in said:
            yield from _scraped(body, namespace, said["up"], state)


def _loaded(body: Body, groups: Sequence[Any]) -> Iterator[Hit]:
    what = called(body)
    for group in body["spec"]["groups"]:
        wanted = Counter(str(one.get("alert") or one.get("record")) for one in group["rules"])
        there = [one for each in groups if each.get("name") == group["name"] for one in each.get("rules") or []]
        lacking = wanted - Counter(str(one.get("name")) for one in there)
        if lacking:
            rest = f"{lacking.total()} of {wanted.total()} rules are not loaded"
            yield Hit("LIV801", f"{what}: {rest}: {few([*lacking], FIELDS)}")
        for one in there:
            if one.get("health") == "err" and one.get("name") in wanted:
                yield Hit("LIV802", f"{what}: {one['name']}: {one.get('lastError')}")


def _scraped(body: Body, namespace: str, up: Mapping[str, float], state: State) -> Iterator[Hit]:
    app = body["spec"]["selector"].get("matchLabels", {}).get("app")
    pods = sum(labels(pod).get("app") == app and ready(pod) for pod in state.of("Pod", namespace))
    if up.get(str(app), 0) < pods:
        yield Hit("LIV803", f"{called(body)}: {up.get(str(app), 0):g} of {pods} pods that are ready answer")
