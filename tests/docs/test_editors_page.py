"""docs/editors-and-ci.md: Renovate's patterns find what policies have, as RE2 reads them, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/editors-and-ci.md").read_text()
RENOVATE = json.loads(PAGE.partition("```json\n")[2].partition("```")[0])
RELEASE, DRIVER, IMAGE = (each["matchStrings"][0] for each in RENOVATE["customManagers"])


def found(pattern: str, text: str) -> list[dict[str, str | None]]:
    """The groups of each match; Renovate's (?<name>...) is Python's (?P<name>...), and neither has lookarounds here."""
    assert "(?=" not in pattern
    assert "(?!" not in pattern
    return [match.groupdict() for match in re.finditer(pattern.replace("(?<", "(?P<"), text)]


def test_releases() -> None:
    """The release of the example fleet's base layer; labels called release are no version of anything."""
    layer = (ROOT / "policies/layers/base.yaml").read_text()
    assert found(RELEASE, layer) == [{"currentValue": "v26.7.0"}]
    assert found(RELEASE, "spec:\n  release: 'v25.10.1' # why\n") == [{"currentValue": "v25.10.1"}]
    assert found(RELEASE, "  monitoringLabels: {release: kube-prometheus-stack}\n") == []
    assert found(RELEASE, "    release: kube-prometheus-stack\n") == []


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("spec:\n  driver: {version: 580.126.20}\n", "580.126.20"),
        ('spec:\n  driver: {usePrecompiled: false, version: "580.95.05"}\n', "580.95.05"),
        ("spec:\n  driver:\n    enabled: true\n    version: 595.91.07\n", "595.91.07"),
        ("spec:\n  nodePools:\n  - name: a\n    driver: {version: 570.172.08}\n", "570.172.08"),
        ("spec:\n  driver: {version: '595'}\n", None),
        ("spec:\n  toolkit: {version: v1.17.8}\n", None),
    ],
)
def test_drivers(text: str, version: str | None) -> None:
    """A whole version, on one line or several, of the cluster or a pool; branches are no image's tag."""
    assert found(DRIVER, text) == ([{"currentValue": version}] if version else [])


def test_tags_of_driver_images() -> None:
    """The version alone is proposed, as policies have it; tags of other systems, and of no driver, aren't."""
    extract = RENOVATE["customManagers"][1]["extractVersionTemplate"]
    tags = ["595.91.07-ubuntu22.04", "595.91.07-rhel9.4", "595.91.07-ubuntu22.04-arm64", "595-5.15.0-1-ubuntu22.04"]
    assert [found(extract, tag) for tag in tags] == [[{"version": "595.91.07"}], [], [], []]


def test_images() -> None:
    """With a tag, with both, with a registry's port; a name without a registry is left to whoever knows it."""
    digest, exporter = f"sha256:{'a' * 64}", "nvcr.io/nvidia/k8s/dcgm-exporter"
    text = f"image: {exporter}:4.5.1-4.8.0\nimage: 'r.example.com:5000/a/b:v1@{digest}'\nimage: driver\n"
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
