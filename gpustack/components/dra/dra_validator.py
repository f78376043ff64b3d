"""The validator where GPUs are allocated by DRA: a pod per node that gets a GPU by a claim and looks at it
(operator.md 11.2).

It needs no rights and no privileges: that the claim is allocated and the GPU injected is the proof. Its pods carry the
label of the validator without DRA, because that is what a driver upgrade waits for.
"""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..parts.daemonset import daemonset
from ..parts.kube import access
from ..parts.pod import Container, Pod
from ..parts.scc import scc
from .dra import admin_claim, of_state, required
from .dra_inputs import DraValidatorInputs

NAME = "nvidia-dra-validator"
CLAIM, TEMPLATE = "validation-gpu", "nvidia-dra-validator-gpu"
SELECTOR = {"app.kubernetes.io/name": NAME}
LABELS = {keys.COMPONENT: NAME, **SELECTOR}
AWAITED = {"app": "nvidia-operator-validator"}
"""What a driver upgrade finds the validator's pods by."""
HAS_GPU = {"key": keys.PRESENT, "operator": "In", "values": ["true"]}


class DraValidator(Component[DraValidatorInputs]):
    """The validator's DaemonSet and its claim."""

    def manifests(self, inputs: DraValidatorInputs) -> Iterator[Body]:
        yield from of_state("state-dra-validation", objects(inputs))


def objects(inputs: DraValidatorInputs) -> Iterator[Body]:
    """The objects without the label of their state."""
    common = inputs.common
    yield from access(NAME, common.namespace, labels=LABELS, token=False)
    yield admin_claim(TEMPLATE, common.namespace, CLAIM, count=1)
    if common.openshift:
        yield scc(NAME, common.namespace)
    of_pod = {**LABELS, **AWAITED}
    body = daemonset(
        common, NAME, pod(inputs), deploy="dra-validator", labels=LABELS, pod_labels=of_pod, selector=SELECTOR
    )
    body["spec"]["selector"] = {"matchLabels": dict(SELECTOR)}
    yield body


def pod(inputs: DraValidatorInputs) -> Pod:
    """An init container that lists the claimed GPU, and a container that shows by running that this worked."""
    check = Container(
        "gpu-validation",
        inputs.image,
        inputs.pull_policy,
        command=["sh", "-c", "nvidia-smi -L"],
        resources={"claims": [{"name": CLAIM}]},
    )
    main = Container(
        NAME,
        inputs.image,
        inputs.pull_policy,
        command=["sh", "-c", "echo the GPU of this node is validated; while true; do sleep 86400; done"],
    )
    return Pod(
        NAME,
        {},
        [main],
        init=[check],
        affinity=required([{"matchExpressions": [HAS_GPU]}]),
        pull_secrets=inputs.pull_secrets,
        claims={CLAIM: TEMPLATE},
    )
