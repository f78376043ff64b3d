"""Inputs of the objects that bring Secrets: where each comes from, and no value of one."""

from __future__ import annotations

from typing import Literal

from ...cluster.resolve import Cluster
from ..parts.common_inputs import Inputs


class RemoteInputs(Inputs):
    """Where the value of KEY is in a store."""

    secret_key: str
    key: str
    property: str = ""
    version: str = ""


class SecretInputs(Inputs):
    """A Secret: from the store REMOTE says, asked every so often, or from SEALED text by key."""

    name: str
    namespace: str
    type: str
    labels: dict[str, str] = {}
    store: tuple[str, str] = ("", "")
    refresh: str = ""
    remote: tuple[RemoteInputs, ...] = ()
    sealed: dict[str, str] = {}
    scope: Literal["strict", "namespace-wide", "cluster-wide"] = "strict"


class SecretsInputs(Inputs):
    """The Secrets, in the order of the policy."""

    secrets: tuple[SecretInputs, ...]


def from_cluster(cluster: Cluster) -> SecretsInputs | None:
    """None where the policy brings none."""
    made = []
    for each in cluster.spec.secrets:
        inputs = SecretInputs(
            name=each.name,
            namespace=each.namespace or cluster.spec.cluster.namespace,
            type=each.type,
            labels=each.labels,
        )
        if each.external:
            remote = tuple(
                RemoteInputs(secret_key=name, key=at.key, property=at.property or "", version=at.version or "")
                for name, at in sorted(each.external.keys.items())
            )
            store = each.external.store
            more = {"store": (store.kind, store.name), "refresh": each.external.refreshInterval, "remote": remote}
            inputs = inputs.model_copy(update=more)
        if each.sealed:
            inputs = inputs.model_copy(update={"sealed": each.sealed.encryptedData, "scope": each.sealed.scope})
        made.append(inputs)
    return SecretsInputs(secrets=tuple(made)) if made else None
