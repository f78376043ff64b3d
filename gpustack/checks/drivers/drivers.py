"""Rules over drivers that serve some of a cluster's nodes: `drivers`, and `driver` of a node pool.

The operator finds in the cluster that two drivers want one node, and then neither is installed anywhere (operator.md
10.1). What pools say of their nodes is enough to find it before.
"""

from collections.abc import Iterator

from ...api import keys
from ...catalog import releases
from ...cluster.ownership import is_default
from ...cluster.resolve import Cluster
from ..pools.pools import both, overlaps
from ..rule import Hit, hit, rule

LABEL_VALUE = 63
"""How long the value of a node label may be."""


@rule("GPU130", "error")
def one_driver_per_node(cluster: Cluster) -> Iterator[Hit]:
    """Two of `drivers` that select the nodes of one pool."""
    spec, pairs = cluster.spec, dict[tuple[int, int], str]()
    for pool in cluster.pools if cluster.listed else ():
        for number in pool.claims[1:]:
            pairs.setdefault((pool.claims[0], number), pool.name)
    asked = any(driver.default for driver in spec.drivers)
    unknown = asked and not releases.release(spec.release).traits.driver_owner_label
    older = f"; {spec.release} knows no default driver: one without nodeSelector selects all nodes" if unknown else ""
    for (first, number), name in pairs.items():
        mine, other = spec.drivers[first], spec.drivers[number]
        path = f"spec.drivers[{number}]" + (".nodeSelector" if other.nodeSelector else "")
        yield hit(path, mine=mine.name, name=other.name, pool_name=name, older=older)


@rule("GPU131", "error")
def one_default_driver(cluster: Cluster) -> Iterator[Hit]:
    """Two default drivers, or one that selects nodes."""
    spec = cluster.spec
    defaults = [index for index, driver in enumerate(spec.drivers) if is_default(spec, driver)]
    for index in defaults[1:]:
        first = spec.drivers[defaults[0]].name
        yield hit(f"spec.drivers[{index}].default", "two", first=first, driver=spec.drivers[index].name)
    for index in defaults:
        if spec.drivers[index].nodeSelector:
            yield hit(f"spec.drivers[{index}].nodeSelector", "selector", driver=spec.drivers[index].name, index=index)


@rule("GPU132", "error")
def drivers_and_labels(cluster: Cluster) -> Iterator[Hit]:
    """A driver that selects nodes by the label which says whose driver they get, or that has too long a name for it."""
    for index, driver in enumerate(cluster.spec.drivers):
        if keys.DRIVER_OWNER in driver.nodeSelector:
            yield hit(f"spec.drivers[{index}].nodeSelector", "selector", driver=driver.name, label=keys.DRIVER_OWNER)
        if (length := len(driver.name)) > LABEL_VALUE:
            yield hit(f"spec.drivers[{index}].name", "name", length=length, most=LABEL_VALUE, label=keys.DRIVER_OWNER)


@rule("GPU133", "warning")
def driver_without_nodes(cluster: Cluster) -> Iterator[Hit]:
    """A driver that is for no node pool."""
    used = {pool.driver.number for pool in cluster.pools if pool.driver}
    for index, driver in enumerate(cluster.spec.drivers if cluster.listed and cluster.pools else ()):
        what = "its nodeSelector matches no node pool" if driver.nodeSelector else "other drivers have all node pools"
        if index not in used:
            yield hit(f"spec.drivers[{index}]", driver=driver.name, what=what)


@rule("GPU134", "warning")
def nodes_without_driver(cluster: Cluster) -> Iterator[Hit]:
    """A node pool that none of `drivers` selects."""
    for pool in cluster.pools if cluster.listed and cluster.spec.drivers else ():
        if pool.driver is None and pool.workload == "container":
            yield hit(pool.path, pool_name=pool.name)


@rule("GPU135", "error")
def drivers_or_pool_drivers(cluster: Cluster) -> Iterator[Hit]:
    """A pool with a driver of its own, beside `drivers`."""
    for pool in cluster.pools:
        if pool.said.driver is not None and pool.said.driver.installs and cluster.listed:
            yield hit(f"{pool.path}.driver", pool_name=pool.name)


@rule("GPU136", "warning")
def who_describes_drivers(cluster: Cluster) -> Iterator[Hit]:
    """`drivers` that don't count, or that are missing where they do."""
    spec = cluster.spec
    if spec.drivers and not cluster.listed:
        yield hit("spec.drivers", "section")
    if spec.driver.useNvidiaDriverCRD and not cluster.dra and cluster.pools and not spec.drivers:
        yield hit("spec.driver.useNvidiaDriverCRD", "list")
    for pool in cluster.pools if not cluster.listed else ():
        if pool.said.driver is not None and pool.workload != "container":
            yield hit(f"{pool.path}.driver", "machines", workload=pool.workload)
        elif pool.said.driver is not None and not spec.driver.enabled and pool.said.driver.installs:
            yield hit(f"{pool.path}.driver", "brought")


@rule("GPU143", "error")
def version_of_no_host(cluster: Cluster) -> Iterator[Hit]:
    """`driver.hostVersion` of nodes that get their driver from this policy."""
    spec, own = cluster.spec, [pool for pool in cluster.pools if pool.driver is not None]
    everywhere = len(own) == len(cluster.pools) if cluster.pools else cluster.container_drivers
    if spec.driver.hostVersion and everywhere:
        yield hit("spec.driver.hostVersion", "all")
    for pool in own:
        if pool.said.driver is not None and pool.said.driver.hostVersion and pool.driver is not None:
            yield hit(f"{pool.path}.driver.hostVersion", "pool", by=pool.driver.path, pool_name=pool.name)


@rule("GPU137", "error")
def pools_with_one_driver(cluster: Cluster) -> Iterator[Hit]:
    """Nodes that belong to two pools with different drivers."""
    for pool, wider in overlaps(cluster) if cluster.drivers_by == "section" else ():
        if pool.said.driver != wider.said.driver and pool.workload == wider.workload:
            path = f"{(pool if pool.said.driver is not None else wider).path}.driver"
            yield hit(path, pool_name=pool.name, wider=wider.name, both=both(pool, wider))
