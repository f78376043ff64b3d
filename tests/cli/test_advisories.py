"""`gpustack affected --advisory`: which clusters run what an advisory names, where that is written, what mends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.project import Project

ON: dict[str, Any] = {"driver": {"enabled": True, "version": "580.126.20"}, "toolkit": {"enabled": True}}
POOLS = [{"name": name, "os": "ubuntu24.04", "nodeSelector": {"example.com/pool": name}} for name in ("a", "b")]
DRIVER = {
    "id": "ours-1",
    "affected": [{"component": "driver", "versions": "<580.159.03"}, {"component": "driver", "versions": "<595.71.05"}],
    "fixed": {"driver": ["580.159.03", "595.71.05"]},
}
TOOLKIT = {"id": "ours-2", "affected": [{"component": "toolkit", "versions": "<=1.19.0"}]}
DIGEST = "sha256:" + "2" * 64


def ask(project: Project, *words: str, **advisory: Any) -> Any:
    """What `affected` answers about ADVISORY, a file of the project."""
    project.write("advisory.yaml", yaml.safe_dump(advisory))
    return project.run("affected", "--advisory", "advisory.yaml", *words)


def test_pools_and_where_it_is_written(project: Project) -> None:
    """Each version with its pools, its line, what mends it and what the release lists; equal findings are one."""
    project.layer("base", **ON)
    for name in ("x", "y"):
        project.policy(name, extends=["base"], driver={}, toolkit={}, nodePools=POOLS)
    project.policy("z", **{**ON, "driver": {"enabled": True}}, nodePools=POOLS)
    done = ask(project, "--format", "json", **DRIVER)
    (found,) = done.json["findings"]
    assert (done.code, found["clusters"], found["pools"]) == (1, ["x", "y"], ["a", "b"])
    assert (found["file"], found["path"], found["version"]) == (
        "policies/layers/base.yaml",
        "spec.driver.version",
        "580.126.20",
    )
    assert (found["mended"], found["put"]) == ("580.159.03", "580.173.02")  # the first good one, one that v26.7 lists


def test_what_runs_and_what_does_not(project: Project) -> None:
    """A component that is off isn't run; a release's default is, and which release brings a good one is told."""
    project.policy("on", release="v26.3.0", toolkit={"enabled": True}, nodePools=POOLS)
    project.policy("off", release="v26.3.0", nodePools=POOLS)
    done = ask(project, **TOOLKIT)
    good = "release v26.3.2 brings v1.19.1"  # so says NVIDIA's bulletin 5850 too
    assert (done.code, done.out.count("GPU089"), good in done.out) == (1, 1, True), done.out


def test_nothing(project: Project) -> None:
    """Nobody affected is exit code 0; an advisory of which nothing is known here is 2."""
    project.policy("a", **ON, nodePools=POOLS)
    assert ask(project, id="x", affected=[{"component": "driver", "versions": "<580.100"}]).code == 0
    strange = ask(project, id="x", affected=[{"component": "AIS Operator", "versions": "<2"}])
    assert (strange.code, "AIS Operator" in strange.out) == (2, True)


def test_nodes_that_bring_their_driver(project: Project) -> None:
    """A driver of which the policy doesn't say the version may be affected; where it says it, that is asked."""
    own: dict[str, Any] = {"cluster": {"kubernetesVersion": "1.34", "platform": "eks-al2023"}, "nodePools": POOLS[:1]}
    project.policy("a", **own)
    assert ask(project, **DRIVER).code == 2
    project.policy("a", **own, driver={"enabled": False, "hostVersion": "580.126.20"})
    assert ask(project, **DRIVER).code == 1
    project.policy("a", **own, driver={"enabled": False, "hostVersion": "580.173.02"})
    assert ask(project, **DRIVER).code == 0


@pytest.mark.parametrize(("locked", "code"), [("", 2), (DIGEST, 1), ("sha256:" + "3" * 64, 0)])
def test_images_by_digest(project: Project, locked: str, code: int) -> None:
    """An image by its digest is known by images.lock; without that it may be the one."""
    project.policy("a", **ON, nodePools=POOLS)
    name = "nvcr.io/nvidia/k8s/container-toolkit"
    if locked:
        entry = {f"{name}:v1.20.0": {"digest": locked, "platforms": {}}}
        project.write("images.lock", json.dumps({"version": 1, "images": entry}))
    assert ask(project, id="x", affected=[{"image": name, "digest": DIGEST}]).code == code


