"""What pods of tenants may not do, as an admission policy: reach GPUs that they didn't ask for, and take more than one
pod may.

Solves: a quota counts what pods ask for. A pod that is privileged, that mounts the devices of its node or says which
of them are to be visible asks for nothing and has all of them; so has one with an annotation of CDI. That limits equal
requests is the API server's own rule of extended resources, and isn't repeated. What an image sets is seen by nobody
here: the toolkit is told to believe privileged pods alone (GPU733).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...model import Body
from ...policy.language.tenancy import Tenancy, Tenant
from ..parts import admission
from ..parts.admission import listed, quoted

SHARES = "gpustack.dev/shares-gpu"
"""The label by which a pod says that it may share a GPU."""
KINDS = ("containers", "initContainers")
ANNOTATED = "a tenant's pod has no annotation of CDI: it gets the GPUs that it asks for"


Taints = tuple[tuple[str, str, str], ...]
"""Key, value and effect of each taint."""


class Offered(NamedTuple):
    """A resource of the nodes. `taints` are those that keep pods away, by pool: key, value and effect of each; empty
    where a pool that offers it has none. `shared`: one of it is not one pod's alone on any node."""

    name: str
    taints: tuple[Taints, ...] = ()
    shared: bool = False


def tenant_pods(tenancy: Tenancy, resources: Sequence[Offered], folders: Sequence[str]) -> Iterator[Body]:
    """The policy over pods of tenants' namespaces, and its binding. FOLDERS of the node are those they don't mount."""
    homes = [tenant.home for tenant in tenancy.tenants]
    return admission.policy(
        "tenant_pods",
        "Deny" if tenancy.admission.mode == "Deny" else "Audit",
        {"name": "tenant", "expression": f"request.namespace in {listed(homes)}"},
        further={words: f"variables.written || ({holds})" for words, holds in rules(tenancy, resources)}
        | {ANNOTATED: admission.expressions()["annotated"]},
        folders=listed(folders),
    )


def rules(tenancy: Tenancy, resources: Sequence[Offered]) -> Iterator[tuple[str, str]]:
    """What a pod is told of the cluster's own resources and tenants, and the expression that holds of every other."""
    for one in resources:
        if one.taints:
            ways = " || ".join(" && ".join(tolerates(*taint) for taint in pool) for pool in one.taints)
            words = " or ".join(", ".join(taint[0] for taint in pool) for pool in one.taints)
            yield f"a pod that asks for {one.name} tolerates the taint {words}", f"!{asks([one])} || {ways}"
    if shared := [one for one in resources if one.shared and tenancy.admission.sharingOptIn]:
        label = f"object.metadata.?labels[?{quoted(SHARES)}].orValue('') == 'true'"
        yield (
            f'a pod that asks for a GPU which others use too has the label {SHARES}: "true"',
            f"!{asks(shared)} || {label}",
        )
    for tenant in tenancy.tenants:
        yield from of(tenant, resources)


def of(tenant: Tenant, resources: Sequence[Offered]) -> Iterator[tuple[str, str]]:
    """The rules for pods of TENANT alone."""
    others = f"request.namespace != {quoted(tenant.home)}"
    if tenant.priorities:
        has = f"object.spec.?priorityClassName.orValue('') in {listed(tenant.priorities)}"
        words = " or ".join(tenant.priorities)
        what = f"a pod of {tenant.name} that asks for GPUs has the priority {words}"
        yield what, f"{others} || !{asks(resources)} || {has}"
    if tenant.maxPerPod and resources:
        each = " + ".join(f"quantity({limit(one)}.orValue('0')).asInteger()" for one in resources)
        most = tenant.maxPerPod
        beside = "object.spec.?initContainers.orValue([]).filter(each, each.?restartPolicy.orValue('') == 'Always')"
        beside = f"{beside}.map(each, {each}).sum()"
        main = f"object.spec.containers.map(each, {each}).sum() + {beside} <= {most}"
        before = f"each.?restartPolicy.orValue('') == 'Always' || {each} + {beside} <= {most}"
        before = f"object.spec.?initContainers.orValue([]).all(each, {before})"
        what = f"a pod of {tenant.name} asks for {most} GPUs or slices at most"
        yield what, f"{others} || {main} && {before}"


def asks(resources: Iterable[Offered]) -> str:
    """The expression that a container asks for one of RESOURCES."""
    named = " || ".join(f"{limit(one)}.orValue('0') != '0'" for one in resources) or "false"
    return "(" + " || ".join(f"object.spec.?{kind}.orValue([]).exists(each, {named})" for kind in KINDS) + ")"


def limit(one: Offered) -> str:
    """The limit of ONE of a container, as an optional. The type checker of policies knows no limits, hence dyn."""
    return f"dyn(each).?resources.?limits[?{quoted(one.name)}]"


def tolerates(key: str, value: str, effect: str) -> str:
    """The expression that a pod tolerates a taint."""
    same_key = f"(one.?key.orValue('') in ['', {quoted(key)}])"
    same_effect = f"(one.?effect.orValue('') in ['', {quoted(effect)}])"
    same = f"(one.?operator.orValue('Equal') == 'Exists' || one.?value.orValue('') == {quoted(value)})"
    return f"object.spec.?tolerations.orValue([]).exists(one, {same_key} && {same_effect} && {same})"
