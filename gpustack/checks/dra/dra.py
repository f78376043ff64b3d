"""Rules over dynamic resource allocation: what it asks of the cluster, its nodes and the policy.

What has no place beside it is in dra_exclusions.py.
"""

from collections.abc import Iterator

from ...catalog import dra, releases
from ...catalog._versions import numbers
from ...catalog.kubernetes import SYSTEMS
from ...cluster.resolve import Cluster
from ...policy.language import images
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule

DNS_NAMES = "IMEXDaemonsWithDNSNames"
PULL_SECRETS = "CD_DAEMON_IMAGE_PULL_SECRET_NAMES"


def asked(cluster: Cluster) -> str:
    """The field that asks for the DRA driver, or "" where none does."""
    domains = "computeDomains.enabled" if cluster.spec.computeDomains.enabled else ""
    return "gpuCluster" if cluster.dra else domains


@rule("GPU170", "error")
def needs_kubernetes(cluster: Cluster) -> Iterator[Hit]:
    """Dynamic resource allocation on a Kubernetes that doesn't serve its API."""
    path, has, least = asked(cluster), cluster.spec.cluster.kubernetesVersion, dra.least_kubernetes()
    if path and numbers(has)[:2] < least[:2]:
        what, series, lowest = path.partition(".")[0], f"{least[0]}.{least[1]}", ".".join(map(str, least))
        yield hit(f"spec.{path}", what=what, series=series, least=lowest, has=has)


@rule("GPU171", "warning")
def needs_a_later_patch(cluster: Cluster) -> Iterator[Hit]:
    """Dynamic resource allocation on a patch of Kubernetes that NVIDIA does not support with it."""
    path, has, least = "spec.cluster.kubernetesVersion", cluster.spec.cluster.kubernetesVersion, dra.least_kubernetes()
    if asked(cluster) and len(numbers(has)) > 2 and least[:2] == numbers(has)[:2] and numbers(has) < least:
        yield hit(path, kubernetes=has, least=".".join(map(str, least)))


@rule("GPU172", "error")
def needs_of_a_gpu_cluster(cluster: Cluster) -> Iterator[Hit]:
    """`gpuCluster` without what it stands on: a release that has it, CDI, and drivers."""
    spec = cluster.spec
    if not cluster.dra:
        return
    if not releases.release(spec.release).gpu_cluster:
        first = next(name for name in releases.names() if releases.release(name).gpu_cluster)
        yield hit("spec.gpuCluster", "release", release=spec.release, first=first)
    if not spec.cdi.enabled:
        yield hit("spec.cdi.enabled", "cdi")
    if spec.driver.enabled and not spec.drivers:
        yield hit("spec.gpuCluster", "drivers")


@rule("GPU173", "error")
def needs_a_newer_driver(cluster: Cluster) -> Iterator[Hit]:
    """A driver that is too old for dynamic resource allocation."""
    spec = cluster.spec
    branch, least = dra.least_driver_branch(), dra.least_compute_domain_driver()
    domains = spec.computeDomains.enabled and spec.computeDomains.featureGates.get(DNS_NAMES, True)
    own = [(f"{pool.path}.driver", pool.said.driver) for pool in cluster.pools if pool.said.driver is not None]
    sections = own if cluster.drivers_by == "host" else cluster.described
    versions = [(images.version_path(path, driver), images.version(driver)) for path, driver in sections]
    for path, version in (*versions, *cluster.host_versions.items()):
        parts, newer = numbers(version), f"set {path} to a newer one"
        if path.endswith("hostVersion"):
            newer = f"give the nodes an image with a newer driver, and say so in {path}"
        if cluster.dra and parts and parts[0] < branch:
            yield hit(path, "gpus", branch=branch, version=version, newer=newer)
        if domains and not cluster.dra and parts and parts < numbers(least)[: len(parts)]:
            yield hit(path, "domains", least=least, version=version, newer=newer, gate=DNS_NAMES)


@rule("GPU174", "error")
def one_owner_of_compute_domains(cluster: Cluster) -> Iterator[Hit]:
    """`computeDomains` beside `gpuCluster`."""
    if cluster.dra and cluster.spec.computeDomains.enabled:
        yield hit("spec.computeDomains.enabled")


@rule("GPU177", "error")
def features_that_go_together(cluster: Cluster) -> Iterator[Hit]:
    """Features of the DRA driver that contradict each other."""
    for path, gates, version in gated(cluster.spec):
        if not dra.knows_gates_of(version):
            continue
        for gate, verb, other in dra.contradictions(gates):
            where = f"spec.{path}.{gate if gate in gates else other}"
            needs = verb == "requires"
            yield hit(where, "requires" if needs else "excludes", section=path, gate=gate, other=other, version=version)


@rule("GPU178", "warning")
def features_that_exist(cluster: Cluster) -> Iterator[Hit]:
    """A feature that the DRA driver doesn't know."""
    for path, gates, version in gated(cluster.spec):
        for gate in gates if dra.knows_gates_of(version) else ():
            try:
                dra.gate_default(gate)
            except dra.UnknownGate as unknown:
                near = f"; did you mean {' or '.join(unknown.nearest)}?" if unknown.nearest else ""
                yield hit(f"spec.{path}.{gate}", version=version, gate=gate, near=near)


