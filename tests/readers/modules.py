"""What other projects publish with their Go modules: definitions of their kinds, and readers of their files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.readers.go_reader import built, find_go

HERE = Path(__file__).parent
TOOLS = HERE.parents[1] / ".tools/bin"
KARPENTER = ("sigs.k8s.io/karpenter@v1.14.1", "h1:GjqvOHLjl2+OXM0ti5VEZSQuvcitB0pETd8zdChXEtI=")
"""The module whose kinds schemas/ has (tools/make_schemas.py), and the digest of its content as go.sum writes it."""


def folder(module: tuple[str, str]) -> Path:
    """The folder of MODULE, fetched where it isn't there."""
    name, digest = module
    told = subprocess.run([find_go(), "mod", "download", "-json", name], check=True, capture_output=True)
    said = json.loads(told.stdout)
    assert said["Sum"] == digest, f"{name} is another than was looked at"
    return Path(said["Dir"])


def ignition(text: str) -> str:
    """What Ignition has against the configuration TEXT, "" for nothing."""
    program = built(HERE / "ignition", TOOLS / "ignition-reader")
    return subprocess.run([program], input=text, capture_output=True, text=True, check=False).stdout
