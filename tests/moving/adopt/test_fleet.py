"""`gpustack adopt --fleet`: several clusters become layers and differences, and none means anything else than alone.

How parts merge is told by docs/policy.md ("Layers"): maps by key, lists with names by item, all else is replaced whole.
"""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
import yaml

from gpustack.moving.adopt.fleet import Values, split, tree
from gpustack.moving.adopt.installation import leaves_of
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Part
from gpustack.text.read import parse
from tests.fidelity.cases import case
from tests.fidelity.test_operator import CASES
from tests.project import Project, cache, project

from .test_live import PATHS, serving

__all__ = ["cache", "project"]

Spec = dict[str, Any]
NAMES = [(release, name) for release, name in CASES if release == "v26.7.0"]
ITEMS: list[Any] = [
    [],
    ["a"],
    [{"name": "A", "value": "1"}],
    [{"name": "B", "value": "2"}],
    [{"key": "x"}],
    {},
    1,
    True,
]


def changed(spec: Spec, chance: random.Random) -> Spec:
    """SPEC with some values another, gone, or more."""
    made = copy.deepcopy(spec)
    for path, _ in list(leaves_of(spec)):
        node: Any = made
        for step in path[:-1]:
            node = node[step]
        if path[:1] in {("release",), ("cluster",)} or chance.random() > 0.15:
            continue
        if chance.random() < 0.4:
            del node[path[-1]]
        else:
            node[path[-1]] = copy.deepcopy(chance.choice(ITEMS))
    return made


def effective(*parts: Spec) -> str:
    """What PARTS, lowest first, come to with all defaults, as text: true and 1 are two things."""
    *layers, policy = parts
    made = [Part("layer", f"layer {number}", each) for number, each in enumerate(layers)]
    return json.dumps(assemble([*made, Part("policy", "x", policy)])[0].spec, sort_keys=True)


@pytest.mark.parametrize("seed", range(60))
def test_each_cluster_means_what_it_means_alone(seed: int) -> None:
    """Whatever clusters have in common, the merged layers and the rest come to the same effective spec, and all
    together say no more than the clusters did apart.
    """
    chance = random.Random(seed)
    first = [case(*chance.choice(NAMES)).policy["spec"] for _ in range(chance.choice([1, 1, 2, 3]))]
    specs = {f"c{number}": changed(chance.choice(first), chance) for number in range(chance.randint(1, 7))}
    layers, own = split(specs)
    for name, (extends, values) in own.items():
        assert effective(*(tree(layers[each]) for each in extends), tree(values)) == effective(specs[name]), name
    assert size(*layers.values(), *(values for _, values in own.values())) <= size(
        *(dict(leaves_of(spec)) for spec in specs.values())
    )


def size(*many: Values) -> int:
    """How many values there are."""
    return sum(len(values) for values in many)


def test_what_clusters_share_stands_once() -> None:
    """What all say, or most say and the others replace, is in `common`; what some share in a layer of theirs; a value
    of one alone, and a list that would be merged by item, stays where it is.
    """
    shared: Spec = {"release": "v26.7.0", "toolkit": {"env": [{"name": "A", "value": "1"}]}}
    eks: Spec = {"cluster": {"platform": "eks-al2023"}, "driver": {"enabled": False, "hostVersion": "580"}}
    eks |= {"migManager": {"enabled": False}, "vgpuManager": {"enabled": False}}
    specs: dict[str, Spec] = {
        "a": {**shared, **eks, "mig": {"strategy": "mixed"}},
        "b": {**shared, **eks, "mig": {"strategy": "mixed"}, "gfd": {"env": [{"name": "X", "value": "1"}]}},
        "c": {**shared, "mig": {"strategy": "single"}, "gfd": {"env": [{"name": "Y", "value": "1"}]}},
    }
    layers, own = split(specs)
    assert set(layers) == {"common", "eks-al2023"}
    assert tree(layers["common"]) == {**shared, "mig": {"strategy": "mixed"}}
    assert tree(layers["eks-al2023"]) == eks
    assert {name: extends for name, (extends, _) in own.items()} == {
        "a": ["common", "eks-al2023"],
        "b": ["common", "eks-al2023"],
        "c": ["common"],
    }
    assert own["a"][1] == {}
    assert tree(own["c"][1]) == {"mig": {"strategy": "single"}, "gfd": {"env": [{"name": "Y", "value": "1"}]}}


