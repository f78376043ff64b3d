"""What docs/lint.md shows works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from textwrap import dedent

from gpustack.cli import parser_for
from gpustack.cli.formats import FORMATS
from gpustack.policy.loading.waivers import waivers_of

PAGE = (Path(__file__).parents[2] / "docs" / "lint.md").read_text(encoding="utf-8")


def test_the_waiver_is_one(tmp_path: Path) -> None:
    """The example of waivers.yaml is read as it stands."""
    (block,) = re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE)
    (tmp_path / "waivers.yaml").write_text(dedent(block), encoding="utf-8")
    (waiver,) = waivers_of(tmp_path, "waivers.yaml")
    assert (waiver.rule, waiver.clusters) == ("GPU138", ("lab-*", "demo"))


def test_the_commands_are_understood() -> None:
    """Each command line is one that the verb takes."""
    lines = [line for line in PAGE.splitlines() if line.startswith("gpustack lint")]
    assert len(lines) > 3
    for line in lines:
        parser_for("lint").parse_args(shlex.split(line, comments=True)[1:])


def test_all_formats_are_there() -> None:
    """The table has every format."""
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(FORMATS)
