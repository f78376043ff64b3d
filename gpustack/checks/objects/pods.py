"""Rules about what the API server refuses of pods: requests and limits, names that stand twice, security contexts,
parts that don't go together, and a workload that its pods don't fit.

Schemas look at one field at a time. Source: the API server's validation of pods and workloads (k8s.io/kubernetes/pkg/
apis/core and apps/validation), each tried on an API server of 1.35; security contexts by each value that the language
takes, on 1.34 to 1.37.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from ...catalog._versions import numbers
from ...cluster.resolve import Cluster
from ...model import Body, Path, Resource, dotted
from ...policy.language.spec import ClusterPolicySpec
from ...text.quantities import size
from ..rule import Hit, hit, rule
from .references import pod_template

FOREIGN = {"ExtraObjects", "ExtraWorkloads"}
"""Origins of objects that the policy brings along."""
MOUNT_OPTION_SINCE = (1, 37)
"""The API server takes MountOption from here on: the feature gate SELinuxMount is off before."""


def pod_steps(body: Body) -> Path:
    """Where the pod's spec is in a workload."""
    if body["kind"] == "CronJob":
        return ("spec", "jobTemplate", "spec", "template", "spec")
    return ("spec",) if body["kind"] == "Pod" else ("spec", "template", "spec")


def containers(body: Body) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The containers of a workload with their places in BODY; none of what is not a workload."""
    template = pod_template(body)
    pod = template.get("spec") if template is not None else None
    for key in ("initContainers", "containers"):
        listed = pod.get(key) if isinstance(pod, dict) else None
        for index, container in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(container, dict):
                yield (*pod_steps(body), key, index), container


@rule("GPU807", "error", over="object")
def requests_and_limits(resource: Resource) -> Iterator[Hit]:
    """A container whose requests and limits the API server refuses."""
    if resource.origin in FOREIGN:
        return
    for path, container in containers(resource.body):
        for key, what, why, remedy in wrong_amounts(container):
            whose = f"container {container.get('name')} of {resource.kind} {resource.name}"
            yield Hit(dotted((*path, "resources", *key)), f"{whose}: {what}", why, remedy)


def wrong_amounts(container: dict[str, Any]) -> Iterator[tuple[Path, str, str, str]]:
    """The place below `resources`, what, why and remedy of what the API server refuses in CONTAINER."""
    malformed = list(_malformed(container))
    yield from malformed
    told = {steps[-1] for steps, *_ in malformed if len(steps) == 2}
    requests, limits = _amounts(container, "requests"), _amounts(container, "limits")
    for name, amount in requests.items():
        if name in told:
            continue
        extended = "/" in str(name) and not str(name).startswith("kubernetes.io/")
        if extended and name not in limits:
            why = "the API server refuses the pod: a resource that can't be overcommitted needs a limit"
            yield ("requests", name), f"{name} is requested without a limit", why, f"write it under limits: {amount}"
        elif extended and _size(amount) != _size(limits[name]):
            why = "the API server refuses the pod: the two must be equal for what can't be overcommitted"
            what = f"{name}: the request is {amount}, the limit {limits[name]}"
            yield ("requests", name), what, why, "write the limit alone"
        elif name in limits and _size(amount) > _size(limits[name]):
            what = f"{name}: the request {amount} is above the limit {limits[name]}"
            yield ("requests", name), what, "the API server refuses the pod", "lower the request, or raise the limit"


def _malformed(container: dict[str, Any]) -> Iterator[tuple[Path, str, str, str]]:
    """As `wrong_amounts`: what is not an amount at all, whether of a request or of a limit."""
    resources, why = container.get("resources"), "the API server refuses the pod"
    if not isinstance(resources, dict | None):
        yield (), f"resources is {sort_of(resources)}, not a mapping", why, "write limits and requests below it"
        return
    for part in ("requests", "limits"):
        amounts = (resources or {}).get(part)
        if not isinstance(amounts, dict | None):
            yield (
                (part,),
                f"{part} is {sort_of(amounts)}, not a mapping",
                why,
                "write a resource and an amount below it",
            )
            continue
        for name, amount in (amounts or {}).items():
            number = _read(amount)
            extended = "/" in str(name) and not str(name).startswith("kubernetes.io/")
            if number is None:
                what = f"{name}: {sort_of(amount)} is not a quantity"
                yield (
                    (part, name),
                    what,
                    why,
                    "write a whole number" if extended else "write a number such as 500m or 2Gi",
                )
            elif number < 0:
                yield (part, name), f"{name}: {amount} is negative", why, "write 0 or more, or leave it out"
            elif extended and number % 1:
                what = f"{name}: {amount} is not a whole number"
                yield (part, name), what, f"{why}: these can't be divided", "write a whole number"


def sort_of(value: Any) -> str:
    """What VALUE is, in words; a single value as it is, if it isn't too long."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = "nothing" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _amounts(container: dict[str, Any], part: str) -> dict[str, Any]:
    resources = container.get("resources")
    amounts = resources.get(part) if isinstance(resources, dict) else None
    return amounts if isinstance(amounts, dict) else {}


