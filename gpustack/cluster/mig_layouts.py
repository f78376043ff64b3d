"""Which MIG layout the nodes of a pool get, and what that makes of each GPU.

Solves: a layout is said in the pool, by a name that the release or a ConfigMap explains, or by the node's label, and it
may differ from GPU to GPU. Checks, capacity and pictures all ask here, so that they agree.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..api import keys
from ..catalog import gpus, mig, releases
from ..catalog.mig import IllegalProfile, config_name
from ..model import Path, dotted
from ..policy.configurations.mig_configs import LAYOUTS_KEY, Element, Layouts, of_release, read_layouts

if TYPE_CHECKING:
    from ..policy.language.device_plugin import NamedConfigs
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec


DISABLED, ENABLED, BALANCED = "all-disabled", "all-enabled", "all-balanced"
_BALANCED = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}
"""Compute slices of a board: instances by their slices that all-balanced makes there (reconciler.md M26)."""


class Text(NamedTuple):
    """A file in a ConfigMap of the policy: its path there, its key and its text; None where the ConfigMap lacks it."""

    path: str
    key: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Source:
    """Where the names of layouts come from.

    release: the ConfigMap of the release. `generated`: the manager makes layouts itself, from what the GPUs of its node
    have, and the ConfigMap is its fallback. custom: `text` of the policy. unknown: a ConfigMap that others bring."""

    kind: Literal["release", "custom", "unknown"]
    entries: Mapping[str, tuple[Element, ...]]
    generated: bool = False
    text: Text | None = None
    layouts: Layouts | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The layout of a pool: where it is said, its name ("" for one of the pool's own) and its elements.

    `elements` is None where the name is not among the known ones; `known` then says whether all names are known."""

    path: str
    name: str
    elements: tuple[Element, ...] | None
    known: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs of a node that are cut alike. `layout` is None for whole GPUs, empty for MIG without instances.

    `indices` is None where the number of GPUs is not known: then the group is all of them, or the rest."""

    indices: tuple[int, ...] | None
    layout: Mapping[str, int] | None


def product_of(pool: NodePool) -> gpus.Product | None:
    """The GPU of POOL, or None where it isn't said or the catalogue doesn't know it."""
    return gpus.product(pool.gpuProduct) if pool.gpuProduct in gpus.products() else None


def text_of(spec: ClusterPolicySpec, config: NamedConfigs, section: str, key: str) -> Text | None:
    """The file KEY of CONFIG, which stands at SECTION of the spec; None where the policy doesn't hold the ConfigMap."""
    held = _data(spec, config, section)
    if held is None:
        return None
    path, data = held
    text = data.get(key)
    return Text(dotted((*path, key)), key, text) if isinstance(text, str) else Text(dotted(path), key, None)


def texts_of(spec: ClusterPolicySpec, config: NamedConfigs, section: str) -> list[Text]:
    """All files of CONFIG, which stands at SECTION of the spec; none where the policy doesn't hold the ConfigMap."""
    path, data = _data(spec, config, section) or ((), {})
    return [Text(dotted((*path, key)), key, text) for key, text in data.items() if isinstance(text, str)]


def _data(spec: ClusterPolicySpec, config: NamedConfigs, section: str) -> tuple[Path, Mapping[str, object]] | None:
    """The data of the ConfigMap that CONFIG means, and its path."""
    if config.data and config.create:
        return ("spec", *section.split("."), "data"), config.data
    held = config_map(spec, config.name)
    return (("spec", "extraObjects", held[0], "data"), held[1]) if held else None


def config_map(spec: ClusterPolicySpec, name: str | None) -> tuple[int, Mapping[str, object]] | None:
    """The position in extraObjects of the ConfigMap NAME, and its data; None where the policy doesn't bring it."""
    for index, body in enumerate(spec.extraObjects):
        if name and body["kind"] == "ConfigMap" and body["metadata"]["name"] == name:
            return index, body["data"] if isinstance(body.get("data"), dict) else {}
    return None


def source(spec: ClusterPolicySpec) -> Source:
    """Where the names of SPEC's layouts come from."""
    release = releases.release(spec.release)
    config, static = spec.migManager.config, of_release(spec.release)
    text = text_of(spec, config, "migManager.config", LAYOUTS_KEY)
    if text is not None:
        layouts = read_layouts(text.text or "") if text.text is not None else Layouts({})
        return Source("custom", layouts.entries, text=text, layouts=layouts)
    if config.name and config.name != "default-mig-parted-config":
        return Source("unknown", {})
    own = any(pool.sharing.mig and not pool.sharing.mig.config for pool in spec.nodePools)
    discovers = release.traits.mig_manager_discovers_layouts and not own and not config.name
    return Source("release", static, generated=discovers)


