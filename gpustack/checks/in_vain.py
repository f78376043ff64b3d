"""What a policy says in vain: settings of components that are off, GPUs that nobody knows, nodes without labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..catalog import gpus, releases
from ..catalog._lookup import nearest
from ..model import dotted
from ..policy.place import node
from ..policy.reconciler import labelling, runs
from .rule import Hit, rule

if TYPE_CHECKING:
    from ..policy.spec import ClusterPolicySpec
    from .subjects import Written

VIRTUAL = re.compile(r"(NVIDIA-)?GRID-.*|.*-\d+[ABCQ](ME)?")
"""How GPUs inside a virtual machine are called (GRID-A100-20C, NVIDIA-L40S-24Q); the catalogue knows boards only."""


@rule("GPU108", "warning", over="origins")
def settings_of_what_is_off(written: Written) -> Iterator[Hit]:
    """Settings of a component that is off.

    They change nothing, and whoever wrote them expects something. Platforms switch components off that the node image
    brings. Only what the cluster's own file sets is reported: layers serve clusters of both kinds.

    Bad:
        cluster: {platform: eks-al2023}
        driver: {version: 580.105.08}

    Good:
        cluster: {platform: eks-ubuntu}
        driver: {version: 580.105.08}
    """
    defaults = releases.release(written.spec.release).defaults
    found: dict[str, list[str]] = {}
    for path, origin in written.merged.origins.items():
        section = str(path[0])
        if origin.kind != "policy" or len(path) < 2 or path[1] == "enabled" or not off(written.spec, section):
            continue
        if path[:2] == ("driver", "upgradePolicy") and runs(written.spec):
            continue  # the budget holds for MIG layouts too
        if node(written.merged.spec, path) not in (node(defaults, path), "", [], {}):
            found.setdefault(section, []).append(dotted(path))
    for section, paths in found.items():
        who = written.merged.origin((section, "enabled"))
        by = (
            f"{who.file} switches it off" if who is not None and who.kind != "policy" else "this policy switches it off"
        )
        yield Hit(
            f"spec.{paths[0]}",
            f"{', '.join(paths)} {'has' if len(paths) == 1 else 'have'} no effect: {section} is off",
            f"{by}, so nothing of it is rendered",
            f"leave it out, or set spec.{section}.enabled: true",
        )


def off(spec: ClusterPolicySpec, section: str) -> bool:
    """Whether SECTION of SPEC is a component that is switched off."""
    return getattr(getattr(spec, section, None), "enabled", None) is False


@rule("GPU109", "warning")
def unknown_product(spec: ClusterPolicySpec) -> Iterator[Hit]:
    """A GPU product that looks like one that exists and is written otherwise.

    `gpuProduct` is what the label nvidia.com/gpu.product will say. Checks of drivers, CUDA and MIG go by it and are off
    for a product that nobody knows.

    Bad:
        nodePools: [{name: training, os: ubuntu24.04, gpuProduct: NVIDIA-H100-80GB}]

    Good:
        nodePools: [{name: training, os: ubuntu24.04, gpuProduct: NVIDIA-H100-80GB-HBM3}]
    """
    known = gpus.products()
    for index, pool in enumerate(spec.nodePools):
        product = pool.gpuProduct
        if not product or product in known or VIRTUAL.fullmatch(product):
            continue
        near = nearest(product, known)
        if near:
            yield Hit(
                f"spec.nodePools[{index}].gpuProduct",
                f"the catalogue has no GPU {product!r}",
                "checks of drivers, CUDA and MIG layouts go by the product and are off for this pool",
                f"did you mean {' or '.join(near)}? `kubectl get node NAME -L nvidia.com/gpu.product` says it",
            )


@rule("GPU106", "note")
def nodes_need_labels(spec: ClusterPolicySpec) -> Iterator[Hit]:
    """Nothing starts on a node before it has its labels, and nobody sets them.

    Operands select nodes by labels such as nvidia.com/gpu.deploy.device-plugin. The operator sets them; here the
    reconciler does, or node feature discovery.

    Bad:
        nodePools: [{name: training, os: ubuntu24.04}]

    Good:
        reconciler: {image: "registry.example.com/gpu/gpustack-reconciler:1"}
        nodePools: [{name: training, os: ubuntu24.04}]
    """
    if spec.nodePools and labelling(spec) in {None, "none"}:
        yield Hit(
            "spec.nodePools",
            "nodes must be labelled before anything starts on them",
            "operands select nodes by nvidia.com/gpu.deploy.* labels, which nothing sets",
            "set spec.reconciler.image; or, where nodes bring their driver and have no MIG manager, "
            "spec.reconciler.labelling: nodeFeatureRule; docs/labels.md has the labels, to set them yourself",
        )
