"""What the rules about MIG look at: each layout that a pool gets or could get, with the GPU it is for."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ...api import keys
from ...catalog import gpus, mig, mig_solver
from ...catalog.mig import IllegalProfile, ProfileName, UnknownProfile
from ...cluster.mig_layouts import Choice
from ...cluster.node_labels import labels_of_rules
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...model import dotted
from ...policy.configurations.mig_configs import Element, of_release
from ...policy.language.spec import ClusterPolicySpec

ON_THE_NODE = "`nvidia-smi mig -lgip` on a node prints what its GPUs have"


@dataclass(frozen=True, slots=True)
class Cut:
    """One element of a layout, for GPUs of one kind. `whose` names them in messages.

    `product` is None where it isn't known. `path` is where the policy says the layout; `inside` counts lines there.
    `own` is the position of the element where it stands in the pool's own list; `literal` says that its profiles are
    keys of the policy. `expected` is the GPU's name as the pool has it, where that is one."""

    whose: str
    product: gpus.Product | None
    element: Element
    path: str
    inside: tuple[int, int] | None = None
    own: int | None = None
    literal: bool = False
    expected: str = ""

    def at(self, profile: str) -> tuple[str, tuple[int, int] | None]:
        """Where PROFILE stands: a path, and a line and column of the text there."""
        if self.inside is not None:
            return self.path, self.element.places.get(profile, self.inside)
        if self.literal:
            groups = f"[{self.own}].layout" if self.own is not None else ""
            return self.path + groups + dotted(("x", profile)).removeprefix("x"), None
        return self.path, None

    @property
    def checkable(self) -> bool:
        """Whether the catalogue knows the profiles of the GPUs."""
        return self.product is not None and bool(gpus.mig_profiles(self.product))

    @property
    def unknown(self) -> list[str]:
        """Profiles of the layout that the GPUs don't have."""
        return [name for name in self.element.layout if not has(self.product, name)] if self.checkable else []


def asked(cluster: Cluster) -> bool:
    """Whether the policy says something about MIG: where it doesn't, rules about it cost next to nothing."""
    spec, config = cluster.spec, cluster.spec.migManager.config
    by_pools = any(pool.sharing.mig or keys.MIG_CONFIG in pool.nodeSelector for pool in spec.nodePools)
    return not cluster.dra and bool(by_pools or config.data or config.name or labelled(spec))


def choices(cluster: Cluster) -> list[tuple[Pool, Choice]]:
    """The pools that choose a layout, and which."""
    return [(pool, pool.layout) for pool in cluster.pools if pool.layout is not None] if asked(cluster) else []


def labelled(spec: ClusterPolicySpec) -> list[tuple[str, str]]:
    """Layouts that NodeFeatureRules of the policy give to nodes: the path of the label, and the layout's name."""
    return [(path, name) for path, key, name in labels_of_rules(spec) if key == keys.MIG_CONFIG]


def enabled_cuts(cluster: Cluster) -> Iterator[Cut]:
    """The elements that turn MIG on, on GPUs that may take it, whether a pool asks for them or not."""
    for cut in (*_chosen_cuts(cluster), *idle_cuts(cluster)):
        if cut.element.enabled and (cut.product is None or cut.product.mig_capable):
            yield cut


def _chosen_cuts(cluster: Cluster) -> Iterator[Cut]:
    for pool, chosen in choices(cluster):
        text, whose, expected = cluster.layouts.text, f"node pool {pool.name}", pool.said.gpuProduct or ""
        listed = not chosen.name and chosen.path.endswith(".devices")
        for position, element in enumerate(chosen.elements or ()):
            if element.matches(pool.product) is False:
                continue
            if element.at is not None and text is not None:
                yield Cut(whose, pool.product, element, text.path, element.at, expected=expected)
            else:
                own, literal = position if listed else None, not chosen.name
                yield Cut(whose, pool.product, element, chosen.path, own=own, literal=literal, expected=expected)


def idle_cuts(cluster: Cluster) -> Iterator[Cut]:
    """Elements of the policy's own text that no pool asks for, where they are good for none of its pools.

    A node may still ask, by a label that somebody sets by hand. What the release's ConfigMap has too is copied from
    there, and is for boards of others."""
    text, products = cluster.layouts.text if asked(cluster) else None, [pool.product for pool in cluster.pools]
    if text is None:
        return
    for name, elements in idle_entries(cluster).items():
        for element in elements:
            fitting = [product for product in products if element.matches(product) is not False]
            known = [product for product in fitting if product is not None]
            capable = [product for product in known if gpus.mig_profiles(product)]
            if len(known) < len(fitting) or not products:
                yield Cut(f"the layout {name}", None, element, text.path, element.at)
            elif capable and not any(fits(product, element.layout) for product in capable):
                yield Cut(f"the layout {name}", capable[0], element, text.path, element.at)


def idle_entries(cluster: Cluster) -> Mapping[str, tuple[Element, ...]]:
    """The layouts of the policy's own text, if a MIG manager reads it, that are no pool's and not the release's own."""
    if not asked(cluster) or cluster.layouts.kind != "custom" or not cluster.mig_manager:
        return {}
    wanted, static = {chosen.name for _, chosen in choices(cluster)}, of_release(cluster.spec.release)
    others = {name: elements for name, elements in cluster.layouts.entries.items() if name not in wanted}
    theirs = {name: [one.effect for one in static.get(name, ())] for name in others}
    return {name: elements for name, elements in others.items() if [one.effect for one in elements] != theirs[name]}


def has(product: gpus.Product | None, profile: str) -> bool:
    """Whether PRODUCT has PROFILE."""
    try:
        return product is not None and bool(gpus.mig_profile(product, profile))
    except (UnknownProfile, IllegalProfile):
        return False


def fits(product: gpus.Product, layout: Mapping[str, int]) -> bool:
    """Whether LAYOUT fits on PRODUCT; False too where it hasn't got a profile."""
    return all(has(product, name) for name in layout) and gpus.fits(product, layout)


def nearest_profiles(product: gpus.Product, profile: str) -> list[str]:
    """The profiles of PRODUCT that are most like PROFILE, best first: as many slices, same attributes, like memory."""
    name = ProfileName.parse(profile)

    def distance(other: ProfileName) -> tuple[int, int, int]:
        differs = (other.attributes, other.without) != (name.attributes, name.without)
        return abs(other.slices - name.slices), int(differs), abs(other.memory_gb - name.memory_gb)

    return [str(one) for one in sorted((p.parsed for p in gpus.mig_profiles(product)), key=distance)]


def known_anywhere(layout: Mapping[str, int]) -> bool:
    """Whether some board of the catalogue can be cut so, or one that has the profiles may (its geometry not known)."""
    for board in mig.boards():
        with suppress(UnknownProfile, IllegalProfile):
            if mig_solver.fits(board, layout):
                return True
    return False
