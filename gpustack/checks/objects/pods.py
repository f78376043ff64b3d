"""Rules about what the API server refuses of pods: requests and limits, names that stand twice, security contexts,
parts that don't go together, and a workload that its pods don't fit.

Schemas look at one field at a time. Source: the API server's validation of pods and workloads (k8s.io/kubernetes/pkg/
apis/core and apps/validation), each tried on an API server of 1.35; security contexts by each value that the language
takes, on 1.34 to 1.37.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

from ...catalog._versions import numbers
from ...cluster.resolve import Cluster
from ...model import Body, Path, Resource, dotted, mapping, mappings
from ...policy.language.spec import ClusterPolicySpec
from ...policy.loading.place import node
from ...text.quantities import size
from ..rule import Hit, hit, rule
from .references import pod_of, pod_template

Place = TypeVar("Place")
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
    for key in ("initContainers", "containers"):
        for index, container in mappings(pod_of(body).get(key)):
            yield (*pod_steps(body), key, index), container


@rule("GPU807", "error", over="object")
def requests_and_limits(resource: Resource) -> Iterator[Hit]:
    """A container whose requests and limits the API server refuses."""
    if resource.origin in FOREIGN:
        return
    for path, container in containers(resource.body):
        for key, what, why, remedy in wrong_amounts(container):
            whose = f"container {container.get('name')} of {who(resource)}"
            yield Hit(dotted((*path, "resources", *key)), f"{whose}: {what}", why, remedy)


def wrong_amounts(container: dict[str, Any]) -> Iterator[tuple[Path, str, str, str]]:
    """The place below `resources`, what, why and remedy of what the API server refuses in CONTAINER."""
    malformed = list(_malformed(container))
    yield from malformed
    told = {steps[-1] for steps, *_ in malformed if len(steps) == 2}
    resources = mapping(container.get("resources"))
    requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
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
            what = f"{part} is {sort_of(amounts)}, not a mapping"
            yield (part,), what, why, "write a resource and an amount below it"
            continue
        for name, amount in (amounts or {}).items():
            number = _read(amount)
            extended = "/" in str(name) and not str(name).startswith("kubernetes.io/")
            if number is None:
                remedy = "write a whole number" if extended else "write a number such as 500m or 2Gi"
                yield (part, name), f"{name}: {sort_of(amount)} is not a quantity", why, remedy
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
            for index, name in _again(mappings(container.get(key)), by):
                yield hit(dotted((*path, key, index)), name=name, key=key, container=container.get("name"))


def _again(parts: Iterable[tuple[Place, dict[str, Any]]], by: str = "name") -> Iterator[tuple[Place, str]]:
    """The places and names of those of PARTS whose name, which stands under BY, an earlier one has too."""
    seen: set[str] = set()
    for place, part in parts:
        if isinstance(name := part.get(by), str):
            if name in seen:
                yield place, name
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
        pod = pod_of(body)
        if isinstance(content := pod.get("securityContext"), dict):
            place = ("spec", "extraObjects", index, *pod_steps(body), "securityContext")
            yield place, content, pod.get("hostNetwork") is True


@rule("GPU815", "error")
def mount_option(cluster: Cluster) -> Iterator[Hit]:
    """A pod asks for seLinuxChangePolicy MountOption where the API server does not take it."""
    version = cluster.spec.cluster.kubernetesVersion
    for path, context, _ in contexts(cluster.spec) if numbers(version)[:2] < MOUNT_OPTION_SINCE else ():
        if context.get("seLinuxChangePolicy") == "MountOption":
            yield hit(dotted((*path, "seLinuxChangePolicy")), version=version)


@rule("GPU816", "error")
def host_process(cluster: Cluster) -> Iterator[Hit]:
    """A pod asks to run as Windows host processes, without the host's network."""
    for path, context, host_network in contexts(cluster.spec):
        if mapping(context.get("windowsOptions")).get("hostProcess") is True and not host_network:
            remedy = "add hostNetwork: true" if path[1] == "extraObjects" else "leave it out: these pods run on Linux"
            yield hit(dotted((*path, "windowsOptions", "hostProcess")), remedy=remedy)


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


def who(resource: Resource) -> str:
    """What messages call RESOURCE."""
    return f"{resource.kind} {resource.name}"


@rule("GPU817", "error", over="object")
def parts_of_a_pod(resource: Resource) -> Iterator[Hit]:
    """Parts of a pod that don't fit together."""
    pod, all_containers = pod_of(resource.body), list(containers(resource.body))
    volumes = [((*pod_steps(resource.body), "volumes", at), one) for at, one in mappings(pod.get("volumes"))]
    for what, parts in (("containers", all_containers), ("volumes", volumes)):
        for path, called in _again(parts):
            yield hit(dotted((*path, "name")), "twice", who=who(resource), parts=what, name=called)
    claims = mappings(mapping(resource.body.get("spec")).get("volumeClaimTemplates"))
    having = [one.get("name") for _, one in volumes] + [mapping(one.get("metadata")).get("name") for _, one in claims]
    for path, container in all_containers:
        for key in ("volumeMounts", "volumeDevices"):
            for index, mount in mappings(container.get(key)):
                name = mount.get("name")
                if isinstance(name, str) and name not in having:
                    at, whose = dotted((*path, key, index, "name")), container.get("name")
                    yield hit(at, "mount", who=who(resource), container=whose, name=repr(name))
        yield from _handlers(resource, path, container)


def _handlers(resource: Resource, path: Path, container: dict[str, Any]) -> Iterator[Hit]:
    """What is wrong with the probes and hooks of CONTAINER."""
    probes, hooks = ("startupProbe", "livenessProbe", "readinessProbe"), ("postStart", "preStop")
    for steps in (*((name,) for name in probes), *(("lifecycle", name) for name in hooks)):
        if not isinstance(handler := node(container, steps), dict):
            continue
        given = [name for name in HANDLERS if name in handler]
        if len(given) != 1:
            at, name, known = dotted((*path, *steps)), dotted(steps), ", ".join(HANDLERS)
            whose, have = who(resource), " and ".join(given)
            yield hit(at, "several" if given else "nothing", who=whose, handler=name, given=have, known=known)


@rule("GPU818", "error", over="object")
def workload_and_pods(resource: Resource) -> Iterator[Hit]:
    """A workload that doesn't fit its own pods."""
    template = pod_template(resource.body)
    if template is None or resource.kind not in RESTARTS:
        return
    written, allowed = mapping(template.get("spec")).get("restartPolicy"), RESTARTS[resource.kind]
    if (written or "Always") not in allowed:
        path, have = dotted((*pod_steps(resource.body), "restartPolicy")), written or "Always, which is the default"
        yield hit(path, "restart", who=who(resource), written=have, allowed=" or ".join(allowed))
    if resource.kind in SELECTING:
        yield from _selected(resource, template)


def _selected(resource: Resource, template: dict[str, Any]) -> Iterator[Hit]:
    selector = mapping(mapping(resource.body.get("spec")).get("selector"))
    wanted, labels = mapping(selector.get("matchLabels")), mapping(mapping(template.get("metadata")).get("labels"))
    if not wanted and not selector.get("matchExpressions"):
        yield hit("spec.selector", "empty", who=who(resource))
    for key, value in wanted.items():
        if labels.get(key) != value:
            has = f"{key}: {labels[key]}" if key in labels else f"no {key}"
            path = dotted(("spec", "selector", "matchLabels", key))
            yield hit(path, "selected", who=who(resource), key=key, value=value, has=has)
