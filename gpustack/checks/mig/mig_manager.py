"""Rules about the MIG manager: its files, the GPUs that a node has, and what nobody can vouch for."""

from collections.abc import Iterator

from ...catalog import gpus
from ...catalog.mig import MigLayout
from ...cluster.mig_layouts import Text, groups, product_of, text_of
from ...cluster.resolve import Cluster
from ...policy.configurations.embedded import Problem
from ...policy.configurations.mig_configs import CLIENTS_KEY, read_clients
from ...policy.language.node_pools import NodePool
from ..rule import Hit, hit, rule
from .mig_cuts import ON_THE_NODE, Cut, Subject, enabled_cuts, fits, known_anywhere, once, subject


@rule("GPU306", "error")
def broken_file(cluster: Cluster) -> Iterator[Hit]:
    """A file of the MIG manager that it refuses or can't find."""
    spec = cluster.spec
    if not cluster.mig_manager:
        return
    seen = subject(spec)
    if seen is not None and seen.names.text is not None:
        yield from _problems(seen.names.text, seen.names.layouts.problems if seen.names.layouts else ())
    clients = text_of(spec, spec.migManager.gpuClientsConfig, "migManager.gpuClientsConfig", CLIENTS_KEY)
    if clients is not None:
        yield from _problems(clients, read_clients(clients.text) if clients.text is not None else ())


def _problems(text: Text, problems: tuple[Problem, ...]) -> Iterator[Hit]:
    if text.text is None:
        yield hit(text.path, "no_file", file=text.key)
    for problem in problems:
        yield Hit(text.path, f"{text.key}: {problem.what}", problem.why, problem.remedy, problem.place)


@rule("GPU307", "error")
def no_such_gpu(cluster: Cluster) -> Iterator[Hit]:
    """A MIG layout for a GPU that the pool's nodes haven't got."""
    seen = subject(cluster.spec)
    for _, pool, chosen in seen.choices if seen else ():
        most = _most(seen, chosen.name, pool) if seen else None
        for position, element in enumerate(chosen.elements or ()):
            beyond = [index for index in element.devices or () if most is not None and index >= most]
            if beyond and element.matches(product_of(pool)) is not False:
                path, inside = f"{chosen.path}[{position}].indices" if not chosen.name else chosen.path, None
                if seen and seen.names.text and element.at:
                    path, inside = seen.names.text.path, element.at
                yield hit(
                    path,
                    beyond=", ".join(map(str, beyond)),
                    pool_name=pool.name,
                    most=most,
                    number=pool.gpusPerNode,
                    inside=inside,
                )


def _most(seen: Subject, name: str, pool: NodePool) -> int | None:
    """The most GPUs on a node that gets the layout NAME, None where a pool doesn't say."""
    sharing = [pool] if not name else [other for _, other, chosen in seen.choices if chosen.name == name]
    counts = [other.gpusPerNode for other in sharing]
    return None if None in counts else max(count for count in counts if count is not None)


@rule("GPU308", "warning")
def mode_change_needs_reboot(cluster: Cluster) -> Iterator[Hit]:
    """MIG on Ampere in virtual machines, without leave to reboot the node."""
    spec = cluster.spec
    seen = subject(spec)
    if seen is None or not cluster.mig_manager:
        return
    allowed = next((entry.value for entry in reversed(spec.migManager.env or ()) if entry.name == "WITH_REBOOT"), None)
    machines = cluster.platform.machines
    likely = machines == "virtual" or (allowed is not None and machines != "metal")
    if (allowed or "").lower() == "true" or not likely:
        return
    for _, pool, chosen in seen.choices:
        product = product_of(pool)
        made = groups(chosen.elements, pool) if chosen.elements else None
        if product is not None and product.family == "ampere" and any(one.layout is not None for one in made or ()):
            yield hit(chosen.path, pool_name=pool.name, product=product.name)


@rule("GPU309", "warning")
def uncertain_layout(cluster: Cluster) -> Iterator[Hit]:
    """A MIG layout that nobody can vouch for."""
    spec = cluster.spec
    yield from once(hit for cut in enabled_cuts(spec) for hit in _uncertain(cut))
    seen = subject(spec)
    for index, pool, chosen in seen.choices if seen and not cluster.mig_manager else ():
        yield hit(chosen.path, pool_name=pool.name, index=index)


def _uncertain(cut: Cut) -> Iterator[Hit]:
    product, layout = cut.product, cut.element.layout
    if not layout or cut.unknown or (product is not None and not product.mig_capable):
        return
    why = ""
    if product is None and cut.expected:
        what = f"the catalogue doesn't know {cut.expected}"
        why = f"so the MIG layout of {cut.whose} can't be checked"
    elif product is None and not known_anywhere(layout):
        what = f"no GPU of the catalogue can be cut into {MigLayout.of(layout)}"
        why = f"{cut.whose} asks for it, and its GPU isn't known"
    elif product is not None and not gpus.mig_profiles(product):
        what = f"the MIG profiles of {product.name} aren't known"
        why = f"so the layout of {cut.whose} can't be checked"
    elif product is not None and product.mig == "unknown" and fits(product, layout):
        what = f"where MIG instances may stand on {product.name} isn't known"
        why = f"so the layout of {cut.whose} was checked by the number of instances alone"
    if why:
        yield Hit(cut.path, what, why, f"see that the layout is right: {ON_THE_NODE}", cut.inside)
