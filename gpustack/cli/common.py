"""What the verbs share: options, the project's folders, and which policies an argument means."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import difflib
import fnmatch
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..compiler.cache import Store, private_folder, salt, untrusted
from ..compiler.fleet import Progress, Project
from ..model import Finding, InputError, whole
from ..policy.loading.brought import LOCK, brought_by
from ..policy.loading.load import layers_of, policy_files
from ..policy.loading.rings import CHANGES, FLEET
from ..text.read import read
from .refusals import refusal, said
from .text import print_findings
from .trees import links

if TYPE_CHECKING:
    from ..compiler.shared import Shared
    from ..registry.client import Client

POLICIES = "policies"
MOST_JOBS = 512
"""Processes that somebody may ask for; each has an interpreter and perhaps a Node, 100 MB together."""


def counted(number: int, word: str) -> str:
    """1 cluster, 2 clusters."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def some(names: Iterable[str]) -> str:
    """NAMES of clusters in a sentence, as many as somebody reads."""
    distinct = sorted(set(names))
    return f"{', '.join(distinct[:12])}{' and more' if len(distinct) > 12 else ''}"


def clock() -> datetime.datetime:
    """The time."""
    return datetime.datetime.now(datetime.UTC)


def moment(time: datetime.datetime) -> str:
    """TIME, of UTC, as RFC 3339."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def time_on(today: datetime.date) -> datetime.datetime:
    """The time at which TODAY is looked at: now, or the end of a day that isn't the present one."""
    now = clock()
    return now if now.date() == today else datetime.datetime.combine(today, datetime.time.max, datetime.UTC)


def day(text: str) -> datetime.date:
    """The day TEXT; "today" is what it is in UTC."""
    if text == "today":
        return clock().date()
    try:
        date = datetime.date.fromisoformat(text)
    except ValueError:
        date = None
    if date is None or date.isoformat() != text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day: write year, month and day, such as 2027-03-31")
    return date


def named(text: str) -> str:
    """TEXT, the name of a file or folder."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: name a file or folder, or leave it out")
    return text


def path(text: str) -> Path:
    return Path(named(text))


def positive(text: str) -> int:
    value = whole(text)
    if not value:
        raise argparse.ArgumentTypeError("must be a number from 1 on")
    return value


def processes(text: str) -> int:
    value = whole(text)
    if not value or value > MOST_JOBS:
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        raise argparse.ArgumentTypeError(f"{shown!r} is not a number of processes: write one from 1 to {MOST_JOBS}")
    return value


def scheduler(text: str) -> str:
    from ..compiler.distant import dask_address

    if text and not dask_address(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not dask://HOST:PORT, nor dask+tls://HOST:PORT")
    return text


def shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    number, of = whole(part), whole(parts)
    if not number or not of or number > of:
        raise argparse.ArgumentTypeError(f"{text!r} is not a part: write K/N, 1/16 for the first of 16")
    return number, of


def sharded(paths: Sequence[Path], part: tuple[int, int] | None) -> list[Path]:
    """Those of PATHS that are in PART, by their names: a cluster stays in its part when others come and go."""
    if part is None:
        return list(paths)
    return [path for path in paths if zlib.crc32(path.stem.encode()) % part[1] == part[0] - 1]


def compiling(options: argparse.Namespace) -> argparse.Namespace:
    """OPTIONS of a verb that compiles beside what it is for, with what verbs that compile take besides."""
    return argparse.Namespace(**{"no_cache": False, "jobs": None, "today": None, **vars(options)})


@contextlib.contextmanager
def project(options: argparse.Namespace) -> Iterator[Project]:
    """The project in the current folder."""
    if not options.out:
        raise InputError.of("GPU027", "--out is empty", remedy="name a folder, or leave it out: dist")
    links.refuse(options.out)
    with store(options) as opened:
        today, asked = getattr(options, "today", None), getattr(options, "executor", "")
        if asked and not (opened.shared and opened.shared.writes):
            raise InputError(said("GPU985", address=asked))
        alone = getattr(options, "own_version", False)
        versions = named_folder("GPUSTACK_VERSIONS", "XDG_DATA_HOME", ".local/share", "versions")
        versions = None if alone else versions or Path("/nonexistent")
        yield Project(Path.cwd(), Path(options.out), opened, options.jobs, today, asked, versions, whole=alone)


@contextlib.contextmanager
def store(options: argparse.Namespace) -> Iterator[Store]:
    """The user's store, or one of this run alone with --no-cache and for a user without a home."""
    folder = None if options.no_cache else named_folder("GPUSTACK_CACHE", "XDG_CACHE_HOME", ".cache")
    if folder is not None and (trouble := untrusted(folder)):
        print_findings([said("GPU975", severity="warning", folder=folder, trouble=trouble)], sys.stderr)
        folder = None
    named = salt(brought_by(Path.cwd()).digest)
    with private_folder() if folder is None else contextlib.nullcontext(folder) as used:
        yield Store(used, named, None if options.no_cache else shared_cache())


def shared_cache() -> Shared | None:
    """The cache that other machines have, too, where GPUSTACK_CACHE is the address of one that answers."""
    address = os.environ.get("GPUSTACK_CACHE", "")
    if "://" not in address:
        return None
    from ..compiler.shared import Shared

    shared = Shared(address, os.environ.get("GPUSTACK_CACHE_WRITE", "") not in {"", "0"})
    trouble = shared.trouble()
    case, why = ("unused", trouble) if trouble or not shared.writes else ("full", shared.refuses())
    if why:
        print_findings([said("GPU984", case, severity="warning", address=address, trouble=why)], sys.stderr)
    return None if trouble else shared