VALUES = """driver: {version: "VERSION", env: [{name: A, value: b}], rdma: {enabled: true}}
mig: {strategy: mixed}
"""
ANSWERS = ("--set", "cluster.kubernetesVersion=1.34", "--set", "nodePools[0].os=ubuntu22.04")


def test_a_fleet_is_read_by_folder_and_rendered(project: Project) -> None:
    """Each entry of the one folder is a cluster; answers are all clusters', or one's by its name; what is written
    renders to what each renders to alone, every value with its place.
    """
    for name, version in {"prod": "580.95.05", "dev": "580.105.08", "lab": "580.95.05"}.items():
        project.write(f"old/{name}/values.yaml", VALUES.replace("VERSION", version))
    own = ("--set", "lab:gfd.enabled=false")
    ran = project.run("adopt", "--fleet", "old", *ANSWERS, *own, "--out", "policies", "--format", "json")
    assert (ran.code, [each["name"] for each in ran.json["clusters"]]) == (0, ["dev", "lab", "prod"]), ran.out
    assert set(ran.json["files"]) == {"layers/common.yaml", "dev.yaml", "lab.yaml", "prod.yaml"}
    assert "rdma:\n      enabled: true  # old/" in (project.folder / "policies/layers/common.yaml").read_text("utf-8")
    assert parse((project.folder / "policies/prod.yaml").read_text("utf-8"), "x")["spec"] == {"extends": ["common"]}
    assert project.run("render", "--out", "together").code == 0
    answers: dict[str, tuple[str, ...]] = {"prod": (), "dev": (), "lab": ("--set", "gfd.enabled=false")}
    for name, more in answers.items():
        alone = Project(project.folder / name, project.cache)
        (alone.folder / "policies").mkdir(parents=True)
        said = ("adopt", str(project.folder / "old" / name), *ANSWERS, *more, "--out", f"policies/{name}.yaml")
        assert alone.run(*said).code == 0
        assert alone.run("render").code == 0
        there = alone.tree(alone.folder / "dist" / name)
        assert there
        assert project.tree(project.folder / "together" / name) == there


def test_files_and_contexts_are_clusters_of_their_own(project: Project) -> None:
    """What is looked at by a context doesn't count for the clusters that files stand for."""
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy", "uid": "p"},
    }
    answers: dict[str, Any] = {PATHS["ClusterPolicy"]: [{**policy, "spec": {"driver": {"enabled": False}}}]}
    project.write("edge.yaml", "mig: {strategy: mixed}\ngfd: {enabled: false}\n")
    with serving(project.folder, answers) as (config, asked):
        words = ("adopt", "--fleet", "edge.yaml", "--kubeconfig", config, "--context", "prod", *ANSWERS)
        ran = project.run(*words, "--format", "json")
    assert [each["name"] for each in ran.json["clusters"]] == ["edge", "prod"], ran.out
    assert len([path for path in asked if path.startswith(PATHS["ClusterPolicy"])]) == 1
    edge = yaml.safe_load(ran.json["clusters"][0]["policy"])["spec"]
    assert (edge["mig"], edge["gfd"], "driver" in edge) == ({"strategy": "mixed"}, {"enabled": False}, False)


def test_what_would_be_taken_for_another_is_refused(project: Project) -> None:
    """Two clusters of one name have to be named; a policy of somebody's own is not written over, and then nothing is
    written."""
    for name in ("a", "b"):
        project.write(f"{name}/x/values.yaml", VALUES.replace("VERSION", "580.95.05"))
    twice = project.run("adopt", "--fleet", "a/x/values.yaml", "b/x/values.yaml", *ANSWERS, "--out", "policies")
    assert (twice.code, "would be called x" in twice.err) == (4, True), twice.err
    named = ("adopt", "--fleet", "a=a/x/values.yaml", "b=b/x/values.yaml", *ANSWERS, "--out", "policies")
    project.write("policies/b.yaml", "kind: ClusterPolicy\n")
    refused = project.run(*named)
    assert (refused.code, "policies/b.yaml is there" in refused.err) == (4, True), refused.err
    assert set(project.tree(project.folder / "policies")) == {"b.yaml"}
    (project.folder / "policies/b.yaml").unlink()
    assert project.run(*named).code == 0
    assert set(project.tree(project.folder / "policies")) == {"a.yaml", "b.yaml", "layers/common.yaml"}
