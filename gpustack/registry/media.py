"""The media types of what registries hold: what reads it knows it by them."""

from typing import NamedTuple

INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")


class Media(NamedTuple):
    """Media types of the layer and of the configuration; `artifact` is needed beside an empty configuration."""

    layer: str
    config: str
    artifact: str = ""
