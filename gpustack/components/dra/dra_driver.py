"""NVIDIA's DRA driver: allocates GPUs by claims, and memory shared between nodes by ComputeDomains (operator.md 11.2).

A kubelet plugin runs on every node, with one container per kind of device; a controller turns ComputeDomains into the
daemons that carry them. With `gpuCluster` it is the operator's. Beside a device plugin, which the operator can't, only
the parts of compute domains are there, under the same names, so that a cluster that later moves to `gpuCluster` keeps
its objects.

What the driver may do is in dra_rights.py.
"""

import dataclasses
import posixpath
from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..crds import crd
from ..parts.daemonset import VALIDATIONS, daemonset, driver_install_dir, host_root
from ..parts.kube import metadata
from ..parts.pod import PRIVILEGED, PRIVILEGED_ROOT, Container, Env, Pod, Volume, grpc_probe, sparse
from ..parts.scc import scc
from ..parts.validation import READY, driver_features, driver_wait, toolkit_wait
from ..scripts import script
from .dra import GPU_CLASS, device_class, of_state
from .dra_driver_inputs import DraDriverInputs, Program
from .dra_rights import (
    COMPUTE_DOMAIN_DAEMON,
    CONTROLLER,
    CONTROLLER_LABELS,
    KUBELET_PLUGIN,
    LABELS,
    only_own_slices,
    rights,
)
from .dra_validator import HAS_GPU

NAME = "nvidia-dra-driver-kubelet-plugin"
COMPUTE_DOMAIN = "compute-domain.nvidia.com"
GPUS = "gpus"
CDI = Volume.host("cdi", "/var/run/cdi")
RESULTS = dataclasses.replace(VALIDATIONS, name="validations")
PASSED_THROUGH = (
    Volume.host("lib-modules", "/lib/modules/", "Directory"),
    Volume.host("sysfs", "/sys/", "Directory"),
    Volume.host("procfs", "/proc/", "Directory"),
)
"""What is needed of a node whose GPUs are handed to virtual machines."""
VERBOSITY = "4"
PASSTHROUGH = "PassthroughSupport"
GPU_NODE = (
    {"key": "feature.node.kubernetes.io/pci-10de.present", "operator": "In", "values": ["true"]},
    {"key": "feature.node.kubernetes.io/cpu-model.vendor_id", "operator": "In", "values": ["NVIDIA"]},
    HAS_GPU,
)
"""What tells a node with a GPU, or with a CPU that comes with one; any of it will do."""
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


class DraDriver(Component[DraDriverInputs]):
    """The kubelet plugin, the controller, the classes of devices, and rights."""

    def manifests(self, inputs: DraDriverInputs) -> Iterator[Body]:
        yield from (crd(name) for name in inputs.crds)
        yield from of_state("state-dra-driver", objects(inputs))


def objects(inputs: DraDriverInputs) -> Iterator[Body]:
    """The objects without the label of their state."""
    common = inputs.common
    yield from rights(inputs)
    yield from only_own_slices(common.namespace)
    if common.openshift:
        accounts = [KUBELET_PLUGIN, *([COMPUTE_DOMAIN_DAEMON] if inputs.controller else [])]
        yield scc("nvidia-dra-driver", common.namespace, accounts=accounts)
    yield from classes(inputs)
    deploy = "dra-driver" if inputs.gpus else ""
    yield daemonset(common, NAME, pod(inputs), deploy=deploy, labels=LABELS, pod_labels=LABELS)
    if inputs.controller:
        yield controller(inputs, inputs.controller)


def classes(inputs: DraDriverInputs) -> Iterator[Body]:
    """The kinds of devices that claims may ask for."""
    if inputs.gpus:
        yield device_class(GPU_CLASS, GPU_CLASS, "type == 'gpu'")
        yield device_class("mig.nvidia.com", GPU_CLASS, "type == 'mig'")
        yield device_class("vfio.gpu.nvidia.com", GPU_CLASS, "type == 'vfio'")
    if inputs.compute_domains:
        yield device_class("compute-domain-daemon.nvidia.com", COMPUTE_DOMAIN, "type == 'daemon'")
        yield device_class("compute-domain-default-channel.nvidia.com", COMPUTE_DOMAIN, "type == 'channel'", "id == 0")