def test_a_change(project: Project) -> None:
    """--as-change prints what a layer would say, a document for each set of values that clusters need."""
    project.policy("x", **ON, nodePools=POOLS)
    own = [{**POOLS[0], "driver": {"version": "595.58.03"}}, POOLS[1]]
    project.policy("y", **{**ON, "driver": {"enabled": True, "version": "595.91.07"}}, nodePools=own)
    done = ask(project, "--as-change", "mend", **DRIVER)
    one, two = yaml.safe_load_all(done.out)
    assert (one["kind"], one["metadata"], one["spec"]) == (
        "PolicyChange",
        {"name": "mend"},
        {"driver": {"version": "580.173.02"}},
    )
    assert two["spec"] == {"nodePools": [{"name": "a", "driver": {"version": "595.91.07"}}]}


def test_what_a_change_can_not_mend(project: Project) -> None:
    """A change counts below a cluster's own file, and in all clusters of its rings: a value that a cluster's file
    says is told with its line, and so are the clusters that the change was not made for.
    """
    project.layer("base", **ON)
    project.policy("own", **ON, nodePools=POOLS)
    project.policy("layered", extends=["base"], driver={}, toolkit={}, nodePools=POOLS)
    project.policy("other", driver={"enabled": True, "version": "595.91.07"}, nodePools=POOLS)
    head = ask(project, "--as-change", "mend", **DRIVER).out.partition("apiVersion")[0].splitlines()
    lines = (project.folder / "policies/own.yaml").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "580.126.20" in text)
    assert head[:3] == ["---", "# for layered, own", "# it counts as well in other"]
    (above,) = head[3:]
    assert above.startswith(f"# policies/own.yaml:{line}:")
    assert above.endswith(" says so itself, and this doesn't count beside it: take it out there")


def test_another_change_says_so_already(project: Project) -> None:
    """Two changes that say different things of one value are refused (GPU091): the line of the other one is told."""
    project.layer("base", **{**ON, "driver": {"enabled": True}})
    project.policy("a", extends=["base"], driver={}, toolkit={}, nodePools=POOLS)
    project.write(
        "policies/fleet.yaml",
        "apiVersion: gpustack.dev/v1alpha1\nkind: Fleet\nspec: {rings: [{name: all, clusters: [a]}]}\n",
    )
    project.write(
        "policies/changes/next.yaml",
        "apiVersion: gpustack.dev/v1alpha1\nkind: PolicyChange\nspec:\n  driver: {version: 580.126.20}\n"
        'rollout: {ring: all, since: "2026-01-01T00:00:00Z"}\n',
    )
    told = ask(project, "--as-change", "mend", **DRIVER).out
    assert "# policies/changes/next.yaml:4:" in told, told
    assert "this doesn't count beside it: take it out there" in told


@pytest.mark.parametrize("name", ["../x", "a b", "x\ny", ".x", "a/b"])
def test_a_name_that_no_change_has(project: Project, name: str) -> None:
    """What is printed would be no file in policies/changes/."""
    project.policy("a", **ON, nodePools=POOLS)
    done = ask(project, "--as-change", name, **DRIVER)
    assert (done.code, done.out, "is not a name of a change" in done.err) == (4, "", True)


@pytest.mark.parametrize(
    "words", [[], ["policies/a.yaml", "--advisory", "a.yaml"], ["--as-change", "x", "policies/a.yaml"]]
)
def test_a_line_that_asks_two_things(project: Project, words: list[str]) -> None:
    """Changed files and advisories are two questions, and one of them is asked."""
    project.policy("a")
    assert project.run("affected", *words).code == 4


def test_a_file_that_is_none(project: Project) -> None:
    """A file that is no advisory is refused with its name and what to bring."""
    project.policy("a")
    done = ask(project, id="x")
    assert (done.code, "GPU084" in done.err, "advisory.yaml" in done.err) == (4, True, True)
