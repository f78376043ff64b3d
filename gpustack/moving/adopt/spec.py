"""An installation as the spec of a policy: what was said, what the cluster tells of itself, and what was answered.

The language takes a custom resource's fields as they are, so most is carried by its own name. What the language refuses
is taken out, one finding at a time, and noted: it had no effect in the cluster either, or it can't be carried. Nothing
is changed into what somebody may have meant.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpustack.catalog import chart, kubernetes, releases
from gpustack.catalog._versions import key as age
from gpustack.live.state import labels
from gpustack.model import Finding, GpustackError, InputError, Location, Path, dotted
from gpustack.policy.help.explain import parse
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Merged, Part
from gpustack.policy.loading.load import load_values

from ...api import keys
from .documents import variables
from .installation import Installation, Leaves, Said, lay, leaves_of, nested, shown, understood
from .names import of_worker, to_spec, unfilled
from .pools import NODES, on_openshift, openshift, platform, pools

ANSWER = Location("--set")
NOWHERE = Location("")
PARTS = {"repository", "image", "version"}
BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""What Helm and kubectl, which read YAML 1.1, take for true and false."""
FEW = 3
"""Versions of images that somebody writes by hand."""
TRIES = 60
"""Rounds in which what the language refuses is taken out."""


@dataclass
class Draft:
    """The spec of a policy in the making. `source` is the release that runs, as far as that is known."""

    installation: Installation
    leaves: Leaves
    release: str
    source: str = ""
    carried: list[dict[str, Any]] = field(default_factory=list)

    @property
    def spec(self) -> dict[str, Any]:
        """The leaves as a spec."""
        spec = nested(self.leaves)
        return {**spec, **({"carried": self.carried} if self.carried else {})}


def effective(spec: Mapping[str, Any]) -> Merged:
    """SPEC with all defaults below it."""
    return assemble([Part("policy", "the policy", dict(spec))])[0]


def draft(installation: Installation, answers: Mapping[str, str], *, keep: bool) -> Draft:
    """The spec that INSTALLATION and ANSWERS make; KEEP: of the release that runs, or the nearest there is."""
    told = said(installation.spec, "release")
    source = told or running(installation)
    target = told or (nearest(source) if keep and source else releases.latest())
    if keep and source != target:
        installation.tell("unknown source" if source else "no source", "release", source=source, target=target)
    leaves = to_spec(installation, target)
    with understood("a ConfigMap of node feature discovery"):
        lay(leaves, of_worker(installation))
    lay(leaves, installation.spec)
    for path in [each for each in (("nodePools",), ("drivers",)) if each in leaves]:  # of a policy: one value each
        items = leaves.pop(path)
        for index, item in enumerate(items.value):
            leaves |= {each: Said(value, items.where) for each, value in leaves_of(item, (*path, index))}
    made = Draft(installation, leaves, target, source)
    if ("nodePools", 0, "name") not in leaves:
        with understood("a node"):
            leaves |= pools(installation, leaves)
    switched = ("driver", "useNvidiaDriverCRD") in leaves or any(path[0] == "gpuCluster" for path in leaves)
    if installation.spec and not switched and all(path[0] == "drivers" for path in installation.spec):
        installation.tell("driver alone", "spec.driver.useNvidiaDriverCRD")
        leaves["driver", "useNvidiaDriverCRD"] = Said(True, NOWHERE)
    installation.openshift |= any(name.endswith(".os") and text.startswith("rhcos") for name, text in answers.items())
    with understood("an object of the cluster"):
        about_the_cluster(made)
    follow_the_release(made)
    for name, text in answers.items():
        answer(made, name, text)
    answered = {name.removeprefix("spec.") for name in answers}
    installation.notes = [note for note in installation.notes if note.path.removeprefix("spec.") not in answered]
    settle(made)
    return made


def running(installation: Installation) -> str:
    """The release that runs, "" where nothing tells: what chart or operator say, else the validator's image."""
    validator = {**installation.values, **installation.spec}.get(("validator", "version"))
    text = str((installation.version or validator or Said("", NOWHERE)).value)
    match = re.search(r"v?(\d+\.\d+)(?:\.(\d+))?", text)
    if match is None:
        return ""
    name = f"v{match[1]}.{match[2] or 0}"
    every = [*chart.older(), *releases.names()]
    if name in every and match[2]:
        return name
    near = [each for each in every if age(each) <= age(name)] or every[:1]
    line = [each for each in every if each.startswith(f"v{match[1]}.")]
    chosen = (line or near)[-1]
    where = installation.version.where if installation.version else None
    installation.tell("nearest", "release", where, version=text, chosen=chosen)
    return chosen


def nearest(source: str) -> str:
    """The release of the catalogue that is SOURCE, or the first after it."""
    return next((each for each in releases.names() if age(each) >= age(source)), releases.latest())


