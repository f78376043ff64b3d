"""What the verbs share: options, the project's folders, and which policies an argument means."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import fnmatch
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..compiler.cache import Store, digest, own_digest, private_store
from ..compiler.fleet import Progress, Project
from ..model import Finding, InputError

POLICIES = "policies"


def add_project(parser: argparse.ArgumentParser) -> None:
    """Options of every verb that reads policies and dist/."""
    parser.add_argument(
        "policies",
        nargs="*",
        metavar="CLUSTER|FILE",
        help="a cluster's name, a glob, or a policy file anywhere (default: all)",
    )
    parser.add_argument("--out", metavar="DIR", default="dist", help="where the manifests are (default: dist)")
    parser.add_argument("--no-cache", action="store_true", help="compute everything anew; the result is the same")
    parser.add_argument("--jobs", type=positive, metavar="N", help="processes to use (default: one per processor)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how to print the result")


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


@contextlib.contextmanager
def project(options: argparse.Namespace) -> Iterator[Project]:
    """The project in the current folder."""
    root, out, cache = Path.cwd(), Path(options.out), cache_folder()
    lock = cache / "locks" / digest(str(out.resolve()))[:32]
    with store(options) as found:
        yield Project(root, out, found, lock, options.jobs)


@contextlib.contextmanager
def store(options: argparse.Namespace) -> Iterator[Store]:
    """The user's store, or one of this run alone with --no-cache."""
    with private_store() if options.no_cache else contextlib.nullcontext(Store(cache_folder(), own_digest())) as found:
        yield found


def cache_folder() -> Path:
    """$GPUSTACK_CACHE, else gpustack/ in the user's cache folder."""
    if os.environ.get("GPUSTACK_CACHE"):
        return Path(os.environ["GPUSTACK_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118 - no RuntimeError without a home
    return Path(base) / "gpustack"


def select(arguments: Sequence[str]) -> list[Path]:
    """The policy files that ARGUMENTS mean. Without any: all of policies/. A name that nothing matches is refused."""
    from ..policy.load import policy_files

    chosen: dict[Path, None] = {}
    fleet = (
        policy_files(Path(POLICIES), POLICIES) if not arguments or not all(is_file(word) for word in arguments) else []
    )
    for word in arguments:
        if is_file(word):
            chosen[Path(word)] = None
            continue
        matches = [path for path in fleet if fnmatch.fnmatchcase(path.stem, word)] or [
            path for path in fleet if fnmatch.fnmatchcase(name_of(path), word)
        ]
        if not matches:
            raise InputError(unknown(word, [path.stem for path in fleet]))
        chosen.update(dict.fromkeys(matches))
    return list(chosen) if arguments else fleet


def is_file(word: str) -> bool:
    """Whether an argument means a file rather than a cluster's name."""
    return "/" in word or os.sep in word or word.endswith((".yaml", ".yml"))


def name_of(path: Path) -> str:
    """The cluster's name in a policy file, "" for one that can't be read: rendering it would say why."""
    from ..policy.read import read

    try:
        metadata = read(path, str(path)).data.get("metadata")
    except InputError:
        return ""
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def unknown(word: str, names: Sequence[str]) -> Finding:
    names = sorted(set(names))
    near = difflib.get_close_matches(word, names, n=3)
    return Finding(
        "GPU021",
        "error",
        f"no cluster is called {word!r}",
        why=f"{POLICIES}/ describes {', '.join(names[:12]) or 'no cluster'}{' and more' if len(names) > 12 else ''}",
        remedy=f"did you mean {' or '.join(near)}?"
        if near
        else "give a cluster's name, a glob in quotes, or the path of a policy file",
    )


def changed_since(reference: str, fleet: Sequence[Path]) -> list[Path]:
    """The policies of FLEET that differ from Git's REFERENCE, or whose layers do."""
    from ..policy.load import layers_of

    if reference.startswith("-"):
        raise InputError(
            Finding("GPU022", "error", f"{reference!r} is not a Git revision", remedy="give a branch, tag or commit")
        )
    listings = (
        ["diff", "--name-only", "-z", reference, "--", POLICIES],
        ["ls-files", "--others", "--exclude-standard", "-z", "--", POLICIES],
    )
    changed: set[Path] = set()
    for listing in listings:
        done = subprocess.run(["git", *listing], capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(
                Finding(
                    "GPU022",
                    "error",
                    f"git can't compare with {reference!r}: {done.stderr.strip()}",
                    remedy="give a branch, tag or commit that this clone has",
                )
            )
        top = subprocess.run(
            ["git", "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=True
        ).stdout.strip()
        base = Path(top) if listing[0] == "diff" else Path.cwd()
        changed |= {(base / name).resolve() for name in done.stdout.split("\0") if name}
    return [
        path
        for path in fleet
        if path.resolve() in changed or any(layer.resolve() in changed for layer in layers_of(path))
    ]


def progress_line(options: argparse.Namespace) -> Progress:
    """A line that is rewritten on a terminal; nothing elsewhere, where it would only fill the log."""
    if options.format == "json" or not sys.stderr.isatty():
        return lambda step, done, total: None

    def show(step: str, done: int, total: int) -> None:
        if total > 1 and (done == total or done % 8 == 0):
            end = "\r" if done < total else "\r\x1b[K"
            print(f"\r\x1b[K{step} {done}/{total}", end=end, file=sys.stderr, flush=True)

    return show
