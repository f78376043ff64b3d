"""`gpustack can-upgrade`: what stands against an upgrade before it is made, what is known to be there, what isn't.

SM is the table of what NVIDIA documents (its platform support pages).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.project import Project

ON: dict[str, Any] = {"driver": {"enabled": True}}


def pool(name: str = "a", **said: Any) -> dict[str, Any]:
    """A node pool with nodes of its own."""
    return {"name": name, "nodeSelector": {"example.com/pool": name}, **said}


def cluster(*pools: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A cluster of POOLS whose drivers are installed."""
    return {**ON, "nodePools": list(pools), **spec}


JAMMY, NOBLE = pool(os="ubuntu22.04"), pool(os="ubuntu24.04")
RHEL = pool(os="rhel9.4")
PRECOMPILED = {"driver": {"enabled": True, "usePrecompiled": True, "version": "580"}}
OPENSHIFT = {
    "cluster": {"kubernetesVersion": "1.31", "platform": "openshift", "openshift": {"version": "4.18.1"}},
}
OSTREE = "9.6.20250826-1"
TOOLKITS = {
    "cluster": {
        "kubernetesVersion": "1.31",
        "platform": "openshift",
        "openshift": {
            "version": "4.18.1",
            "driverToolkitImages": {OSTREE: "quay.io/example/dtk@sha256:" + "0" * 64},
        },
    }
}
VOLTA = pool(os="ubuntu22.04", gpuProduct="Tesla-V100-SXM2-32GB")
B200 = pool(os="ubuntu22.04", gpuProduct="NVIDIA-B200")
OLD = {"release": "v25.10.1"}

