"""What the rules about MIG look at: each layout that a pool gets or could get, with the GPU it is for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...api import keys
from ...catalog import gpus, mig
from ...catalog.mig import IllegalProfile, ProfileName, UnknownProfile
from ...cluster.mig_layouts import Choice, Source, product_of
from ...cluster.node_labels import labels_of_rules
from ...cluster.resolve import resolve
from ...model import dotted
from ...policy.configurations.mig_configs import Element
from ...policy.language.node_pools import NodePool
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit

ON_THE_NODE = "`nvidia-smi mig -lgip` on a node prints what its GPUs have"


@dataclass(frozen=True, slots=True)
class Cut:
    """One element of a layout, for GPUs of one kind. `whose` names them in messages.

    `product` is None where it isn't known. `path` is where the policy says the layout; `inside` counts lines there.
    `own` is the position of the element where it stands in the pool's own list; `literal` says that its profiles are
    keys of the policy. `expected` is the GPU's name as the pool has it, where that is one.
    """

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


@dataclass(frozen=True, slots=True)
class Subject:
    """A policy that says something about MIG: where names of layouts come from, and what each pool chooses."""

    spec: ClusterPolicySpec
    names: Source
    choices: tuple[tuple[int, NodePool, Choice], ...]


def subject(spec: ClusterPolicySpec) -> Subject | None:
    """SPEC as the rules about MIG see it; None where there is nothing to see, which costs next to nothing."""
    cluster = resolve(spec)
    if cluster.dra:
        return None
    asked = any(pool.sharing.mig or keys.MIG_CONFIG in pool.nodeSelector for pool in spec.nodePools)
    if not (asked or spec.migManager.config.data or spec.migManager.config.name or labelled(spec)):
        return None
    chosen = [(index, pool.said, pool.layout) for index, pool in enumerate(cluster.pools)]
    choices = tuple((index, pool, one) for index, pool, one in chosen if one is not None)
    return Subject(spec, cluster.layouts, choices)


def labelled(spec: ClusterPolicySpec) -> list[tuple[str, str]]:
    """Layouts that NodeFeatureRules of the policy give to nodes: the path of the label, and the layout's name."""
    return [(path, name) for path, key, name in labels_of_rules(spec) if key == keys.MIG_CONFIG]


def cuts(seen: Subject) -> Iterator[Cut]:
    """The elements that are for GPUs of a pool that asks for them, and those that nobody asks for."""
    text = seen.names.text
    for _, pool, chosen in seen.choices:
        product, whose, expected = product_of(pool), f"node pool {pool.name}", pool.gpuProduct or ""
        listed = not chosen.name and chosen.path.endswith(".devices")
        for position, element in enumerate(chosen.elements or ()):
            if element.matches(product) is False:
                continue
            if element.at is not None and text is not None:
                yield Cut(whose, product, element, text.path, element.at, expected=expected)
            else:
                own = position if listed else None
                yield Cut(whose, product, element, chosen.path, own=own, literal=not chosen.name, expected=expected)
    yield from idle_cuts(seen)


def enabled_cuts(spec: ClusterPolicySpec) -> Iterator[Cut]:
    """The elements that turn MIG on, on GPUs that may take it."""
    seen = subject(spec)
    for cut in cuts(seen) if seen else ():
        if cut.element.enabled and (cut.product is None or cut.product.mig_capable):
            yield cut


def idle_cuts(seen: Subject) -> Iterator[Cut]:
    """Elements of the policy's own text that no pool asks for, where they are good for none of its pools.

    A node may still ask, by a label that somebody sets by hand. What the release's ConfigMap has too is copied from
    there, and is for boards of others.
    """
    text = seen.names.text
    if seen.names.kind != "custom" or text is None or not resolve(seen.spec).mig_manager:
        return
    products = [product_of(pool) for pool in seen.spec.nodePools]
    for name, elements in idle_entries(seen).items():
        for element in elements:
            where = f"the layout {name}"
            fitting = [product for product in products if element.matches(product) is not False]
            capable = [product for product in fitting if product is not None and gpus.mig_profiles(product)]
            if not fitting or None in fitting or not capable:
                if None in fitting or not products:
                    yield Cut(where, None, element, text.path, element.at)
                continue
            bad = [product for product in capable if not fits(product, element.layout)]
            if len(bad) == len(capable):
                yield Cut(where, bad[0], element, text.path, element.at)


def idle_entries(seen: Subject) -> Mapping[str, tuple[Element, ...]]:
    """The layouts of the policy's own text that no pool asks for and that aren't the release's own."""
    from ...policy.configurations.mig_configs import of_release

    asked, static = {chosen.name for _, _, chosen in seen.choices}, of_release(seen.spec.release)
    return {
        name: elements
        for name, elements in seen.names.entries.items()
        if name not in asked and [one.effect for one in elements] != [one.effect for one in static.get(name, ())]
    }


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
        try:
            if mig.fits(board, layout):
                return True
        except (UnknownProfile, IllegalProfile):
            continue
    return False


def once(hits: Iterable[Hit]) -> Iterator[Hit]:
    """HITS without repetitions."""
    yield from dict.fromkeys(hits)
