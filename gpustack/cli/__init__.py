"""The command line: one module per verb, imported when it is asked for. Only here is printed, exited, and the
environment read.

Exit codes: 0 done, 1 differences, 2 findings, 3 stale, 4 bad input, 5 missing tool, 70 internal; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from .. import __version__
from ..model import GpustackError

VERBS = {
    "render": "compile policies into manifests under dist/",
    "check": "tell whether dist/ is what the policies render to (exit 3 when it isn't)",
    "validate": "let kubeconform give a second opinion on dist/",
    "explain": "show the effective value of a field, and where it was written",
    "schema": "write the JSON schema of the policy language",
    "version": "print versions",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    verb = next((word for word in words if not word.startswith("-")), None)
    parser = parser_for(verb)
    try:
        options = parser.parse_args(words)
        return int(import_module(f"{__name__}.{options.verb}").run(options))
    except GpustackError as error:
        from .text import print_findings

        print_findings(error.findings, sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - whatever else escapes is our defect, and ends in one line
        return internal(error)


def parser_for(verb: str | None) -> argparse.ArgumentParser:
    """The parser, with the options of VERB alone: the other verbs' modules stay unread."""
    parser = Parser(prog="gpustack", description="GPU stacks for Kubernetes, compiled before the merge.")
    parser.add_argument("--version", action="version", version=f"gpustack {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for name, what in VERBS.items():
        below = verbs.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        if name == verb:
            import_module(f"{__name__}.{name}").add_arguments(below)
    return parser


class Parser(argparse.ArgumentParser):
    """argparse, with our exit code for bad input."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(4, f"{self.prog}: {message}\n")


def internal(error: Exception) -> int:
    """A defect of ours: one line for the user, the traceback only for whoever asks."""
    if os.environ.get("GPUSTACK_DEBUG"):
        raise error
    print(f"gpustack: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    print(
        "This is a defect of gpustack, not of your policy. GPUSTACK_DEBUG=1 shows where; please report that.",
        file=sys.stderr,
    )
    return 70
