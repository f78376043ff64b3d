"""Overlays of kustomize are built, by kustomize, of files that lie where the overlay does; nothing is fetched or run.

What an overlay names, and where kustomize finds it, is told by kustomize's reference of the file kustomization.yaml.
"""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project import Project, Ran, cache, project

__all__ = ["cache", "project"]

BASE = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gpu-operator, namespace: gpu}
spec:
  chart: {spec: {chart: gpu-operator, version: v26.7.0}}
  values: {driver: {enabled: false}, mig: {strategy: mixed}, gfd: {enabled: false}}
"""
PATCH = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gpu-operator, namespace: gpu}
spec: {values: {mig: {strategy: "${STRATEGY}"}, gfd: null}}
"""
TREE = {
    "deploy/base/kustomization.yaml": "resources: [release.yaml]\n",
    "deploy/base/release.yaml": BASE,
    "deploy/prod/kustomization.yml": "resources: [../base]\npatches: [{path: patch.yaml}]\n",
    "deploy/prod/patch.yaml": PATCH,
}
builds = pytest.mark.skipif(not shutil.which("kubectl") and not shutil.which("kustomize"), reason="nothing builds here")


def adopted(project: Project, files: dict[str, str], *named: str, env: dict[str, str] | None = None) -> Ran:
    """What adopt says of NAMED, among FILES."""
    for path, text in files.items():
        project.write(path, text)
    answers = ("--set", "cluster.kubernetesVersion=1.34", "--set", "STRATEGY=single")
    return project.run("adopt", *named, *answers, "--format", "json", env=env)


def spec_of(ran: Ran) -> Any:
    """The spec of the policy that was written."""
    return yaml.safe_load(ran.json["policy"])["spec"]


@builds
@pytest.mark.parametrize("named", [["deploy/prod"], ["deploy"], ["deploy/prod/kustomization.yml"]])
def test_an_overlay_is_built(named: list[str], project: Project) -> None:
    """What the patches make of the base counts, and the base isn't read besides; its variables are filled in."""
    ran = adopted(project, TREE, *named)
    assert (ran.code, ran.json["open"]) == (0, []), ran.out
    spec = spec_of(ran)
    assert (spec["driver"], spec.get("mig"), spec.get("gfd")) == ({"enabled": False}, None, None)
    assert spec["cluster"]["namespace"] == "gpu"


@builds
def test_each_overlay_is_a_cluster(project: Project) -> None:
    """Two overlays are no cluster: they are told, and --fleet takes each for one."""
    more = {path.replace("prod", "dev"): text.replace("gfd: null", "gfd: {}") for path, text in TREE.items()}
    ran = adopted(project, TREE | more, "deploy")
    assert (ran.code, len(ran.json["open"])) == (2, 2)
    assert "--fleet" in ran.json["open"][0]["why"]
    both = ("adopt", "--fleet", "deploy/dev", "deploy/prod", "--set", "cluster.kubernetesVersion=1.34")
    told = project.run(*both, "--set", "STRATEGY=mixed", "--format", "json").json
    assert set(told["files"]) == {"layers/common.yaml", "dev.yaml", "prod.yaml"}
    assert yaml.safe_load(told["files"]["dev.yaml"])["spec"]["gfd"] == {"enabled": False}
    assert "gfd" not in yaml.safe_load(told["files"]["prod.yaml"])["spec"]


@pytest.mark.parametrize(
    ("overlay", "word"),
    [
        ("resources: ['https://example.com/gpu.yaml']", "https://example.com/gpu.yaml"),
        ("resources: ['github.com/example/gpu//deploy?ref=v1']", "github.com/example"),
        ("resources: ['git@example.com:gpu.git', ../base]", "git@example.com"),
        ("components: [https://example.com/gpu]", "https://example.com/gpu"),
        ("resources: [../../../outside.yaml]", "outside.yaml"),
        ("resources: [/etc/hostname, ../base]", "/etc/hostname"),
        ("resources: [link.yaml]\nnamePrefix: a", "link.yaml"),
        ("configMapGenerator: [{name: a, files: [a=../../../outside.yaml]}]\nnamePrefix: a", "outside.yaml"),
        ("secretGenerator: [{name: a, envs: [../../../outside.yaml]}]", "outside.yaml"),
        ("patches: [{path: ../../../outside.yaml}]", "outside.yaml"),
        ("replacements: [{path: ../../../outside.yaml}]", "outside.yaml"),
        ("openapi: {path: ../../../outside.yaml}", "outside.yaml"),
        ("generators: [plugin.yaml]", "generators"),
        ("transformers: [plugin.yaml]", "transformers"),
        ("validators: [plugin.yaml]", "validators"),
        ("helmCharts: [{name: gpu-operator, repo: https://example.com}]\nnamePrefix: a", "helmCharts"),
        ("resources: [.]\nnamePrefix: a", "names itself"),
        ("resources: [../missing]\nnamePrefix: a", "../missing"),
    ],
)
def test_what_is_remote_outside_or_a_plugin_is_refused_before_anything_is_built(
    overlay: str, word: str, project: Project, tmp_path: Path
) -> None:
    """Neither kustomize nor kubectl is started; the reason names what it is, and the policy doesn't count as done."""
    (project.folder.parent / "outside.yaml").write_text(BASE, "utf-8")
    project.write("deploy/prod/plugin.yaml", "kind: Plugin\nmetadata: {name: a}\n")
    (project.folder / "deploy/prod/link.yaml").symlink_to(project.folder.parent / "outside.yaml")
    files = {**TREE, "deploy/prod/kustomization.yml": f"{overlay}\n"}
    ran = adopted(project, files, "deploy/base/release.yaml", "deploy/prod/kustomization.yml", env=spying(tmp_path))
    (told,) = [each for each in ran.json["open"] if each["path"].endswith("kustomization.yml")]
    assert (ran.code, word in told["why"]) == (2, True), told
    assert not (tmp_path / "started").exists()


def spying(folder: Path) -> dict[str, str]:
    """An environment in which kustomize and kubectl leave a file behind."""
    (folder / "bin").mkdir()
    for name in ("kustomize", "kubectl"):
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\n/usr/bin/env > {folder}/started\necho kind: List\n", "utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": str(folder / "bin")}


def test_the_program_is_told_nothing_and_sees_a_copy(project: Project, tmp_path: Path) -> None:
    """It gets neither our PATH, nor our home, nor a credential; a program in the work tree is not taken."""
    env = {**spying(tmp_path), "AWS_SECRET_ACCESS_KEY": "x", "KUSTOMIZE_PLUGIN_HOME": "/x"}
    assert adopted(project, TREE, "deploy/prod", env=env).code == 4
    told = dict(line.split("=", 1) for line in (tmp_path / "started").read_text("utf-8").splitlines())
    assert (told.get("PATH", ""), "AWS_SECRET_ACCESS_KEY" in told, "KUSTOMIZE_PLUGIN_HOME" in told) == (
        "",
        False,
        False,
    )
    assert told["HOME"].startswith(told["TMPDIR"])
    assert not Path(told["HOME"]).exists()
    (tmp_path / "started").unlink()
    assert adopted(project, TREE, "deploy/prod", env={"PATH": f".:{Path('deploy')}"}).code == 4
