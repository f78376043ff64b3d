"""Puts the defaults below what the user wrote: gpustack's own < release < platform < derived < layers < policy.

Those of the release are its chart's, or with `defaults: operator` what the operator makes of a ClusterPolicy without
one. A `gpuCluster` has the chart's either way: nobody has it beside a ClusterPolicy (operator.md 1.2).

Which release and which platform is itself said in layers and policy, so these are merged first, looked at, and merged
again with the defaults below them. What can't be looked up (no release, an unknown platform) is a finding and not an
exception: the rest of the spec is still validated, and the reader gets all mistakes at once.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from gpustack.catalog import defaults as own
from gpustack.catalog import kubernetes, platforms, releases
from gpustack.catalog._lookup import UnknownName
from gpustack.model import Finding, InputError, Location, Path, dotted, mapping
from gpustack.policy.loading.derived import DERIVED, KUBERNETES, RELEASE, Derived, empty_images, further_images, named
from gpustack.policy.loading.envelope import TEXTS
from gpustack.policy.loading.layers import Merged, Part, merge

PLATFORM: Path = ("cluster", "platform")
OPENSHIFT: Path = ("cluster", "openshift")
OPERATOR = "operator"
"""What `defaults` says where absent fields mean what the operator makes of them."""
OWN = "own default"
"""Where gpustack's own defaults stand, in the words of `explain`: gpustack: own default."""
GPU_CLUSTER = "gpuCluster"
SHARED = ("daemonsets", "dcgm", "dcgmExporter", "hostPaths")
"""Sections that both kinds have. Of hostPaths, GPUCluster has no `rootFS`; a rule speaks up where one is set."""


def assemble(user: Sequence[Part]) -> tuple[Merged, list[Finding]]:
    """Merge USER (layers and policy, the lowest first) over the defaults that its release, platform and pools ask for.

    The second value says what keeps defaults from being found (GPU014); what is merged then lacks these.
    Raises InputError (GPU011) where parts can't be merged."""
    written = merge(user)
    findings: list[Finding] = []
    release = _release(written, findings)
    minor = _kubernetes(written, findings)
    platform = _platform(written, findings)
    own_ones = own_parts(written.spec)
    charts = [_release_part(release)] if release else []
    preset = [_platform_part(*platform, release, minor)] if release and minor and platform else []
    below, above = [*own_ones, *charts, *preset], list[Part]()
    if release and written.spec.get("defaults") == OPERATOR:
        spec = releases.operator_spec(release, written.spec)
        operators = Part("release", f"the operator of release {release}", spec, because=RELEASE)
        below = [*own_ones, operators, *preset]
        above = [_derived_part(each) for each in empty_images(written.spec, operators.data)]
    if release:
        below.append(further_images(written.spec, release, empty=False))
        above += [part for part in [further_images(written.spec, release, empty=True)] if part.data]
    derived = [_derived_part(each) for rule in DERIVED for each in rule(written.spec)]
    try:
        beside = gpu_cluster(written.spec, [*own_ones, *charts, *preset, *derived], user, release)
        return merge([*below, *beside, *derived, *user, *above]), findings
    except InputError as error:  # the user's value has another shape than the default: say so, with all that is wrong
        return written, [*findings, *error.findings]


def own_parts(spec: dict[str, Any]) -> list[Part]:
    """gpustack's own defaults for SPEC, which layers and policy say, unvalidated."""
    parts = []
    for rule in own.rules():
        section = spec.get(rule.name)
        if not rule.kind or (rule.kind == "where" and isinstance(section, dict)):
            parts.append(_own_part(rule.name))
        elif rule.kind == "each" and (items := [{"name": item["name"], **rule.values} for _, item in named(section)]):
            parts.append(Part("gpustack", OWN, {rule.name: items}, because=(rule.name,)))
    return parts


def _release(written: Merged, findings: list[Finding]) -> str | None:
    value = written.spec.get("release")
    if value is None:
        findings.append(_told(written, RELEASE, "no release", latest=releases.latest()))
    elif isinstance(value, str):
        try:
            return releases.release(value).name
        except releases.UnknownRelease as error:
            known = releases.names()
            why = f"this version of gpustack knows {known[0]} to {known[-1]}"
            findings.append(_unknown(written, RELEASE, error, known, why))
    return None