def gated(spec: ClusterPolicySpec) -> Iterator[tuple[str, dict[str, bool], str | None]]:
    """(path, switches, version of the DRA driver) where features are switched."""
    known = releases.release(spec.release).images.get("gpuCluster.draDriver")
    if cluster := spec.gpuCluster:
        driver = cluster.draDriver
        yield "gpuCluster.draDriver.featureGates", driver.featureGates, driver.version
    elif spec.computeDomains.enabled:
        version = spec.computeDomains.version or (known.version if known else None)
        yield "computeDomains.featureGates", spec.computeDomains.featureGates, version


@rule("GPU179", "warning")
def what_only_you_can_do(cluster: Cluster) -> Iterator[Hit]:
    """Something that dynamic resource allocation needs and that no object of the render brings."""
    if (section := cluster.spec.gpuCluster) is None:
        return
    namespace, driver = cluster.spec.cluster.namespace, section.draDriver
    if namespace.startswith(("default", *SYSTEMS)):
        yield hit("spec.cluster.namespace", "namespace", namespace=namespace)
    for gate in (name for name, on in driver.featureGates.items() if on):
        if setting := dra.asked_by(gate, "host"):
            yield hit(f"spec.gpuCluster.draDriver.featureGates.{gate}", "host", gate=gate, setting=setting)
    told = any(entry.name == PULL_SECRETS for entry in driver.computeDomains.controller.env)
    if driver.imagePullSecrets and driver.computeDomains.enabled and not told:
        names = ",".join(driver.imagePullSecrets)
        yield hit("spec.gpuCluster.draDriver.imagePullSecrets", "secrets", variable=PULL_SECRETS, names=names)


@rule("GPU180", "error")
def architecture_of_the_gpu(cluster: Cluster) -> Iterator[Hit]:
    """A node pool whose architecture is not that of its GPU's own CPU."""
    for pool in cluster.pools:
        own, said = pool.product.arch if pool.product else None, pool.said
        if own and said.arch and said.arch != own:
            yield hit(f"{pool.path}.arch", pool_name=pool.name, nodes_arch=said.arch, product=said.gpuProduct, arch=own)


@rule("GPU181", "error")
def two_health_checks_on_one_port(cluster: Cluster) -> Iterator[Hit]:
    """Two containers of the DRA driver's pod answer health checks on one port."""
    if cluster.spec.gpuCluster is None:
        return
    driver = cluster.spec.gpuCluster.draDriver
    gpus_, domains = driver.gpus.kubeletPlugin.healthcheck, driver.computeDomains.kubeletPlugin.healthcheck
    both = driver.computeDomains.enabled and gpus_.enabled and domains.enabled
    if both and gpus_.port == domains.port:
        places = [f"gpuCluster.draDriver.{each}.kubeletPlugin.healthcheck.port" for each in ("gpus", "computeDomains")]
        known = [type(each).model_fields["port"].default for each in (gpus_, domains)]
        yield hit(f"spec.{places[gpus_.port == known[0]]}", port=domains.port, gpus=known[0], domains=known[1])


def idle(spec: ClusterPolicySpec) -> dict[str, object]:
    """Whether the policy says something in fields of `gpuCluster` that the operator ignores, or that have no effect in
    any release, by path; idle-fields.yaml says why (operator.md 11.1)."""
    if not (cluster := spec.gpuCluster):
        return {}
    sets, default = cluster.daemonsets, releases.release(spec.release).defaults["daemonsets"]
    rolling = default["rollingUpdate"]["maxUnavailable"]
    return {
        "gpuCluster.daemonsets.updateStrategy": sets.updateStrategy not in (None, "", default["updateStrategy"]),
        "gpuCluster.daemonsets.rollingUpdate": (sets.rollingUpdate.maxUnavailable or rolling) != rolling,
        "gpuCluster.daemonsets.podSecurityContext": sets.podSecurityContext is not None,
        "gpuCluster.dcgm.hostPort": cluster.dcgm.hostPort,
    }


@rule("GPU483", "warning")
def feature_without_its_ground(cluster: Cluster) -> Iterator[Hit]:
    """A feature of the DRA driver that Kubernetes or the GPUs don't carry."""
    kubernetes = cluster.spec.cluster.kubernetesVersion
    lacking = dra.gates_of_kubernetes(kubernetes)
    boards = [pool.product for pool in cluster.pools]
    switched = not boards or any(board is None or board.nvswitch for board in boards)
    for path, gates, _ in gated(cluster.spec):
        for gate in (name for name, on in gates.items() if on):
            at = f"spec.{path}.{gate}"
            if gate in lacking:
                theirs, first = lacking[gate]
                upgrade = f"upgrade the cluster to {first}, " if first else ""
                yield hit(at, "kubernetes", gate=gate, theirs=theirs, kubernetes=kubernetes, upgrade=upgrade)
            if dra.asked_by(gate, "board") and not switched:
                yield hit(at, "nvswitch", gate=gate)
            if mode := dra.asked_by(gate, "mode"):
                yield hit(at, "mode", gate=gate, mode=mode)


@rule("GPU485", "note")
def imex_of_the_host(cluster: Cluster) -> Iterator[Hit]:
    """Compute domains on nodes that bring their driver, and perhaps an IMEX service of their own."""
    whole = cluster.spec.gpuCluster
    domains = cluster.spec.computeDomains if whole is None else whole.draDriver.computeDomains
    for pool in cluster.pools if domains.enabled else ():
        if pool.driver is None and pool.product is not None and pool.product.nvlink_rack:
            yield hit(f"spec.{asked(cluster)}", pool=pool.name)
