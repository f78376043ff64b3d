"""A page that is followed word for word: its files are saved, its edits made, its commands typed, and what they print
is what the page shows.

Of the blocks of a page

- `yaml` and `yml` begin with a comment that has the file's name, and are saved there;
- `diff` begins with `--- FILE`, and each of its lines that begins with `-` becomes the `+` line behind it;
- `console` has commands behind `$`, and below each what it prints: `...` alone on a line is any lines, in a line any
  text;
- all others are left alone, and the test that follows the page says of each why.

A `gpustack` runs in this process, everything else in a shell.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.test_verbs_page import GIT, as_pattern
from tests.project import ROOT, Project

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```|^## ([^\n]+)$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass
class Block:
    """A block of code, and the heading that it is below."""

    kind: str
    text: str
    heading: str

    @property
    def followed(self) -> bool:
        """Whether it is one that `follow` does something with."""
        return self.kind in {"yaml", "yml", "diff", "console"}


def blocks(page: Path) -> list[Block]:
    """The blocks of PAGE, in its order."""
    found, heading = [], ""
    for match in BLOCK.finditer(page.read_text("utf-8")):
        heading = match[3] or heading
        if match[1]:
            found.append(Block(match[1], match[2], heading))
    return found


@dataclass
class Reader:
    """Somebody who follows a page, in a project's folder and with MORE in the environment, less what is None."""

    project: Project
    more: Mapping[str, str | None] = field(default_factory=dict)
    folder: Path = Path()

    @property
    def at(self) -> Path:
        """Where the reader is."""
        return self.project.folder / self.folder

    def follow(self, block: Block) -> None:
        """Do what BLOCK says; an AssertionError where something else happens than it shows."""
        if block.kind == "console":
            for command, output in COMMAND.findall(block.text):
                said = self.type(command)
                assert re.fullmatch(as_pattern(output), said, re.DOTALL), f"$ {command}\n{said}"
        elif block.kind == "diff":
            self.edit(block.text)
        else:
            name = block.text.partition("\n")[0].removeprefix("# ")
            assert re.fullmatch(r"[\w./-]+\.yaml", name), f"no name of a file: {name}"
            (self.at / name).write_text(block.text, "utf-8")

    def edit(self, text: str) -> None:
        """Make the edits of a diff."""
        head, *rest = text.splitlines()
        file = self.at / head.removeprefix("--- ")
        found = file.read_text("utf-8")
        for old, new in zip(rest[::2], rest[1::2], strict=True):
            assert (old[0], new[0]) == ("-", "+")
            assert found.count(f"{old[1:]}\n") == 1, old
            found = found.replace(f"{old[1:]}\n", f"{new[1:]}\n")
        file.write_text(found, "utf-8")

    def type(self, command: str) -> str:
        """What COMMAND prints. One that fails prints its complaint as well."""
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ")
            return ""
        environment: dict[str, str | None] = {**GIT, **self.more}
        if command.startswith("gpustack "):
            ran = self.project.run(*shlex.split(command)[1:], cwd=self.at, env=environment)
            return (ran.out.rstrip() + "\n" + (ran.err.rstrip() if ran.code else "")).strip()
        known = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.at,
            env={name: value for name, value in known.items() if value is not None},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip()


TUTORIAL = ROOT / "docs" / "tutorial.md"
CLUSTER = "6. A cluster on this machine"
"""The heading from which on a cluster is needed."""