def amount_of(amount: Any) -> int:
    """AMOUNT as a whole number, 0 where it isn't one."""
    return int(_read(amount) or 0)


def _size(amount: Any) -> Fraction:
    return _read(amount) or Fraction(0)


def _read(amount: Any) -> Fraction | None:
    """How much AMOUNT is: nothing for null, as to the API server; None for what is not a quantity."""
    try:
        return Fraction(0) if amount is None else size(amount)
    except ValueError:
        return None


@rule("GPU808", "error", over="object")
def name_twice(resource: Resource) -> Iterator[Hit]:
    """A name that stands twice in a list of a pod."""
    for path, container in containers(resource.body):
        for key, by in (("env", "name"), ("volumeMounts", "mountPath")):
            items = container.get(key)
            seen: set[str] = set()
            for index, item in enumerate(items if isinstance(items, list) else []):
                name = item.get(by) if isinstance(item, dict) else None
                if not isinstance(name, str):
                    continue
                if name in seen:
                    yield hit(dotted((*path, key, index)), name=name, key=key, container=container.get("name"))
                seen.add(name)


def contexts(spec: ClusterPolicySpec) -> Iterator[tuple[Path, dict[str, Any], bool]]:
    """The security contexts that SPEC gives pods: place, content, and whether the pods are on the host's network."""
    own: list[tuple[Path, Any]] = [(("daemonsets",), spec.daemonsets)]
    own += [(("drivers", index), driver) for index, driver in enumerate(spec.drivers)]
    if cluster := spec.gpuCluster:
        own.append((("gpuCluster", "daemonsets"), cluster.daemonsets))
    for steps, section in own:
        if section is not None and section.podSecurityContext is not None:
            content = section.podSecurityContext.model_dump(exclude_none=True)
            yield ("spec", *steps, "podSecurityContext"), content, False
    for index, body in enumerate(spec.extraObjects):
        pod = (pod_template(body) or {}).get("spec")
        content = pod.get("securityContext") if isinstance(pod, dict) else None
        if isinstance(pod, dict) and isinstance(content, dict):
            place = ("spec", "extraObjects", index, *pod_steps(body), "securityContext")
            yield place, content, pod.get("hostNetwork") is True


@rule("GPU815", "error")
def mount_option(cluster: Cluster) -> Iterator[Hit]:
    """A pod asks for seLinuxChangePolicy MountOption where the API server does not take it."""
    spec = cluster.spec
    version = spec.cluster.kubernetesVersion
    if numbers(version)[:2] >= MOUNT_OPTION_SINCE:
        return
    for path, context, _ in contexts(spec):
        if context.get("seLinuxChangePolicy") == "MountOption":
            yield hit(dotted((*path, "seLinuxChangePolicy")), version=version)


@rule("GPU816", "error")
def host_process(cluster: Cluster) -> Iterator[Hit]:
    """A pod asks to run as Windows host processes, without the host's network."""
    for path, context, host_network in contexts(cluster.spec):
        windows = context.get("windowsOptions")
        if isinstance(windows, dict) and windows.get("hostProcess") is True and not host_network:
            yield hit(
                dotted((*path, "windowsOptions", "hostProcess")),
                remedy="leave it out: these pods run on Linux"
                if path[1] != "extraObjects"
                else "add hostNetwork: true",
            )


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
