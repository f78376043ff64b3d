"""Rules about the container runtime that nodes run, and its files that the toolkit is told of (`toolkit.env`).

The toolkit edits the runtime's configuration and asks it over its socket to read that again. Distributions with a
containerd of their own keep both elsewhere; a path of another one is a file that nobody reads, or a node that doesn't
come back from a reboot.
"""

from collections.abc import Iterator

from ...api.keys import DEPLOY
from ...catalog import platforms, releases
from ...catalog._versions import numbers
from ...catalog.platforms import GENERIC, Platform
from ...cluster.resolve import Cluster
from ..rule import Hit, hit, rule
from .support import runtimes

DROP_IN = "RUNTIME_DROP_IN_CONFIG"
CONFIGS = ("RUNTIME_CONFIG", "CONTAINERD_CONFIG")
SOCKETS = ("RUNTIME_SOCKET", "CONTAINERD_SOCKET")
SOURCES = ("RUNTIME_CONFIG_SOURCE", "RUNTIME_CONFIG_SOURCES")
OF_RUNTIMES = {"CONTAINERD_": "containerd", "CRIO_": "cri-o", "DOCKER_": "docker"}
"""Variables of one runtime, by their prefix (operator.md 7.2)."""
KINDS = ("command", "file")
"""Where the toolkit can read the runtime's configuration from (operator.md 7.2)."""


