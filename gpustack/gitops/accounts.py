"""Who applies the render, as far as a policy says: a guard refuses to everybody else what the stack runs as root."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import engines

if TYPE_CHECKING:
    from ..policy.language.spec import ClusterPolicySpec


class Writing(NamedTuple):
    """Who applies the render: users and groups. `known`: these are all, so that everybody else can be refused."""

    users: tuple[str, ...]
    groups: tuple[str, ...]
    known: bool


def writing(spec: ClusterPolicySpec) -> Writing:
    """Who applies the render of SPEC, as far as the policy says.

    An engine in the cluster itself acts as an account of its namespace, under names that installations differ in. One
    elsewhere has whatever identity its kubeconfig gives it, so `guards.writers` must say which.
    """
    chosen, given = engines.chosen(spec.gitops), spec.guards.writers
    own = chosen.accounts(spec.gitops) if chosen and spec.gitops else None
    said = bool(given.users or given.groups)
    users, groups = own or ((), ())
    return Writing((*users, *given.users), (*groups, *given.groups), known=own is not None or said)
