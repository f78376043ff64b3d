"""The media types of an artifact: what reads it knows it by them."""

from typing import NamedTuple


class Media(NamedTuple):
    """Media types of the layer and of the configuration; `artifact` is needed beside an empty configuration."""

    layer: str
    config: str
    artifact: str = ""
