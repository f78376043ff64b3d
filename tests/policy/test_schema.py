"""The JSON schema of policy files and the reference in the docs: both say what the models say."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from gpustack.catalog import fields as catalog
from gpustack.catalog import releases
from gpustack.cli.schema import TARGET
from gpustack.compiler.node import from_wheel, on_path
from gpustack.policy.help import schema
from gpustack.policy.help.describe import descriptions, models
from gpustack.policy.help.schema import export, text
from gpustack.policy.language.spec import ClusterPolicySpec, PolicyLayer
from tests.policy.mistakes import COMBINATIONS, MISTAKES, pool
from tools import field_reference

REPOSITORY = pathlib.Path(__file__).parents[2]


@functools.cache
def validator() -> Any:
    """The schema, ready to judge."""
    return jsonschema_rs.Draft202012Validator(export())


def document(kind: str = "ClusterPolicy", **spec: Any) -> dict[str, Any]:
    """A policy file of KIND whose spec is SPEC."""
    return {"apiVersion": "gpustack.dev/v1alpha1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def test_file_is_current() -> None:
    """The schema in the repository is the one that the models give; `gpustack schema` writes it."""
    assert (REPOSITORY / TARGET).read_text(encoding="utf-8") == text()


def test_dialect() -> None:
    """The schema is one: draft 2020-12, and every reference leads somewhere."""
    found = export()
    Draft202012Validator.check_schema(found)
    names = {part.partition('"')[0] for part in json.dumps(found).split("#/$defs/")[1:]}
    assert names == set(found["$defs"])


def test_same_everywhere() -> None:
    """Another process with another hash seed writes the same bytes."""
    code = (
        "import hashlib; from gpustack.policy.help.schema import text; "
        "print(hashlib.sha256(text().encode()).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={"PYTHONHASHSEED": "7"},
    )
    assert done.stdout.strip() == hashlib.sha256(text().encode()).hexdigest()


def test_descriptions() -> None:
    """Editors show the description of every field."""
    definitions = export()["$defs"]
    for model in models(PolicyLayer):
        if model is PolicyLayer:
            continue
        found = definitions[model.__name__]
        properties = found.get("properties") or (found["anyOf"][1]["properties"] if "anyOf" in found else {})
        shown = {name: body["description"] for name, body in properties.items() if name != "extends"}
        assert shown == descriptions(model)


@pytest.mark.parametrize("name", releases.names())
def test_defaults_of_each_release(name: str) -> None:
    """A policy that spells out everything that the chart of a release writes is accepted."""
    validator().validate(document(release=name, **releases.release(name).default_spec()))


@pytest.mark.parametrize(
    "policy",
    [
        document(extends=["base", "eks"]),
        document(extends=None, driver=None, nodePools=None, daemonsets={"labels": {"a": None}}),
        document(**pool(count=12, sharing={"mig": {"layout": {"3g.40gb": 1}}, "timeSlicing": {"replicas": 2}})),
        document(**pool(count={"min": 0, "max": 8}, taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])),
        document("PolicyLayer", driver={"rdma": {"enabled": True}}),
        # Half of it: the other half stands in another layer.
        document("PolicyLayer", **pool(sharing={"mps": {"renameByDefault": True}})),
        {"apiVersion": "gpustack.dev/v1alpha1", "kind": "PolicyLayer"},
        document(
            extraObjects=[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}]
        ),
    ],
)
def test_accepted(policy: dict[str, Any]) -> None:
    """One file need not say everything: what is absent or null may come from layers."""
    validator().validate(policy)


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {**document(), "kind": "Policy"},
        {**document(), "apiVersion": "v1"},
        {**document(), "status": {}},
        {"apiVersion": "gpustack.dev/v1alpha1", "kind": "ClusterPolicy", "spec": {}},
        {"apiVersion": "gpustack.dev/v1alpha1", "kind": "ClusterPolicy", "metadata": {}, "spec": {}},
        {**document(), "metadata": {"name": "../a"}},
        document(extends="base"),
    ],
)
def test_frame_refused(policy: dict[str, Any]) -> None:
    """What is not a policy or layer is marked."""
    assert not validator().is_valid(policy)


@pytest.mark.parametrize(("spec", "_place", "_word"), MISTAKES)
def test_mistakes(spec: dict[str, Any], _place: tuple[str | int, ...], _word: str) -> None:
    """What the models refuse in one field, an editor marks already."""
    assert not validator().is_valid(document(**spec))


@pytest.mark.parametrize(("spec", "_place", "_word"), COMBINATIONS)
def test_combinations(spec: dict[str, Any], _place: tuple[str | int, ...], _word: str) -> None:
    """Rules over several fields are the models' alone, so that layers may hold a part of what goes together."""
    validator().validate(document(**spec))