QUESTIONS: dict[str, tuple[dict[str, Any], str, int, str]] = {
    # SM releases.v26.7.kubernetes: 1.33 to 1.36
    "kubernetes in the table": (cluster(JAMMY), "--kubernetes 1.36", 0, "documented for Kubernetes 1.33 to 1.36"),
    "kubernetes after the table": (cluster(JAMMY), "--kubernetes 1.37", 2, "GPU400"),
    # SM releases.v25.10.kubernetes_note: 1.35 is the last; v26.3.2 has 1.36
    "kubernetes needs a release": (cluster(JAMMY, **OLD), "--kubernetes 1.36", 2, "set spec.release: v26.3.2"),
    # SM releases.v26.7.os
    "a system in the table": (cluster(JAMMY), "--os ubuntu24.04", 0, "ubuntu24.04 is in the support table"),
    "a system not in the table": (cluster(RHEL), "--os rhel9.5", 2, "GPU402"),
    # gpu-driver-container, image-matrix.json: no image of R580 for Ubuntu 26.04, which SM releases.v25.10.os lacks
    "a driver older than the system": (cluster(NOBLE, **OLD), "--os ubuntu26.04", 2, "GPU435"),
    # SM operating_system_rules: Ubuntu 20.04 ended with v25.10
    "a system that ended": (cluster(JAMMY), "--os ubuntu20.04", 2, "GPU435"),
    # SM kernels.ubuntu_22_04: 5.15, 6.5, 6.8
    "a kernel in the table": (cluster(JAMMY), "--kernel 6.8.0-60-generic", 0, "kernel 6.8.0-60-generic is one of"),
    # SM kernels.ubuntu_24_04: newer ones were not validated
    "a kernel outside of the table": (cluster(NOBLE), "--kernel 6.14.0-24-generic", 2, "not known here"),
    # SM releases.v26.7.os has RHEL 9.4, whose kernels say so
    "a kernel of RHEL": (cluster(RHEL), "--kernel 5.14.0-427.50.1.el9_4.x86_64", 0, "is one of rhel9.4"),
    "a kernel of another RHEL": (cluster(RHEL), "--kernel 5.14.0-570.12.1.el9_6.x86_64", 2, "not known here"),
    # SM precompiled_images.v26.7: none of branch 580 for Ubuntu 26.04
    "no precompiled driver": (
        cluster(pool(os="ubuntu24.04", kernel="6.8.0-60-generic"), **PRECOMPILED),
        "--os ubuntu26.04 --kernel 7.0.0-14-generic",
        2,
        "GPU440",
    ),
    # SM precompiled_images.v26.7 has the series, and no list says which kernels of it
    "perhaps a precompiled driver": (
        cluster(pool(os="ubuntu22.04", kernel="5.15.0-105-generic"), **PRECOMPILED),
        "--kernel 5.15.0-140-generic",
        2,
        "nvcr.io/nvidia/driver:580-5.15.0-140-generic-ubuntu22.04",
    ),
    # SM releases.v26.7.openshift: 4.18 to 4.22; from 4.19 on nodes are rhel9.6 (cloud-native-docs issue 322)
    "openshift, RHCOS not said": (
        cluster(pool(os="rhcos4.18"), **OPENSHIFT),
        "--ocp 4.19.3",
        2,
        "which version of RHCOS",
    ),
    "openshift with its toolkit": (
        cluster(pool(os="rhcos4.18"), **TOOLKITS),
        f"--ocp 4.19.3 --os {OSTREE}",
        0,
        "driver:595.91.07-rhel9 ",
    ),
    "openshift before the table": (cluster(pool(os="rhcos4.18"), **OPENSHIFT), "--ocp 4.17.9", 2, "GPU401"),
    # SM releases.v26.7.openshift: no row says which OpenShift has a Kubernetes
    "kubernetes of openshift": (cluster(pool(os="rhcos4.18"), **OPENSHIFT), "--kubernetes 1.33", 2, "ask with --ocp"),
    # SM driver_branches.R580: last for Volta; type_names
    "a driver without the GPU": (
        cluster(VOLTA, driver={"enabled": True, "version": "580.173.02"}),
        "--driver 595.91.07",
        2,
        "GPU420",
    ),
    # SM driver_versions_listed_by_operator_docs.v26.7
    "a driver in the table": (cluster(JAMMY), "--driver 580.173.02", 0, "in the table of drivers of release v26.7.0"),
    # SM minimum_driver.by_product.B200: 570.133.20; 535.309.01 is listed
    "a driver before the GPU": (cluster(B200), "--driver 535.309.01", 2, "GPU420"),
    # SM life_cycle_per_docs.upgrade: same line or next line
    "a release further than the next line": (cluster(JAMMY, **OLD), "--release v26.7.0", 2, "goes over v26.3.3"),
    "the next line": (cluster(JAMMY, release="v26.3.3"), "--release v26.7.0", 0, "the step from v26.3.3 to v26.7.0"),
    # platforms/eks-al2023.yaml: nodes bring the driver
    "nodes that bring their driver": (
        {"cluster": {"kubernetesVersion": "1.34", "platform": "eks-al2023"}, "nodePools": [pool(os="amzn2023")]},
        "--kernel 6.12.40-63.114.amzn2023.x86_64",
        2,
        "which driver the new nodes bring",
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions(project: Project, question: str) -> None:
    """Each is answered as the support tables say: yes with what is known (0), no by a rule, or not known (2)."""
    spec, words, code, said = QUESTIONS[question]
    project.policy("a", **spec)
    done = project.run("can-upgrade", "a", *words.split())
    assert (done.code, said in done.out) == (code, True), done.out + done.err


def test_what_stands_today_does_not_count(project: Project) -> None:
    """A finding that is there today and stays is not against the upgrade, one that ends by it is told."""
    project.policy("a", **cluster(JAMMY, release="v26.3.3", driver={"enabled": True, "version": "570.211.01"}))
    assert "GPU412" in project.run("lint", "a").out
    same = project.run("can-upgrade", "a", "--kubernetes", "1.35")
    assert (same.code, "GPU412" in same.out) == (0, False)
    better = project.run("can-upgrade", "a", "--driver", "580.159.04")
    assert (better.code, "it ends GPU412" in better.out) == (0, True)


def test_no_yes_beside_a_no(project: Project) -> None:
    """Where a rule says that there is no image, nothing says that there is one."""
    project.policy("a", **cluster(NOBLE))
    done = project.run("can-upgrade", "a", "--driver", "535.309.01")
    assert (done.code, "GPU435" in done.out, "NVIDIA built" in done.out) == (2, True, False)


def test_pools(project: Project) -> None:
    """--pool says which nodes; without it pools of another system are left alone; one kernel is asked of all."""
    project.policy("a", **cluster(pool("u", os="ubuntu22.04"), pool("r", os="rhel9.4")))
    done = project.run("can-upgrade", "a", "--os", "rhel9.6")
    assert (done.code, "node pool r" in done.out, "node pool u" in done.out) == (0, True, False)
    every = project.run("can-upgrade", "a", "--kernel", "6.8.0-60-generic")
    assert (every.code, "kernel 6.8.0-60-generic on rhel9.4 (node pool r)" in every.out) == (2, True)
    assert project.run("can-upgrade", "a", "--kernel", "6.8.0-60-generic", "--pool", "u").code == 0
    assert project.run("can-upgrade", "a", "--kernel", "6.8.0-60-generic", "--pool", "x").code == 4


def test_who_has_looked(project: Project) -> None:
    """What isn't known here stops nobody who has seen it to be there, and stops whoever has seen something else."""
    project.policy("a", **cluster(NOBLE))
    words = ["can-upgrade", "a", "--kernel", "6.14.0-24-generic", "--format", "json", "--looked"]
    seen, other = project.run(*words, "headers"), project.run(*words, "image")
    assert (seen.code, other.code) == (0, 2)
    (finding,) = (each for each in other.json["findings"] if each["severity"] == "warning")
    assert (finding["rule"], finding["path"], finding["clusters"]) == ("GPU086", "spec.nodePools[0].kernel", ["a"])


def test_the_lock_knows_an_image(project: Project) -> None:
    """An image that images.lock has is known to be there: a precompiled driver of the very kernel."""
    project.policy("a", **cluster(pool(os="ubuntu22.04", kernel="5.15.0-105-generic"), **PRECOMPILED))
    digest = "sha256:" + "0" * 64
    image = "nvcr.io/nvidia/driver:580-5.15.0-140-generic-ubuntu22.04"
    project.write("images.lock", json.dumps({"version": 1, "images": {image: {"digest": digest, "platforms": {}}}}))
    done = project.run("can-upgrade", "a", "--kernel", "5.15.0-140-generic")
    assert (done.code, f"images.lock has {image}" in done.out) == (0, True)


@pytest.mark.parametrize("words", ["--kubernetes 1.99", "--release v99.1.0"])
def test_a_version_that_is_not_known(project: Project, words: str) -> None:
    """A release or a Kubernetes that gpustack doesn't know can't be upgraded to, and that is no mistake of the line."""
    project.policy("a", **cluster(JAMMY))
    done = project.run("can-upgrade", *words.split())
    assert (done.code, "GPU014" in done.out) == (2, True)


@pytest.mark.parametrize("words", ["", "--os Ubuntu"])
def test_a_line_that_asks_nothing(project: Project, words: str) -> None:
    """Nothing to upgrade, and a version of no form, are mistakes of the command line."""
    project.policy("a", **cluster(JAMMY))
    assert project.run("can-upgrade", "a", *words.split()).code == 4


def test_a_system_that_none_has(project: Project) -> None:
    """A version of another system than the pools have is a mistake of the command line, and so is one of RHCOS
    outside of OpenShift; with --pool it is what somebody means.
    """
    project.policy("a", **cluster(JAMMY))
    for version in ("rhel9.6", "9.6.20250826-1"):
        assert project.run("can-upgrade", "a", "--os", version).code == 4
    assert project.run("can-upgrade", "a", "--os", "ubuntu24.04", "--pool", "a").code == 0
    project.policy("a", **cluster(pool()))  # nor is a version without a system one of nodes of any system
    assert project.run("can-upgrade", "a", "--os", "9.6").code == 4


def test_all_clusters_that_have_the_pool(project: Project) -> None:
    """Where no cluster is named, --pool is about those that have it; it is a mistake where none has."""
    project.policy("a", **cluster(pool("u", os="ubuntu22.04")))
    project.policy("b", **cluster(pool("v", os="ubuntu22.04")))
    done = project.run("can-upgrade", "--pool", "u", "--os", "ubuntu24.04")
    assert (done.code, "node pool u" in done.out, "node pool v" in done.out) == (0, True, False)
    assert project.run("can-upgrade", "--pool", "w", "--os", "ubuntu24.04").code == 4


@pytest.mark.parametrize(("question", "asked"), [("--os rhel9.6", "r"), ("--ocp 4.19.3", "o"), (f"--os {OSTREE}", "o")])
def test_a_fleet_of_several_systems(project: Project, question: str, asked: str) -> None:
    """Of a fleet those clusters are asked that it is about, and each of the others is told with why it isn't; where it
    is about none of those that are named, that is a mistake of the command line.
    """
    project.policy("u", **cluster(JAMMY))
    project.policy("r", **cluster(RHEL))
    project.policy("o", **cluster(pool(os="rhcos4.18"), **TOOLKITS))
    findings = project.run("can-upgrade", *question.split(), "--format", "json").json["findings"]
    left_out = {name for each in findings if each["what"].startswith("not asked: ") for name in each["clusters"]}
    assert left_out == {"u", "r", "o"} - {asked}
    assert {name for each in findings for name in each["clusters"] if "not asked" not in each["what"]} == {asked}
    nobody = project.run("can-upgrade", "u", *question.split())
    assert (nobody.code, "GPU026" in nobody.err) == (4, True)


def test_machines(project: Project) -> None:
    """Of nodes for virtual machines the tables say nothing, and that is told."""
    vms = pool(os="ubuntu22.04", workload="vm-passthrough")
    project.policy("a", **cluster(vms, sandboxWorkloads={"enabled": True}))
    done = project.run("can-upgrade", "a", "--os", "ubuntu24.04")
    assert (done.code, "for virtual machines" in done.out) == (2, True)


def test_waivers_count(project: Project) -> None:
    """What a team has decided to live with is a note, as in lint."""
    project.policy("a", **cluster(JAMMY))
    waiver = {"rule": "GPU400", "clusters": ["a"], "owner": "us", "reason": "tried", "expires": "2027-01-01"}
    project.write("policies/waivers.yaml", json.dumps([waiver]))
    done = project.run("can-upgrade", "a", "--kubernetes", "1.37")
    assert (done.code, "waived by: us" in done.out) == (0, True)
