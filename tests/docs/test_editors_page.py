"""docs/editors-and-ci.md: Renovate's patterns find what policies have, as RE2 reads them, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest
import yaml

from gpustack.compiler.node import from_wheel, on_path
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

TEMPLATE = "gpustack/cli/templates/common/dot-pre-commit-config.yaml"
PAGE = (ROOT / "docs/editors-and-ci.md").read_text()
RENOVATE = json.loads(PAGE.partition("```json\n")[2].partition("```")[0])
RELEASE, DRIVER, IMAGE = (each["matchStrings"][0] for each in RENOVATE["customManagers"])


def found(pattern: str, text: str) -> list[dict[str, str | None]]:
    """The groups of each match that has any: what is passed over is no dependency to Renovate. Its (?<name>...) is
    Python's (?P<name>...); RE2 has neither lookarounds nor references back, and JavaScript no flags in a pattern."""
    assert not re.search(r"\(\?(?!:|<[a-zA-Z])|\\\d|\\k", pattern)
    groups = [match.groupdict() for match in re.finditer(pattern.replace("(?<", "(?P<"), text)]
    return [each for each in groups if any(each.values())]


def test_releases() -> None:
    """The release of the example fleet's base layer; labels called release, and that of a text that is carried, are no
    version of a policy's."""
    layer = (ROOT / "policies/layers/base.yaml").read_text()
    assert found(RELEASE, layer) == [{"currentValue": "v26.7.0"}]
    for text, version in RELEASES.items():
        assert found(RELEASE, text) == ([{"currentValue": version}] if version else []), text


CARRIED = "  carried:\n  - name: a\n    texts:\n      containers.a.args.0:\n        release: v26.7.0\n"
RELEASES = {
    "a: b\nspec:\n  release: 'v25.10.1' # why\n": "v25.10.1",
    "a: b\nspec:\n    extends: [a]\n    release: v25.10.1": "v25.10.1",
    "a: b\nspec: {release: v25.10.1}\n": "v25.10.1",
    "a: b\nspec: {driver: {enabled: true}, release: v25.10.1, extends: [a]}\n": "v25.10.1",
    "spec:\n  # release: v25.10.1\n": "",
    "spec:\n  release: v25.10.1-rc.1\n": "",
    "  monitoringLabels: {release: kube-prometheus-stack}\n": "",
    "    release: kube-prometheus-stack\n": "",
    f"spec:\n{CARRIED}": "",
}
HOST = "  vgpuManager:\n    enabled: true\n# 1\n\n    version: 570.124.03\n"
MANY = "".join(f"    - {{name: N{n}, value: v}}\n" for n in range(20))
DRIVERS: dict[str, tuple[str, ...]] = {
    "spec:\n  driver: {version: 580.126.20}\n": ("580.126.20",),
    'spec:\n  driver: {usePrecompiled: false, version: "580.95.05"}\n': ("580.95.05",),
    "spec:\n  driver:\n    enabled: true\n    version: 595.91.07\n": ("595.91.07",),
    "spec:\n  driver:\n    enabled: true\n\n    # why\n    version: 595.91.07 # why": ("595.91.07",),
    "spec:\n  nodePools:\n  - name: a\n    driver: {version: 570.172.08}\n": ("570.172.08",),
    "spec:\n  driver: {upgradePolicy: {maxUnavailable: 1}, version: 580.126.20}\n": ("580.126.20",),
    "spec: {driver: {upgradePolicy: {drain: {enable: true}}, version: 580.126.20}}\n": ("580.126.20",),
    f"spec:\n  driver:\n    env:\n{MANY}    version: 580.126.20\n": ("580.126.20",),
    "spec:\n  drivers:\n  - name: a\n    version: 580.126.20\n  - {name: b, version: '570.172.08'}\n": (
        "580.126.20",
        "570.172.08",
    ),
    f"spec:\n  driver: {{enabled: false}}\n{HOST}": (),
    f"spec:\n  driver:\n    enabled: false\n  toolkit:\n    enabled: true\n{HOST}": (),
    f"spec:\n{HOST}  driver: {{version: 580.126.20}}\n": ("580.126.20",),
    f"spec:\n  driver:\n    version: 580.126.20\n{HOST}": ("580.126.20",),
    "spec:\n    vgpuManager:\n        version: 570.124.03\n    driver:\n        version: 580.126.20\n": ("580.126.20",),
    "spec: {vgpuManager: {config: {a: b}, version: 570.124.03}, driver: {version: 580.126.20}}\n": ("580.126.20",),
    "spec:\n  driver: {version: '595'}\n": (),
    "spec:\n  driver: {version: 580.126.20-ubuntu22.04}\n": (),
    "spec:\n  driver: {hostVersion: 580.126.20}\n  # version: 580.126.20\n": (),
    "spec:\n  toolkit: {version: v1.17.8}\n  gds: {version: 2.27.3}\n": (),
}
"""Parts of policies, and the versions of drivers in them."""


@pytest.mark.parametrize("text", DRIVERS)
def test_drivers(text: str) -> None:
    """Whole versions, on one line or many, of the cluster, a pool or a list; branches are no image's tag, and the vGPU
    manager is another image."""
    assert found(DRIVER, text) == [{"currentValue": version} for version in DRIVERS[text]]


