"""Rules over drivers that are not about which nodes they serve: licences, RHCOS, fields without effect."""

from collections.abc import Iterator

from ...api import keys
from ...catalog import releases
from ...cluster.resolve import Cluster
from ...policy.language.reconciler import labelling
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule


@rule("GPU138", "warning")
def licence_in_the_open(cluster: Cluster) -> Iterator[Hit]:
    """A vGPU licence in a ConfigMap."""
    for field, key, name, secret in _licences(cluster.spec):
        if name and not secret:
            yield hit(f"{field}.{key}", name=name, setting=field)


@rule("GPU142", "error")
def two_licences(cluster: Cluster) -> Iterator[Hit]:
    """A vGPU licence that is named twice, in a Secret and in a ConfigMap."""
    for field, key, name, secret in _licences(cluster.spec):
        if name and secret:
            yield hit(f"{field}.{key}", setting=field, name=name, secret=secret, key=key)


def _licences(spec: ClusterPolicySpec) -> Iterator[tuple[str, str, str | None, str | None]]:
    """Each licence: its field, the key that names a ConfigMap, that name, and the Secret's."""
    own = [(f"spec.nodePools[{at}].driver", pool.driver) for at, pool in enumerate(spec.nodePools) if pool.driver]
    for path, section in [("spec.driver", spec.driver), *own]:
        licence = section.licensingConfig
        yield f"{path}.licensingConfig", "configMapName", licence.configMapName, licence.secretName
    for index, driver in enumerate(spec.drivers):
        listed = driver.licensingConfig
        yield f"spec.drivers[{index}].licensingConfig", "name", listed.name, listed.secretName


@rule("GPU139", "warning")
def rhcos_versions(cluster: Cluster) -> Iterator[Hit]:
    """A driver on OpenShift, and no word about which version of RHCOS it is for."""
    spec = cluster.spec
    images = spec.cluster.openshift.driverToolkitImages if spec.cluster.openshift else {}
    wanted = cluster.listed or spec.operator.use_ocp_driver_toolkit
    if not cluster.platform.os_images or not wanted or not (spec.driver.enabled or cluster.listed):
        return
    named = any(pool.ostreeVersion for pool in spec.nodePools)
    for pool in cluster.pools:
        rhcos, path = pool.said.ostreeVersion, f"{pool.path}.ostreeVersion"
        if pool.driver is None or pool.driver.precompiled:
            continue  # nothing builds kernel modules
        if not rhcos and (cluster.listed or (named and images)):
            yield hit(path, "unsaid", pool_name=pool.name)
        if images and rhcos and rhcos not in images:
            yield hit(path, "image", rhcos=rhcos)


PULLED = (None, "", "IfNotPresent")
"""Pull policies that say what happens anyway."""


@rule("GPU140", "note")
def idle_fields_of_drivers(cluster: Cluster) -> Iterator[Hit]:
    """A field of `drivers` that does nothing."""
    spec = cluster.spec
    traits = releases.release(spec.release).traits
    for index, driver in enumerate(spec.drivers):
        for path, given, why in (
            ("default", bool(driver.default) and not traits.driver_owner_label, f"{spec.release} has no such field"),
            ("nodeAffinity", driver.nodeAffinity is not None, "nodeSelector says where a driver runs"),
            ("livenessProbe", driver.livenessProbe is not None, "only the start of a driver is probed"),
            ("readinessProbe", driver.readinessProbe is not None, "only the start of a driver is probed"),
            ("useOpenKernelModules", driver.useOpenKernelModules is not None, "kernelModuleType replaced it in v25.3"),
            ("gds.args", bool(driver.gds.args), "the operator ignores it as well"),
            ("gds.imagePullPolicy", driver.gds.imagePullPolicy not in PULLED, "the operator fixes it to IfNotPresent"),
            ("gdrcopy.args", bool(driver.gdrcopy.args), "the operator ignores it as well"),
        ):
            if given:
                yield hit(f"spec.drivers[{index}].{path}", "field", why=why)
    if not spec.operator.use_ocp_driver_toolkit and cluster.listed and spec.drivers:
        yield hit("spec.operator.use_ocp_driver_toolkit", "toolkit")


@rule("GPU141", "note")
def nodes_are_assigned_by_label(cluster: Cluster) -> Iterator[Hit]:
    """Drivers that wait for a label on their nodes."""
    spec, label = cluster.spec, keys.DRIVER_OWNER
    if labelling(spec) == "program":
        return
    own = [pool for pool in cluster.pools if pool.said.driver is not None and cluster.drivers_by == "section"]
    if cluster.listed and spec.drivers and releases.release(spec.release).traits.driver_owner_label:
        yield hit("spec.drivers", "drivers", label=label, driver=spec.drivers[0].name)
    elif own:
        yield hit(f"{own[0].path}.driver", "pools", pool_name=own[0].name, label=label)
