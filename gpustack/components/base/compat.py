"""The operator's ClusterPolicy as an inert copy, for those who read one to learn how GPUs are set up.

Solves: schedulers and monitoring stacks ask the cluster for a ClusterPolicy, and without one they behave as if there
were no GPUs, or guess. Nothing acts on the copy: it has the effective settings, and no status that could be taken
for somebody's word. It has no mark that would tell an operator to keep off, which takes the oldest one for its own; so
`verify` and `migrate` refuse it where an operator is.
"""

from collections.abc import Iterator

from ...api import keys
from ...model import Body
from ..component import Component
from ..crds import crd
from ..parts.kube import object_of
from .base_inputs import CompatInputs

NAME = "cluster-policy"
"""As the chart calls it (operator.md 1), and whoever asks for one by name."""
NOTE = {keys.INERT: "a copy for readers: nothing acts on it; the policy in Git is what counts"}


class Compat(Component[CompatInputs]):
    """A ClusterPolicy that nobody acts on, and the definition of its kind."""

    stage = "base"

    def manifests(self, inputs: CompatInputs) -> Iterator[Body]:
        yield from (crd(name) for name in inputs.crds)
        # The version is as the chart says it; KAI asks for it (docs/components/compat.md).
        labels = {"app.kubernetes.io/version": inputs.release}
        yield object_of("nvidia.com/v1", "ClusterPolicy", NAME, inputs.spec, labels=labels, annotations=NOTE)
