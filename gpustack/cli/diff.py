"""gpustack diff: what changes between what is merged and what is proposed, once for all clusters it changes in, and
what that does to nodes and workloads.

Without folders the old side is dist/ as it stands in Git, at the commit where the work tree departed from --base, and
the new side is what the policies render to now (comparison.py).
"""

import argparse
import os
import sys

from . import common
from .text import columns_of


def budget(text: str) -> int:
    from .formats.diff.markdown import SMALLEST

    value = common.positive(text)
    if value < SMALLEST:
        raise argparse.ArgumentTypeError(f"the dangers would not fit: give {SMALLEST} bytes or more")
    return value


def tier(text: str) -> int:
    from ..review.impact.tiers import number_of

    try:
        return number_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    from ..review.accepted import fails
    from .formats import diff as formats
    from .trees.comparison import compare

    with compare(options) as compared:
        colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        columns = columns_of(sys.stdout)
        text = formats.written(compared, options.format, budget=options.budget, colours=colours, columns=columns)
        print(text, end="")
    if options.fail_on is not None:
        return 1 if fails(compared.impact, options.fail_on) else 0
    return 1 if compared.difference.groups or compared.impact.effects else 0
