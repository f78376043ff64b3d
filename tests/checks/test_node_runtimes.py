"""Which container runtime nodes run, and where the toolkit reads its configuration from."""

from __future__ import annotations

import pytest

from tests.checks.spec_rules import paths, said

POOLS = (
    "nodePools: [{name: a, os: ubuntu24.04, gpuProduct: NVIDIA-L4}, {name: b, os: ubuntu22.04, containerRuntime: %s}]\n"
)


@pytest.mark.parametrize(
    ("cluster", "own", "found"),
    [
        ("containerd", "cri-o", ["spec.nodePools[1].containerRuntime"]),
        ("containerd", "containerd://1.7.30", []),
        ("cri-o", "cri-o://1.34.1", []),
        ("cri-o", "containerd", ["spec.cluster.containerRuntime"]),
        ("docker", "cri-o", ["spec.cluster.containerRuntime"]),
    ],
)
def test_pools_with_different_runtimes(cluster: str, own: str, found: list[str]) -> None:
    """The pools that run another runtime than the toolkit is told of are named: containerd counts where any node
    has it, otherwise the last (operator.md 3, Runtime)."""
    facts = f"cluster: {{containerRuntime: {cluster}}}\n"
    assert paths("GPU480", facts + POOLS % own) == found
    assert not paths("GPU480", facts + POOLS % own + "toolkit: {enabled: false}\n")


def test_a_pool_that_brings_its_toolkit() -> None:
    """Nodes with the label nvidia.com/gpu.deploy.container-toolkit=false get no toolkit (operator.md 2.2), so what it
    is told is nothing to them."""
    label = "cri-o, nodeSelector: {nvidia.com/gpu.deploy.container-toolkit: 'false'}"
    assert paths("GPU480", POOLS % "cri-o")
    assert not paths("GPU480", POOLS % label)


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ("command", False),
        ("file", False),
        ("command,file", False),
        ("file=/etc/containerd/config.toml", False),
        ("comand, file=/etc/containerd/config.toml", True),
        ("command, file=/etc/containerd/config.toml", True),
        ("File", True),
        ("command,", True),
    ],
)
def test_sources(value: str, refused: bool) -> None:
    """The values of operator.md 7.2, and nothing else; only what begins with file= is moved below /host
    (operator.md 7.2)."""
    snippet = f"toolkit: {{env: [{{name: RUNTIME_CONFIG_SOURCE, value: '{value}'}}]}}"
    assert bool(paths("GPU469", snippet)) == refused


def test_spaces_have_a_remedy_that_passes() -> None:
    """Where nothing but a space is wrong, the remedy is the value without it."""
    (hit,) = said("GPU469", "toolkit: {env: [{name: RUNTIME_CONFIG_SOURCE, value: 'command, file=/etc/x.toml'}]}")
    assert hit.remedy.endswith(" command,file=/etc/x.toml")


@pytest.mark.parametrize(
    ("platform", "value", "found"),
    [
        ("k0s", "command", True),
        ("microk8s", "command,file", True),
        ("k0s", "file", False),
        ("microk8s", "file=/var/snap/microk8s/current/args/containerd.toml", False),
        ("rke2", "command", False),
    ],
)
def test_command_of_another_containerd(platform: str, value: str, found: bool) -> None:
    """k0s and MicroK8s are told the file (data/platforms); for RKE2 nothing is said."""
    snippet = (
        f"cluster: {{platform: {platform}}}\ntoolkit: {{env: [{{name: RUNTIME_CONFIG_SOURCE, value: '{value}'}}]}}"
    )
    assert bool(paths("GPU481", snippet)) == found


@pytest.mark.parametrize(
    ("platform", "name", "value", "rules"),
    [
        ("rke2", "CONTAINERD_CONFIG", "/etc/containerd/config.toml", ["GPU463"]),
        ("rke2", "RUNTIME_CONFIG", "/etc/containerd/config.toml", ["GPU463"]),
        ("rke2", "CONTAINERD_SOCKET", "/run/containerd/containerd.sock", ["GPU456"]),
        ("microk8s", "RUNTIME_DROP_IN_CONFIG", "/etc/containerd/conf.d/99-nvidia.toml", ["GPU463"]),
        ("microk8s", "RUNTIME_DROP_IN_CONFIG", "/etc/k0s/containerd.d/99-nvidia.toml", ["GPU456"]),
        ("k0s", "RUNTIME_DROP_IN_CONFIG", "/etc/containerd/conf.d/99-nvidia.toml", ["GPU456"]),
        ("k0s", "RUNTIME_DROP_IN_CONFIG", "/etc/k0s/containerd.d/99-nvidia.toml", []),
        ("k0s", "CONTAINERD_CONFIG", "/etc/containerd/config.toml", ["GPU456"]),
    ],
)
def test_what_is_the_default_is_not_refused(platform: str, name: str, value: str, rules: list[str]) -> None:
    """A path that the toolkit gets without the line too (operator.md 7.2; data/platforms has none for RKE2) is no
    error, and drop-in files count like the configuration."""
    snippet = f"cluster: {{platform: {platform}}}\ntoolkit: {{env: [{{name: {name}, value: {value}}}]}}"
    assert [rule for rule in ("GPU456", "GPU463") if paths(rule, snippet)] == rules


def test_drop_in_on_the_host_is_overwritten() -> None:
    """RUNTIME_DROP_IN_CONFIG_HOST_PATH is written last (operator.md 7.2)."""
    assert paths("GPU462", "toolkit: {env: [{name: RUNTIME_DROP_IN_CONFIG_HOST_PATH, value: /etc/x.toml}]}")