def choice(where: str, pool: NodePool, names: Source) -> Choice | None:
    """The layout of POOL, which stands WHERE; None where its GPUs stay whole. NAMES is `source(spec)`."""
    cut = pool.sharing.mig
    if cut is not None and cut.layout is not None:
        return Choice(f"{where}.sharing.mig.layout", "", (Element(None, True, dict(cut.layout)),))
    if cut is not None and cut.devices:
        groups = tuple(Element(tuple(one.indices), one.layout is not None, one.layout or {}) for one in cut.devices)
        return Choice(f"{where}.sharing.mig.devices", "", groups)
    if cut is not None and cut.config:
        return named(f"{where}.sharing.mig.config", cut.config, names, product_of(pool))
    label = pool.nodeSelector.get(keys.MIG_CONFIG)
    return named(f'{where}.nodeSelector["{keys.MIG_CONFIG}"]', label, names, product_of(pool)) if label else None


def named(path: str, name: str, names: Source, product: gpus.Product | None) -> Choice:
    """The layout called NAME, for GPUs of PRODUCT."""
    if names.kind == "unknown":
        return Choice(path, name, None, known=False)
    if names.generated and product is not None and gpus.mig_profiles(product):
        return Choice(path, name, generated(product).get(name))
    if name in names.entries:
        return Choice(path, name, names.entries[name])
    return Choice(path, name, None, known=not broken(names, name) and not perhaps_generated(names, name, product))


def broken(names: Source, name: str) -> bool:
    """Whether the text has a layout NAME that can't be read, or can't be read at all."""
    layouts = names.layouts
    if layouts is None or names.text is None:
        return False
    return names.text.text is None or name in layouts.places or (bool(layouts.problems) and not layouts.places)


def perhaps_generated(names: Source, name: str, product: gpus.Product | None) -> bool:
    """Whether the manager may make a layout NAME on a GPU whose profiles are not known: any all-PROFILE."""
    if not names.generated or (product is not None and gpus.mig_profiles(product)):
        return False
    return any(name == config_name(text) for text in profiles_in(name))


def profiles_in(name: str) -> list[str]:
    """The profile that a layout called NAME is of, if it is an all-PROFILE: there the plus of an attribute is a dot."""
    profiles = []
    text = name.removeprefix("all-")
    for spelling in (text, text.replace("gb.", "gb+", 1)) if text != name else ():
        try:
            profiles.append(str(mig.ProfileName.parse(spelling)))
        except IllegalProfile:
            continue
    return profiles


@functools.cache
def _generated(board: str) -> Mapping[str, tuple[Element, ...]]:
    layouts: dict[str, tuple[Element, ...]] = {
        DISABLED: (Element(None, False, {}),),
        ENABLED: (Element(None, True, {}),),
    }
    profiles = mig.board_profiles(board)
    for profile in profiles:
        for name in (profile.name, profile.alias) if profile.max else ():
            if name:
                layouts[config_name(name)] = (Element(None, True, {name: profile.max or 0}),)
    shape = mig.geometry(board)
    plain = sorted((one for one in profiles if one.name.endswith("gb")), key=lambda one: -(one.max or 0))
    by_slices = {one.slices: one.name for one in reversed(plain)}
    wanted = _BALANCED.get(shape.compute_slices, {}) if shape else {}
    if wanted:
        layouts[BALANCED] = (Element(None, True, {by_slices[size]: count for size, count in wanted.items()}),)
    return layouts


def generated(product: gpus.Product) -> Mapping[str, tuple[Element, ...]]:
    """The layouts that the manager makes itself on a node with PRODUCT (reconciler.md M26); none without MIG."""
    return _generated(product.group) if product.mig_capable else {}


def groups(elements: Sequence[Element], pool: NodePool) -> list[Group] | None:
    """What ELEMENTS make of the GPUs of a node of POOL, in the order of their indices; later elements win.

    None where it depends on a board that is not known. GPUs that no element is for stay whole, as do boards without
    MIG."""
    product = product_of(pool)
    fitting = [element for element in elements if element.matches(product) is not False]
    if any(element.matches(product) is None for element in fitting):
        return None
    everything: Mapping[str, int] | None = None
    listed: dict[int, Mapping[str, int] | None] = {}
    for element in fitting:
        made = element.layout if element.enabled else None
        if element.devices is None:
            everything, listed = made, {}
        else:
            listed |= dict.fromkeys(element.devices, made)
    count = pool.gpusPerNode
    states = listed if count is None else {index: listed.get(index, everything) for index in range(count)}
    distinct: list[Group] = []
    for state in states.values():
        if all(group.layout != state for group in distinct):
            indices = tuple(sorted(index for index, other in states.items() if other == state))
            distinct.append(Group(indices, state))
    return distinct if count is not None else [*distinct, Group(None, everything)]


def sevenths(layout: Mapping[str, int]) -> int:
    """How many compute slices the instances of LAYOUT have; a whole GPU has seven, or four."""
    return sum(mig.ProfileName.parse(name).slices * count for name, count in layout.items())
