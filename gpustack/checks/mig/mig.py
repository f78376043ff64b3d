"""Rules about MIG layouts: profiles, sizes and names that there aren't, and strategies that can't offer them.

The geometry is the catalogue's (mig_solver.py); who gets which layout is in cluster/mig_layouts.py. Rules about the MIG
manager and its files are in mig_manager.py.
"""

from collections.abc import Iterator

from ...catalog import gpus, mig_solver
from ...catalog._lookup import nearest
from ...catalog.mig import MigLayout, ProfileName, config_name
from ...cluster.mig_layouts import Group, generated, groups, named, profiles_in
from ...cluster.resolve import Cluster
from ...policy.configurations.mig_configs import Element
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule
from .mig_cuts import ON_THE_NODE, Cut, choices, enabled_cuts, fits, idle_entries, labelled, nearest_profiles

LAYOUT = "the layout into nodePools[].sharing.mig.layout"


@rule("GPU301", "error")
def foreign_profile(cluster: Cluster) -> Iterator[Hit]:
    """A MIG profile that the pool's GPU doesn't have."""
    yield from dict.fromkeys(hit for cut in enabled_cuts(cluster) for hit in _foreign(cut))


def _foreign(cut: Cut) -> Iterator[Hit]:
    if (product := cut.product) is None:
        return
    certain = f"The catalogue isn't sure of this board: {product.uncertain}" if product.uncertain else ON_THE_NODE
    name, whose, literal = product.name, cut.whose, cut.literal
    for profile in cut.unknown:
        near, (path, inside) = nearest_profiles(product, profile)[0], cut.at(profile)
        yield hit(
            path, product=name, profile=profile, near=near, whose=whose, certain=certain, inside=inside, at_key=literal
        )


@rule("GPU302", "error")
def layout_too_large(cluster: Cluster) -> Iterator[Hit]:
    """A MIG layout that doesn't fit on the pool's GPU."""
    yield from dict.fromkeys(hit for cut in enabled_cuts(cluster) for hit in _too_large(cut))


def _too_large(cut: Cut) -> Iterator[Hit]:
    if not cut.checkable or cut.product is None or cut.unknown or fits(cut.product, cut.element.layout):
        return
    board, layout = cut.product.group, MigLayout.of(cut.element.layout)
    part = mig_solver.largest_part(board, layout).as_dict()
    written = ", ".join(f"{name}: {count}" for name, count in part.items())
    wanted = ",".join(f"{name}={count}" for name, count in part.items())
    path = cut.path + (f"[{cut.own}].layout" if cut.own is not None else "")
    why, name = mig_solver.explain(board, layout), cut.product.name
    yield hit(path, explained=why, whose=cut.whose, layout=written, product=name, wanted=wanted, inside=cut.inside)


@rule("GPU303", "error")
def no_mig(cluster: Cluster) -> Iterator[Hit]:
    """A MIG layout for a GPU that can't be divided."""
    for pool, chosen in choices(cluster):
        wanted = chosen.elements is None or any(one.enabled for one in chosen.elements)
        if pool.product is not None and not pool.product.mig_capable and wanted:
            yield hit(chosen.path, product=pool.product.name, pool_name=pool.name)


@rule("GPU304", "error")
def unknown_layout(cluster: Cluster) -> Iterator[Hit]:
    """A MIG layout that is chosen by a name which nothing explains."""
    for pool, chosen in choices(cluster):
        product = pool.product
        if chosen.elements is None and chosen.known and not (product and not product.mig_capable):
            yield _unexplained(cluster, chosen.path, chosen.name, product)
        elif not chosen.elements or not product or not product.mig_capable:
            continue
        elif all(one.matches(product) is False for one in chosen.elements):
            filters = " or ".join(product.device_filters)
            yield hit(chosen.path, "filters", layout=chosen.name, product=product.name, filters=filters)
    products = [pool.product for pool in cluster.pools] or [None]
    for path, name in labelled(cluster.spec) if cluster.mig_manager else ():
        found = [named(path, name, cluster.layouts, product) for product in products]
        if all(one.elements is None and one.known for one in found):
            yield _unexplained(cluster, path, name, None)


