"""The Kata manager before v26.7: guest kernels and images, a runtime class for each (operator-releases.md 6.13)."""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.daemonset import CDI_ROOT, VALIDATIONS, daemonset, host_root
from ..parts.kube import config_map, metadata
from ..parts.operand import from_script, operand_access
from ..parts.pod import PRIVILEGED_S0, Env, Pod, Volume, exec_probe
from ..scripts import entrypoint, script
from ..toolkit.environment import configure_runtime
from .sandbox_inputs import KataManagerInputs

NAME = "nvidia-kata-manager"
CONFIG, ENTRYPOINT = "nvidia-kata-manager-config", "nvidia-kata-manager-entrypoint"
CONFIG_FILE = "/etc/kata-manager/config.yaml"
LABELS = {"app": NAME}
RUNS = 'pid=$(cat "$KATA_ARTIFACTS_DIR/k8s-kata-manager.pid") && [ -d "/proc/$pid" ]'


class KataManager(Component[KataManagerInputs]):
    """The manager's DaemonSet, its configuration and entry point, the runtime classes, and its rights."""

    def manifests(self, inputs: KataManagerInputs) -> Iterator[Body]:
        common = inputs.common
        yield from operand_access(common, NAME)
        yield config_map(CONFIG, common.namespace, {"config.yaml": inputs.config}, labels=LABELS)
        yield config_map(ENTRYPOINT, common.namespace, {"entrypoint.sh": script("kata-manager")}, labels=LABELS)
        yield daemonset(common, NAME, pod(inputs), select_by="name", deploy="kata-manager")
        for each in inputs.classes:
            labels = {keys.COMPONENT: "gpu-operator", "nvidia.com/kata-runtime-class": "true"}
            yield {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": metadata(each.name, labels=labels),
                "handler": each.name,
                "scheduling": {"nodeSelector": {f"{keys.DEPLOY}kata-manager": "true", **each.node_selector}},
            }


def pod(inputs: KataManagerInputs) -> Pod:
    """The manager. A change of its configuration restarts it; it reads the file once."""
    common = inputs.common
    env = Env().field("NODE_NAME", "spec.nodeName").set("CONFIG_FILE", CONFIG_FILE)
    env.set("LOAD_KERNEL_MODULES", True).set("CDI_ENABLED", True).appended()
    env.set("KATA_ARTIFACTS_DIR", inputs.artifacts).update(inputs.env)
    probe = exec_probe(["sh", "-c", RUNS], initialDelaySeconds=5, periodSeconds=5)
    main = from_script(inputs, NAME, env, ENTRYPOINT, PRIVILEGED_S0, readiness=probe)
    main.mount(entrypoint(CONFIG), CONFIG_FILE, sub_path="config.yaml")
    main.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    main.mount(CDI_ROOT, "/var/run/cdi").mount(VALIDATIONS, "/run/nvidia/validations")
    main.mount(Volume.host("kata-artifacts", inputs.artifacts, "DirectoryOrCreate"), inputs.artifacts)
    configure_runtime(common, main, drop_in_files=False)
    return Pod(
        NAME,
        {},
        [main],
        declared=[entrypoint(ENTRYPOINT), entrypoint(CONFIG), host_root(common), CDI_ROOT, VALIDATIONS],
        host_pid=True,
        host_network=inputs.host_network,
        pull_secrets=inputs.pull_secrets,
        grace_period=30,
        config_digest=inputs.digest()[:16],
    )
