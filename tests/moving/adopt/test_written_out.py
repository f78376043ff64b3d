"""What is written out in programs, modules and templates is read, and what isn't is told: releases in any document.

What each program makes of its file is told by its documentation: Terraform (expressions, modules, dynamic blocks;
argocd_application, rancher2_app_v2, kubectl_manifest), Packer, Pulumi (helm.v3.Release), CDK (addHelmChart), Tanka
(helm.template), Make (call, foreach), Flux (Kustomization: patches; ResourceSet), Argo CD (generators: values), Ansible
(template, lookup), carvel (App, PackageInstall), Config Sync (RootSync), Kubermatic, Giant Swarm (App: userConfig),
KubeVela, Replicated (HelmChart), Rancher 2.4 (App: answers), Skaffold and sops.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.moving.adopt.inputs.hcl import Evaluator
from gpustack.moving.adopt.inputs.programs import read_of
from gpustack.moving.adopt.inputs.sets import patched
from gpustack.policy.loading.load import load_values
from tests.project import Project, Ran

from .test_shapes import OFF, at, plain

WRITTEN: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("written.yaml").read_text("utf-8"))
RELEASE = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gpu-operator, namespace: gpu}
spec:
  chart: {spec: {chart: gpu-operator, version: v25.3.4}}
  values: {driver: {enabled: false}}
"""
COMMAND = "helm upgrade -i gpu-operator nvidia/gpu-operator --version v25.3.4 --set driver.enabled=false"


def run(project: Project, files: dict[str, str], named: list[str], *answers: str) -> Ran:
    """Adopt what is NAMED of FILES, with ANSWERS."""
    for name, text in files.items():
        project.write(f"in/{name}", text)
    words = [word for answer in answers for word in ("--set", answer)]
    return project.run("adopt", *(f"in/{name}" for name in named), "--format", "json", *words)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_out_is_read(name: str, project: Project) -> None:
    """Each value is in the effective spec of a policy that renders, with the release that runs, and nothing is left to
    be answered."""
    case = WRITTEN[name]
    named = [case["folder"]] if "folder" in case else case.get("named", list(case["files"]))
    ran = run(project, case["files"], named, *case.get("answers", []))
    assert ran.code == 0, (ran.out, ran.err)
    found = load_values(yaml.safe_load(ran.json["policy"])["spec"]).model_dump()
    for path, value in case["wanted"].items():
        assert plain(at(found, path)) == value, path
    assert str(ran.json["runs"]).startswith(case.get("runs", ""))