def variables(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """(path, name, value) of the toolkit's environment, where there is one; of the last where one stands twice."""
    toolkit = cluster.spec.toolkit
    by_name = {entry.name: (index, entry.value or "") for index, entry in enumerate(toolkit.env or ())}
    for name, (index, value) in by_name.items() if toolkit.enabled else ():
        yield f"spec.toolkit.env[{index}]", name, value


def files(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """(path, name, file) of the files and sockets of the runtime that the toolkit's environment names."""
    for path, name, value in variables(cluster):
        if name in CONFIGS or name in SOCKETS or name == DROP_IN:
            yield path, name, value
        elif name in SOURCES:
            for part in value.split(","):
                if part.strip().startswith("file="):
                    yield path, name, part.strip().removeprefix("file=")


def owners(file: str) -> set[str]:
    """The platforms in whose folders FILE is, "" for those that have containerd where it is by default."""
    names = set()
    for name in platforms.names():
        known = platforms.platform(name)
        if any(file.startswith(f"{folder}/") for folder in known.runtime_folders):
            names.add("" if known.runtime_folders == platforms.DEFAULT_RUNTIME_FOLDERS else name)
    return names


def named(owners: set[str]) -> str:
    """OWNERS in words."""
    return " and ".join(name or "containerd's own packages" for name in sorted(owners))


@rule("GPU456", "error")
def path_of_another_platform(cluster: Cluster) -> Iterator[Hit]:
    """A path of the container runtime is that of another platform."""
    for path, name, file, whose in _foreign(cluster):
        if file != _left_out(cluster, name):
            yield _told(path, cluster.platform, name, whose)


@rule("GPU463", "warning")
def path_that_is_the_default(cluster: Cluster) -> Iterator[Hit]:
    """A path of the container runtime is in another platform's folder, and is what the toolkit is told anyway."""
    for path, name, file, whose in _foreign(cluster):
        if file == _left_out(cluster, name):
            yield _told(path, cluster.platform, name, whose)


def _foreign(cluster: Cluster) -> Iterator[tuple[str, str, str, set[str]]]:
    """(path, name, file, owners) of files that are in folders of other platforms only."""
    platform = cluster.platform
    for path, name, file in () if platform.name == GENERIC or platform.container_runtime else files(cluster):
        whose = owners(file)
        if whose and not any(file.startswith(f"{folder}/") for folder in platform.runtime_folders):
            yield path, name, file, whose


def _left_out(cluster: Cluster, name: str) -> str:
    """The file or socket that the toolkit is told of where the policy leaves out the variable NAME."""
    preset = toolkit_env(cluster)
    fields = {**dict.fromkeys(CONFIGS, "config"), **dict.fromkeys(SOCKETS, "socket"), DROP_IN: "drop_in"}
    names = CONFIGS if name in CONFIGS else SOCKETS if name in SOCKETS else (name,)
    given = next((preset[other] for other in names if other in preset), None)
    return given or (str(getattr(platforms.DEFAULT_CONTAINERD, fields[name])) if name in fields else "")


def toolkit_env(cluster: Cluster) -> dict[str, str]:
    """What the platform says to the toolkit."""
    spec = cluster.spec
    minor = ".".join(map(str, numbers(spec.cluster.kubernetesVersion)[:2]))
    env = platforms.defaults(cluster.platform.name, spec.release, minor).get("toolkit", {}).get("env", [])
    return {entry["name"]: entry["value"] for entry in env}


def _told(path: str, platform: Platform, name: str, whose: set[str]) -> Hit:
    own, folders, title = platform.containerd, " and ".join(platform.runtime_folders), platform.title
    right = (own.socket if name in SOCKETS else own.drop_in if name == DROP_IN else own.config) if own else None
    right = f", or set it to {right}" if right and name not in SOURCES else ""
    return hit(path, name=name, whose=named(whose), platform=platform.name, title=title, folders=folders, right=right)


@rule("GPU457", "warning")
def paths_that_contradict(cluster: Cluster) -> Iterator[Hit]:
    """Configuration and socket of the container runtime belong to two different platforms."""
    if cluster.platform.name != GENERIC:
        return
    given = [(path, name, owners(file)) for path, name, file in files(cluster) if name not in SOURCES]
    configs = next(((path, whose) for path, name, whose in given if name in CONFIGS), None)
    sockets = next((whose for _, name, whose in given if name in SOCKETS), {""})
    if configs is not None and configs[1] and sockets and not configs[1] & sockets:
        yield hit(configs[0], one=named(configs[1]), other=named(sockets))


@rule("GPU458", "error")
def template_of_the_distribution(cluster: Cluster) -> Iterator[Hit]:
    """The toolkit would write into the distribution's template of containerd's configuration."""
    yield from _templates(cluster, of_distribution=True)


@rule("GPU459", "warning")
def some_template(cluster: Cluster) -> Iterator[Hit]:
    """The toolkit would write into a template of containerd's configuration."""
    yield from _templates(cluster, of_distribution=False)


def _templates(cluster: Cluster, *, of_distribution: bool) -> Iterator[Hit]:
    for path, name, file in files(cluster):
        if file.endswith(".tmpl") and cluster.platform.own_template == of_distribution:
            yield hit(path, name=name, file=file, plain=file.removesuffix(".tmpl"))


@rule("GPU460", "note")
def somebody_else_writes(cluster: Cluster) -> Iterator[Hit]:
    """Somebody else writes the container runtime's configuration anew."""
    spec, owner = cluster.spec, cluster.platform.config_owner
    if owner and spec.toolkit.enabled and not spec.cdi.nriPluginEnabled:
        yield hit("spec.cluster.platform", owner=owner)


@rule("GPU461", "error")
def variable_of_another_runtime(cluster: Cluster) -> Iterator[Hit]:
    """A variable of the toolkit is about a container runtime that no node has."""
    if cluster.platform.container_runtime:
        return  # GPU120
    known = {name for name, _ in runtimes(cluster.spec).values()}
    for path, name, _ in variables(cluster) if known else ():
        about = next((runtime for prefix, runtime in OF_RUNTIMES.items() if name.startswith(prefix)), None)
        if about is not None and about not in known:
            yield hit(path, name=name, runtimes=" and ".join(sorted(known)))


@rule("GPU462", "warning")
def variable_that_is_overwritten(cluster: Cluster) -> Iterator[Hit]:
    """A variable of the toolkit has no effect, because another field of the policy sets it."""
    nri, given = nri_alone(cluster), {"CONTAINERD_RUNTIME_CLASS": cluster.runtime_class}
    for path, name, value in variables(cluster):
        if nri and name.startswith(("RUNTIME", *OF_RUNTIMES)):
            yield hit(path, "nri", name=name)
        elif name in OVERWRITTEN and (name not in given or value != given[name]):
            where = OVERWRITTEN[name]
            yield hit(path, "setting", name=name, setting=where.removeprefix("spec."), where=where)


OVERWRITTEN = {
    "RUNTIME": "spec.cluster.containerRuntime",
    "CONTAINERD_RUNTIME_CLASS": "spec.operator.runtimeClass",
    "RUNTIME_DROP_IN_CONFIG_HOST_PATH": f"{DROP_IN} in spec.toolkit.env",
}
"""Variables that are written last, and what says their value (operator.md 7.2)."""


TOOLKIT = f"{DEPLOY}container-toolkit"


@rule("GPU480", "warning")
def several_runtimes(cluster: Cluster) -> Iterator[Hit]:
    """Node pools run different container runtimes."""
    if not cluster.spec.toolkit.enabled or cluster.dra or nri_alone(cluster):
        return
    for pool in cluster.pools:
        own = pool.said.nodeSelector.get(TOOLKIT) == "false"  # a container toolkit that the nodes bring
        at, mine, engine = pool.path if pool.said.containerRuntime else "spec.cluster", pool.engine, cluster.engine
        if mine != engine and pool.workload == "container" and not own:
            path = f"{at}.containerRuntime"
            yield hit(path, pool=pool.name, pool_engine=mine, engine=engine, label=TOOLKIT, pool_path=pool.path)


def nri_alone(cluster: Cluster) -> bool:
    """Whether the toolkit leaves the runtime's configuration alone, because its NRI plugin injects GPUs."""
    spec = cluster.spec
    return spec.cdi.nriPluginEnabled and releases.release(spec.release).traits.nri_replaces_runtime_config


@rule("GPU469", "error")
def unknown_source(cluster: Cluster) -> Iterator[Hit]:
    """The toolkit doesn't know where it is to read the container runtime's configuration from."""
    for path, name, value in variables(cluster):
        if name in SOURCES and value and (wrong := [part for part in value.split(",") if not _known(part)]):
            yield hit(path, remedy=_corrected(value, wrong), name=name, wrong=" and ".join(map(repr, wrong)))


def _known(source: str) -> bool:
    kind, is_path, file = source.partition("=")
    return source == "command" or (kind == "file" and (not is_path or file.startswith("/")))


def _corrected(value: str, wrong: list[str]) -> str:
    if all(_known(part.strip()) for part in wrong):
        return f"write it without spaces: {','.join(part.strip() for part in value.split(','))}"
    return "write command, file, or file= and an absolute path, separated by commas; or leave it out"


@rule("GPU481", "warning")
def command_that_is_elsewhere(cluster: Cluster) -> Iterator[Hit]:
    """The toolkit is to ask a command for containerd's configuration, on a platform where it has to read the file."""
    preset = next((value for name, value in toolkit_env(cluster).items() if name in SOURCES), "")
    for path, name, value in variables(cluster) if preset and "command" not in preset.split(",") else ():
        if name in SOURCES and "command" in value.split(","):
            yield hit(path, name=name, value=value, title=cluster.platform.title, preset=preset)
