"""Init containers that hold a pod back until what it stands on is ready (operator.md 5.3, 7.2, 7.4; reconciler.md V3).

The operator's validator recognises a managed driver by the *owner* of the driver's DaemonSet: a ClusterPolicy or
NVIDIADriver object. A rendered DaemonSet has no such owner (and a made-up one would be garbage-collected with all its
pods), so the validator would neither wait for the driver's pod nor check its features. Hence the init containers named
`gpustack-*`: one waits for the driver's own ready file before `driver-validation` looks at the driver, others run the
validator's stand-alone checks of the features that are on.
"""

from collections.abc import Iterable

from ..scripts import argument
from .common_inputs import DEFAULT_DRIVER_DIR, Common, OperandInputs
from .daemonset import RUN_NVIDIA, VALIDATIONS, host_dev_char, host_root
from .operand import main_container
from .pod import PRIVILEGED_ROOT, Container, Env, Pairs, Pod, SecurityContext, Volume

READY = "/run/nvidia/validations"
DRIVER_CHECK: SecurityContext = {**PRIVILEGED_ROOT, "seLinuxOptions": {"level": "s0"}}
FLAGS = {"nvidia-fs": "GDS_ENABLED", "gdrcopy": "GDRCOPY_ENABLED", "nvidia-peermem": "GPU_DIRECT_RDMA_ENABLED"}
"""What the driver's startup probe writes on the node about the feature that a check is for (operator.md 14)."""


def validator(
    common: Common,
    name: str,
    env: Env,
    script: str = "nvidia-validator",
    *,
    security: SecurityContext = PRIVILEGED_ROOT,
) -> Container:
    """An init container NAME that runs SCRIPT, one check of the validator's image."""
    check = common.validation
    return Container(
        name,
        check.image,
        check.pull_policy,
        command=["sh", "-c"],
        args=[script],
        env=env,
        security=security,
        resources=check.resources,
    )


def verdict(inputs: OperandInputs, name: str, words: str, init: Iterable[Container], *, leaves: str) -> Pod:
    """A pod of checks, in turn, then a container that does nothing and so shows that all passed.

    WORDS is what that container says; LEAVES are the files, below the folder of results, that go with the pod."""
    args = inputs.args or [f"echo {words}; while true; do sleep 86400; done"]
    main = main_container(inputs, name, Env().policy(inputs.env), PRIVILEGED_ROOT, command=["sh", "-c"], args=args)
    main.pre_stop = ["sh", "-c", f"rm -f {READY}/{leaves}"]
    main.mount(VALIDATIONS, READY, propagation="Bidirectional")
    return Pod(name, {}, [main], init=list(init), host_network=inputs.host_network, pull_secrets=inputs.pull_secrets)


def toolkit_wait(common: Common, volume: Volume = RUN_NVIDIA) -> Container:
    """`toolkit-validation` of an operand: a shell that polls for toolkit-ready, which the validator's pod writes."""
    poll = f"until [ -f {READY}/toolkit-ready ]; do echo waiting for the container toolkit; sleep 5; done"
    container = validator(common, "toolkit-validation", Env().policy(common.validation.toolkit_env), poll)
    return container.mount(volume, READY if volume is VALIDATIONS else "/run/nvidia", propagation="HostToContainer")


def driver_checks(common: Common, install_dir: Volume, *, root_first: bool = False) -> list[Container]:
    """`driver-validation`, behind `gpustack-wait-for-driver` where this render brings the driver.

    INSTALL_DIR is the volume of the driver's files; pods differ in its hostPath type. ROOT_FIRST: so the validator's
    pod mounts the node's root."""
    check = driver_check(common, "driver-validation", "driver", common.validation.driver_env, install_dir)
    if root_first:
        check.mounts.sort(key=lambda mount: mount[0].name != "host-root")
    return [driver_wait(common), check] if common.driver else [check]


def driver_wait(common: Common, results: Volume = VALIDATIONS) -> Container:
    """`gpustack-wait-for-driver`: waits for the driver's pod of the node, unless the node brings its own driver.

    RESULTS is the pod's volume of the files that validation leaves on the node."""
    wait = validator(common, "gpustack-wait-for-driver", Env(), argument("wait-for-driver"))
    wait.mount(results, READY, propagation="HostToContainer")
    return wait.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")


def driver_features(common: Common, results: Volume) -> Container:
    """`gpustack-driver-features-validation`: waits for the modules that the driver's pod of this node loads beside it.

    The pod leaves the list of them on the node, so this holds where nodes have drivers with different features. Comes
    after `driver-validation`. RESULTS as in `driver_wait`."""
    name, env = "gpustack-driver-features-validation", Env({"WITH_WAIT": "true"})
    container = validator(common, name, env, argument("driver-features"), security=DRIVER_CHECK)
    return container.mount(results, READY, propagation="Bidirectional")


def driver_check(common: Common, name: str, component: str, policy_env: Pairs, install_dir: Volume) -> Container:
    """An init container that runs the validator's check COMPONENT on the driver's files, until it passes."""
    env = Env({"WITH_WAIT": "true", "COMPONENT": component}).field("OPERATOR_NAMESPACE", "metadata.namespace")
    env.appended()
    path = DEFAULT_DRIVER_DIR
    if common.driver_dir != DEFAULT_DRIVER_DIR:
        path = common.driver_dir
        env.set("DRIVER_INSTALL_DIR", path).set("DRIVER_INSTALL_DIR_CTR_PATH", path)
    container = validator(common, name, env.policy(policy_env), security=DRIVER_CHECK)
    container.mount(install_dir, path, propagation="HostToContainer")
    container.mount(VALIDATIONS, READY, propagation="Bidirectional")
    container.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    return container.mount(host_dev_char(common), "/host-dev-char")


def own_feature_check(common: Common, feature: str) -> Container:
    """`<FEATURE>-validation`, which passes once the validator finds FEATURE."""
    env = Env({"WITH_WAIT": "true", "COMPONENT": feature}).field("NODE_NAME", "spec.nodeName")
    container = validator(common, f"{feature}-validation", env, security=DRIVER_CHECK)
    return container.mount(VALIDATIONS, READY, propagation="Bidirectional")


def feature_check(common: Common, feature: str) -> Container:
    """`gpustack-<FEATURE>-validation`: waits until the driver's pod has loaded the module that FEATURE is about.

    Comes after `driver-validation`, whose file tells whether the node brings its own driver. There nothing is checked:
    the operator doesn't either, and a module that nobody loads would hold the node back for ever. Nor where drivers of
    the cluster differ and this node's has not got FEATURE."""
    env = Env({"WITH_WAIT": "true", "COMPONENT": feature})
    script = argument("unless-host-driver").format(flag=FLAGS[feature])
    container = validator(common, f"gpustack-{feature}-validation", env, script, security=DRIVER_CHECK)
    return container.mount(VALIDATIONS, READY, propagation="Bidirectional")