def about_the_cluster(made: Draft) -> None:
    """Fill in `release`, `defaults` and `cluster`, as far as the inputs tell; what is only likely is noted."""
    installation, leaves = made.installation, made.leaves
    known = {path for path in leaves if path[0] == "cluster"}
    leaves["release",] = Said(made.release, installation.version.where if installation.version else NOWHERE)
    if installation.defaults == "operator" and installation.spec and ("defaults",) not in leaves:
        leaves["defaults",] = Said("operator", NOWHERE)
    nodes = list(installation.of_kind("Node"))
    info = [node.get("status", {}).get("nodeInfo", {}) for node in nodes]
    if ("cluster", "kubernetesVersion") not in known:
        told = sorted({str(each["kubeletVersion"]) for each in info if each.get("kubeletVersion")})
        low, high = releases.release(made.release).kubernetes_range
        version = told[0].removeprefix("v") if told else min(high, kubernetes.MINORS[-1], key=age)
        leaves["cluster", "kubernetesVersion"] = Said(version, NOWHERE)
        if not told:
            installation.tell("kubernetes", "cluster.kubernetesVersion", release=made.release, low=low, high=high)
    runtimes = sorted({str(each["containerRuntimeVersion"]) for each in info if each.get("containerRuntimeVersion")})
    if len(runtimes) == 1 and ("cluster", "containerRuntime") not in known:
        leaves["cluster", "containerRuntime"] = Said(runtimes[0], NOWHERE)
    if installation.namespace and ("cluster", "namespace") not in known:
        space = Said(installation.namespace, NOWHERE)
        leaves |= (
            {("cluster", "namespace"): space} if not unfilled(("cluster", "namespace"), space, installation) else {}
        )
    about_the_platform(installation, leaves, known, info)
    named = installation.namespace or "gpu-operator"
    own = [each for each in installation.of_kind("Namespace") if each["metadata"]["name"] == named]
    if any(labels(each).get(keys.ENFORCE) == "privileged" for each in own):
        leaves.setdefault(("psa", "enabled"), Said(True, NOWHERE))
    monitored = (
        any(installation.of_kind("ServiceMonitor")) or said(leaves, "dcgmExporter", "serviceMonitor", "enabled") is True
    )
    if monitored and ("cluster", "monitoring") not in known:
        leaves["cluster", "monitoring"] = Said(True, NOWHERE)
    chosen = installation.spec or ("gpuCluster",) in leaves
    if installation.version and not chosen and made.source == made.release:  # the chart gives these to every pod
        given = {"helm.sh/chart": f"gpu-operator-{made.source}", "app.kubernetes.io/managed-by": "gpu-operator"}
        leaves |= {("daemonsets", "labels", key): Said(text, NOWHERE) for key, text in given.items()}
    runtime = installation.values.get(("operator", "defaultRuntime"))
    if runtime is not None and runtime.value in ("crio", "cri-o") and not runtimes:
        leaves["cluster", "containerRuntime"] = Said("cri-o", runtime.where)
    if installation.helm_release and ("nfd", "helmRelease") not in leaves and not variables(installation.helm_release):
        leaves["nfd", "helmRelease"] = Said(installation.helm_release, NOWHERE)


def about_the_platform(installation: Installation, leaves: Leaves, known: set[Path], info: list[Any]) -> None:
    """Fill in the platform, where what is KNOWN doesn't say it: by what only one has, and by INFO of the nodes."""
    if any(path[1] in {"platform", "openshift"} for path in known):
        return
    if on_openshift(installation, leaves):
        leaves |= openshift(installation)
    elif name := platform(info):
        leaves["cluster", "platform"] = Said(name, NODES)
    elif info:
        installation.tell("platform", "cluster.platform")


def said(leaves: Leaves, *path: str) -> Any:
    """What LEAVES say at PATH, None for nothing."""
    leaf = leaves.get(path)
    return leaf.value if leaf else None


def follow_the_release(made: Draft) -> None:
    """Take out images that a chart filled in and nobody chose, where the policy is of another release than runs. The
    driver's version in values is chosen, but in a copy of all the chart's values."""
    installation, leaves = made.installation, made.leaves
    written_by_hand = [path for path, each in installation.values.items() if path[-1] == "version" and each.value]
    few = not installation.spec and len(written_by_hand) <= FEW
    every = [made.source] if made.source else [*chart.older(), *releases.names()]
    for path in [each for each in leaves if each[:2] == ("daemonsets", "labels") and each[-1] == "helm.sh/chart"]:
        if made.source != made.release:
            del leaves[path]
    sections = {path[:-1] for path in leaves if path[-1] in PARTS and isinstance(path[-1], str)}
    for section in sections:
        name = dotted(("driver", *section[2:]) if section[:1] == ("drivers",) else section)
        own = {str(part): said for part in PARTS if (said := leaves.get((*section, part)))}
        written = {part: str(each.value) for part, each in own.items() if each.value}
        new = chart.image(made.release, name)
        sure = made.source or (section[-1:] != ("driver",) and section[:1] != ("drivers",))
        for release in every if new and written and sure and not (few and section == ("driver",)) else ():
            old = chart.image(release, name)
            if old and old != new and old == whole(old, written) and whole(new, written) != new:
                where = next(iter(own.values())).where
                for part in own:
                    del leaves[(*section, part)]
                if section[:1] == ("drivers",):
                    parts = zip(("repository", "image", "version"), split(new), strict=True)
                    leaves |= {(*section, part): Said(text, where) for part, text in parts}
                installation.tell("image", shown(section), where, old=old, new=new)
                break
    pinned = [name for path, each in leaves.items() if pins(made.release, name := dotted(path[:-1]), path, each.value)]
    if len(pinned) > FEW:
        installation.tell("pinned", "images", images=", ".join(sorted(pinned)), oldest=chart.older()[0])
    changed_defaults(made)