def test_known_values_are_offered() -> None:
    """Editors offer what the catalogue knows, values as an enumeration and keys as properties; another text of the form
    is taken too, and one of no such form isn't."""
    for (section, field), (known, unknown, wrong) in OFFERED.items():
        found = export()["$defs"][section]["properties"][field]
        offered = found.get("properties") or found["anyOf"][0]["enum"]
        assert "properties" in found or found["anyOf"][0]["type"] == "string"  # else 1.30 is completed as a number
        assert set(known) <= set(offered), field
        assert unknown not in offered
        for said, valid in ((known[0], True), (unknown, True), (wrong, False)):
            body: dict[str, Any] = {field: {said: 1} if field == "layout" else said}
            body = pool(**body) if section == "NodePool" else pool(sharing={"mig": body}) if field == "layout" else body
            body = {ABOVE[section]: body} if section in ABOVE else body
            assert validator().is_valid(document(**body)) == valid, (field, said)


ABOVE = {"ClusterFacts": "cluster", "Driver": "driver"}
OFFERED: dict[tuple[str, str], tuple[list[str], str, str]] = {
    ("ClusterFacts", "platform"): (["generic", "gke-cos", "eks-al2023"], "of-ours", "Of ours"),
    ("ClusterFacts", "kubernetesVersion"): (["1.36", "1.30"], "1.99.2", "36"),
    ("ClusterFacts", "containerRuntime"): (["containerd", "cri-o", "docker"], "containerd://9.9.9", "podman"),
    ("NodePool", "gpuProduct"): (["NVIDIA-H100-80GB-HBM3"], "NVIDIA-H900", "NVIDIA H900"),
    ("NodePool", "os"): (["ubuntu22.04", "rhel9.4"], "ubuntu32.04", "Ubuntu 22.04"),
    ("PolicySpec", "release"): (["v26.7.0", "v25.10.1"], "v27.1.0", "26.7"),
    ("MigSharing", "layout"): (["1g.10gb", "1g.5gb+me", "7g.80gb"], "1g.999gb", "1G.10gb"),
    ("Driver", "version"): (["595.91.07", "580.178.04"], "570.124.03", "595 open"),
}
"""By section and field: values or keys that editors offer, one of the form that isn't known, one of no such form."""


def test_patterns_are_those_of_every_checker() -> None:
    """Each is an expression of ECMA-262 with the flag u, which the dialect asks for: escapes of other letters than
    those that need one are refused there."""

    def patterns(part: Any) -> Iterator[str]:
        for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
            if key == "pattern" and isinstance(value, str):
                yield value
            yield from patterns(value)

    node = on_path(os.environ.get("PATH")) or from_wheel()
    assert node
    code = "JSON.parse(require('fs').readFileSync(0)).forEach(each => new RegExp(each, 'u'))"
    found = sorted({*patterns(export())})
    assert len(found) > 20
    subprocess.run([node, "-e", code], input=json.dumps(found), text=True, check=True)


def test_unknown_annotation() -> None:
    """A field of a type that the schema can't express is a failure here, not a hole in the schema."""
    with pytest.raises(TypeError, match="no schema"):
        schema.shape(complex)


def test_reference_has_every_field() -> None:
    """Every section and every field of the operator's own sections is in the reference."""
    page = field_reference.markdown()
    for name in ClusterPolicySpec.model_fields:
        assert f"`{name}`" in page, name
    for path in catalog.leaves("ClusterPolicy"):
        last = path.rpartition(".")[2]
        assert f"`{path}`" in page or f"`{last}`" in page or f".{last}`" in page, path


def test_reference_has_defaults() -> None:
    """Defaults are those of the newest release."""
    page = field_reference.markdown()
    assert '| `toolkit.installDir` | absolute path | `"/usr/local/nvidia"` |' in page
    assert "| `driver.upgradePolicy.autoUpgrade` | true or false | `true` |" in page
    assert "Image: `nvcr.io/nvidia/driver:595.91.07`. Enabled: true." in page


def test_reference_links() -> None:
    """Every link of the reference leads to a heading of it."""
    page = field_reference.markdown()
    headings = {line.lstrip("# ").strip("`").lower() for line in page.splitlines() if line.startswith("###")}
    linked = {part.partition(")")[0] for part in page.split("](#")[1:]}
    assert linked <= headings


def test_reference_in_a_page() -> None:
    """Only what stands between the marks changes, and a second time nothing does."""
    page = f"before\n{field_reference.BEGIN}\nstale text\n{field_reference.END}\nafter\n"
    once = field_reference.replaced(page)
    assert once.startswith(f"before\n{field_reference.BEGIN}\n")
    assert once.endswith(f"{field_reference.END}\nafter\n")
    assert "stale text" not in once
    assert field_reference.replaced(once) == once
    with pytest.raises(ValueError, match="reference:begin"):
        field_reference.replaced("no marks")