def test_javascript_finds_the_same() -> None:
    """Renovate reads patterns as RE2 does, or as JavaScript where that can't be built."""
    node = on_path(os.environ.get("PATH")) or from_wheel()
    assert node
    asked = [(pattern, text) for pattern in (RELEASE, DRIVER) for text in (*RELEASES, *DRIVERS)]
    code = """const asked = JSON.parse(require("fs").readFileSync(0));
    const found = ([pattern, text]) => [...text.matchAll(new RegExp(pattern, "g"))].map(each => ({ ...each.groups }));
    console.log(JSON.stringify(asked.map(found)));"""
    ran = subprocess.run([node, "-e", code], input=json.dumps(asked), text=True, check=True, capture_output=True)
    for (pattern, text), said in zip(asked, json.loads(ran.stdout), strict=True):
        assert [each for each in said if each] == found(pattern, text)


def test_tags_of_driver_images() -> None:
    """The version alone is proposed, as policies have it; tags of other systems, and of no driver, aren't."""
    extract = RENOVATE["customManagers"][1]["extractVersionTemplate"]
    tags = ["595.91.07-ubuntu22.04", "595.91.07-rhel9.4", "595.91.07-ubuntu22.04-arm64", "595-5.15.0-1-ubuntu22.04"]
    assert [found(extract, tag) for tag in tags] == [[{"version": "595.91.07"}], [], [], []]


def test_images() -> None:
    """With a tag, with both, with a registry's port; a name without a registry is left to whoever knows it."""
    digest, exporter = f"sha256:{'a' * 64}", "nvcr.io/nvidia/k8s/dcgm-exporter"
    text = f"image: {exporter}:4.5.1-4.8.0\nimage: 'r.example.com:5000/a/b:v1@{digest}'\nimage: driver\n"
    text += f"# image: {exporter}:1\n"
    first, second = found(IMAGE, text)
    assert first == {"depName": exporter, "currentValue": "4.5.1-4.8.0", "currentDigest": None}
    assert second == {"depName": "r.example.com:5000/a/b", "currentValue": "v1", "currentDigest": digest}


def test_files() -> None:
    """Renovate looks at policies, layers and changes, and at no rendered file; neither bot takes pinned packages apart,
    which were tested together.
    """
    pattern = RENOVATE["customManagers"][0]["managerFilePatterns"][0].strip("/")
    assert re.search(pattern, "policies/layers/base.yaml")
    assert re.search(pattern, "policies/a.yml")
    assert not re.search(pattern, "dist/a/base/namespace.yaml")
    assert RENOVATE["pip_requirements"] == {"enabled": False}
    dependabot = yaml.safe_load(PAGE.rpartition("```\nversion: 2")[2].partition("```")[0])
    assert [each["package-ecosystem"] for each in dependabot["updates"]] == ["github-actions"]


@pytest.mark.parametrize("readable", [True, False])
def test_findings_reach_code_scanning(project: Project, readable: bool) -> None:
    """The step as it is printed, in a repository that init made, leaves the file that the next one takes, of a policy
    that can't be read too; that one is run whatever came of the first."""
    assert project.run("init", "new").code == 0
    made = Project(project.folder / "new", project.cache)
    if not readable:
        made.write("policies/example.yaml", "spec: [")
    steps = yaml.safe_load(PAGE[PAGE.index("- run: ci/gpustack lint") :].partition("```")[0])
    env = {**os.environ, "GPUSTACK": str(ROOT / ".venv/bin/gpustack"), "GPUSTACK_CACHE": str(made.cache)}
    ran = subprocess.run(
        ["/bin/sh", "-e", "-c", steps[0]["run"]], cwd=made.folder, env=env, check=False, capture_output=True, text=True
    )
    assert (ran.returncode == 0) == readable, ran.stderr
    results = json.loads((made.folder / steps[1]["with"]["sarif_file"]).read_bytes())["runs"][0]["results"]
    assert bool(results) or readable
    assert steps[1]["if"] == "always()"


def test_hooks_of_a_repository() -> None:
    """The page names those that init writes: the first and the last of this repository's."""
    made, ours = (yaml.safe_load((ROOT / each).read_text("utf-8")) for each in (TEMPLATE, ".pre-commit-hooks.yaml"))
    ids = [each["id"] for each in ours]
    assert [each["id"] for each in made["repos"][0]["hooks"]] == [ids[0], ids[-1]]
    assert all(f"`{each}`" in PAGE for each in ids)


def test_how_an_editor_learns_of_the_schema(project: Project) -> None:
    """The line of the page is the first of a policy that init writes, and leads to the schema that it writes."""
    assert project.run("init", "new").code == 0
    (line,) = re.findall(r"^# yaml-language-server: .*", PAGE, re.MULTILINE)
    new = project.folder / "new"
    assert (new / "policies/example.yaml").read_text("utf-8").startswith(f"{line}\n")
    assert (new / "policies" / line.partition("=")[2]).resolve() == new / "schemas/clusterpolicy.schema.json"
    layer = (new / "policies/layers/base.yaml").read_text("utf-8").partition("\n")[0]
    assert layer == line.replace("../", "../../")
