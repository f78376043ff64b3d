"""A plan in a file: what was seen when it was made and reviewed, so that it is run on that and on nothing else.

Nothing in it is carried out. What is done is computed anew from the policy and the cluster; the file can only refuse
it, so that whoever can change the file can do no more. The rights in it are what running it needs, and the way back.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from gpustack.api.expectations import kind_of
from gpustack.live.state import called
from gpustack.model import Body

from ...api import keys
from . import Plan
from .acts import RECORD, Act, digest
from .plan import Render, holds_driver
from .seen import facts, kinds, operator_kind, space

VERSION = 1
TIME = "%Y-%m-%dT%H:%M:%SZ"
RBAC = "rbac.authorization.k8s.io"


def written(plan: Plan, at: datetime, other: Plan) -> Body:
    """What PLAN, made AT a time, has in a file besides. OTHER, of the other direction, needs rights, too."""
    acts = [act for each in (*plan.steps, *other.steps) for act in each.acts]
    times = {"made": at.strftime(TIME), "expires": (at + timedelta(hours=facts()["valid"])).strftime(TIME)}
    return {"direction": plan.direction, **times, "seen": sight(plan), "rights": roles(acts, plan.render)}


def sight(plan: Plan) -> Body:
    """What has to be as it was as long as PLAN is run, by words of which the first says what it is of."""
    seen, metas = plan.seen, [body["metadata"] for body in plan.seen.of("ControllerRevision")]
    revisions = Counter(owner["name"] for meta in metas for owner in meta.get("ownerReferences") or [])
    sights: Body = {
        "direction": plan.direction,
        "render": digest([body for _, body in plan.render.bodies]),
        "version": seen.version or None,
    }
    sights |= {f"holder {each.told}": each.body and each.body["metadata"].get("uid") for each in plan.way.holders}
    for body in seen.objects:
        uid, name, kind = body["metadata"].get("uid"), called(body), body["kind"]
        if operator_kind(body):
            sights[f"custom {name}"] = [uid, digest(body.get("spec"))]
        elif body in seen.operators:
            sights[f"operator {name}"] = [uid, digest(body["spec"].get("template"))]
        elif kind == "DaemonSet" and holds_driver(body):
            template, count = body["spec"]["template"], revisions[body["metadata"]["name"]]
            sights[f"driver {name}"] = [uid, digest(template), count]
        elif kind == "DaemonSet":
            sights[f"operand {name}"] = uid
        elif kind == "Node":
            offered = (body.get("status") or {}).get("allocatable") or {}
            sights[f"GPUs of {name}"] = any(keys.NVIDIA in key and str(offered[key]) != "0" for key in offered)
    return sights


def moved(before: Mapping[str, Any], now: Mapping[str, Any], *, back: bool) -> Iterator[str]:
    """What differs between NOW and BEFORE, sentence by sentence. The last step takes the operator and its holders away,
    and on the way BACK they may come again; nodes come and go, and a step makes more operands."""
    for what in sorted(before.keys() | now.keys()):
        was, has, of = before.get(what), now.get(what), what.partition(" ")[0]
        going = of in {"operator", "holder", "version"} and (has is None or (back and was is None))
        if was == has or going or (of == "operand" and was is None) or (of == "GPUs" and (not was or has is None)):
            continue
        yield f"{what}: {'new' if was is None else 'gone' if not has else 'another, or has changed'}"


def roles(acts: Iterable[Act], render: Render) -> list[Body]:
    """A ClusterRole, and a Role for each namespace that ACTS write to: what is looked at by kind, what is written by
    name. Whoever applies a Role has to hold its rights, or `escalate` on it; a binding wants `bind` on its role."""
    rights: dict[str, dict[tuple[str, str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    for kind in kinds().values():
        rights[render.namespace if kind.scope == "operator" else ""][kind.group, kind.plural, "list"].add("")
    for key, rows in facts()["rights"].items():
        for group, resource, verbs, name in rows if key in {"stack", "cluster"} or render.replicas is not None else ():
            rights[render.namespace if key in {"stack", "reconciler"} else ""][group, resource, verbs].add(name)
    for act in acts:
        body, where, name = act.body, space(act.body), str(act.body["metadata"]["name"])
        raw, verbs = kind_of(body), facts()["verbs"]
        if wanted := verbs.get(body["kind"]) or verbs.get(act.verb):
            rights[where][raw.group, f"{raw.plural}/{act.subresource}".rstrip("/"), wanted].add(name)
        if raw.group == RBAC and act.verb != "patch":
            of, needed = body.get("roleRef") or body, "bind" if "roleRef" in body else "escalate"
            at = where if of["kind"] == "Role" else ""
            rights[at][RBAC, f"{of['kind'].lower()}s", needed].add(of.get("name") or name)
    return [role(namespace, rights[namespace]) for namespace in sorted(rights)]


def role(namespace: str, rules: Mapping[tuple[str, str, str], set[str]]) -> Body:
    """The Role of NAMESPACE, the ClusterRole for "", that has RULES: names, "" for any, by group, resource, verbs."""
    made: list[Body] = []
    for (group, resource, verbs), names in sorted(rules.items()):
        rule: Body = {"apiGroups": [group], "resources": [resource], "verbs": verbs.split()}
        made.append(rule if "" in names else {**rule, "resourceNames": sorted(names)})
    meta = {"name": RECORD, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role" if namespace else "ClusterRole", "metadata": meta, "rules": made}
