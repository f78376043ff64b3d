"""Names of the objects of drivers that serve some of a cluster's nodes (operator.md 10.2)."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.components.driver.nvidia_driver_pools_inputs import account_name, daemonset_name

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
KIND: Any = st.sampled_from(["gpu", "vgpu", "vgpu-host-manager"])
TAG = st.sampled_from(["ubuntu22.04", "rhel9", "sl-micro6.1", "rhcos4.18", "a-long_system-name2024.10.02"])
DRIVER = st.from_regex(rf"{LABEL}(\.{LABEL})*", fullmatch=True).filter(lambda name: len(name) <= 63)
VARIANT = st.one_of(st.just(""), st.from_regex(r"[0-9][A-Za-z0-9._+-]{0,60}", fullmatch=True))
WHO = st.tuples(KIND, TAG, DRIVER, VARIANT)


@settings(max_examples=200, deadline=None)
@given(WHO)
def test_names_are_valid(who: tuple[Any, str, str, str]) -> None:
    """A DaemonSet's name is a label value too, so at most 63 characters; accounts have at most 253."""
    kind, tag, driver, variant = who
    name = daemonset_name(kind, tag, driver, variant)
    assert len(name) <= 63
    assert re.fullmatch(rf"{LABEL}(\.{LABEL})*", name)
    assert name.startswith(f"nvidia-{kind}-driver-")
    assert re.fullmatch(rf"{LABEL}(\.{LABEL})*", account_name(kind, driver * 4, tag))
    assert len(account_name(kind, driver * 4, tag)) <= 253


@settings(max_examples=200, deadline=None)
@given(st.lists(WHO, min_size=2, max_size=6, unique=True))
def test_no_two_daemonsets_share_a_name(them: list[tuple[Any, str, str, str]]) -> None:
    """Another driver, type, system, kernel or RHCOS version is another name, also where names are cut."""
    assert len({daemonset_name(*who) for who in them}) == len(them)


def test_names_say_whose_they_are() -> None:
    """The operator's prefix and OS tag, then the driver, then a hash: readable in a review, equal in every render."""
    hash_of_it = "b861dad7"  # printf gpu/ubuntu22.04/volta/ | sha256sum
    assert daemonset_name("gpu", "ubuntu22.04", "volta") == f"nvidia-gpu-driver-ubuntu22.04-volta-{hash_of_it}"


def test_accounts_are_called_as_the_operators() -> None:
    """nvidia-<type>-driver-<driver>-<tag>, and nvidia-vgpu-manager-<driver>-<tag> for hosts (10.2)."""
    assert account_name("gpu", "default", "rhel9") == "nvidia-gpu-driver-default-rhel9"
    assert account_name("vgpu", "default", "rhel9") == "nvidia-vgpu-driver-default-rhel9"
    assert account_name("vgpu-host-manager", "default", "rhel9") == "nvidia-vgpu-manager-default-rhel9"
