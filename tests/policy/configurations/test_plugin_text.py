"""Configurations of the device plugin are read with a closed schema."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog import plugin_config
from gpustack.policy.configurations.plugin_keys import known_paths
from gpustack.policy.configurations.plugin_text import PluginConfig, read_plugin_config

HEAD = "version: v1\n"


def sliced(entry: str, more: str = "") -> str:
    """A configuration that shares one resource in time."""
    return f"{HEAD}sharing:\n  timeSlicing:\n{more}    resources:\n    - {entry}\n"


def test_what_it_says() -> None:
    """Entries with the prefix that the plugin adds, options, flags as they stand, and where."""
    text = sliced("{name: gpu, replicas: 4}", "    renameByDefault: true\n    failRequestsGreaterThanOne: false\n")
    found = read_plugin_config(text + "flags: {migStrategy: mixed, plugin: {deviceListStrategy: [envvar, cdi-cri]}}\n")
    shared = found.sharing["timeSlicing"]
    assert (found.refused, found.ignored) == ((), ())
    assert [(entry.name, entry.replicas) for entry in shared.entries] == [("nvidia.com/gpu", 4)]
    assert (shared.renamed, shared.fails, shared.place, shared.fails_place) == (True, False, (3, 3), (5, 5))
    assert found.flags["flags.migStrategy"][0] == "mixed"
    assert found.flags["flags.plugin.deviceListStrategy"][0] == "envvar,cdi-cri"


@pytest.mark.parametrize("text", ["", "# nothing\n", HEAD, "flags: {}\n", "sharing: {mps: }\n", "sharing: {}\n"])
def test_plain_configurations(text: str) -> None:
    """Nothing at all is a configuration: the plain behaviour (api/config/v1: an empty version is v1)."""
    assert read_plugin_config(text) == PluginConfig()


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        (sliced("{name: nvidia.com/gpu, replicas: 1}"), (5, 40), "replicas is 1"),
        (sliced("{name: nvidia.com/gpu, replicas: 0}"), (5, 40), "replicas is 0"),
        (sliced("{name: nvidia.com/gpu, replicas: -2}"), (5, 40), "replicas is -2"),
        (sliced('{name: nvidia.com/gpu, replicas: "4"}'), (5, 40), "replicas is not a whole number"),
        (sliced("{name: nvidia.com/gpu}"), (5, 7), "an entry of sharing.timeSlicing.resources has no replicas"),
        (sliced("{replicas: 2}"), (5, 7), "an entry of sharing.timeSlicing.resources has no name"),
        (sliced("{name: GPU, replicas: 2}"), (5, 14), "'GPU' isn't a resource's name"),
        (sliced("{name: example.com/gpu, replicas: 2}"), (5, 14), "'example.com/gpu' isn't a resource's name"),
        (HEAD + "sharing: {timeSlicing: {resources: []}}\n", (2, 36), "sharing.timeSlicing.resources is empty"),
        (HEAD + "sharing: {timeSlicing: {}}\n", (2, 11), "sharing.timeSlicing has no resources"),
        (HEAD + "sharing: {timeSlicing: }\n", (2, 11), "sharing.timeSlicing is empty"),
        ("version: v2\n", (1, 10), "version is not v1"),
        (HEAD + 'flags: {failOnInitError: "true"}\n', (2, 26), "flags.failOnInitError is neither true nor false"),
        (HEAD + "flags: {gfd: {sleepInterval: soon}}\n", (2, 30), "flags.gfd.sleepInterval is 'soon'"),
        (HEAD + "imex: {channelIDs: [1]}\n", (2, 20), "imex.channelIDs is neither [] nor [0]"),
        (HEAD + "\tflags: {}\n", (2, 1), "line 2 is indented with a tab"),
        ("- a\n", (1, 1), "the configuration is not a mapping"),
    ],
)
def test_what_the_plugin_refuses(text: str, place: tuple[int, int], what: str) -> None:
    """It exits for these (plugin-config.yaml, NVIDIA/k8s-device-plugin api/config/v1)."""
    found = read_plugin_config(text)
    assert [(problem.place, problem.what.startswith(what)) for problem in found.refused] == [(place, True)], found


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        (
            HEAD + "flags: {renameByDefault: true}\n",
            "flags.renameByDefault is unknown",
            "it belongs to sharing.timeSlicing",
        ),
        (
            HEAD + "flags: {failRequestsGreaterThanOne: true}\n",
            "flags.failRequests",
            "it belongs to sharing.timeSlicing",
        ),
        (
            sliced("{name: gpu, replicas: 2}", "    replicas: 4\n"),
            "sharing.timeSlicing.replicas",
            "timeSlicing.resources[]",
        ),
        (HEAD + "sharring: {}\n", "sharring is unknown", "did you mean sharing?"),
        (HEAD + "migStrategy: mixed\n", "migStrategy is unknown", "it belongs to flags"),
        (HEAD + "flags: {passDeviceSpecs: true}\n", "flags.passDeviceSpecs", "it belongs to flags.plugin"),
        (
            HEAD + "sharing: {timeslicing: {Resources: [{name: gpu, replicas: 2}]}}\n",
            "Resources is unknown",
            "did you mean resources?",
        ),
        (sliced("{name: gpu, replicas: 2, rename: mine}"), "rename is not honoured", "renameByDefault"),
        (sliced("{name: gpu, replicas: 2, devices: [0]}"), "devices is not honoured", "leave it out"),
        (HEAD + "resources: {gpus: [{pattern: A100, name: a}]}\n", "resources.gpus is not honoured", "leave it out"),
        (HEAD + HEAD, "version stands twice", "delete one of the two; the other is on line 1"),
    ],
)
def test_what_the_plugin_ignores(text: str, what: str, remedy: str) -> None:
    """It takes any key, and says nothing; the message names the right one and its level (B30, B33)."""
    (problem,) = read_plugin_config(text).ignored
    assert what in problem.what
    assert remedy in problem.remedy


def test_keys_of_later_plugins() -> None:
    """A flag that came with a later plugin is ignored by an older one."""
    text = HEAD + "flags: {plugin: {sharedDevicesAllocationPolicy: packed}}\n"
    assert read_plugin_config(text, "v0.20.0").ignored == ()
    assert read_plugin_config(text, "mine").ignored == ()
    (problem,) = read_plugin_config(text, "v0.19.2").ignored
    assert problem.what == "flags.plugin.sharedDevicesAllocationPolicy is known from v0.20.0 on"


def test_merge_keys_and_anchors() -> None:
    """YAML's own means of sharing are read as the plugin's reader does."""
    text = HEAD + "x: &r {name: gpu, replicas: 4}\nsharing: {timeSlicing: {resources: [{<<: *r, replicas: 2}]}}\n"
    found = read_plugin_config(text)
    assert [(entry.name, entry.replicas) for entry in found.sharing["timeSlicing"].entries] == [("nvidia.com/gpu", 2)]


@pytest.mark.parametrize("path", known_paths())
def test_every_known_key_is_taken(path: str) -> None:
    """No key of the catalogue is called unknown, where it stands."""
    value: object = "x"
    for step in reversed(path.split(".")):
        value = {step.removesuffix("[]"): [value] if step.endswith("[]") else value}
    found = read_plugin_config(yaml.safe_dump(value))
    assert not [problem for problem in found.ignored if "unknown" in problem.what]


def test_the_catalogue_has_every_flag() -> None:
    """Flags come from the catalogue alone."""
    assert set(plugin_config.flags()) <= set(known_paths())


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-3, 60)
        | st.sampled_from(["", "gpu", "mixed", "all", "nvidia.com/gpu"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    sorted({step.removesuffix("[]") for path in known_paths() for step in path.split(".")})
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_data_is_answered(data: object) -> None:
    """Whatever the text holds, reading ends with an answer whose places are in the text."""
    text = yaml.safe_dump(data)
    found = read_plugin_config(text)
    for problem in (*found.refused, *found.ignored):
        assert 1 <= problem.place[0] <= len(text.splitlines()) + 1
        assert re.search(r"\S", problem.what)
        assert problem.remedy
