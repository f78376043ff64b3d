"""NVIDIA's DRA driver: allocates GPUs by claims, and memory shared between nodes by ComputeDomains (operator.md 11.2).

A kubelet plugin runs on every node, with one container per kind of device; a controller turns ComputeDomains into the
daemons that carry them. With `gpuCluster` it is the operator's. Beside a device plugin, which the operator can't, only
the parts of compute domains are there, under the same names, so that a cluster that later moves to `gpuCluster` keeps
its objects.
"""

import dataclasses
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from ...api import keys
from ...model import Body
from ..component import Component
from ..crds import crd
from ..parts.daemonset import OWN_LABELS, VALIDATIONS, daemonset, driver_install_dir, host_root
from ..parts.kube import access, grant, rights
from ..parts.pod import PRIVILEGED, PRIVILEGED_ROOT, Container, Env, Pod, Volume, references
from ..parts.scc import scc
from ..parts.template import data, filled, template
from ..parts.validation import READY, driver_features, driver_wait, toolkit_wait
from ..scripts import script
from .dra import of_state, required, resource
from .dra_driver_inputs import DraDriverInputs, Program

NAME = "nvidia-dra-driver-kubelet-plugin"
KUBELET_PLUGIN = "nvidia-dra-driver-kubeletplugin"
CONTROLLER = "nvidia-dra-driver-controller"
DAEMON = "compute-domain-daemon"
COMPUTE_DOMAIN_DAEMON = f"{DAEMON}-service-account"
"""The account of the pods that the controller makes; their template in the driver's image names it."""
DRIVER = {"app.kubernetes.io/name": "nvidia-dra-driver"}
LABELS = {keys.COMPONENT: NAME, **DRIVER}
CONTROLLER_LABELS = {keys.COMPONENT: CONTROLLER, **DRIVER}
CDI = Volume.host("cdi", "/var/run/cdi")
RESULTS = dataclasses.replace(VALIDATIONS, name="validations")
PASSED_THROUGH = (
    Volume.host("lib-modules", "/lib/modules/", "Directory"),
    Volume.host("sysfs", "/sys/", "Directory"),
    Volume.host("procfs", "/proc/", "Directory"),
)
"""What is needed of a node whose GPUs are handed to virtual machines."""
PASSTHROUGH = "PassthroughSupport"


class DraDriver(Component[DraDriverInputs]):
    """The kubelet plugin, the controller, the classes of devices, and rights."""

    def manifests(self, inputs: DraDriverInputs) -> Iterator[Body]:
        yield from (crd(name) for name in inputs.crds)
        yield from of_state("state-dra-driver", objects(inputs))


def objects(inputs: DraDriverInputs) -> Iterator[Body]:
    """The objects without the label of their state."""
    common = inputs.common
    yield from identities(inputs)
    for key in ("only_own_slices", "only_own_slices_binding"):
        yield template(__file__, key, namespace=common.namespace, account=KUBELET_PLUGIN)
    if common.openshift:
        accounts = [KUBELET_PLUGIN, *([COMPUTE_DOMAIN_DAEMON] if inputs.controller else [])]
        yield scc("nvidia-dra-driver", common.namespace, accounts=accounts)
    yield from classes(inputs)
    deploy = "dra-driver" if inputs.gpus else ""
    yield daemonset(common, NAME, pod(inputs), deploy=deploy, labels=LABELS, pod_labels=LABELS)
    if inputs.controller:
        yield controller(inputs, inputs.controller)


