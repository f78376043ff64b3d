"""`secrets`: from where the Secrets come that the stack names: a secret store, or text that only the cluster can open.

No value of one is ever in a policy. What another program brings (SOPS, by Flux) is no business of the render: it stands
under `references`.
"""

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from .base import Section, mapping
from .forms import refuse_as, refuse_at
from .types import ConfigKey, DnsLabel, DnsSubdomain, Duration, Labels

KEYS = {
    "Opaque": (),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/basic-auth": (),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""The keys that the API server asks for in a Secret of a type (kubernetes.io/docs/concepts/configuration/secret)."""
RSA, TAG = (256, 384, 512, 1024), 16
"""Bytes of a session key that a controller's RSA key has sealed, and of the mark at the end of AES-GCM. Sealed text is
two bytes that say how long the first is, that, the text itself, the mark (Sealed Secrets, its page on cryptography)."""


def is_sealed(text: object) -> bool:
    """Whether kubeseal has made TEXT."""
    try:
        data = base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        return False
    length = int.from_bytes(data[:2], "big")
    return length in RSA and len(data) >= 2 + length + TAG


def sealed(text: str) -> str:
    """TEXT if it is one that kubeseal has made. It isn't shown: what is in its place may be the secret itself."""
    if not is_sealed(text):
        raise refuse_as("secrets", "plain")
    return text


class Store(Section):
    """A secret store that External Secrets Operator knows."""

    name: DnsSubdomain
    """Name of the SecretStore or ClusterSecretStore. Somebody else makes it: it may hold a login."""
    kind: Literal["SecretStore", "ClusterSecretStore"] = "ClusterSecretStore"
    """Absent: ClusterSecretStore."""


class RemoteKey(Section):
    """Where a key's value is in the store."""

    key: Annotated[str, Field(min_length=1, max_length=1024)]
    """Name of the entry in the store."""
    property: str | None = None
    """A part of it. Absent: all of it."""
    version: str | None = None
    """A version of it. Absent: the newest, so that a rotation arrives by itself."""


class External(Section):
    """A Secret that External Secrets Operator makes of a store."""

    store: Store
    """The store."""
    keys: Annotated[dict[ConfigKey, RemoteKey], Field(min_length=1)]
    """The Secret's keys, and where each is in the store."""
    refreshInterval: Duration = "1h"
    """How often the store is asked. Absent: 1h."""


class Sealed(Section):
    """A Secret that Sealed Secrets makes of text which its controller alone can open."""

    encryptedData: Annotated[dict[ConfigKey, Annotated[str, AfterValidator(sealed)]], Field(min_length=1)]
    """The Secret's keys, each with what `kubeseal --raw` printed for this name and namespace."""
    scope: Literal["strict", "namespace-wide", "cluster-wide"] = "strict"
    """As kubeseal was told. Absent: strict."""


class SecretSource(Section):
    """A Secret, and from where it comes: one of the two."""

    name: DnsSubdomain
    """Name of the Secret. Layers merge secrets by it."""
    namespace: DnsLabel | None = None
    """Its namespace. Absent: `cluster.namespace`."""
    type: Literal[
        "Opaque",
        "kubernetes.io/dockerconfigjson",
        "kubernetes.io/basic-auth",
        "kubernetes.io/ssh-auth",
        "kubernetes.io/tls",
    ] = "Opaque"
    """Its type: pull secrets are kubernetes.io/dockerconfigjson. Absent: Opaque."""
    external: External | None = None
    """From a secret store. Absent: not from there."""
    sealed: Sealed | None = None
    """From sealed text. Absent: not from that."""
    labels: Labels = mapping()
    """Labels of the Secret, such as Argo CD's for repositories. Absent: none."""

    @property
    def keys(self) -> list[str]:
        """The keys that it will have."""
        return sorted(self.external.keys if self.external else self.sealed.encryptedData if self.sealed else ())

    def model_post_init(self, _: Any) -> None:
        if (self.external is None) == (self.sealed is None):
            raise refuse_as("secrets", "sources", name=self.name)
        if lacking := [key for key in KEYS[self.type] if key not in self.keys]:
            raise refuse_at(("type",), refuse_as("secrets", "keys", type=self.type, key=lacking[0]), self.type)
