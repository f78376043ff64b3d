"""Inputs of `gpustack verify` in the cluster: what it holds the cluster against, and what it has to list for that."""

from collections.abc import Sequence
from typing import Self

from ...cluster.resolve import Cluster
from ...model import Body
from ...text.emit import emit, emit_value
from ..parts.common_inputs import OfRender, dump
from ..plugin.configs_inputs import refuse_large
from ..reconciler.reconciler_inputs import ProgramInputs, run_by

NAME = "gpustack-verify"


class VerifyInputs(OfRender, ProgramInputs):
    """`data` is the ConfigMap's, `kinds` are what is listed, as apiVersion, kind and namespace; both know of what is
    rendered once somebody has shown it."""

    schedule: str
    time_zone: str = "UTC"
    data: dict[str, str] = {}
    kinds: tuple[tuple[str, str, str], ...] = ()

    def seeing(self, rendered: Sequence[Body]) -> Self:
        from ...api.expectations import wanted  # with msgspec, which only a policy with `verify` pays

        text = "---\n".join(emit(each) for each in rendered if each["kind"] != "Secret")
        data = {**self.data, "rendered.yaml": text}
        refuse_large(data, NAME, "verify.schedule")
        return self.model_copy(update={"data": data, "kinds": tuple(wanted(rendered, self.namespace))})


def from_cluster(cluster: Cluster) -> VerifyInputs | None:
    """None where nothing is to look."""
    spec, section, said = cluster.spec, cluster.spec.reconciler, cluster.spec.verify
    if said is None or not said.schedule or section is None:
        return None
    import msgspec

    from ...api.expectations import wanted
    from ...cluster.expectations import expectation

    return VerifyInputs(
        **run_by(spec, section),
        resources=dump(said.resources) or {},
        schedule=said.schedule,
        time_zone=said.timeZone,
        data={"expected.yaml": emit_value(msgspec.json.decode(msgspec.json.encode(expectation(cluster, ()))))},
        kinds=tuple(wanted((), spec.cluster.namespace)),
    )
