"""The command line: one module per verb, imported when it is asked for. Only here is printed, exited, and the
environment read.

Exit codes: 0 done, 1 differences, 2 findings, 3 stale, 4 bad input, 5 missing tool, 70 internal; 130 after Ctrl-C,
141 when the reader of our output went away (what a shell reports for any program that writes into a closed pipe).
Where standard output can't be written for another reason (closed, full) it is 4, whatever the verdict was; where it is
standard error alone that can't, the verdict stays (streams.py).

With `--format json` an error too is a JSON document on standard output: the exit code and the findings.
"""

import argparse
import contextlib
import errno
import gc
import itertools
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from .. import __version__
from ..model import Finding, GpustackError, InputError, OutputError
from .streams import LostError, guarded, silence

VERBS = dict(line.split(": ", 1) for line in Path(__file__).with_name("verbs.txt").read_text("utf-8").splitlines())
"""Each verb and what it does, in the order of --help, which has no time for a reader of YAML."""
REFUSALS = {
    *(errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ELOOP, errno.EMFILE, errno.ENAMETOOLONG),
    *(errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ENOTDIR, errno.EPERM, errno.EROFS, errno.ESTALE),
}
"""What a system answers that lacks room or permission: no defect of ours, wherever it happens."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    settle()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "_ARGCOMPLETE" in os.environ:
        complete()
    if words[:1] in ([], ["help"]):
        words = [*words[1:], "--help"]
    with guarded():
        try:
            code = attempt(words)
            sys.stdout.flush()  # a full disk behind it must not be found out after the exit code is decided
        except LostError as lost:
            silence(1)
            return 141 if isinstance(lost.error, BrokenPipeError) else tell(refusal(lost.error), [])
        return code


def complete() -> None:
    """Answer a shell that asks how the line goes on (`eval "$(register-python-argcomplete gpustack)"`), and exit."""
    import argcomplete

    line = os.environ.get("COMP_LINE", "").split()[1:]
    argcomplete.autocomplete(parser_for(next((word for word in line if not word.startswith("-")), None)))


def settle() -> None:
    """Import nothing from the current folder, which may be anybody's clone, in this process and those that it starts.

    `python -m gpustack` looks there first, and so does a PYTHONPATH with an empty part. Our own home stays. Plugins of
    pydantic, which any installed distribution may bring, stay out too: to look for them is 20 ms. Garbage in cycles is
    collected seldom, as nearly all that is made stays: with Python's thresholds that is a tenth of a cold render."""
    gc.set_threshold(200_000, 30, 30)
    home = Path(__file__).parents[2]
    with contextlib.suppress(OSError):
        here = Path.cwd()
        sys.path[:] = [folder for folder in sys.path if Path(folder) == home or Path(folder) not in {Path(), here}]
    sys.path[:] = [folder for folder in sys.path if Path(folder).is_absolute()]
    os.environ |= {"PYTHONSAFEPATH": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}


def attempt(words: list[str]) -> int:
    """Do what WORDS say; every error but LostError becomes an exit code."""
    try:
        verb = next((word for word in words if not word.startswith("-")), None)
        options = parser_for(verb).parse_args(words)
        from ..policy.loading.brought import LIST, LOCK

        lists = [each for each in (LIST, LOCK) if os.path.lexists(each)]
        if lists:
            import_module(f"{__name__}.trees.repository").limit(lists, getattr(options, "base", None))
        return int(import_module(f"{__name__}.{options.verb.replace('-', '_')}").run(options))
    except SystemExit as stop:  # argparse, after --help and --version
        return int(stop.code or 0)
    except GpustackError as error:
        return tell(error, words)
    except KeyboardInterrupt:
        return 130
    except LostError:
        raise
    except (OSError, MemoryError, RecursionError) as error:
        if isinstance(error, OSError) and no_folder():
            return tell(InputError(NOWHERE), words)
        if isinstance(error, OSError) and error.errno not in REFUSALS:
            return internal(error, words)
        return tell(refusal(error), words)
    except Exception as error:  # noqa: BLE001 - whatever else escapes is our defect, and ends in one line
        return internal(error, words)


NOWHERE = Finding.error(
    "GPU001",
    "the current folder is gone",
    why="somebody removed or replaced it since this shell went there",
    remedy="go to the project's folder again with cd",
)


def no_folder() -> bool:
    """Whether the folder that we run in was removed: whatever asks for a path then fails, each in its own words."""
    try:
        Path.cwd()
    except OSError:
        return True
    return False


def tell(error: GpustackError, words: Sequence[str]) -> int:
    """Print the findings of ERROR as WORDS want them; returns the exit code."""
    from .text import document, plain, print_findings

    # The line may be wrong in other ways, so nothing has parsed it.
    if "--format=json" in words or ("--format", "json") in itertools.pairwise(words):
        print(document(error.exit_code, [plain(finding) for finding in error.findings]))
    else:
        print_findings(error.findings, sys.stderr)
    return error.exit_code


def refusal(error: Exception) -> OutputError:
    """What the system refused, in words."""
    if isinstance(error, OSError):
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    else:
        what = "out of memory" if isinstance(error, MemoryError) else str(error)
    remedy = "give gpustack the room or the permission that it lacks, then run the same command again"
    return OutputError.of("GPU923", f"the system refuses: {what}", remedy=remedy)


def parser_for(verb: str | None) -> argparse.ArgumentParser:
    """The parser, with the options of VERB alone: the other verbs' modules stay unread."""
    parser = Parser(prog="gpustack", description="GPU stacks for Kubernetes, compiled before the merge.")
    parser.add_argument("--version", action="version", version=f"gpustack {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for name, what in VERBS.items():
        below = verbs.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        if name == verb:
            import_module(f"{__name__}.arguments").add(below, name)
    return parser


class Parser(argparse.ArgumentParser):
    """argparse, with our kind of error for bad input, and without abbreviations, which a new option would break."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, but names may stand on both sides of an option, and the verb itself says what it doesn't know.
        What stands behind "--" is a name, which argparse's way of mixing forgets."""
        if self._mixing or self._subparsers is not None or "--" in (args or ()):
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            parsed, rest = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        raise InputError.of("GPU026", f"{self.prog}: {message}", remedy=f"see {self.prog} --help")


def internal(error: Exception, words: Sequence[str]) -> int:
    """A defect of ours: one line for the user, the traceback only for whoever asks."""
    if os.environ.get("GPUSTACK_DEBUG"):
        raise error
    what = f"internal error: {type(error).__name__}: {error}"
    why = "this is a defect of gpustack, not of your policy"
    remedy = "GPUSTACK_DEBUG=1 shows where; please report that"
    return tell(GpustackError.of("GPU999", what, why=why, remedy=remedy), words)
