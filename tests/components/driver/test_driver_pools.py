"""Which driver DaemonSets the node pools of a policy ask for (driver/driver_pools_inputs.py)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.cluster.resolve import resolve
from gpustack.components.driver.driver_pools_inputs import NAME, Target, targets
from gpustack.components.driver.driver_view import DriverView
from gpustack.model import Finding, FindingsError
from tests.components.common import spec

OS_RELEASE = "feature.node.kubernetes.io/system-os_release."
KERNEL = "feature.node.kubernetes.io/kernel-version.full"
SYSTEMS = [
    "ubuntu22.04",
    "ubuntu24.04",
    "rhel8.10",
    "rhel9.4",
    "rhel9.6",
    "rocky9.4",
    "ol9.4",
    "sles15.6",
    "sl-micro6.1",
]


def pools(*systems: str | None, kernels: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """One pool for each of SYSTEMS, with the kernel of the same place."""
    return [
        {"name": f"pool-{i}", **({"os": os} if os else {}), **({"kernel": kernels[i]} if i < len(kernels) else {})}
        for i, os in enumerate(systems)
    ]


def of(
    *systems: str | None, precompiled: bool = False, kernels: tuple[str, ...] = (), release: str = "v26.7.0"
) -> list[Target]:
    """The targets of a cluster with a pool for each of SYSTEMS."""
    return targets(
        DriverView.section(
            resolve(
                spec(
                    release=release, driver={"usePrecompiled": precompiled}, nodePools=pools(*systems, kernels=kernels)
                )
            )
        )
    )


def refusals(*systems: str | None, precompiled: bool = False, kernels: tuple[str, ...] = ()) -> list[Finding]:
    """What is said against pools of SYSTEMS."""
    with pytest.raises(FindingsError) as caught:
        of(*systems, precompiled=precompiled, kernels=kernels)
    return caught.value.findings


def test_a_cluster_with_one_system_has_the_operators_daemonset() -> None:
    """One OS: nvidia-driver-daemonset on all nodes, as the operator's, which is adopted in place (operator.md 7.1)."""
    (only,) = of("ubuntu22.04", "ubuntu22.04")
    assert (only.name, only.app, only.node_selector, only.image_suffix) == (NAME, NAME, {}, "ubuntu22.04")


def test_minor_versions_with_one_image_are_one_system() -> None:
    """RHEL, Rocky and Oracle Linux have one image per major version (operator.md 3): 9.4 and 9.6 share it."""
    assert [target.image_suffix for target in of("rhel9.4", "rhel9.6")] == ["rhel9"]


def test_older_releases_tag_the_full_version() -> None:
    """Up to v25.10 images of RHEL end in the full version (operating-systems.yaml): there it takes two DaemonSets."""
    found = of("rhel9.4", "rhel9.6", release="v25.10.1")
    assert [target.image_suffix for target in found] == ["rhel9.4", "rhel9.6"]
    assert found[1].node_selector == {f"{OS_RELEASE}ID": "rhel", f"{OS_RELEASE}VERSION_ID": "9.6"}


def test_each_system_gets_a_daemonset_for_its_nodes() -> None:
    """Several OSs: each has its image on its nodes, where the operator gives all nodes the image of one (case 40)."""
    first, second, third = of("ubuntu22.04", "ubuntu24.04", "rhel9.4")
    assert [target.name for target in (first, second, third)] == [NAME, f"{NAME}-ubuntu24.04", f"{NAME}-rhel9"]
    assert [target.image_suffix for target in (first, second, third)] == ["ubuntu22.04", "ubuntu24.04", "rhel9"]
    assert first.node_selector == {f"{OS_RELEASE}ID": "ubuntu", f"{OS_RELEASE}VERSION_ID": "22.04"}
    assert third.node_selector == {f"{OS_RELEASE}ID": "rhel", f"{OS_RELEASE}VERSION_ID.major": "9"}


def test_daemonsets_of_several_systems_never_claim_each_others_pods() -> None:
    """Orphaned driver pods are adopted by the DaemonSet of their own OS: no two share a selector."""
    found = of(*SYSTEMS)
    assert found[0].app == NAME
    assert len({target.app for target in found}) == len(found)


def test_a_system_named_by_its_major_version_selects_all_minor_ones() -> None:
    """`os: rhel9` means nodes that call themselves 9.4: their label VERSION_ID is not 9."""
    assert of("ubuntu22.04", "rhel9")[1].node_selector == {
        f"{OS_RELEASE}ID": "rhel",
        f"{OS_RELEASE}VERSION_ID.major": "9",
    }


