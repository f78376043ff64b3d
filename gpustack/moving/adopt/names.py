"""The chart's values by the names that a policy has for them, and what becomes of those that a policy has none for.

Helm writes most values into a template without quotes, so "true" and 580 reach the custom resource as what they look
like there; a policy is stricter, so here they become what they are.
"""

import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

from gpustack.catalog import _data, chart, releases
from gpustack.model import Location, Path, children, dotted
from gpustack.text.read import value

from .documents import named_by, variables
from .installation import Installation, Leaves, Said, lay, leaves_of

NFD = "node-feature-discovery"
TABLE = _data.read(pathlib.Path(__file__).with_suffix(".yaml"))
OURS = set(itertools.chain(*TABLE["ours"]))
PULL = ("driver", "imagePullPolicy")
"""What the chart writes for a ClusterPolicy, and not for an NVIDIADriver."""


def to_spec(installation: Installation, release: str) -> Leaves:
    """The chart's values of INSTALLATION by the names of a policy of RELEASE; what is left out is noted."""
    spec: Leaves = {}
    rest: Leaves = {}
    for path in [each for each in installation.values if each[0] in chart.wrappers() and len(each) > 1]:
        said = installation.values.pop(path)  # of a chart that bundles ours, in whatever hands values to it
        if path[1] != "enabled":
            lay(installation.values, {path[1:]: said})
    for path, said in installation.values.items():
        if unfilled(path, said, installation):
            continue
        if path[0] == NFD:
            lay(spec, nfd(path[1:], said, installation))
        elif path == ("platform", "openshift"):
            installation.openshift = installation.openshift or said.value in (True, "true")
        elif path[0] in OURS or (path[1:] and path[1] not in TABLE["switches"].get(path[0], [path[1]])):
            installation.tell("no value", dotted(path), said.where)
        elif path[0] in {"global", "fullnameOverride", "nameOverride"}:
            installation.tell("object names", dotted(path), said.where)
        elif (why := left_out(path)) is not None:
            installation.note("dropped", dotted(path), why, where=said.where)
        else:
            rest[path] = said
    switches = {("driver", "nvidiaDriverCRD", "enabled"), ("gpuCluster", "deployCR"), ("clusterPolicy", "deployCR")}
    on = {path for path, said in installation.values.items() if path in switches and said.value in (True, "true")}
    lay(spec, {renamed(path): said for path, said in rest.items() if path not in switches or path[0] == "driver"})
    claims = ("gpuCluster", "deployCR") in on
    if claims or ("driver", "nvidiaDriverCRD", "enabled") in on:
        lay(spec, driver_object(installation, spec, release, installation.values[min(on)].where))
    if claims:
        spec.pop(("driver", "useNvidiaDriverCRD"), None)
        spec = {("gpuCluster",): Said({}, installation.values["gpuCluster", "deployCR"].where), **spec}
    return spec


def unfilled(path: Path, said: Said, installation: Installation) -> bool:
    """Whether the value is asked for: it has a variable that nobody filled in (texts in `data` may), or is a secret."""
    if path[0] == "sops" or str(said.value).startswith("ENC["):  # what sops writes beside, and for values
        if path[0] != "sops":
            installation.tell("encrypted", dotted(path), said.where, name=dotted(path))
        return True
    texts = [each for each in texts_in(said.value) if "data" not in path and (variables(each) or each.startswith("${"))]
    for text in texts[:1]:
        installation.tell("variable", dotted(path), said.where, value=f"{text:.80}", name=named_by(text))
    return bool(texts)


def texts_in(data: Any) -> Iterator[str]:
    """The texts in DATA, but for templates that node feature discovery fills in."""
    if isinstance(data, str):
        yield data
    for key, each in children(data):
        yield from texts_in(each) if key not in {"labelsTemplate", "varsTemplate"} else ()


def left_out(path: Path) -> str | None:
    """Why no policy has a field for the value at PATH of the chart; None where there is one."""
    name = dotted(path)
    if name.startswith(("gpuCluster.deployCR", "clusterPolicy.deployCR")):
        return None
    for known, why in {**chart.dropped(), **chart.unread()}.items():
        if name == known or name.startswith((f"{known}.", f"{known}[")):
            return f"it {why}"
    if (
        path[0] == "operator"
        and len(path) > 1
        and path[1] not in {"runtimeClass", "initContainer", "use_ocp_driver_toolkit"}
    ):
        own = "it is about the operator's own pod, and gpustack renders no operator"
        return "no release acts on it" if path[1] == "defaultRuntime" else own
    return None


def renamed(path: Path) -> Path:
    """PATH of the chart's values as a policy calls it."""
    name = dotted(path)
    for old, new in chart.renamed().items():
        if name == old or name.startswith(f"{old}."):
            return (*new.split("."), *path[len(old.split(".")) :])
    return path


