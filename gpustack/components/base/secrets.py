"""Objects by which other programs make the stack's Secrets: ExternalSecret, of External Secrets Operator, and
SealedSecret. What these would fill in is spelled out, so that a GitOps engine finds nothing that differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ...model import Body, Stage
from ..component import Component
from ..parts.kube import metadata
from ..parts.pod import sparse
from .base_inputs import SecretInputs, SecretsInputs

EXTERNAL, SEALED = "external-secrets.io/v1", "bitnami.com/v1alpha1"
SCOPE = "sealedsecrets.bitnami.com/"
"""Annotations of a SealedSecret that is sealed for more than one name."""


class Secrets(Component[SecretsInputs]):
    """With the base: pods of every later stage name them."""

    stage: ClassVar[Stage] = "base"

    def manifests(self, inputs: SecretsInputs) -> Iterator[Body]:
        for each in inputs.secrets:
            yield external(each) if each.remote else sealed(each)


def external(secret: SecretInputs) -> Body:
    """The ExternalSecret. The Secret stays where its entry goes from the store."""
    kind, name = secret.store
    data = [
        {
            "secretKey": each.secret_key,
            "remoteRef": {
                **sparse(key=each.key, property=each.property, version=each.version),
                "conversionStrategy": "Default",
                "decodingStrategy": "None",
                "metadataPolicy": "None",
            },
        }
        for each in secret.remote
    ]
    template: Body = {"engineVersion": "v2", "mergePolicy": "Replace", "type": secret.type}
    template |= {"metadata": {"labels": dict(secret.labels)}} if secret.labels else {}
    return {
        "apiVersion": EXTERNAL,
        "kind": "ExternalSecret",
        "metadata": metadata(secret.name, secret.namespace),
        "spec": {
            "refreshInterval": secret.refresh,
            "secretStoreRef": {"kind": kind, "name": name},
            "target": {
                "name": secret.name,
                "creationPolicy": "Owner",
                "deletionPolicy": "Retain",
                "template": template,
            },
            "data": data,
        },
    }


def sealed(secret: SecretInputs) -> Body:
    """The SealedSecret."""
    notes = {} if secret.scope == "strict" else {f"{SCOPE}{secret.scope}": "true"}
    template = metadata(secret.name, secret.namespace, labels=secret.labels, annotations=notes)
    return {
        "apiVersion": SEALED,
        "kind": "SealedSecret",
        "metadata": metadata(secret.name, secret.namespace, annotations=notes),
        "spec": {
            "encryptedData": dict(sorted(secret.sealed.items())),
            "template": {"type": secret.type, "metadata": template},
        },
    }