def _unexplained(cluster: Cluster, path: str, name: str, product: gpus.Product | None) -> Hit:
    names = cluster.layouts
    made = generated(product) if product and names.generated else {}
    like = profiles_in(name)[:1] if product and made else []
    near = [config_name(one) for one in nearest_profiles(product, like[0])[:2]] if product and like else []
    near = near or nearest(name, made or names.entries)
    why = f"{names.text.path if names.text else f'release {cluster.spec.release}'} doesn't have it"
    why = "the MIG manager makes all-PROFILE of the profiles that its GPUs have" if made else why
    known = " or ".join(near) if near else ", ".join(sorted(made or names.entries)[:8])
    on = f" on {product.name}" if product and made else ""
    return hit(path, "unknown", name=repr(name), on=on, because=why, write=known or LAYOUT)


@rule("GPU305", "error")
def strategy_and_layout(cluster: Cluster) -> Iterator[Hit]:
    """A MIG strategy that can't offer the layout."""
    for pool, chosen in choices(cluster):
        text = cluster.layouts.text if any(one.at for one in chosen.elements or ()) else None
        for reason, remedy in _misfit(cluster.spec, pool.groups or [], f"node pool {pool.name}"):
            yield Hit(chosen.path, reason, _why(cluster.spec) + (f"; see {text.path}" if text else ""), remedy)


@rule("GPU310", "warning")
def idle_layout(cluster: Cluster) -> Iterator[Hit]:
    """A MIG layout that no pool asks for, and that the MIG strategy couldn't offer."""
    for name, elements in idle_entries(cluster).items():
        text, layouts = cluster.layouts.text, cluster.layouts.layouts
        for reason, remedy in _misfit(cluster.spec, _anywhere(cluster, elements), f"the layout {name}"):
            place = layouts.places.get(name) if layouts else None
            yield Hit(text.path if text else "", reason, _why(cluster.spec), remedy, place)


def _why(spec: ClusterPolicySpec) -> str:
    if spec.mig.strategy == "single":
        return "with mig.strategy single the device plugin refuses a node whose GPUs aren't all cut alike"
    return "with mig.strategy none the device plugin hides instances, and counts a GPU that is cut as a whole one"


def _misfit(spec: ClusterPolicySpec, made: list[Group], whose: str) -> Iterator[tuple[str, str]]:
    """What the strategy can't offer of MADE, which WHOSE GPUs are cut into; and what to do."""
    cut = [group.layout for group in made if group.layout is not None]
    names = sorted({str(ProfileName.parse(name)) for layout in cut for name in layout})
    parts = [name for name in names if not ProfileName.parse(name).exposed]
    if parts and spec.devicePlugin.enabled:
        instance = ProfileName.parse(parts[0]).instance
        yield f"{whose} makes {parts[0]}, a part of an instance, which nothing offers to pods", f"write {instance}"
    if spec.mig.strategy == "mixed" or not cut:
        return
    if spec.mig.strategy != "single":
        yield f"{whose} cuts GPUs by MIG, and mig.strategy hides the instances", "set spec.mig.strategy: mixed"
    elif len(names) > 1:
        profiles = f"{', '.join(names[:-1])} and {names[-1]}"
        yield f"{whose} makes {profiles}, and mig.strategy single takes one profile", "set spec.mig.strategy: mixed"
    elif any(group.layout is None and group.indices for group in made):
        what = f"{whose} leaves some GPUs whole and cuts others, and mig.strategy single takes no such node"
        yield what, "set spec.mig.strategy: mixed, or cut all GPUs alike"


def _anywhere(cluster: Cluster, elements: tuple[Element, ...]) -> list[Group]:
    """What ELEMENTS make of nodes of the first pool that they are for; of any board, where no pool says its GPU."""
    for pool in {pool.said.gpuProduct: pool for pool in cluster.pools}.values():
        fitting = [one for one in elements if one.matches(pool.product)]
        if pool.product is not None and pool.product.mig_capable and any(one.enabled for one in fitting):
            return groups(fitting, pool.said.model_copy(update={"gpusPerNode": None})) or []
    if cluster.pools and all(pool.product for pool in cluster.pools):
        return []
    return [Group(one.devices, one.layout if one.enabled else None) for one in elements if not one.filters]