def registries() -> Client:
    """Who asks registries, with the logins that are kept here."""
    from ..registry.client import Client
    from ..registry.credentials import Credentials

    return Client(Credentials(os.environ))


def elsewhere_in(project: Project, root: Path) -> Project:
    """PROJECT for policies whose repository is ROOT: with the same cache, as far as it brings along the same."""
    store = Store(project.store.root, salt(brought_by(root).digest), project.store.shared)
    return dataclasses.replace(project, root=root, store=store)


def named_folder(name: str, base_name: str, below: str, more: str = "") -> Path | None:
    """The variable NAME's folder, else gpustack/MORE in BASE_NAME's, which is BELOW the home; None without a home."""
    named = os.environ.get(name, "")
    if named and "://" not in named:
        return Path(named)
    base = Path(os.environ.get(base_name, ""))
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none, this leaves the ~
    if base.is_absolute():  # by the XDG rules, one that is relative counts as not set
        return base / "gpustack" / more
    return home / below / "gpustack" / more if home.is_absolute() else None


def select(arguments: Sequence[str]) -> list[Path]:
    """The policy files that ARGUMENTS mean, each once. Without any: all of policies/, which must not be empty. A name
    that nothing matches is refused."""
    links.refuse()
    files_only = bool(arguments) and all(is_file(word) for word in arguments)
    if not files_only and not Path(POLICIES).is_dir():
        raise InputError(elsewhere())
    fleet = [] if files_only else policy_files(Path(POLICIES), POLICIES)
    if not arguments and not fleet:  # a mistake, a wrong checkout perhaps: rendering it would empty dist/
        raise InputError(said("GPU028", folder=POLICIES))
    chosen: dict[str, Path] = {}
    for word in arguments:
        for path in [Path(word)] if is_file(word) else called(word, fleet):
            chosen.setdefault(os.path.abspath(path), path)
    paths = list(chosen.values()) if arguments else fleet
    links.refuse_files(paths)
    return paths


def elsewhere() -> Finding:
    """The finding for a command in a folder that has no policies/, with the folder above it that has."""
    here = Path.cwd()
    above = next((folder for folder in here.parents if (folder / POLICIES).is_dir()), None)
    return said("GPU001", "above" if above else "no policies", folder=POLICIES, here=here, above=above)


def select_one(word: str) -> Path:
    """The one policy file that WORD means."""
    paths = select([word])
    if len(paths) > 1:
        names = [name_of(path) or path.stem for path in paths]
        raise refusal("GPU033", "several", word=repr(word), clusters=len(paths), names=some(names))
    return paths[0]


def called(word: str, fleet: Sequence[Path]) -> list[Path]:
    """The policies of FLEET whose clusters' names WORD is or matches; where there are none, those whose files' do."""
    exact = [path for path in fleet if path.stem == word and name_of(path) == word]
    if exact:
        return exact
    names = {path: name_of(path) or path.stem for path in fleet}
    matches = [path for path in fleet if fnmatch.fnmatchcase(names[path], word)]
    matches = matches or [path for path in fleet if fnmatch.fnmatchcase(path.stem, word)]
    if not matches:
        raise InputError(unknown(word, list(names.values())))
    return matches


def is_file(word: str) -> bool:
    """Whether an argument means a file rather than a cluster's name."""
    return "/" in word or os.sep in word or word.endswith((".yaml", ".yml"))


def name_of(path: Path) -> str:
    """The cluster's name in a policy file, "" for one that can't be read: rendering it would say why."""
    try:
        metadata = read(path, str(path)).data.get("metadata")
    except InputError:
        return ""
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def unknown(word: str, names: Sequence[str], where: str = POLICIES) -> Finding:
    """The finding for a WORD that means none of the clusters NAMES of the folder WHERE."""
    near, there = difflib.get_close_matches(word, names, n=3), some(names) or "no cluster"
    case = "near" if near else "other"
    return said("GPU021", case, word=repr(word), where=where, names=there, near=" or ".join(near))


def changed_since(reference: str, fleet: Sequence[Path]) -> list[Path]:
    """The policies of FLEET that differ from Git's REFERENCE, or whose layers do, or changes or rings."""
    from .trees.repository import Git

    git = Git("--changed-since asks Git which policies differ", "install Git, or name the clusters to render")
    commit = git.commit(reference)
    gone = [Path(name) for name in git.entries(commit, f"{POLICIES}/{CHANGES}", f"{POLICIES}/{FLEET}")]
    needed = {path: [path, *layers_of(path), *gone, Path(LOCK)] for path in fleet}
    # What a link leads to counts, and where it leads.
    names = {name: (name, name.resolve()) for files in needed.values() for name in files}
    changed = git.changed(commit, {each for both in names.values() for each in both})
    return [path for path, files in needed.items() if any(changed.intersection(names[name]) for name in files)]


def progress_line(options: argparse.Namespace) -> Progress:
    """A line that is rewritten on a terminal; nothing elsewhere, where it would only fill the log."""
    if options.format == "json" or not sys.stderr.isatty():
        return lambda step, done, total: None

    def show(step: str, done: int, total: int) -> None:
        if total > 1 and (done == total or done % 8 == 0):
            end = "\r" if done < total else "\r\x1b[K"
            print(f"\r\x1b[K{step} {done}/{total}", end=end, file=sys.stderr, flush=True)

    return show
