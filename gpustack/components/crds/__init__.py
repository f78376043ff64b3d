"""The CustomResourceDefinitions that gpustack brings along, one data file each beside this module.

Structure only, written by hand: no prose, and no field that the API doesn't have. catalog/object_kinds.py lists them,
because a policy may leave each to another owner (`cluster.crds`).
"""

from pathlib import Path

from ...catalog import _data
from ...model import Body


def crd(name: str) -> Body:
    """The CustomResourceDefinition NAME, from its data file."""
    body: Body = _data.copy(_data.read(Path(__file__).with_name(f"{name}.yaml")))
    return body
