"""Rules about what the API server asks of the parts of a pod together, and of a workload and its pods.

Schemas look at one field at a time. Source: the API server's validation of pods and workloads (k8s.io/kubernetes/pkg/
apis/core and apps/validation), each tried on an API server of 1.35.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...model import Path, Resource, dotted
from ..rule import Hit, rule
from .pods import containers, pod_steps
from .references import pod_template

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
"""What a probe does, or a hook at the start or end of a container."""
SELECTING = ("DaemonSet", "Deployment", "StatefulSet")
"""Workloads that find their pods by labels which the policy writes twice."""
RESTARTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(SELECTING, ("Always",)),
    "Job": ("Never", "OnFailure"),
    "CronJob": ("Never", "OnFailure"),
}
"""The restartPolicies of the pods of each kind; absent it is Always."""
REFUSED = "the API server refuses the object"


def _hit(resource: Resource, path: Path, what: str, remedy: str) -> Hit:
    return Hit(dotted(path), f"{resource.kind} {resource.name}: {what}", REFUSED, remedy)


@rule("GPU817", "error", over="object")
def parts_of_a_pod(resource: Resource) -> Iterator[Hit]:
    """Parts of a pod that don't fit together."""
    pod = _map((pod_template(resource.body) or {}).get("spec"))
    all_containers = list(containers(resource.body))
    yield from _twice(resource, all_containers, "containers")
    volumes = [((*pod_steps(resource.body), "volumes", at), one) for at, one in _maps(pod.get("volumes"))]
    yield from _twice(resource, volumes, "volumes")
    claims = _maps(_map(resource.body.get("spec")).get("volumeClaimTemplates"))
    having = [one.get("name") for _, one in volumes] + [_map(one.get("metadata")).get("name") for _, one in claims]
    for path, container in all_containers:
        for key in ("volumeMounts", "volumeDevices"):
            for index, mount in _maps(container.get(key)):
                name = mount.get("name")
                if isinstance(name, str) and name not in having:
                    what = f"container {container.get('name')} mounts {name!r}, and the pod has no such volume"
                    yield _hit(resource, (*path, key, index, "name"), what, "add it under volumes, or correct the name")
        yield from _handlers(resource, path, container)


def _map(value: Any) -> dict[str, Any]:
    """VALUE if it is a mapping, else an empty one: validation tells of what should be one."""
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The mappings in the list VALUE, with their places."""
    return [(at, item) for at, item in enumerate(value if isinstance(value, list) else []) if isinstance(item, dict)]


def _twice(resource: Resource, parts: Sequence[tuple[Path, dict[str, Any]]], what: str) -> Iterator[Hit]:
    seen: set[str] = set()
    for path, part in parts:
        name = part.get("name")
        if not isinstance(name, str):
            continue
        if name in seen:
            yield _hit(resource, (*path, "name"), f"two {what} are called {name}", "give each a name of its own")
        seen.add(name)


def _handlers(resource: Resource, path: Path, container: dict[str, Any]) -> Iterator[Hit]:
    """What is wrong with the probes and hooks of CONTAINER."""
    places: list[tuple[Path, Any]] = [
        ((name,), container.get(name)) for name in ("startupProbe", "livenessProbe", "readinessProbe")
    ]
    hooks = _map(container.get("lifecycle"))
    places += [(("lifecycle", name), hooks.get(name)) for name in ("postStart", "preStop")]
    for steps, handler in places:
        if not isinstance(handler, dict):
            continue
        given = [name for name in HANDLERS if name in handler]
        if len(given) != 1:
            what = f"{dotted(steps)} has {' and '.join(given)}" if given else f"{dotted(steps)} says not what to do"
            yield _hit(resource, (*path, *steps), what, f"write one of {', '.join(HANDLERS)}")


@rule("GPU818", "error", over="object")
def workload_and_pods(resource: Resource) -> Iterator[Hit]:
    """A workload that doesn't fit its own pods."""
    template = pod_template(resource.body)
    if template is None or resource.kind not in RESTARTS:
        return
    written, allowed = _map(template.get("spec")).get("restartPolicy"), RESTARTS[resource.kind]
    if (written or "Always") not in allowed:
        what = f"its pods have restartPolicy {written or 'Always, which is the default'}"
        path = (*pod_steps(resource.body), "restartPolicy")
        yield _hit(resource, path, what, f"write restartPolicy: {' or '.join(allowed)}")
    if resource.kind in SELECTING:
        yield from _selected(resource, template)


def _selected(resource: Resource, template: dict[str, Any]) -> Iterator[Hit]:
    selector = _map(_map(resource.body.get("spec")).get("selector"))
    wanted, labels = _map(selector.get("matchLabels")), _map(_map(template.get("metadata")).get("labels"))
    if not wanted and not selector.get("matchExpressions"):
        yield _hit(
            resource, ("spec", "selector"), "the selector is empty", "write matchLabels, and the same on the pods"
        )
    for key, value in wanted.items():
        if labels.get(key) != value:
            has = f"{key}: {labels[key]}" if key in labels else f"no {key}"
            what = f"the selector asks for {key}: {value}, and the pods have {has}"
            yield _hit(resource, ("spec", "selector", "matchLabels", key), what, "write the same in both places")
