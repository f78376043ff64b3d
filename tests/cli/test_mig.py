"""gpustack mig: profiles, plans and pictures."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.project import Project

H100 = "NVIDIA-H100-80GB-HBM3"


def test_list(project: Project) -> None:
    """The profiles of a board with what the device plugin calls them, for people and for programs."""
    ran = project.run("mig", "list", H100.lower())
    assert ran.code == 0
    assert ran.out.splitlines()[0] == f"{H100} (H100 SXM5 80GB): 7 compute slices, 8 memory slices"
    (row,) = (line.split() for line in ran.out.splitlines() if line.startswith("1g.10gb+me "))
    assert row == ["1g.10gb+me", "20", "1", "9.75", "16", "1", "1", "0,1,2,3,4,5,6", "nvidia.com/mig-1g.10gb.me"]
    data = project.run("mig", "list", H100, "--format", "json").json
    assert data["version"] == 1
    assert data["geometry"] == {"computeSlices": 7, "memorySlices": 8}
    assert [profile["id"] for profile in data["profiles"]] == [19, 20, 15, 14, 9, 5, 0]


@pytest.mark.parametrize(
    ("product", "words"),
    [
        ("NVIDIA-GB200", "1g.23gb is 1g.24gb with older drivers"),
        ("NVIDIA-RTX-PRO-4500-Blackwell", "where instances may stand is not known"),
        ("NVIDIA-RTX-PRO-5000-72GB-Blackwell", "its profiles are not known"),
        ("NVIDIA-B300-SXM6-AC", "not sure"),
    ],
)
def test_what_is_not_sure_is_said(project: Project, product: str, words: str) -> None:
    """A board that the catalogue knows in part is listed as such."""
    ran = project.run("mig", "list", product)
    assert ran.code == 0
    assert words in ran.out


def test_plan(project: Project) -> None:
    """All layouts that hold what is wanted, the best first, and the best as a picture and as a policy has it."""
    ran = project.run("mig", "plan", H100, "--want", "1g.10gb=1,3g.40gb=1")
    assert ran.code == 0
    rows = [line.split(maxsplit=3) for line in ran.out.splitlines() if "/8 " in line]
    assert rows[0] == ["7/7", "8/8", "4", "3g.40gb + 2g.20gb + 2 x 1g.10gb"]
    assert len(rows) == 6
    assert "sharing: {mig: {layout: {3g.40gb: 1, 2g.20gb: 1, 1g.10gb: 2}}}" in ran.out
    data = project.run("mig", "plan", H100, "--want", "1g.10gb=4,3g.40gb=1", "--format", "json").json
    assert data["want"] == {"3g.40gb": 1, "1g.10gb": 4}
    assert data["layouts"] == [
        {"layout": {"3g.40gb": 1, "1g.10gb": 4}, "computeSlices": 7, "memorySlices": 8, "instances": 5}
    ]


@pytest.mark.parametrize(
    ("words", "code", "rule", "what"),
    [
        (["plan", H100, "--want", "3g.40gb=2,1g.10gb=1"], 2, "GPU302", "9 of 8 memory slices"),
        (["plan", "NVIDIA-H200", "--want", "1g.10gb=1"], 2, "GPU301", "no MIG profile 1g.10gb"),
        (["plan", "NVIDIA-L4"], 2, "GPU303", "takes no MIG"),
        (["list", "NVIDIA-H100-80GB"], 4, "GPU026", "no GPU product"),
        (["plan", H100, "--want", "1g"], 4, "GPU026", "not a MIG profile"),
        (["plan", "NVIDIA-RTX-PRO-4500-Blackwell"], 4, "GPU026", "isn't known"),
        (["plan"], 4, "GPU026", "PRODUCT"),
        ([], 4, "GPU026", "ACTION"),
    ],
)
def test_refusals(project: Project, words: list[str], code: int, rule: str, what: str) -> None:
    """What can't be had or understood ends with a reason, as JSON where JSON was asked for."""
    ran = project.run("mig", *words)
    assert (ran.code, ran.out) == (code, "")
    assert rule in ran.err
    assert what in ran.err
    if words and words[1:]:
        data = project.run("mig", *words, "--format", "json").json
        assert (data["exit"], data["findings"][0]["rule"]) == (code, rule)


def sharing(mig: dict[str, Any]) -> dict[str, Any]:
    """A spec with a pool of H100 that is cut."""
    pool = {"name": "a", "os": "ubuntu22.04", "gpuProduct": H100, "gpusPerNode": 8, "sharing": {"mig": mig}}
    return {"nodePools": [pool]}


def test_show(project: Project) -> None:
    """A cluster's GPUs in the terminal, as JSON, and as SVG in a file or on standard output."""
    path = project.policy("one", **sharing({"layout": {"3g.40gb": 1, "1g.10gb": 4}}))
    ran = project.run("mig", "show", "one", "--svg", "one.svg")
    assert ran.code == 0
    assert ran.out.startswith(f"one\n\na: 8 x {H100}\n  3g.40gb + 4 x 1g.10gb: 7 of 7 compute slices")
    written = (project.folder / "one.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(written)[0].text == "MIG layouts of one"  # noqa: S314 - our own output
    assert project.run("mig", "show", path, "--svg", "-").out == written
    (gpu,) = project.run("mig", "show", "one", "--format", "json").json["gpus"]
    assert gpu["placements"][-1] == {"profile": "3g.40gb", "start": 4, "size": 4}


def test_show_writes_where_it_can(project: Project) -> None:
    """A picture that can't be written is an error of the output, and a cluster that isn't there one of the input."""
    project.policy("one")
    assert "one has no node pool" in project.run("mig", "show", "one").out
    ran = project.run("mig", "show", "one", "--svg", "policies/one.yaml/folder.svg")
    assert (ran.code, "GPU924" in ran.err) == (4, True)
    assert project.run("mig", "show", "two").code == 4


def test_a_profile_of_another_board(project: Project) -> None:
    """The nearest of the board is named, before all that it has."""
    done = project.run("mig", "plan", "NVIDIA-H100-80GB-HBM3", "--want", "1g.5gb=2")
    assert done.code == 2
    assert "do: did you mean 1g.10gb? Its profiles: 1g.10gb, 1g.10gb+me, " in done.err


def test_a_picture_without_a_name(project: Project) -> None:
    """An empty name of a file is a mistake, and not no picture."""
    project.policy("one")
    done = project.run("mig", "show", "one", "--svg", "")
    assert (done.code, "GPU026" in done.err) == (4, True)
