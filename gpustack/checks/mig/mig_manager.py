"""Rules about the MIG manager: its files, the GPUs that a node has, and what nobody can vouch for."""

from collections.abc import Iterator, Sequence

from ...catalog import gpus
from ...catalog.mig import MigLayout
from ...cluster.mig_layouts import Text, text_of
from ...cluster.resolve import Cluster
from ...policy.configurations.embedded import Problem
from ...policy.configurations.mig_configs import CLIENTS_KEY, read_clients
from ..rule import Hit, hit, rule
from ..subjects import told
from .mig_cuts import Cut, asked, choices, enabled_cuts, fits, known_anywhere


@rule("GPU306", "error")
def broken_file(cluster: Cluster) -> Iterator[Hit]:
    """A file of the MIG manager that it refuses or can't find."""
    spec = cluster.spec
    if not cluster.mig_manager:
        return
    found: list[tuple[Text | None, Sequence[Problem]]] = []
    if asked(cluster):
        found.append((cluster.layouts.text, cluster.layouts.layouts.problems if cluster.layouts.layouts else ()))
    clients = text_of(spec, spec.migManager.gpuClientsConfig, "migManager.gpuClientsConfig", CLIENTS_KEY)
    found.append((clients, read_clients(clients.text) if clients and clients.text is not None else ()))
    for text, problems in found:
        if text is not None and text.text is None:
            yield hit(text.path, "no_file", file=text.key)
        yield from told(text.path, problems, f"{text.key}: ") if text else ()


@rule("GPU307", "error")
def no_such_gpu(cluster: Cluster) -> Iterator[Hit]:
    """A MIG layout for a GPU that the pool's nodes haven't got."""
    text, every = cluster.layouts.text if asked(cluster) else None, choices(cluster)
    for pool, chosen in every:
        sharing = [other for other, its in every if its.name == chosen.name] if chosen.name else [pool]
        counts = [other.said.gpusPerNode for other in sharing]
        most = max(filter(None, counts), default=None) if None not in counts else None
        for position, element in enumerate(chosen.elements or ()):
            beyond = [index for index in element.devices or () if most is not None and index >= most]
            if beyond and element.matches(pool.product) is not False:
                path, inside = f"{chosen.path}[{position}].indices" if not chosen.name else chosen.path, None
                if text and element.at:
                    path, inside = text.path, element.at
                listed, number = ", ".join(map(str, beyond)), pool.said.gpusPerNode
                yield hit(path, beyond=listed, pool_name=pool.name, most=most, number=number, inside=inside)


@rule("GPU308", "warning")
def mode_change_needs_reboot(cluster: Cluster) -> Iterator[Hit]:
    """MIG on Ampere in virtual machines, without leave to reboot the node."""
    given = [entry.value for entry in cluster.spec.migManager.env or () if entry.name == "WITH_REBOOT"]
    allowed, machines = given[-1] if given else None, cluster.platform.machines
    likely = machines == "virtual" or (allowed is not None and machines != "metal")
    if (allowed or "").lower() == "true" or not likely or not cluster.mig_manager:
        return
    for pool, chosen in choices(cluster):
        product, cut = pool.product, any(one.layout is not None for one in pool.groups or ())
        if product is not None and product.family == "ampere" and cut:
            yield hit(chosen.path, pool_name=pool.name, product=product.name)


@rule("GPU309", "warning")
def uncertain_layout(cluster: Cluster) -> Iterator[Hit]:
    """A MIG layout that nobody can vouch for."""
    yield from dict.fromkeys(hit for cut in enabled_cuts(cluster) for hit in _uncertain(cut))
    for pool, chosen in choices(cluster) if not cluster.mig_manager else ():
        yield hit(chosen.path, pool_name=pool.name, index=pool.index)


def _uncertain(cut: Cut) -> Iterator[Hit]:
    product, layout, path, at, whose = cut.product, cut.element.layout, cut.path, cut.inside, cut.whose
    if not layout or cut.unknown or (product is not None and not product.mig_capable):
        return
    if product is None and cut.expected:
        yield hit(path, "product", inside=at, whose=whose, product=cut.expected)
    elif product is None and not known_anywhere(layout):
        yield hit(path, "anywhere", inside=at, whose=whose, layout=MigLayout.of(layout))
    elif product is not None and not gpus.mig_profiles(product):
        yield hit(path, "profiles", inside=at, whose=whose, product=product.name)
    elif product is not None and product.mig == "unknown" and fits(product, layout):
        yield hit(path, "places", inside=at, whose=whose, product=product.name)
