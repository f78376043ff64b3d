"""What the operands have in common: an identity with rights, and a container that runs what the policy says."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...catalog import _data
from ...model import Body
from ..scripts import entrypoint
from .common_inputs import Common, OperandInputs
from .kube import access, rights, rule
from .pod import PRIVILEGED, Container, Env, Pod, SecurityContext, Volume
from .scc import ACCESS, scc

PRIVILEGED_SCC = rule("security.openshift.io", "securitycontextconstraints", "use", names=["privileged"])
"""The right that lets a privileged pod start on OpenShift. Nothing else reads it, so it is rendered there only."""


def operand_access(
    common: Common,
    name: str,
    *,
    token: bool = True,
    like: str = "",
    labels: Mapping[str, str] | None = None,
    **facts: bool,
) -> Iterator[Body]:
    """The identity of privileged pods, with its rights by FACTS (`kube.rights`), and what OpenShift wants to let them
    start: own constraints, too, if `scc.scc` knows some. LIKE is the name in both, if not NAME; they then have LABELS.
    """
    granted = rights(like or name, common, **facts)
    role = [PRIVILEGED_SCC, *granted["role"]] if common.openshift else granted["role"]
    yield from access(name, common.namespace, role=role, cluster=granted["cluster"], labels=labels, token=token)
    if common.openshift and (like or name) in _data.read(ACCESS):
        yield scc(name, common.namespace, like=like, labels=labels if like else None)


def main_container(
    inputs: OperandInputs, name: str, env: Env, security: SecurityContext = PRIVILEGED, **more: Any
) -> Container:
    """The container NAME of the policy's image with its arguments and resources, where MORE doesn't say others."""
    more = {"args": inputs.args, "resources": inputs.resources, **more}
    return Container(name, inputs.image, inputs.pull_policy, env=env, security=security, **more)


def from_script(
    inputs: OperandInputs, name: str, env: Env, config_map: str, security: SecurityContext = PRIVILEGED, **more: Any
) -> Container:
    """The same, begun by the script of CONFIG_MAP, which is mounted as /bin/entrypoint.sh."""
    path, command = "/bin/entrypoint.sh", ["/bin/sh", "-c"]
    main = main_container(inputs, name, env, security, command=command, args=inputs.args or [path], **more)
    return main.mount(entrypoint(config_map), path, read_only=True, sub_path="entrypoint.sh")


def operand_pod(
    inputs: OperandInputs, account: str, main: Container, init: list[Container], declared: Sequence[Volume], **more: Any
) -> Pod:
    """The pod that runs MAIN as ACCOUNT once those of INIT, of the validator's image, have come to their end."""
    secrets = [*inputs.common.validation.pull_secrets, *inputs.pull_secrets]
    fields = {"declared": declared, "host_network": inputs.host_network, "pull_secrets": secrets, **more}
    return Pod(account, {}, [main], init, **fields)