def pins(release: str, section: str, path: Path, value: Any) -> bool:
    """Whether VALUE at PATH is the version of an operand in SECTION, another than RELEASE has."""
    known = releases.release(release).images.get(section)
    return path[-1] == "version" and section != "driver" and known is not None and known.version not in (None, value)


def split(reference: str) -> tuple[str, str, str]:
    """Repository, name and version of the whole name REFERENCE."""
    path, _, version = reference.rpartition(":")
    repository, _, image = path.rpartition("/")
    return repository, image, version


def whole(known: str, written: Mapping[str, str]) -> str:
    """What is WRITTEN of an image, with the parts of KNOWN where nothing is."""
    repository, image, version = split(known)
    parts = (written.get("repository", repository), written.get("image", image), written.get("version", version))
    return f"{parts[0]}/{parts[1]}:{parts[2]}"


def changed_defaults(made: Draft) -> None:
    """Note defaults that are others in the policy's release than in the one that runs, where nobody said anything."""
    if not made.source or made.source == made.release or made.installation.defaults == "operator":
        return
    new = dict(leaf for leaf in defaults_of(made.release))
    old = (
        chart.older_defaults() if made.source in chart.older() else {dotted(p): v for p, v in defaults_of(made.source)}
    )
    for path, value in new.items():
        name = dotted(path)
        if name in old and old[name] != value and path not in made.leaves and path[-1] not in PARTS:
            made.installation.tell("default", f"spec.{name}", old=repr(old[name]), new=repr(value))


def defaults_of(release: str) -> list[tuple[Path, Any]]:
    """The defaults of the chart of RELEASE."""
    return list(leaves_of(dict(releases.release(release).defaults)))


def answer(made: Draft, name: str, text: str) -> None:
    """Put the answer TEXT to the path NAME of the policy."""
    from gpustack.text.read import value

    path = tuple(parse(name))
    parsed = value(text, f"--set {name}")
    plain = parsed[1] if parsed else ""
    if path and path[-1] in {"kubernetesVersion", "version", "kernel", "ostreeVersion"}:
        plain = text.strip("\"'")
    if path[:1] == ("nodePools",) and len(path) > 1 and ("nodePools", path[1], "name") not in made.leaves:
        made.leaves["nodePools", path[1], "name"] = Said("gpus" if path[1] == 0 else f"gpus-{path[1]}", NOWHERE)
    lay(made.leaves, {path: Said(plain, ANSWER)})


def settle(made: Draft) -> None:
    """Take out what the language refuses, and note each with the reason, until the rest is a spec."""
    known: set[Path] = set()
    for _ in range(TRIES):
        try:
            load_values(made.spec)
        except InputError as error:
            taken = [finding for finding in error.findings if out(made, finding, known)]
            if not taken:
                raise
        else:
            return
    raise GpustackError.of("GPU999", "the spec doesn't settle")


def out(made: Draft, finding: Finding, known: set[Path]) -> bool:
    """Take out what FINDING is about; whether there was anything. KNOWN are the values that were made what they are."""
    path = steps(finding.path)
    under = [each for each in made.leaves if each[: len(path)] == path] or [
        each for each in made.leaves if path[: len(each)] == each
    ]
    if not path or not under or path[0] in {"release", "cluster"}:
        return False
    first = made.leaves[under[0]]
    if under == [path] and path not in known and (plain := coerced(first.value, finding)) is not None:
        known.add(path)
        made.leaves[path] = Said(plain, first.where)
        return True
    unknown = finding.rule == "GPU016"
    for each in under:
        del made.leaves[each]
    why = "had no effect" if unknown else f"can't be carried: {finding.what}"
    meant = finding.remedy.removeprefix("did you mean ").partition("?")[0] if "did you mean" in finding.remedy else ""
    why = f"{why}; meant {meant}?" if meant else why
    made.installation.note(
        "dropped" if unknown else "open", finding.path, why, "" if meant else finding.remedy, first.where
    )
    return True


def coerced(value: Any, finding: Finding) -> Any:
    """VALUE as Helm writes it into the custom resource, None where that is no other value."""
    if finding.rule != "GPU017":
        return None
    if isinstance(value, str) and value.lower() in BOOLEANS:
        return BOOLEANS[value.lower()]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return int(value) if isinstance(value, str) and value.isdecimal() else None
    return str(value)


def steps(path: str) -> Path:
    """The dotted PATH of a finding, below `spec`."""
    try:
        return tuple(parse(path))
    except InputError:
        return ()
