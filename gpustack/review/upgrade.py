"""Whether nodes, Kubernetes, OpenShift, the driver or the release may be upgraded.

Rules judge a policy as it is, and nobody writes the kernel of next week's node image into one. So the policy is judged
as it would be (`changes`), and what rules say then and not now stands against the upgrade. Rules are silent where
nothing is known, which isn't a yes: what has to be there (a driver image, headers of the kernel, a row in a support
table) is asked for by itself (`Answers`), and answered with yes, with where to look (upgrades.yaml), or by a rule.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..catalog import _data, _versions, drivers, oses, releases
from ..checks.platforms.support import outside
from ..checks.rule import RULES, all_rules
from ..cluster.drivers import NodeDriver
from ..cluster.pool import Pool
from ..cluster.resolve import Cluster
from ..model import Finding, InputError, few, numbers
from ..policy.language import images

KNOWN, UNKNOWN, FIRST, WITH = "GPU085", "GPU086", "GPU087", "GPU088"
NO_DRIVER = ("GPU402", "GPU435", "GPU436", "GPU438", "GPU439", "GPU440", "GPU482")
"""Rules that say of a pool that there is no driver for it: nothing has to say so again."""
_RHEL_KERNEL = re.compile(r".*\.el(\d+)_(\d+)\.x86_64")
Tree = dict[str, Any]
Asked = Mapping[str, str]
"""What to upgrade, and to which version, "" to stay: kernel, os (or RHCOS), ocp, kubernetes, driver, release."""


def concerned(cluster: Cluster, asked: Asked, named: Collection[str]) -> list[Pool]:
    """The node pools of CLUSTER that ASKED is about: those NAMED, else all whose system it is a version of, else all.
    Raises InputError for a name that isn't there."""
    there = {pool.name: pool for pool in cluster.pools}
    if lacking := [name for name in named if name not in there]:
        what, remedy = f"no node pool is called {lacking[0]!r}", f"there are: {', '.join(there) or 'none'}"
        raise InputError.of("GPU026", what, remedy=remedy)
    if asked["ocp"] and not cluster.platform.own_versions:
        remedy = "name clusters that have it, or ask with --kubernetes"
        raise InputError.of("GPU026", "there is no OpenShift", remedy=remedy)
    if not asked["os"] or named:
        return [there[name] for name in named] or list(cluster.pools)
    rhcos = asked["os"][:1].isdigit() and cluster.platform.os_images
    family = asked["os"].rstrip("0123456789.")
    families = {pool.name: (pool.said.os or family).rstrip("0123456789.") for pool in cluster.pools}
    same = [pool for pool in cluster.pools if rhcos or (family and families[pool.name] == family)]
    if cluster.pools and not same:
        systems = sorted({pool.said.os for pool in cluster.pools if pool.said.os})
        what = f"{asked['os']} is not a version of what the node pools have: {', '.join(systems)}"
        raise InputError.of("GPU026", what, remedy=f"say which of them gets it with --pool: {', '.join(there)}")
    return same


def changes(cluster: Cluster, asked: Asked, named: Collection[str]) -> Tree:
    """What the spec of CLUSTER would say differently after the upgrade, as a layer over it."""
    brings, driver = oses.openshift(asked["ocp"]), asked["driver"]
    of_cluster: Tree = {"kubernetesVersion": asked["kubernetes"] or brings.get("kubernetes")}
    of_cluster |= {"openshift": {"version": asked["ocp"]}} if asked["ocp"] else {}
    tree: Tree = {"release": asked["release"], "cluster": _filled(of_cluster), "nodePools": [], "drivers": []}
    for pool in concerned(cluster, asked, named):
        system, ostree = ("", asked["os"]) if asked["os"][:1].isdigit() else (asked["os"], "")
        system = system or (brings.get("os", "") if pool.said.os else "")
        entry = _filled({"os": system, "kernel": asked["kernel"], "ostreeVersion": ostree})
        own, where = pool.said.driver, "version" if pool.driver else "hostVersion"
        if driver and pool.driver is not None and pool.driver.number is not None:
            of_list = {"name": cluster.spec.drivers[pool.driver.number].name, "version": driver}
            tree["drivers"] += [of_list] if of_list not in tree["drivers"] else []
        elif driver and (named or (own is not None and (own.version or own.hostVersion))):
            entry["driver"] = {where: driver}
        elif driver:
            tree["driver"] = {where: driver}
        tree["nodePools"] += [{"name": pool.name, **entry}] if entry else []
    return _filled(tree)


def _filled(tree: Tree) -> Tree:
    return {key: value for key, value in tree.items() if value}


