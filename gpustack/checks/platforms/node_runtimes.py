"""Rules about which container runtime nodes run, and where the toolkit reads its configuration from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog import releases
from ...policy.language.cluster import on_openshift, platform_of
from ..rule import Hit, hit, rule
from .runtime_files import SOURCES, toolkit_env, variables

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster

KINDS = ("command", "file")
"""Where the toolkit can read the runtime's configuration from (platforms.yaml toolkit_env)."""


@rule("GPU480", "warning")
def several_runtimes(cluster: Cluster) -> Iterator[Hit]:
    """Node pools run different container runtimes."""
    if not cluster.spec.toolkit.enabled or cluster.dra or nri_alone(cluster):
        return
    for pool in cluster.pools:
        if pool.engine != cluster.engine and pool.workload == "container":
            yield hit(
                f"{pool.path}.containerRuntime" if pool.said.containerRuntime else "spec.cluster.containerRuntime",
                pool_engine=pool.engine,
                engine=cluster.engine,
                pool=pool.name,
            )


def nri_alone(cluster: Cluster) -> bool:
    """Whether the toolkit leaves the runtime's configuration alone, because its NRI plugin injects GPUs."""
    spec = cluster.spec
    return bool(spec.cdi.nriPluginEnabled) and releases.release(spec.release).traits.nri_replaces_runtime_config


@rule("GPU469", "error")
def unknown_source(cluster: Cluster) -> Iterator[Hit]:
    """The toolkit doesn't know where it is to read the container runtime's configuration from."""
    for path, name, value in variables(cluster.spec):
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
    spec = cluster.spec
    if on_openshift(spec.cluster):
        return
    preset = next((value for name, value in toolkit_env(cluster).items() if name in SOURCES), "")
    platform = platform_of(spec.cluster)
    for path, name, value in variables(spec) if preset and "command" not in preset.split(",") else ():
        if name in SOURCES and "command" in value.split(","):
            yield hit(path, name=name, value=value, title=platform.title, preset=preset)
