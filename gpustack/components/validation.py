"""Init containers that hold a pod back until what it stands on is ready (operator.md 5.3, 7.2, 7.4; reconciler.md V3).

The operator's validator recognises a managed driver by the *owner* of the driver's DaemonSet: a ClusterPolicy or
NVIDIADriver object. A rendered DaemonSet has no such owner (and a made-up one would be garbage-collected with all its
pods), so the validator would neither wait for the driver's pod nor check its features. Hence the init containers named
`gpustack-*`: one waits for the driver's own ready file before `driver-validation` looks at the driver, others run the
validator's stand-alone checks of the features that are on.
"""

from __future__ import annotations

from .daemonset import RUN_NVIDIA, VALIDATIONS, driver_install_dir, host_dev_char, host_root
from .inputs.common import DEFAULT_DRIVER_DIR, Common
from .pod import PRIVILEGED_ROOT, Container, Env, Pairs, SecurityContext, Volume

READY = "/run/nvidia/validations"
DRIVER_CHECK: SecurityContext = {**PRIVILEGED_ROOT, "seLinuxOptions": {"level": "s0"}}
HOST_DRIVERS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/opt/bin", "/usr/lib/wsl/lib")
"""Where the validator looks for nvidia-smi of a driver that the node brings itself (operator.md 14)."""

WAIT_FOR_DRIVER = "\n".join(
    (
        f"until [ -e {READY}/.driver-ctr-ready ]; do",
        f"  for dir in {' '.join(HOST_DRIVERS)}; do",
        '    if [ -s "/host$dir/nvidia-smi" ]; then echo "the node brings its own driver"; exit 0; fi',
        "  done",
        '  echo "waiting for the driver pod of this node"',
        "  sleep 5",
        "done",
    )
)

UNLESS_HOST_DRIVER = "\n".join(
    (
        f"until [ -f {READY}/driver-ready ]; do sleep 1; done",
        f'if grep -q "^IS_HOST_DRIVER=true" {READY}/driver-ready; then',
        '  echo "the node brings its own driver"; exit 0',
        "fi",
        "exec nvidia-validator",
    )
)


def validator(common: Common, name: str, env: Env, *, security: SecurityContext = PRIVILEGED_ROOT) -> Container:
    """An init container NAME that runs one check of the validator's image."""
    check = common.validation
    return Container(
        name,
        check.image,
        check.pull_policy,
        command=["sh", "-c"],
        args=["nvidia-validator"],
        env=env,
        security=security,
        resources=check.resources,
    )


def toolkit_wait(common: Common, volume: Volume = RUN_NVIDIA) -> Container:
    """`toolkit-validation` of an operand: a shell that polls for toolkit-ready, which the validator's pod writes."""
    poll = f"until [ -f {READY}/toolkit-ready ]; do echo waiting for the container toolkit; sleep 5; done"
    container = validator(common, "toolkit-validation", Env().policy(common.validation.toolkit_env))
    container.args = [poll]
    return container.mount(volume, READY if volume is VALIDATIONS else "/run/nvidia", propagation="HostToContainer")


def driver_checks(common: Common, install_dir: Volume | None = None) -> list[Container]:
    """`driver-validation`, behind `gpustack-wait-for-driver` where this render brings the driver.

    INSTALL_DIR is the volume of the driver's files; pods differ in its hostPath type.
    """
    volume = install_dir or driver_install_dir(common)
    checks = [driver_check(common, "driver-validation", "driver", common.validation.driver_env, volume)]
    if common.driver:
        wait = validator(common, "gpustack-wait-for-driver", Env())
        wait.args = [WAIT_FOR_DRIVER]
        wait.mount(VALIDATIONS, READY, propagation="HostToContainer")
        wait.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
        checks.insert(0, wait)
    return checks


def driver_check(common: Common, name: str, component: str, policy_env: Pairs, install_dir: Volume) -> Container:
    """An init container that runs the validator's check COMPONENT on the driver's files, until it passes."""
    env = Env({"WITH_WAIT": "true", "COMPONENT": component}).field("OPERATOR_NAMESPACE", "metadata.namespace")
    path = DEFAULT_DRIVER_DIR
    if common.driver_dir != DEFAULT_DRIVER_DIR:
        path = common.driver_dir
        env.set("DRIVER_INSTALL_DIR", path).set("DRIVER_INSTALL_DIR_CTR_PATH", path)
    container = validator(common, name, env.policy(policy_env), security=DRIVER_CHECK)
    container.mount(install_dir, path, propagation="HostToContainer")
    container.mount(VALIDATIONS, READY, propagation="Bidirectional")
    container.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    return container.mount(host_dev_char(common), "/host-dev-char")


def feature_check(common: Common, feature: str) -> Container:
    """`gpustack-<FEATURE>-validation`: waits until the driver's pod has loaded the module that FEATURE is about.

    Comes after `driver-validation`, whose file tells whether the node brings its own driver. There nothing is checked:
    the operator doesn't either, and a module that nobody loads would hold the node back for ever.
    """
    env = Env({"WITH_WAIT": "true", "COMPONENT": feature})
    container = validator(common, f"gpustack-{feature}-validation", env, security=DRIVER_CHECK)
    container.args = [UNLESS_HOST_DRIVER]
    return container.mount(VALIDATIONS, READY, propagation="Bidirectional")