def _kubernetes(written: Merged, findings: list[Finding]) -> str | None:
    value = mapping(written.spec.get("cluster")).get("kubernetesVersion")
    if value is None:
        findings.append(_told(written, KUBERNETES, "no version", latest=kubernetes.MINORS[-1]))
    elif isinstance(value, str):
        try:
            return kubernetes.minor(value)
        except InputError as error:
            where = _place(written, KUBERNETES)
            findings += [dataclasses.replace(finding, rule="GPU014", location=where) for finding in error.findings]
    return None


def _platform(written: Merged, findings: list[Finding]) -> tuple[str, Path] | None:
    """Return the platform and what names it, or None: nothing is known of the cluster, and nothing is changed."""
    cluster = mapping(written.spec.get("cluster"))
    value = cluster.get("platform")
    if value is None and isinstance(cluster.get("openshift"), dict):
        return platforms.OPENSHIFT, OPENSHIFT
    if isinstance(value, str):
        try:
            return platforms.platform(value).name, PLATFORM
        except platforms.UnknownPlatform as error:
            findings.append(_unknown(written, PLATFORM, error, platforms.names()))
    return None


@functools.cache
def _own_part(name: str) -> Part:
    """What holds where a policy has the section NAME; of every policy without one."""
    (values,) = (dict(rule.values) for rule in own.rules() if rule.name == name)
    return Part("gpustack", OWN, {name: values} if name else values, because=(name,) if name else None)


@functools.cache
def _release_part(name: str) -> Part:
    return Part("release", f"release {name}", dict(releases.release(name).defaults), because=RELEASE)


@functools.cache
def _platform_part(name: str, because: Path, release: str, minor: str) -> Part:
    return Part("platform", f"platform {name}", platforms.defaults(name, release, minor), because=because)


def _derived_part(derived: Derived) -> Part:
    data: Any = derived.value
    for step in reversed(derived.path):
        data = {step: data}
    return Part("derived", f"derived from {dotted(('spec', *derived.source))}", data, because=derived.source)


def _unknown(written: Merged, path: Path, error: UnknownName, known: Sequence[str], why: str = "") -> Finding:
    near = " or ".join(error.nearest)
    remedy = f"did you mean {near}?" if near else f"known are {', '.join(known)}"
    return _told(written, path, "unknown", sort=error.what, name=error.name, why=why, do=remedy)


def _told(written: Merged, path: Path, case: str, **words: Any) -> Finding:
    """What the table says of CASE, with WORDS in it, about what is missing or wrong at PATH."""
    return TEXTS.finding("GPU014", case, _place(written, path), at=dotted(("spec", *path)), **words)


def _place(written: Merged, path: Path) -> Location:
    """Return where PATH stands, or would: the policy is the last part, and what is missing is best added there."""
    part, own = written.writer(path) or (written.parts[-1], path)
    return part.locate(own)


def gpu_cluster(
    written: dict[str, Any], below: Sequence[Part], user: Sequence[Part], release: str | None
) -> list[Part]:
    """The parts below a `gpuCluster` that the policy has; none where it has none. WRITTEN is what USER merges to, BELOW
    are the defaults that hold for every cluster of the release and platform.

    The operator's chart makes ClusterPolicy and GPUCluster of the same values: `dcgmExporter.env` reaches the exporter
    of either. Layers are shared by clusters with and without DRA in the same way, so each field of the SHARED sections
    that `gpuCluster` lacks is taken from the section beside it. With defaults of the release alone, every layer with a
    toleration would have to say it twice, and whoever forgets it gets pods that miss the tainted nodes."""
    if not isinstance(written.get(GPU_CLUSTER), dict):
        return []
    parts: list[Part] = []
    if release:
        own = releases.release(release).gpu_cluster
        parts.append(Part("release", f"release {release}", {GPU_CLUSTER: dict(own)}, because=("release",)))
    for name, said in merge([*below, *user]).spec.items():
        if name in SHARED and isinstance(said, dict):
            taken = {key: value for key, value in said.items() if (name, key) != ("hostPaths", "rootFS")}
            parts.append(Part("derived", f"derived from spec.{name}", {GPU_CLUSTER: {name: taken}}, because=(name,)))
    return parts
