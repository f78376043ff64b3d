"""--staged, for hooks that run before a commit: what was rendered for the policies that are committed is committed too.

A hook that renders sees only that files which Git knows have changed. The folder of a new cluster isn't among those,
and would stay behind. Policies that Git doesn't know either are somebody's work of tomorrow, and so is their render.
"""

import argparse
from pathlib import Path

from ...model import Finding, few
from .. import common
from ..refusals import said

SHOWN = 5


def missing(options: argparse.Namespace) -> list[Finding]:
    """What to say of files in dist/ that are not as Git has them staged; nothing where nobody asks."""
    if not options.staged:
        return []
    from ..affected import Files, below, concerned
    from .repository import Git

    out = Path(options.out)
    git = Git("--staged compares with what is about to be committed", "install Git, or leave out --staged")
    new = Files.of(name for name, known in git.unstaged(common.POLICIES).items() if not known)
    ahead = {common.name_of(path) or path.stem for path in common.select([]) if concerned(new, path)}
    names = sorted(
        name for name in git.unstaged(str(out)) if not any(below(Files.of([name]), out, cluster) for cluster in ahead)
    )
    files = common.counted(len(names), "file")
    return [said("GPU971", files=files, out=options.out, names=few(names, SHOWN))] if names else []