def pod(inputs: DraDriverInputs) -> Pod:
    """The kubelet plugin, once the driver works; beside a device plugin, once all that workloads need does."""
    containers = []
    if inputs.gpus:
        containers.append(gpus(inputs, inputs.gpus))
    if inputs.compute_domains:
        containers.append(compute_domains(inputs, inputs.compute_domains))
    init = list(driver_checks(inputs)) if inputs.gpus else [toolkit_wait(inputs.common)]
    pull_secrets = (*inputs.common.validation.pull_secrets, *inputs.pull_secrets)
    template = Pod(KUBELET_PLUGIN, {}, containers, init=init, declared=volumes(inputs), pull_secrets=pull_secrets)
    if inputs.gpus:
        template.affinity = required([[expression] for expression in GPU_NODE])
        return template
    template.node_selector = {keys.PRESENT: "true"}
    if inputs.placement:
        template.affinity = required([equal(labels) for labels in inputs.placement])
    return template


def required(terms: list[list[Body]]) -> Body:
    """The affinity to nodes that meet all conditions of one of TERMS."""
    node_terms = [{"matchExpressions": expressions} for expressions in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": node_terms}}}


def equal(labels: dict[str, str]) -> list[Body]:
    """The conditions that a node has LABELS."""
    return [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(labels.items())]


def driver_checks(inputs: DraDriverInputs) -> Iterator[Container]:
    """`driver-validation` without a look at the GPUs, which may be bound to vfio-pci, and what belongs to it.

    Its validator takes part in no other check, so the waits that the driver's owner would have brought (validation.py)
    stand here.
    """
    common = inputs.common
    env = Env({"COMPONENT": "driver", "WITH_WAIT": "true", "DRIVER_VALIDATION_SKIP_GPU_INIT": "true"})
    env.set("DISABLE_DEV_CHAR_SYMLINK_CREATION", True).field("OPERATOR_NAMESPACE", "metadata.namespace")
    env.set("HOST_ROOT", "/").set("DRIVER_INSTALL_DIR", common.driver_dir)
    env.set("DRIVER_INSTALL_DIR_CTR_PATH", "/driver-root")
    check = Container(
        "driver-validation",
        common.validation.image,
        inputs.pull_policy,
        command=["nvidia-validator"],
        env=env,
        security=PRIVILEGED_ROOT,
        resources=inputs.init_resources,
    )
    check.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    check.mount(driver_install_dir(common), "/driver-root", propagation="HostToContainer").mount(RESULTS, READY)
    yield from [driver_wait(common, RESULTS), check, driver_features(common, RESULTS)] if common.driver else [check]


def gpus(inputs: DraDriverInputs, program: Program) -> Container:
    """The container that offers GPUs, MIG instances and, where its feature is on, GPUs for virtual machines."""
    container = kubelet_plugin(inputs, GPUS, "gpu-kubelet-plugin", program, metrics=8080, alive_every=30)
    if inputs.feature_gates.get(PASSTHROUGH):
        modules, system, processes = PASSED_THROUGH
        container.mount(modules, "/lib/modules/", read_only=True, propagation="HostToContainer")
        container.mount(system, "/sys/", propagation="Bidirectional")
        container.mount(processes, "/proc/", propagation="Bidirectional")
    return container


def compute_domains(inputs: DraDriverInputs, program: Program) -> Container:
    """The container that offers what workloads and daemons of a compute domain need of a node."""
    name, command = "compute-domains", "compute-domain-kubelet-plugin"
    return kubelet_plugin(inputs, name, command, program, metrics=8081, alive_every=10)


def kubelet_plugin(
    inputs: DraDriverInputs, name: str, command: str, program: Program, *, metrics: int, alive_every: int
) -> Container:
    """The container NAME that runs COMMAND; METRICS is the port of its metrics, ALIVE_EVERY seconds it is checked."""
    common, registry, plugins = inputs.common, *kubelet_folders(inputs)
    env = Env({"HTTP_ENDPOINT": f":{metrics}", "METRICS_PATH": "/metrics", "LOG_VERBOSITY": VERBOSITY})
    env.set("MASK_NVIDIA_DRIVER_PARAMS", "").set("NVIDIA_VISIBLE_DEVICES", "void").set("CDI_ROOT", "/var/run/cdi")
    if name == GPUS:
        env.set("HOST_ROOT", "/host")
    env.set("NVIDIA_MIG_CONFIG_DEVICES", "all")
    env.field("NODE_NAME", "spec.nodeName").field("NAMESPACE", "metadata.namespace")
    if name == GPUS:
        env.set("IMAGE_NAME", inputs.image)
    env.set("KUBELET_REGISTRAR_DIRECTORY_PATH", registry.path).set("KUBELET_PLUGINS_DIRECTORY_PATH", plugins.path)
    env.set("HEALTHCHECK_PORT", program.port or -1)
    if name != GPUS:
        env.set("GPU_CLIQUE_LABEL_ENABLED", inputs.clique_label)
    gates(env, inputs)
    container = Container(
        name,
        inputs.image,
        inputs.pull_policy,
        command=["bash", "-c"],
        args=[script("dra-kubelet-plugin").replace("PLUGIN", command)],
        env=env.policy(program.env),
        security=PRIVILEGED,
        resources=program.resources,
    )
    if program.port:
        container.startup = grpc_probe(
            program.port, "liveness", periodSeconds=1, timeoutSeconds=10, failureThreshold=600
        )
        container.liveness = grpc_probe(
            program.port, "liveness", periodSeconds=alive_every, timeoutSeconds=10, failureThreshold=3
        )
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


def gates(env: Env, inputs: DraDriverInputs) -> None:
    """Switch features on or off, in all programs alike: they have to agree."""
    if inputs.feature_gates:
        switches = sorted(inputs.feature_gates.items())
        env.set("FEATURE_GATES", ",".join(f"{name}={str(on).lower()}" for name, on in switches))


def controller(inputs: DraDriverInputs, program: Program) -> Body:
    """The Deployment of the controller, near the control plane where nodes of it may run pods."""
    common, labels = inputs.common, {"app": CONTROLLER, **CONTROLLER_LABELS}
    env = Env({"HTTP_ENDPOINT": ":8080", "METRICS_PATH": "/metrics", "PPROF_PATH": "", "LOG_VERBOSITY": VERBOSITY})
    env.set("LOG_VERBOSITY_CD_DAEMON", VERBOSITY).set("IMAGE_NAME", inputs.image).set("NVIDIA_VISIBLE_DEVICES", "void")
    env.field("POD_NAME", "metadata.name").field("NAMESPACE", "metadata.namespace")
    env.update(leader_election(common.namespace))
    gates(env, inputs)
    if not inputs.gpus and inputs.pull_secrets:
        env.set("CD_DAEMON_IMAGE_PULL_SECRET_NAMES", ",".join(inputs.pull_secrets))
    container = Container(
        "compute-domain",
        inputs.image,
        inputs.pull_policy,
        command=["compute-domain-controller", "-v", "$(LOG_VERBOSITY)"],
        env=env.policy(program.env),
        resources=program.resources,
    )
    template = Pod(CONTROLLER, {}, [container], affinity=near_control_plane(), pull_secrets=inputs.pull_secrets)
    tolerated = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in (CONTROL_PLANE, MASTER)]
    tolerations = [*tolerated, {"key": "CriticalAddonsOnly", "operator": "Exists"}, *map(dict, common.tolerations)]
    extra = {key: value for key, value in common.labels.items() if key not in {"app", "app.kubernetes.io/part-of"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(
            CONTROLLER, common.namespace, labels={**labels, **common.labels}, annotations=common.annotations
        ),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": CONTROLLER}},
            "template": {
                "metadata": metadata("", labels={**labels, **extra}, annotations=common.annotations),
                "spec": template.body()
                | sparse(
                    priorityClassName=common.priority_class,
                    securityContext=common.security_context,
                    tolerations=tolerations,
                ),
            },
        },
    }


MASTER = "node-role.kubernetes.io/master"
"""What the control plane's nodes were tainted with before Kubernetes 1.24; some distributions still do."""


def leader_election(namespace: str) -> tuple[tuple[str, str], ...]:
    """Off, as there is one controller; the rest is for a policy that turns it on in the controller's `env`."""
    prefix = "LEADER_ELECTION_"
    return (
        (f"{prefix}ENABLED", "false"),
        (f"{prefix}LEASE_LOCK_NAME", CONTROLLER),
        (f"{prefix}LEASE_LOCK_NAMESPACE", namespace),
        (f"{prefix}LEASE_DURATION", "15s"),
        (f"{prefix}RENEW_DEADLINE", "10s"),
        (f"{prefix}RETRY_PERIOD", "2s"),
    )


def near_control_plane() -> Body:
    """Prefer nodes of the control plane, and nodes without another controller."""
    preference = {"matchExpressions": [{"key": CONTROL_PLANE, "operator": "Exists"}]}
    other = {"labelSelector": {"matchLabels": {"app": CONTROLLER}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    return {
        "nodeAffinity": {preferred: [{"weight": 100, "preference": preference}]},
        "podAntiAffinity": {preferred: [{"weight": 100, "podAffinityTerm": other}]},
    }
