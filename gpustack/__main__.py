"""python -m gpustack"""

import os
import sys

# `python -m` looks for modules in the current folder first, and that may be anybody's clone. Python itself has looked
# there by now: the program `gpustack`, or `python -P -m gpustack`, never does.
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH120 - pathlib isn't imported yet
if not sys.flags.safe_path:
    sys.path[:] = [each for each in sys.path if each == _HOME or each not in {"", os.curdir, sys.path[0]}]

from .cli import main  # noqa: E402 - after that

if __name__ == "__main__":
    sys.exit(main())
