"""docs/air-gap.md: with what it tells to write every image comes from the mirror; its commands print what it shows."""

from __future__ import annotations

import re
import shlex

import yaml

from gpustack.policy.language import images
from tests.docs.test_verbs_page import as_pattern
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]

PAGE = (ROOT / "docs" / "air-gap.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]
SHOWN = [
    (command, output)
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]
POLICY = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: site-1}
spec:
  extends: [air-gap]
  release: v26.7.0
  cluster: {kubernetesVersion: "1.34", containerRuntime: containerd}
  nodePools:
  - name: training
    os: ubuntu22.04
    gpuProduct: NVIDIA-H100-80GB-HBM3
    gpusPerNode: 8
    nodeSelector: {example.com/pool: training}
"""


def test_the_page_shows_real_output(project: Project) -> None:
    """Each command prints what stands below it, in a project with the page's layer."""
    project.write("policies/site-1.yaml", POLICY)
    project.layer("air-gap", **BLOCKS[0])
    for command, output in SHOWN:
        ran = project.run(*shlex.split(command)[1:])
        said = ran.out.rstrip() + "\n" + (ran.err.rstrip() if ran.code else "")
        assert re.fullmatch(as_pattern(output), said.strip(), re.DOTALL), f"{command}\n{said}"


def test_nothing_comes_from_elsewhere(project: Project) -> None:
    """With all that the page has for drivers as well, every image that is rendered comes from the mirror."""
    for more in BLOCKS[1:]:
        project.write("policies/site-1.yaml", POLICY)
        project.layer("air-gap", **BLOCKS[0])
        project.layer("more", **{key: value for key, value in more.items() if key != "nodePools"})
        text = POLICY.replace("[air-gap]", "[air-gap, more]")
        kernel = (more.get("nodePools") or [{}])[0].get("kernel")
        project.write("policies/site-1.yaml", f"{text}    kernel: {kernel}\n" if kernel else text)
        ran = project.run("images", "--format", "list")
        assert ran.code == 0, ran.err
        assert {images.registry(line.split()[1]) for line in ran.out.splitlines()} == {"mirror.example.com"}
        assert project.run("lint", "--fail-on", "warning", "--today", "2026-11-01").code == 0