TOLD: dict[str, tuple[dict[str, str], str, str]] = {
    "two clusters in one folder": (
        {"a/x.yaml": RELEASE, "b/x.yaml": RELEASE.replace("false", "true")},
        "open",
        "this installs the chart as well",
    ),
    "patches of a release": (
        {"x.yaml": f"{RELEASE}  postRenderers: [{{kustomize: {{patches: []}}, x: 1}}]\n"},
        "open",
        "patches",
    ),
    "an override of another program": (
        {"x.yaml": f"{RELEASE}---\nkind: OverridePolicy\nspec: {{overriders: [{{name: gpu}}]}}\n"},
        "open",
        "patches",
    ),
    "values that sops has encrypted": (
        {"x.yaml": f"{OFF}toolkit: {{version: 'ENC[AES256_GCM,data:x]'}}\nsops: {{version: 3}}\n"},
        "open",
        "is encrypted",
    ),
    "what a filter of Ansible's makes": (
        {
            "x.yaml": "- vars: {base: {driver: {enabled: false}}}\n  tasks:\n  - x:\n      chart_ref: a/gpu-operator\n"
            "      values: '{{ base | combine(more) }}'\n"
        },
        "open",
        "fills in",
    ),
    "a condition of a script": (
        {"x.sh": f'if [ "$PROFILE" = k3s ]; then\n  ARGS="--set mig.strategy=mixed"\nfi\n{COMMAND} $ARGS\n'},
        "assumed",
        "$PROFILE",
    ),
    "a condition of a Makefile": (
        {"Makefile": f"ifeq ($(X),y)\nARGS += --set mig.strategy=mixed\nendif\nall:\n\t{COMMAND} $(ARGS)\n"},
        "assumed",
        "ifeq ($(X),y)",
    ),
    "a count of 0": (
        {
            "x.tf": 'resource "helm_release" "g" {\n  count = var.on ? 1 : 0\n  chart = "gpu-operator"\n'
            '  values = ["driver: {enabled: false}"]\n}\nvariable "on" { default = false }\n'
        },
        "assumed",
        "count is 0",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_cannot_be_known_is_told(name: str, project: Project) -> None:
    """And what is known is read all the same."""
    files, sort, why = TOLD[name]
    ran = run(project, files, list(files))
    assert any(why in each["why"] for each in ran.json[sort]), ran.out
    assert ran.code == (2 if sort == "open" else 0)


def test_an_answer_is_an_expression_s_value(project: Project) -> None:
    """What only Terraform or a program could know is asked for by its words, and answered by them."""
    values = 'values = [yamlencode({ driver = { enabled = split("-", data.x.y)[0] } })]'
    tf = f'resource "helm_release" "g" {{\n  chart = "gpu-operator"\n  {values}\n}}\n'
    asked = run(project, {"x.tf": tf}, ["x.tf"])
    (remedy,) = (each["remedy"] for each in asked.json["open"])
    assert remedy == "--set split_data_x_y_0=VALUE"
    answered = run(project, {}, ["x.tf"], "split_data_x_y_0=false")
    assert (answered.code, yaml.safe_load(answered.json["policy"])["spec"]["driver"]) == (0, {"enabled": False})


def test_the_text_that_describe_prints_is_told(project: Project) -> None:
    """It is for people: what to give instead is said."""
    ran = run(project, {"x.txt": "Name: x\nAPI Version:  nvidia.com/v1\nKind: ClusterPolicy\n"}, ["x.txt"])
    assert (ran.code, "kubectl get clusterpolicies -o yaml" in ran.out) == (4, True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('var.a == "x" && !var.b ? [1] : 2', [1]),
        ('"v${var.n}-${upper("q")}"', "v3-Q"),
        ('[for k, v in { a = 1, b = 2 } : v if k != "a"]', [2]),
        ('{ for v in ["p"] : v => { x = v } }', {"p": {"x": "p"}}),
        ("merge({ a = 1, b = 2 }, { b = 3 })", {"a": 1, "b": 3}),
        ("try(var.m.none, var.m.k[0].z)", 7),
        ('concat([1], compact(["", 2]), [3]...)', '${concat([1], compact(["", 2]), [3]...)}'),
        ('coalesce(null, "", "c")', "c"),
        ('lookup({ a = 1 }, "b", 4)', 4),
        ("data.x.y", "${data.x.y}"),
        ("-(-2)", 2),
        ('join(",", data.x)', '${join(",", data.x)}'),
    ],
)
def test_what_expressions_of_hcl_come_to(text: str, value: Any) -> None:
    """As `terraform console` has it; what isn't known, or not done here, stays as it is written."""
    known = {"a": "x", "b": False, "n": 3, "m": {"k": [{"z": 7}]}}

    def named(root: str, name: str, written: str) -> Any:
        return known.get(name, written) if root == "var" else written

    assert Evaluator("", named).parsed(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 'b', \"c\": [1, 2.5, true, null,], // x\n d: {}}", {"a": "b", "c": [1, 2.5, True, None], "d": {}}),
        ("(x=None, y={'k': True})", {"x": None, "y": {"k": True}}),
        ('{A: lib.String("a"), B: lib.Map{"k": lib.Bool(false)}}', {"A": "a", "B": {"k": False}}),
        ("{a: f('x'), b: o.p, c: !d}", {"a": "${f('x')}", "b": "${o.p}", "c": "${!d}"}),
        ("{...base, a: 1}", {"a": 1, "...0": "${...base}"}),
    ],
)
def test_what_literals_of_programs_are(text: str, value: Any) -> None:
    """As their languages have them; what is computed stays as it is written, and what is spread isn't lost."""
    assert read_of(text, {}).group() == value


