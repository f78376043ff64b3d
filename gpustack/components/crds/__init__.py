"""The CustomResourceDefinitions that gpustack brings along, one data file each beside this module.

Structure only, written by hand: no prose, and no field that the API doesn't have. catalog/object_kinds.py lists them,
because a policy may leave each to another owner (`cluster.crds`).
"""

from pathlib import Path

from ...model import Body


def crd(name: str) -> Body:
    """The CustomResourceDefinition NAME, from its data file."""
    import yaml

    with Path(__file__).with_name(f"{name}.yaml").open("rb") as file:
        body: Body = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    return body
