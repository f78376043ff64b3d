"""Folders with policies for the tests of this package: a policy is written as the lines below its spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.model import Finding, InputError
from gpustack.policy.loading.load import Loaded, Memo, load

HEAD = "apiVersion: gpustack.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
PINS = '  release: v26.7.0\n  cluster: {kubernetesVersion: "1.34"}\n'
BODY = 7
"""The line on which what `policy` is given starts."""


class Fleet:
    """A folder with policies, and layers/ in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "layers").mkdir()

    def policy(self, body: str = "", *, name: str = "prod", pins: str = PINS) -> Path:
        """Write the policy of a cluster with BODY below spec."""
        return self.file(f"{name}.yaml", HEAD.format(kind="ClusterPolicy", name=name) + pins + body)

    def layer(self, name: str, body: str = "") -> Path:
        """Write a layer; its body starts on line 5."""
        return self.file(f"layers/{name}.yaml", HEAD.format(kind="PolicyLayer", name=name) + body)

    def file(self, name: str, text: str) -> Path:
        """Write any file."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, body: str = "", *, memo: Memo | None = None) -> Loaded:
        """Load a policy with BODY below spec."""
        return load(self.policy(body), root=self.folder, memo=memo)

    def refused(self, path: Path) -> list[Finding]:
        """The findings that the policy PATH is refused with, checked for what every finding must have."""
        with pytest.raises(InputError) as caught:
            load(path, root=self.folder)
        for finding in caught.value.findings:
            assert finding.severity == "error"
            assert finding.what
            assert finding.remedy
            assert finding.location is not None
            assert finding.location.line is not None
            assert finding.location.column is not None
            assert finding.location.text is not None
        return caught.value.findings

    def mistake(self, body: str) -> Finding:
        """The one finding that a policy with BODY below spec is refused with."""
        (finding,) = self.refused(self.policy(body))
        return finding