def test_patches_are_merged_or_json_s(project: Project) -> None:
    """RFC 7386, and RFC 6902 for what it adds and replaces in maps; others are refused."""
    assert patched({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": 3}}) == {"a": {"c": 2, "d": 3}}
    assert patched({"a": {}}, [{"op": "add", "path": "/a/x~1y", "value": 1}]) == {"a": {"x/y": 1}}
    with pytest.raises(ValueError, match="not a patch"):
        patched({}, [{"op": "remove", "path": "/a"}])


DOUBLED = "".join(f"  a{index + 1} = [local.a{index}, local.a{index}]\n" for index in range(60))
TERRAFORM = (
    'resource "helm_release" "x" {\n  chart = "gpu-operator"\n  values = [yamlencode({ driver = local.a60 })]\n}\n'
)
ROUNDS = "[for a in local.l : [for b in local.l : [for c in local.l : [for d in local.l : a]]]]"
NESTED = 'join(",", a40)'
for number in range(40, 0, -1):
    NESTED = f"[for a{number} in [[a{number - 1}, a{number - 1}]] : {NESTED}]"
LONG = "a" * 90_000
SECONDS = 60
"""Of the processor; each takes a few at most, and took minutes, hours or for ever."""
HINDERING = {
    "brackets.ts": f'new Release("x", {{ chart: "gpu-operator", version: "v1", values: {"[" * 500}{"]" * 500} }})',
    "lists.tf": f"locals {{\n  a0 = [1, 2]\n{DOUBLED}}}\n{TERRAFORM}",
    "texts.tf": 'locals {\n  a0 = "x"\n'
    + DOUBLED.replace("[", '"${').replace(", ", "}${").replace("]", '}"')
    + "}\n"
    + TERRAFORM,
    "squares.tf": "locals {\n  a0 = 99999\n"
    + "".join(f"  a{number + 1} = local.a{number} * local.a{number}\n" for number in range(60))
    + "}\n"
    + TERRAFORM,
    "times.tf": f'locals {{\n  a60 = "aaaa" * 9999999999\n}}\n{TERRAFORM}',
    "rounds.tf": f"locals {{\n  l = [{'1, ' * 300}]\n  a60 = {ROUNDS}\n}}\n{TERRAFORM}",
    "doubled.tf": f"locals {{\n  a60 = [for a0 in [1] : {NESTED}]\n}}\n{TERRAFORM}",
    "replaced.tf": f'locals {{\n  b = "{LONG}"\n  a60 = replace(local.b, "a", local.b)\n}}\n{TERRAFORM}',
    "joined.tf": f'locals {{\n  b = "{LONG}"\n  a60 = join(local.b, split("a", local.b))\n}}\n{TERRAFORM}',
    "open.py": 'x = {"chart": "gpu-operator", "values": {"a": -',
    "nothing.py": '"gpu-operator" x =',
    "names.ts": 'f("gpu-operator") ' + "a = b " * 20_000,
    "charts.ts": "f(" + '"gpu-operator", ' * 5000 + ")",
    "doubled.sh": 'A="x"\n' + 'A="$A$A"\n' * 60 + "helm install gpu-operator x/gpu-operator --set a=$A\n",
    "flags.sh": f"gpu-operator {'helm -a ' * 20_000}\n",
    "conditions.yaml": "a: '" + "{{ if x }}" * 10_000 + "'\n",
    "matrix.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: x}\nspec:\n"
    "  generators: [{matrix: {generators: [" + f"{{list: {{elements: [{'{a: b}, ' * 50}]}}}}, " * 8 + "]}}]\n",
    "lines.sh": f"A={'x' * 3000}\n"
    + f'B="{"$A" * 40_000}"\n' * 5
    + f"helm install x/gpu-operator --set a={'$A' * 40_000}\n",
    "heredocs.sh": "helm install x/gpu-operator\n" + "cat <<EOF\n" * 40_000,
    "patches.sh": "kubectl patch clusterpolicy x -p '{\n" * 20_000,
    "concat.tf": f"locals {{\n  b = [{'1, ' * 4000}]\n  a60 = concat({'local.b, ' * 4000}[])\n}}\n{TERRAFORM}",
    "variables.yml": "- {chart_ref: nvidia/gpu-operator, version: v25.10.0, values: {a: '{{ v0 }}'}}\n---\n"
    + "".join(f"v{number}: '{f'{{{{ v{number + 1} }}}}' * 500}'\n" for number in range(5))
    + "v5: x\n",
    "names.tf": f"locals {{\n  a60 = local.b\n  b = local.a60\n}}\n{TERRAFORM}",
}


@pytest.mark.parametrize("name", HINDERING)
def test_what_is_made_to_hinder_ends(name: str, project: Project) -> None:
    """Brackets without end, texts and lists that double, names that are made of each other: told or asked for."""
    begun = time.process_time()
    ran = run(project, {name: HINDERING[name]}, [name])
    assert ran.code in {2, 4}
    assert "GPU999" not in ran.out
    assert time.process_time() - begun < SECONDS