def driver_object(installation: Installation, spec: Leaves, release: str, where: Location) -> Leaves:
    """The NVIDIADriver that the chart of RELEASE writes of `driver`, which leaves SPEC (measured: case 53)."""
    values, kept = installation.values, {"enabled", "useNvidiaDriverCRD"}
    deploy = values.get(("driver", "nvidiaDriverCRD", "deployDefaultCR"))
    if deploy is not None and deploy.value in (False, "false"):
        return {}
    known = releases.release(release)
    defaults = {"driver": known.default_spec()["driver"], "gdrcopy": known.default_spec()["gdrcopy"]}
    filled: Leaves = {path: Said(value, where) for path, value in leaves_of(defaults) if value != "" and path != PULL}
    lay(filled, {path: said for path, said in spec.items() if path[0] in {"driver", "gdrcopy"}})
    names: dict[Path, Path] = {tuple(a.split(".")): tuple(b.split(".")) for a, b in chart.renamed("drivers").items()}
    at: Path = ("drivers", 0)
    made: Leaves = {(*at, "name"): Said("default", where)}
    selector = {
        path: said for path, said in values.items() if path[:3] == ("driver", "nvidiaDriverCRD", "nodeSelector")
    }
    made |= {(*at, *path[2:]): said for path, said in selector.items()}
    if not selector and known.traits.driver_owner_label:
        made[(*at, "default")] = Said(True, where)
    made[(*at, "driverType")] = values.get(("driver", "nvidiaDriverCRD", "driverType"), Said("gpu", where))
    tolerations = known.default_spec()["daemonsets"]["tolerations"]
    made[(*at, "tolerations")] = spec.get(("daemonsets", "tolerations"), Said(tolerations, where))
    for path, said in filled.items():
        if path[0] == "gdrcopy":
            made[(*at, *path)] = said
        elif path[1] not in kept and path[1:] != ("licensingConfig", "nlsEnabled"):
            made[(*at, *names.get(path[1:], path[1:]))] = said
    for path in [each for each in spec if each[0] == "driver" and each[1] not in {*kept, "upgradePolicy"}]:
        del spec[path]
    return made


def nfd(path: Path, said: Said, installation: Installation) -> Leaves:
    """A value of node feature discovery's own chart: what gpustack's installation has, and a note for the rest."""
    name, at = dotted((NFD, *path)), dotted(path)
    if len(path) > 1 and path[0] in TABLE["parts"] and path[1] in TABLE["fields"]:
        return {("nfd", *path): said}
    if at == "image.repository" and isinstance(said.value, str):
        repository, _, image = said.value.rpartition("/")
        return {("nfd", "repository"): Said(repository, said.where), ("nfd", "image"): Said(image, said.where)}
    if at == "image.tag":
        return {("nfd", "version"): said}
    if at in TABLE["lists"] and isinstance(said.value, list):
        field, *own = TABLE["lists"][at]
        more = [each for each in said.value if str(each) not in own]
        return {("nfd", field): Said(more, said.where)} if more else {}
    if at == "worker.config.sources.custom" and isinstance(said.value, list):
        return worker_rules(name, said, installation)
    if path and path[0] in {"fullnameOverride", "nameOverride"}:
        installation.tell("nfd names", name, said.where)
    elif TABLE["defaults"].get(at, said) != said.value:
        installation.tell("nfd setting", name, said.where)
    return {}


def worker_rules(name: str, said: Said, installation: Installation) -> Leaves:
    """The rules of NFD's worker at NAME as a NodeFeatureRule, without fields that had no effect."""
    rules: list[dict[str, Any]] = []
    switch = installation.values.get(("nfd", "enabled"))
    if switch is not None and switch.value in (False, "false"):
        installation.tell("nfd off", name, said.where)
        return {}
    for index, rule in enumerate(said.value):
        if not isinstance(rule, dict) or "matchOn" in rule:
            installation.tell("worker rule", f"{name}[{index}]", said.where)
            continue
        for key in sorted(set(rule) - {*TABLE["rule"]}):
            installation.tell("worker rule field", f"{name}[{index}].{key}", said.where)
        rules.append({key: each for key, each in rule.items() if key in TABLE["rule"]})
    head = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureRule", "metadata": {"name": "worker-rules"}}
    return {("extraObjects",): Said([{**head, "spec": {"rules": rules}}], said.where)} if rules else {}


def of_worker(installation: Installation) -> Leaves:
    """What the worker's configuration in a ConfigMap that runs says, where no values do."""
    made: Leaves = {}
    told = any(path[:3] == (NFD, "worker", "config") for path in installation.values)
    for body, where in installation.objects if not told else ():
        text = (body.get("data") or {}).get("nfd-worker.conf") if body["kind"] == "ConfigMap" else None
        config = value(text, where.file) if isinstance(text, str) else None
        for path, each in leaves_of(config[1]) if config and isinstance(config[1], dict) else ():
            lay(made, nfd(("worker", "config", *path), Said(each, where), installation))
    return made