@settings(max_examples=50, deadline=None)
@given(before=st.lists(st.sampled_from(SYSTEMS), min_size=1, max_size=6), added=st.sampled_from(SYSTEMS))
def test_an_appended_pool_renames_nothing(before: list[str], added: str) -> None:
    """A new pool at the end leaves name, selector and image of every other DaemonSet, so no driver is restarted."""
    old, new = of(*before), of(*before, added)
    assert [(t.name, t.app, t.image_suffix) for t in new[: len(old)]] == [(t.name, t.app, t.image_suffix) for t in old]


def test_without_pools_nothing_is_installed() -> None:
    """No nodes with GPUs: no DaemonSet, as with the operator (operator.md 1.2)."""
    assert of() == []


def test_precompiled_drivers_have_a_daemonset_per_kernel() -> None:
    """Names, selectors, raw kernel in image and node selector as in case 39; the OS suffix is each kernel's own."""
    kernels = (
        "5.15.0-105-generic",
        "6.8.0-31-generic",
        "5.14.0-427.13.1.el9_4.x86_64",
        "6.5.0-1019-nvidia-64k_aarch64_64k",
    )
    found = of("ubuntu22.04", "ubuntu24.04", "rhel9.4", "ubuntu22.04", precompiled=True, kernels=kernels)
    assert [target.name for target in found] == [
        "nvidia-driver-daemonset-5.15.0-105-generic-ubuntu22.04",
        "nvidia-driver-daemonset-6.8.0-31-generic-ubuntu24.04",
        "nvidia-driver-daemonset-5.14.0-427.13.1.el9.4-rhel9.4",
        "nvidia-driver-daemonset-6.5.0-1019-nvidia-64k-ubuntu22.04",
    ]
    assert {target.app for target in found} == {NAME}
    assert [target.node_selector for target in found] == [{KERNEL: kernel} for kernel in kernels]
    assert found[2].image_suffix == "5.14.0-427.13.1.el9_4.x86_64-rhel9"


def test_pools_of_one_kernel_share_its_daemonset() -> None:
    """Two pools of the same kernel and OS are one DaemonSet."""
    assert len(of("ubuntu22.04", "ubuntu22.04", precompiled=True, kernels=("5.15.0-105-generic",) * 2)) == 1


def test_one_kernel_of_two_architectures_has_two_daemonsets() -> None:
    """The operator's name leaves the architecture out; here the second build of a kernel gets a name of its own."""
    kernels = ("5.14.0-427.el9_4.x86_64", "5.14.0-427.el9_4.aarch64")
    found = of("rhel9.4", "rhel9.4", precompiled=True, kernels=kernels)
    name = "nvidia-driver-daemonset-5.14.0-427.el9.4-rhel9.4"
    assert [target.name for target in found] == [name, f"{name}-aarch64"]


PART = st.one_of(st.text("a7A.-_", max_size=6), st.sampled_from(["x86_64", "aarch64", "_64k", "el9_4"]))
LABEL_VALUE = st.lists(PART, max_size=4).map(lambda parts: f"5{''.join(parts)}5")


@settings(max_examples=150, deadline=None)
@given(st.lists(LABEL_VALUE, min_size=1, max_size=4, unique=True))
def test_every_kernel_gets_a_valid_name_of_its_own(kernels: list[str]) -> None:
    """Any label value that a node can have makes a name that the API server takes, and no two kernels share one."""
    found = of(*["rhel9.4"] * len(kernels), precompiled=True, kernels=tuple(kernels))
    label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    assert all(re.fullmatch(rf"{label}(\.{label})*", target.name) for target in found)
    assert len({target.name for target in found}) == len(kernels)


def test_pools_must_say_their_system() -> None:
    """A pool without os, or with one that has no version, is refused where it stands, all at once, with a way out."""
    found = refusals("ubuntu22.04", None, "ubuntu")
    assert [finding.path for finding in found] == ["spec.nodePools[1].os", "spec.nodePools[2].os"]
    assert all("driver.enabled: false" in finding.remedy for finding in found)


def test_precompiled_drivers_need_the_kernel() -> None:
    """A pool without kernel is refused while drivers are precompiled (operator.md 3: missing label is an error)."""
    (found,) = refusals("ubuntu22.04", "ubuntu22.04", precompiled=True, kernels=("5.15.0-105-generic",))
    assert found.path == "spec.nodePools[1].kernel"
    assert "uname -r" in found.remedy


def test_one_kernel_cannot_run_on_two_systems() -> None:
    """The kernel alone selects a precompiled driver's nodes, so two OSs with one kernel are refused (operator.md 3)."""
    (found,) = refusals("rhel9.4", "rocky9.4", precompiled=True, kernels=("5.14.0-427.el9_4.x86_64",) * 2)
    assert found.path == "spec.nodePools[1].kernel"
    assert "rhel9.4" in found.what
    assert "rocky9.4" in found.what
