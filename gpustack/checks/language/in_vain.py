"""What a policy says in vain: settings of what is off or not rendered, variables in the place of a field, null, GPUs
that nobody knows, nodes without labels.
"""

import re
from collections.abc import Iterator
from typing import Any

from ...catalog import _data, _versions, gpus, object_kinds, releases
from ...cluster.resolve import Cluster
from ...model import Path, docs, dotted
from ...policy.language import images
from ...policy.language.reconciler import labelling, runs
from ...policy.loading.place import node, parse
from ..dra.dra_exclusions import PLUGIN_STACK, defaults_of
from ..rule import Hit, hit, rule
from ..subjects import Written
from .off import VIRTUAL as VIRTUAL_PARTS
from .off import Off, off, others_of, toolkit_runs_the_driver

VIRTUAL = re.compile(r"(NVIDIA-)?GRID-.*|.*-\d+[ABCQ](ME)?")
"""How GPUs inside a virtual machine are called (GRID-A100-20C, NVIDIA-L40S-24Q); the catalogue knows boards only."""
LISTEN, PORT = "DCGM_EXPORTER_LISTEN", "9400"
"""The exporter's address, and the port of its probes and its Service (operator.md 7.8)."""
SCRIPT = ("entrypoint.sh", "/bin/entrypoint.sh, which starts the component")
SCRIPTS = {
    "devicePlugin": SCRIPT,
    "migManager": SCRIPT,
    "validator": ("sleep", "the script that keeps its pod running"),
    "vfioManager": ("bind", "the line that binds GPUs to vfio-pci"),
}
"""Components whose container is a shell, a word of the script that it runs, and what that is (operator.md 5.2, 7.3,
7.14)."""
INIT = "init"
"""The command of the containers that install drivers (operator.md 7.1, 7.11)."""


@rule("GPU108", "warning", over="origins")
def settings_of_what_is_off(written: Written) -> Iterator[Hit]:
    """Settings of something that is off."""
    defaults = releases.release(written.spec.release).defaults
    others = others_of(written.cluster)
    by_reason: dict[Off, dict[str, None]] = {}
    for path in written.merged.own:
        if node(written.merged.spec, path) in (node(defaults, path), *NOTHING):
            continue
        if path[:2] == ("driver", "upgradePolicy") and runs(written.spec):
            continue  # the budget holds for MIG layouts too
        if path == ("driver", "hostVersion"):
            continue  # it is of drivers that nothing here installs (GPU143)
        reason = off(written.merged, path, others)
        if reason is not None:
            by_reason.setdefault(reason, {})[dotted(up_to_the_list(path, len(reason.path)))] = None
    for reason, paths in by_reason.items():
        section, first = dotted(reason.path), next(iter(paths))
        listed, is_off = ", ".join(paths), f": {section} is off" if [*paths] != [section] else ""
        verb = "has" if len(paths) == 1 else "have"
        yield hit(f"spec.{first}", why=reason.why, paths=f"{listed} {verb}", off=is_off, instead=reason.remedy)


NOTHING: tuple[object, ...] = ("", [], {}, False)
"""Values that ask for nothing."""


def up_to_the_list(path: Path, least: int) -> Path:
    """PATH as far as the first list below its first LEAST steps: who sets one variable is told of `env`."""
    lists = (index for index, step in enumerate(path) if index >= least and isinstance(step, int))
    return path[: next(lists, len(path))]


@rule("GPU110", "warning", over="origins")
def switched_on_beside_dra(written: Written) -> Iterator[Hit]:
    """A component of the device plugin's stack that is switched on beside `gpuCluster`."""
    default = defaults_of(written.spec) if written.cluster.dra else None
    for section in (*PLUGIN_STACK, "driver") if default else ():
        path = f"{section}.enabled"
        on = [getattr(getattr(spec, section), "enabled", False) for spec in (written.spec, default)]
        if all(on) and written.by(f"spec.{path}") == "policy":  # what is off by default, GPU175 refuses
            yield hit(f"spec.{path}", "driver" if section == "driver" else "stack")


@rule("GPU112", "note", over="origins")
def crd_of_nothing(written: Written) -> Iterator[Hit]:
    """A word about a CRD that nothing of this render needs."""
    spec = written.spec
    domains = spec.gpuCluster.draDriver.computeDomains if spec.gpuCluster else None
    rendered = {
        object_kinds.NFD: spec.nfd.enabled and not written.cluster.platform.own_discovery,
        object_kinds.DRA: bool(spec.computeDomains.enabled) if domains is None else domains.enabled,
    }
    for name, owner in spec.cluster.crds.items():
        path = dotted(("spec", "cluster", "crds", name))
        if not rendered[object_kinds.known_crd(name)] and written.by(path) == "policy":
            yield hit(path, name=name, owner=owner, component=object_kinds.known_crd(name))


@rule("GPU113", "note", over="origins")
def older_than_the_release(written: Written) -> Iterator[Hit]:
    """Components that are held at versions older than the release's."""
    known = releases.release(written.spec.release).images
    held: dict[str, str] = {}
    for name in images.SECTIONS:
        section = node(written.merged.spec, parse(name))
        own = known.get(name) or known.get(name.removeprefix("gpuCluster."))
        if own is None or name == "driver" or not isinstance(section, dict) or section.get("version") == own.version:
            continue
        used = images.composed(*(section.get(part) for part in ("repository", "image", "version"))) or ""
        version, field = images.tag_of(used), "image" if (whole := images.stands_alone(section)) else "version"
        theirs = images.repository(used)  # an image that is named whole may come from a mirror, under NVIDIA's name
        same = theirs == f"{own.repository}/{own.image}" or (whole and theirs.rpartition("/")[2] == own.image)
        older = () < _versions.numbers(version) < _versions.numbers(own.version)
        if same and older and written.by_user(f"spec.{name}.{field}"):
            held[f"{name}.{field}"] = f"{version} ({own.version})"
    if held:
        listed = ", ".join(f"{path} {what}" for path, what in held.items())
        yield hit(f"spec.{next(iter(held))}", release=written.spec.release, listed=listed)