def identities(inputs: DraDriverInputs) -> Iterator[Body]:
    """The accounts of the driver's programs, and of the daemons that carry compute domains, with their rights."""
    space, domains = inputs.common.namespace, inputs.compute_domains is not None
    yield from access(KUBELET_PLUGIN, space, **rights(KUBELET_PLUGIN, domains=domains), labels=LABELS)
    mps = inputs.gpus and inputs.feature_gates.get("MPSSupport")
    for what, on in (("driver-validation", inputs.gpus), ("mps", mps)):
        if on:
            name = f"{KUBELET_PLUGIN}-{what}"
            yield from grant(name, KUBELET_PLUGIN, space, labels=LABELS, **rights(name))
    if inputs.controller:
        elects = dict(inputs.controller.env).get("LEADER_ELECTION_ENABLED") == "true"
        yield from access(CONTROLLER, space, **rights(CONTROLLER, elects=elects), labels=CONTROLLER_LABELS)
        labels = {**DRIVER, keys.COMPONENT: DAEMON}
        yield from access(COMPUTE_DOMAIN_DAEMON, space, labels=labels)
        yield from grant(DAEMON, COMPUTE_DOMAIN_DAEMON, space, labels=labels, **rights(DAEMON))


def classes(inputs: DraDriverInputs) -> Iterator[Body]:
    """The kinds of devices that claims may ask for."""
    known = data(__file__, "classes")
    for part in ("gpus", "compute_domains"):
        for name, expression in known[part].items() if getattr(inputs, part) else ():
            yield resource("DeviceClass", name, {"selectors": [{"cel": {"expression": expression}}]})


def pod(inputs: DraDriverInputs) -> Pod:
    """The kubelet plugin, once the driver works; beside a device plugin, once all that workloads need does."""
    containers = []
    if inputs.gpus:
        containers.append(gpus(inputs, inputs.gpus))
    if inputs.compute_domains:
        containers.append(compute_domains(inputs, inputs.compute_domains))
    init = list(driver_checks(inputs)) if inputs.gpus else [toolkit_wait(inputs.common)]
    pull_secrets = (*inputs.common.validation.pull_secrets, *inputs.pull_secrets)
    made = Pod(KUBELET_PLUGIN, {}, containers, init=init, declared=volumes(inputs), pull_secrets=pull_secrets)
    if inputs.gpus:
        made.affinity = required(filled(data(__file__, "gpu_nodes"), {"present": keys.PRESENT}))
        return made
    made.node_selector = {keys.PRESENT: "true"}
    if inputs.placement:
        alternatives = [
            [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(labels.items())]
            for labels in inputs.placement
        ]
        made.affinity = required([{"matchExpressions": each} for each in alternatives])
    return made


def driver_checks(inputs: DraDriverInputs) -> Iterator[Container]:
    """`driver-validation` without a look at the GPUs, which may be bound to vfio-pci, and what belongs to it.

    Its validator takes part in no other check, so the waits of the driver's owner (validation.py) stand here."""
    common = inputs.common
    check = Container(
        "driver-validation",
        common.validation.image,
        inputs.pull_policy,
        command=["nvidia-validator"],
        env=Env(template(__file__, "driver_check_env", driver_dir=common.driver_dir)),
        security=PRIVILEGED_ROOT,
        resources=inputs.init_resources,
    )
    check.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    check.mount(driver_install_dir(common), "/driver-root", propagation="HostToContainer").mount(RESULTS, READY)
    yield from [driver_wait(common, RESULTS), check, driver_features(common, RESULTS)] if common.driver else [check]


def gpus(inputs: DraDriverInputs, program: Program) -> Container:
    """The container that offers GPUs, MIG instances and, where its feature is on, GPUs for virtual machines."""
    own = {"host": "/host", "image": inputs.image, "clique": None}
    container = kubelet_plugin(inputs, "gpus", "gpu-kubelet-plugin", program, metrics=8080, alive_every=30, own=own)
    if inputs.feature_gates.get(PASSTHROUGH):
        modules, system, processes = PASSED_THROUGH
        container.mount(modules, "/lib/modules/", read_only=True, propagation="HostToContainer")
        container.mount(system, "/sys/", propagation="Bidirectional")
        container.mount(processes, "/proc/", propagation="Bidirectional")
    return container