@dataclass(frozen=True, slots=True)
class Answers:
    """What is known about the upgrade that ASKED names, of the pools NAMED, to the cluster AFTER. LOCKED has the images
    that a registry was seen to have (images.lock), LOOKED what else somebody has seen (`kind` in upgrades.yaml)."""

    asked: Asked
    named: Collection[str]
    after: Cluster
    locked: Collection[str]
    looked: Collection[str]

    def all(self, before: Cluster) -> Iterator[Finding]:
        """The answers: notes, and warnings where something isn't known or has to come first."""
        asked, release = self.asked, before.spec.release
        yield from self._cluster()
        if asked["release"] and asked["release"] != release:
            yield self._step(release, asked["release"])
        of_nodes = any(asked[name] for name in ("kernel", "os", "ocp"))
        if not self.after.pools and (of_nodes or asked["driver"]):
            yield self._said("unknown-nodes", "spec.nodePools")
        all_rules()
        refused = {hit.pool for name in NO_DRIVER for hit in RULES[name].check(self.after)}
        names = {pool.name for pool in concerned(before, asked, self.named)}
        for pool in self.after.pools if of_nodes or asked["driver"] or asked["release"] else ():
            if pool.name not in names:
                continue
            if pool.workload != "container":
                yield self._said("unknown-machines", pool.path, pool)
            elif pool.driver is None and (asked["driver"] or of_nodes):
                key = "host-driver" if asked["driver"] else "unknown-host-driver"
                yield self._said(key, f"{pool.path}.driver.hostVersion", pool, version=asked["driver"])
            elif pool.driver is not None and pool.name not in refused:
                yield self._image(pool, pool.driver)
                if of_nodes and not pool.driver.precompiled:
                    yield self._headers(pool, pool.driver)
                if asked["driver"] and pool.driver.nvidias and not (pool.driver.vgpu or pool.driver.precompiled):
                    listed = drivers.listed_versions(self.after.spec.release)
                    key, path = "driver-listed" if asked["driver"] in listed else "unknown-driver", pool.driver.paths
                    yield self._said(key, path["version"], version=asked["driver"], listed=few(listed, 4))

    def _cluster(self) -> Iterator[Finding]:
        """What the support table says of Kubernetes and OpenShift; what is outside of it, rules say."""
        asked, cluster, release = self.asked, self.after.spec.cluster, releases.release(self.after.spec.release)
        have, key, limits = cluster.kubernetesVersion, "kubernetes", release.kubernetes_range
        if self.after.platform.own_versions:
            have, key = (cluster.openshift and cluster.openshift.version) or "", "openshift"
            limits = release.openshift_range
            if not oses.openshift(asked["ocp"]) and (asked["ocp"] or asked["kubernetes"]):
                yield self._said("unknown-openshift", "spec.cluster", version=asked["ocp"] or have)
        wanted = have and (asked["kubernetes"] or asked["ocp"] or asked["release"])
        if wanted and not outside(_versions.numbers(have), *limits):
            yield self._said(key, "spec.cluster", low=limits[0], high=limits[1])

    def _step(self, before: str, after: str) -> Finding:
        """Whether an upgrade may go from release BEFORE to AFTER (releases.py)."""
        lines, names = releases.lines(), releases.names()
        start, end = (lines.index(releases.release(name).line) for name in (before, after))
        over = few([releases.of_line(line)[-1] for line in lines[start + 1 : end]], 3)
        key = "far-step" if over else "step" if names.index(after) > names.index(before) else "unknown-step"
        return self._said(key, "spec.release", before=before, after=after, over=over)

    def _image(self, pool: Pool, driver: NodeDriver) -> Finding:
        """Whether there is an image of DRIVER for POOL, about which no rule has said no."""
        named = images.composed(driver.values["repository"], driver.values["image"], driver.values["version"])
        if not pool.said.os or pool.system is None or not named:
            return self._said("unknown-system", pool.path, pool)
        tag = oses.os_tag(pool.said.os, pool.spec.release)
        tag = f"{pool.said.kernel}-{tag}" if driver.precompiled else tag
        image = images.mirrored(named if driver.digest else f"{named}-{tag}", pool.spec.cluster.registryMap)
        plain = driver.nvidias and not (driver.digest or driver.vgpu or driver.precompiled) and bool(driver.numbers)
        built = plain and driver.numbers in {numbers(name) for name in drivers.built(driver.numbers[0])}
        key = "image-locked" if image in self.locked else "image-built" if built else "unknown-image"
        return self._said(key, f"{pool.path}.os", pool, image=image, version=driver.version, os=pool.said.os)

    def _headers(self, pool: Pool, driver: NodeDriver) -> Finding:
        """Whether headers of the kernel of POOL are known to be there, to build DRIVER with."""
        kernel, ostree, system = self.asked["kernel"], pool.said.ostreeVersion, pool.said.os or ""
        key, rhel, series = "unknown-kernel", _RHEL_KERNEL.fullmatch(kernel), ".".join(kernel.split(".")[:2])
        flavored = any(kernel.endswith(f"-{name}") for name in drivers.kernel_flavors(system))
        openshift = pool.spec.cluster.openshift
        if pool.cluster.platform.os_images:
            there = openshift is not None and ostree in openshift.driverToolkitImages
            key = "unknown-rhcos" if ostree != self.asked["os"] else "toolkit" if there else "unknown-toolkit"
        elif not kernel and pool.said.kernel:
            key, kernel = "old-kernel", pool.said.kernel
        elif not kernel:
            key = "kernel-of-table" if system in oses.os_names(pool.spec.release) else key
        elif (rhel and system == f"rhel{rhel[1]}.{rhel[2]}") or (flavored and series in oses.kernels(system)):
            key = "kernel-of-system"
        facts = {"os": system, "kernel": kernel or "of its own", "version": driver.version, "ostree": ostree or ""}
        return self._said(key, f"{pool.path}.kernel", pool, **facts)

    def _said(self, key: str, path: str, pool: Pool | None = None, /, **facts: str) -> Finding:
        """The answer KEY of upgrades.yaml, with FACTS."""
        text = _data.load("upgrades")[key]
        facts |= {"where": f"(node pool {pool.name})" if pool else "", "release": self.after.spec.release}
        what, look = text["what"].format(**facts).strip(), text.get("look", "").format(**facts)
        if not look or text.get("kind") in self.looked:
            return Finding(KNOWN, "note", f"somebody has looked: {what}" if look else what, path)
        why = text.get("why", "nothing in the catalogue says it, and what isn't known isn't a yes")
        what = what if "why" in text else f"not known here: {what}"
        return Finding(FIRST if "why" in text else UNKNOWN, "warning", what, path, why=why, remedy=look)