@rule("GPU109", "warning")
def unknown_product(cluster: Cluster) -> Iterator[Hit]:
    """A GPU product that looks like one that exists and is spelt differently."""
    for pool in cluster.pools:
        product = pool.said.gpuProduct or ""
        known = not product or product in gpus.products() or VIRTUAL.fullmatch(product)
        if not known and (near := gpus.nearest_products(product)):
            yield hit(f"{pool.path}.gpuProduct", product=repr(product), near=" or ".join(near))


@rule("GPU106", "note")
def nodes_need_labels(cluster: Cluster) -> Iterator[Hit]:
    """Nothing starts on a node before it has its labels, and nobody sets them."""
    who = labelling(cluster.spec)
    if cluster.pools and who in ("none", None):
        yield hit("spec.nodePools", "none" if who else "people", page=docs("labels.md"))


@rule("GPU190", "warning")
def variable_of_a_field(cluster: Cluster) -> Iterator[Hit]:
    """A variable of a component that a field of the policy sets."""
    for path, section, owned in _with_variables(cluster):
        for index, entry in enumerate(section.env or ()):
            where = f"spec.{path}.env[{index}]"
            if entry.name in owned:  # which wins: operator.md 5.2
                vain, setting = path == "gfd" and cluster.spec.mig.strategy, f"spec.{owned[entry.name]}"
                yield hit(where, "field" if vain else "variable", section=path, entry=entry.name, setting=setting)
            elif entry.name == LISTEN and (entry.value or "").rpartition(":")[2] != PORT:
                yield hit(where, "port", section=path, entry=entry.name, port=PORT)


def _with_variables(cluster: Cluster) -> Iterator[tuple[str, Any, dict[str, str]]]:
    """The sections of CLUSTER that are in effect, by path, with the fields that set variables of their containers."""
    spec, owned = cluster.spec, dict(_data.load("owned-variables"))
    own = owned.pop("driver")
    drivers = [(path.removeprefix("spec."), driver) for path, driver in cluster.described]
    yield from ((at, driver, {name: f"{at}.{own[name]}" for name in own}) for at, driver in drivers)
    yield cluster.at("dcgmExporter"), cluster.stack.dcgmExporter, {}
    for name in owned if not cluster.dra else ("toolkit",):
        if getattr(spec, name).enabled:
            yield name, getattr(spec, name), owned[name]


@rule("GPU191", "warning")
def arguments_of_a_shell(cluster: Cluster) -> Iterator[Hit]:
    """Arguments for a component whose container is a shell."""
    spec = cluster.spec
    parts: list[tuple[str, Any]] = [(name, getattr(spec, name)) for name in (*SCRIPTS, "driver", "vgpuManager")]
    for name, section in parts:
        word, script = SCRIPTS.get(name, (INIT, ""))
        vain = name == "driver" and (cluster.listed or toolkit_runs_the_driver(spec))
        vain = vain or ((name,) in VIRTUAL_PARTS and not cluster.sandbox) or not getattr(section, "enabled", True)
        first = "" if vain or not section.args else section.args[0]
        if first and script and word not in first:
            yield hit(f"spec.{name}.args", "shell", name=name, script=script, argument=repr(first))
        elif first and not script and first != INIT:
            yield hit(f"spec.{name}.args", "init", argument=repr(first))


@rule("GPU810", "note", over="origins")
def null(written: Written) -> Iterator[Hit]:
    """A value that is null, or nothing at all."""
    for part in written.merged.parts:
        if part.kind not in {"layer", "change", "policy"} or part.clean is part.data:  # it has none
            continue
        for own, path in _nulls(part.data, written.merged.spec, (), ()):
            where, place = part.locate(own, key=True), dotted(("spec", *path))
            empty = f"; an empty list is {path[-1]}: []" if isinstance(node(written.merged.spec, path), list) else ""
            stays = written.merged.writer(path) is not None
            yield hit(place, "stays" if stays else "nothing", file=where.file, line=where.line, empty=empty)


def _nulls(data: Any, merged: Any, own: Path, path: Path) -> Iterator[tuple[Path, Path]]:
    """The nulls in DATA: their places there, and in MERGED, where items with names may have other positions."""
    if isinstance(data, dict):
        for key, value in data.items():
            if value is None:
                yield (*own, key), (*path, key)
            elif key != "extraObjects":  # manifests are their authors'
                below = merged.get(key) if isinstance(merged, dict) else None
                yield from _nulls(value, below, (*own, key), (*path, key))
    elif isinstance(data, list):
        for index, item in enumerate(data):
            at = _position(item, index, merged)
            below = merged[at] if isinstance(merged, list) and at < len(merged) else None
            yield from _nulls(item, below, (*own, index), (*path, at))


def _position(item: Any, index: int, merged: Any) -> int:
    """Where ITEM is in the list MERGED."""
    name = item.get("name") if isinstance(item, dict) else None
    names = [other.get("name") for other in merged if isinstance(other, dict)] if isinstance(merged, list) else []
    return names.index(name) if name is not None and name in names else index