def compute_domains(inputs: DraDriverInputs, program: Program) -> Container:
    """The container that offers what workloads and daemons of a compute domain need of a node."""
    name, command = "compute-domains", "compute-domain-kubelet-plugin"
    own = {"host": "", "image": "", "clique": inputs.clique_label}
    return kubelet_plugin(inputs, name, command, program, metrics=8081, alive_every=10, own=own)


def kubelet_plugin(
    inputs: DraDriverInputs,
    name: str,
    command: str,
    program: Program,
    *,
    metrics: int,
    alive_every: int,
    own: Mapping[str, Any],
) -> Container:
    """The container NAME that runs COMMAND; METRICS is the port of its metrics, ALIVE_EVERY seconds it is checked. OWN
    are variables that only one of them has."""
    common, registry, plugins = inputs.common, *kubelet_folders(inputs)
    folders = {"registry": registry.path, "plugins": plugins.path}
    health, switches = program.port or -1, gates(inputs)
    env = template(__file__, "plugin_env", **folders, **own, metrics=metrics, health=health, gates=switches)
    container = Container(
        name,
        inputs.image,
        inputs.pull_policy,
        command=["bash", "-c"],
        args=[script("dra-kubelet-plugin").replace("PLUGIN", command)],
        env=Env(env).policy(program.env),
        security=PRIVILEGED,
        resources=program.resources,
    )
    if port := program.port:
        asks = {"grpc": {"port": port, "service": "liveness"}, "timeoutSeconds": 10}
        container.startup = {**asks, "periodSeconds": 1, "failureThreshold": 600}
        container.liveness = {**asks, "periodSeconds": alive_every, "failureThreshold": 3}
    container.mount(registry, registry.path)
    container.mount(plugins, plugins.path, propagation="Bidirectional").mount(CDI, "/var/run/cdi")
    container.mount(RESULTS, READY, read_only=True)
    container.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    return container.mount(driver_install_dir(common), "/driver-root", propagation="HostToContainer")


def kubelet_folders(inputs: DraDriverInputs) -> tuple[Volume, Volume]:
    """Where the kubelet finds its plugins, and where these keep their state."""
    registry, plugins = (posixpath.join(inputs.kubelet_dir, name) for name in ("plugins_registry", "plugins"))
    return Volume.host("plugins-registry", registry), Volume.host("plugins", plugins)


def volumes(inputs: DraDriverInputs) -> list[Volume]:
    """The volumes in the operator's order."""
    common = inputs.common
    always = [*kubelet_folders(inputs), CDI, host_root(common), driver_install_dir(common), RESULTS]
    passes = inputs.gpus and inputs.feature_gates.get(PASSTHROUGH)
    return [*always, *PASSED_THROUGH] if passes else always


def gates(inputs: DraDriverInputs) -> str:
    """What switches features on or off, in all programs alike: they have to agree."""
    return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(inputs.feature_gates.items()))


def controller(inputs: DraDriverInputs, program: Program) -> Body:
    """The Deployment of the controller."""
    common, labels = inputs.common, {"app": CONTROLLER, **CONTROLLER_LABELS}
    named = {"name": CONTROLLER, "namespace": common.namespace, "image": inputs.image}
    secrets = "" if inputs.gpus else ",".join(inputs.pull_secrets)
    env = template(__file__, "controller_env", **named, gates=gates(inputs), daemon_secrets=secrets)
    return template(
        __file__,
        "controller",
        **named,
        env=Env(env).policy(program.env).body(),
        labels={**labels, **common.labels},
        pod_labels=labels | {key: value for key, value in common.labels.items() if key not in OWN_LABELS},
        annotations=common.annotations,
        pull_policy=inputs.pull_policy,
        pull_secrets=references(inputs.pull_secrets),
        priority_class=common.priority_class,
        security_context=common.security_context,
        tolerations=[*data(__file__, "controller_tolerations"), *common.tolerations],
        resources=program.resources,
    )
