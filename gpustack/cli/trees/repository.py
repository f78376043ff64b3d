"""What a repository has: commits, the index, contents, and what of the work tree is not as it is staged.

Solves: a fleet has 80,000 files, a million over its history, and Git converts what it looks into as attributes say. So
each question is one call for all files, contents are named here (`blob_name`) as Git would name them, and only what has
another name is read. The work tree and the index of the user are left alone, but for what `promote` commits.
"""

import contextlib
import functools
import hashlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from ...model import GpustackError, InputError
from ...policy.loading.brought import LIMITS
from ...text.regular import read_regular
from ..refusals import refusal
from .git import Done, answer, start

TREE = "040000"
"""The mode of a folder."""
FEW = 100
"""Folders that Git is asked about one by one."""
How = Literal["one", "inside", "all"]


class Entry(NamedTuple):
    """What Git has at a path: its mode (100644, 100755, 120000 a link, 160000 a submodule), the name of its content."""

    mode: str
    blob: str


class Git:
    """The repository that the project's ROOT, else the current folder, is in. WHY says what for, if Git is missing."""

    def __init__(self, why: str, remedy: str, root: Path | None = None) -> None:
        self._why, self._remedy = why, remedy
        self._root = root
        self._overlooked: set[str] | None = None
        self._touched: dict[str, set[str]] = {}
        self.prefix = self.ask("rev-parse", "--show-prefix").removesuffix("\n")

    @functools.cached_property
    def algorithm(self) -> str:
        """How this repository names contents: sha1 or sha256."""
        return self.ask("rev-parse", "--show-object-format").strip()

    def ask(self, *words: str, about: str = "") -> str:
        """What Git answers to WORDS. Raises InputError with what it says; ABOUT is the revision that was asked for."""
        return answer(self._run(words), reference=about, root=self._root)

    def _listed(self, *words: str) -> list[str]:
        """What Git lists for WORDS, which ask for NULs between."""
        return [each for each in self.ask(*words).split("\0") if each]

    def _run(self, words: Sequence[str], given: bytes = b"") -> Done:
        return start(words, self._why, self._remedy, given, self._root)

    def place(self, path: str | Path) -> str | None:
        """PATH, from the root, as Git names it from the repository's top, "" itself; None where it is outside."""
        root = os.path.realpath(self._root or Path.cwd())
        top = root.removesuffix(f"/{self.prefix.rstrip('/')}") if self.prefix else root
        full = os.path.join(root, path)  # noqa: PTH118 - a str
        inside = os.path.relpath(os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full)), top)  # noqa: PTH118, PTH119, PTH120 - strings
        return None if inside.split("/")[0] == ".." else "" if inside == "." else inside

    def commit(self, reference: str) -> str:
        """The commit that REFERENCE names. Raises InputError."""
        if not reference or reference.startswith("-"):
            raise refusal("GPU022", "option", reference=repr(reference))
        self._refuse_ambiguous(reference)
        return self.ask("rev-parse", "--verify", f"{reference}^{{commit}}", about=reference).strip()

    def _refuse_ambiguous(self, reference: str) -> None:
        """Raise InputError where REFERENCE is a name that a tag and a branch have, or several refs, for other commits:
        whoever may push a tag would choose what everybody's changes are compared with."""
        name = re.split(r"[~^:]|@\{", reference, maxsplit=1)[0]
        if name in {"", "@", "HEAD"} or name.startswith("refs/") or re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", name):
            return
        places = [f"refs/{each}{name}" for each in ("", "tags/", "heads/", "remotes/")] + [f"refs/remotes/{name}/HEAD"]
        shape = "--format=%(objectname) %(*objectname) %(refname)"
        listed = self._run(["for-each-ref", shape, *places, f"refs/remotes/*/{name}"])
        lines = [line.split(" ", 2) for line in os.fsdecode(listed.stdout).splitlines()]
        commits = {ref: peeled or direct for direct, peeled, ref in lines}
        mine = {ref: commit for ref, commit in commits.items() if ref in places}
        if f"refs/tags/{name}" in commits:  # Git takes the tag, and a remote's branch may be meant
            mine |= {ref: commit for ref, commit in commits.items() if ref.endswith(f"/{name}")}
        if re.fullmatch(r"[0-9a-f]{7,}", name) and mine:
            ids = self._run(["rev-parse", f"--disambiguate={name}"])
            mine |= {commit: commit for commit in os.fsdecode(ids.stdout).split()}
        if len(set(mine.values())) > 1:
            refs = ", ".join(f"{ref} ({mine[ref][:10]})" for ref in sorted(mine))
            whole = " or ".join(ref for ref in sorted(mine, key=lambda ref: "/tags/" in ref) if ref.startswith("refs/"))
            raise refusal("GPU022", "ambiguous", reference=repr(reference), refs=refs, whole=whole)

    def head(self) -> str:
        """The commit that is checked out, "" before the first commit."""
        head = self._run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        return os.fsdecode(head.stdout).strip() if head.returncode == 0 else ""

    def base(self, reference: str) -> str:
        """The commit from which the work tree departed from REFERENCE, or REFERENCE itself if they share no history."""
        commit = self.commit(reference)
        merged = self._run(["merge-base", commit, "HEAD"])
        return os.fsdecode(merged.stdout).strip() if merged.returncode == 0 else commit

    def history(self, path: str) -> Iterator[tuple[int, bytes]]:
        """The commits of the branch that is checked out, merges as one, that changed the file PATH, the newest first:
        when each was made, in seconds since 1970, and what the file holds in it."""
        words = ("log", "--first-parent", "-m", "--format=%ct", "--raw", "--no-abbrev", "--no-renames", "--", path)
        lines = [line.split() for line in self.ask(*words).splitlines() if line]
        made = [(int(at[0]), entry[3]) for at, entry in zip(lines[::2], lines[1::2], strict=True)]
        content = dict(self.contents(blob for _, blob in made if blob.strip("0")))
        yield from ((at, content.get(blob, b"")) for at, blob in made)

    def committer(self) -> tuple[str, str]:
        """The branch that is checked out, and who commits. Raises InputError where one of the two is missing."""
        branch = self._run(["symbolic-ref", "--quiet", "HEAD"])
        if branch.returncode:
            raise refusal("GPU022", "no branch")
        return os.fsdecode(branch.stdout).strip(), self.ask("var", "GIT_COMMITTER_IDENT").strip()

    def save(self, paths: Iterable[str], message: str) -> str:
        """Commit what is in the work tree at PATHS, files by their paths from the root, those that are gone included,
        and nothing else, whatever is staged; the commit's id. MESSAGE is whole lines.

        Git gets contents and looks into no file, as it would convert them; it runs no hook and signs nothing. Raises
        InputError as `committer`."""
        (branch, who), data = self.committer(), message.encode()
        stream = [f"commit {branch}\ncommitter {who}\ndata {len(data)}\n".encode() + data]
        stream.append(f"from {self.commit('HEAD')}\n".encode())
        listed = ""
        for path in paths:
            place, there = self.place(path), os.path.lexists(self.here(path))
            content = read_regular(self.here(path), follow=False) if there else b""
            head = f"M 100644 inline {place}\ndata {len(content)}\n" if there else f"D {place}\n"
            stream.append(head.encode() + (content + b"\n" if there else b""))
            blob = blob_name(self.algorithm, content)
            listed += f"100644 {blob}\t{place}\0" if there else f"0 {'0' * len(blob)}\t{place}\0"
        answer(self._run(["fast-import", "--quiet", "--done"], b"".join([*stream, b"done\n"])), "git can't commit")
        answer(self._run(["update-index", "-z", "--index-info"], listed.encode()))
        return self.head()

    def entries(self, commit: str, *paths: str) -> dict[str, Entry]:
        """All that COMMIT has at and below PATHS, which may be relative to the root, by their names from there."""
        places = [place for path in paths if (place := self.place(path)) is not None]
        entries = self._tree(commit, "-r", *(() if "" in places else ("--", *places))) if places else {}
        return {self.named(path): entry for path, entry in entries.items()} if self.prefix else entries

    def folders(self, commit: str, how: Callable[[str], How]) -> dict[str, Entry]:
        """As `entries`, for the root. HOW says of a folder what is wanted: it as one, what is right in it, or all."""
        found, waiting, whole = dict[str, Entry](), [""], list[str]()
        while waiting:
            start = f"{above}/" if (above := waiting.pop()) else ""
            try:
                there = self._tree(f"{commit}:{self.prefix}{above}")
            except InputError:  # it is no folder
                return self.entries(commit, ".")
            for name, entry in there.items():
                path = f"{start}{name}"
                if entry.mode != TREE or (what := how(path)) == "one":
                    found[path] = entry
                else:
                    (waiting if what == "inside" else whole).append(path)
            if len(waiting) + len(whole) > FEW:
                return self.entries(commit, ".")
        return found | self.below(commit, whole)

    def below(self, commit: str, folders: Collection[str]) -> dict[str, Entry]:
        """All that COMMIT has below FOLDERS, of which there are a few, by the names from the root."""
        there = self._tree(commit, "-r", "--", *(f"{self.prefix}{folder}" for folder in folders)) if folders else {}
        return {path[len(self.prefix) :]: entry for path, entry in there.items()}

    def _tree(self, tree: str, *words: str) -> dict[str, Entry]:
        """What Git lists for TREE and WORDS. What no file system can hold is refused: a path that leads out of where it
        stands, and two of one name."""
        text = self.ask("ls-tree", "-z", "--full-tree", *words[:1], tree, *words[1:], about=tree)
        entries = {}
        for line in filter(None, text.split("\0")):
            head, _, path = line.partition("\t")
            entries[path] = Entry(sys.intern(head[:6]), head.rpartition(" ")[2])  # a fleet has a million of them
        leads_out = any(step in text for step in ("\t../", "/../", "/..\0", "\t./", "/./", "/.\0", "//"))
        if leads_out or len(entries) != text.count("\0"):
            raise refusal("GPU022", "odd tree", reference=tree)
        return entries

    def named(self, path: str) -> str:
        """PATH, from the repository's top, as it is named from the root."""
        if path.startswith(self.prefix):
            return path.removeprefix(self.prefix)
        return os.path.relpath(path or ".", self.prefix or ".")

    def staged(self, folder: str | Path) -> dict[str, Entry]:
        """What is in the index below FOLDER, by the names from the root. A path with a conflict has no blob."""
        place = self.place(folder)
        return {} if place is None else self.staged_files([self.named(place) or "."])

    def staged_files(self, paths: Sequence[str]) -> dict[str, Entry]:
        """What is in the index at and below PATHS, which are as `staged` has them."""
        entries: dict[str, Entry] = {}
        for line in self._listed("ls-files", "--stage", "-z", "--full-name", "--", *paths):
            head, _, path = line.partition("\t")
            mode, blob, stage = head.split()
            entries[self.named(path)] = Entry(mode, blob if stage == "0" else "")
        return entries

    def staged_beside(self, merged: Mapping[str, Entry], changed: Mapping[str, Entry | None]) -> dict[str, Entry]:
        """What `staged` has for the root, of a commit that has MERGED there and differs from it by what is CHANGED."""
        entries = dict(merged)
        for path, entry in changed.items():
            if entry and not entry.blob:
                return self.staged(".")
            if entry:
                entries[path] = entry
            else:
                entries.pop(path, None)
        return entries

    def restaged(self, commit: str, folder: str) -> dict[str, Entry | None]:
        """What `staged` has and isn't as in COMMIT; None for a path that is gone from the index."""
        words = ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none"]
        parts = self.ask(*words, commit, "--", folder).split("\0")
        changed: dict[str, Entry | None] = {}
        for head, path in zip(parts[::2], parts[1::2], strict=False):
            _, mode, _, blob, status = head.split(" ")
            unmerged = status == "U" or (changed.get(self.named(path)) or Entry("", "x")).blob == ""
            changed[self.named(path)] = Entry(mode, "") if unmerged else None if status == "D" else Entry(mode, blob)
        return changed

    def tracked(self, *paths: str) -> set[str]:
        """What is in the index at and below PATHS, by the names from the root."""
        return set(map(self.named, self._listed("ls-files", "-z", "--full-name", "--", *paths))) if paths else set()

    def touched(self, folder: str) -> set[str]:
        """The paths below FOLDER, from the root, whose files look other than when Git checked them out or staged
        them: by size, times, inode, owner and kind. What Git was told not to look at is among them.

        To open each of 80,000 files takes longer than all the rest of a review. Whoever writes to a file changes how
        it looks: the kernel sets the time of the last change. A pull request writes neither that nor the index.

        Git itself opens files that were written in the same second as the index, and converts them as attributes say:
        only where attributes.py finds nothing may it be asked. It is asked once."""
        if folder not in self._touched:
            words = ["diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all", "--", folder]
            listed = self.ask(*words).split("\0")
            self._touched[folder] = {self.named(path) for path in listed[1::2]} | self.overlooked(".")
        return self._touched[folder]

    def overlooked(self, folder: str | Path) -> set[str]:
        """The paths below FOLDER of which the index says not to look: sparse, skip-worktree, assume-unchanged."""
        place = self.place(folder)
        if place is None:
            return set()
        if folder == "." and self._overlooked is not None:
            return self._overlooked
        listed = self.ask("ls-files", "-v", "-z", "--full-name", "--", self.named(place) or ".")
        hidden = set(map(self.named, re.findall(r"\0[a-zS] ([^\0]+)", f"\0{listed}")))  # none of a million, mostly
        self._overlooked = hidden if folder == "." else None
        return hidden

    def others(self, but: str) -> list[str]:
        """The files, by paths from the root, that Git neither knows nor is told to ignore, less the folder BUT."""
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", f"/{self.prefix}{but}/")
        return self._listed("ls-files", "-z", "--others", "--exclude-standard", f"--exclude={pattern}")

    def settings(self, pattern: str) -> Iterator[tuple[str, str]]:
        """The settings of the clone and its user whose names, in small letters, PATTERN matches; "" for no value."""
        asked = self._run(["config", "--get-regexp", pattern])
        for line in os.fsdecode(asked.stdout).splitlines():
            name, _, value = line.partition(" ")
            yield name, value

    def attributes(self, paths: Sequence[str], names: Sequence[str]) -> list[tuple[str, str, str]]:
        """Which of PATHS have which of the attributes NAMES: path, attribute and what it says."""
        given = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        said = answer(self._run(["check-attr", "-z", "--stdin", *names], given), root=self._root)
        plain = sum(map(said.count, ("\0unspecified\0", "\0unset\0", "\0eol\0lf\0")))
        if plain == len(paths) * len(names) and all("/" in path for path in paths):  # no word of Git's has one
            return []  # as nearly always, and a fleet has a third of a million of them
        parts = said.split("\0")
        triples = zip(parts[0::3], parts[1::3], parts[2::3], strict=False)
        return [each for each in triples if each[2] not in {"unspecified", "unset"}]

    def unstaged(self, folder: str) -> dict[str, bool]:
        """The files below FOLDER that aren't as they are staged, less ignored ones, and whether Git knows them."""
        touched = {path: True for path, entry in self.staged(folder).items() if not same(self.here(path), entry)}
        fresh = self._listed("ls-files", "-z", "--others", "--exclude-standard", "--", folder)
        return touched | dict.fromkeys(fresh, False)

    def changed(self, commit: str, paths: Iterable[Path]) -> set[Path]:
        """Those of PATHS, names of files, that are not as COMMIT has them, less new ones that Git is told to ignore."""
        names = {path: self.named(place) for path in paths if (place := self.place(path)) is not None}
        if not names:
            return set()
        known = self.entries(commit, *names.values())
        listed = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names.values())
        there = {*known, *self._listed(*listed)}
        kept = {path for path, name in names.items() if name in known and same(path, known[name])}
        return {path for path, name in names.items() if name in there and path not in kept}

    def here(self, path: str) -> Path:
        """Where the file is that Git names PATH from the root."""
        return (self._root or Path.cwd()) / path

    def contents(self, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Each of BLOBS with its content."""
        wanted = list(dict.fromkeys(blobs))
        if not wanted:
            return
        done = self._run(["cat-file", "--batch", "--buffer"], "".join(f"{blob}\n" for blob in wanted).encode())
        data, position = done.stdout, 0
        for blob in wanted:
            end = data.find(b"\n", position)
            head = data[position:end].split()
            if end < 0 or len(head) != 3:  # a clone without blobs that can't reach where they are, or a broken one
                said = " ".join(os.fsdecode(done.stderr).split()) or "it is missing"
                raise refusal("GPU022", "content", blob=blob[:10], said=said)
            size = int(head[2])
            yield blob, data[end + 1 : end + 1 + size]
            position = end + size + 2

    def extract(self, blobs: Mapping[str, str], into: Path) -> None:
        """Write BLOBS, by their paths, into the folder INTO."""
        content = dict(self.contents(blobs.values()))
        for folder in {os.path.dirname(path) for path in blobs}:  # noqa: PTH120 - strings
            (into / folder).mkdir(parents=True, exist_ok=True)
        for path, blob in blobs.items():
            with open(f"{into}/{path}", "wb", buffering=0) as file:  # noqa: PTH123 - thousands of them
                file.write(content[blob])


def same(path: Path, entry: Entry) -> bool:
    """Whether PATH holds what Git has as ENTRY, byte by byte; a submodule's folder is not looked into."""
    how = "sha256" if len(entry.blob) == 64 else "sha1"
    try:
        if entry.mode == "120000":
            return path.is_symlink() and blob_name(how, os.fsencode(path.readlink())) == entry.blob
        if entry.mode == "160000":
            return path.is_dir()
        return blob_name(how, read_regular(path, follow=False)) == entry.blob
    except OSError:
        return False


def blob_name(how: str, content: bytes, kind: bytes = b"blob") -> str:
    """What Git calls CONTENT, with the algorithm HOW. `hashlib.new` takes half as long again, a million times."""
    algorithm = hashlib.sha256 if how == "sha256" else hashlib.sha1
    return algorithm(b"%b %d\0%b" % (kind, len(content), content), usedforsecurity=False).hexdigest()


def tree_name(how: str, files: Mapping[str, bytes]) -> str:
    """What Git calls a folder of FILES that nobody executes, by their paths in it, with the algorithm HOW."""
    inner: dict[str, dict[str, bytes]] = {}
    entries: list[tuple[bytes, bytes, str]] = []
    for path, content in files.items():
        first, _, rest = path.partition("/")
        if rest:
            inner.setdefault(first, {})[rest] = content
        else:
            entries.append((os.fsencode(first), b"100644", blob_name(how, content)))
    entries += [(os.fsencode(f"{name}/"), b"40000", tree_name(how, held)) for name, held in inner.items()]
    parts = (b"%b %b\0%b" % (mode, name.rstrip(b"/"), bytes.fromhex(blob)) for name, mode, blob in sorted(entries))
    return blob_name(how, b"".join(parts), b"tree")


BASES = ("refs/gpustack/base", "refs/remotes/origin/HEAD", "HEAD")
"""What a work tree is held against, the first that there is: what a review of requests names, the remote's branch that
is merged to, and what is committed."""


def limit(lists: Sequence[str], reference: str | None) -> None:
    """Hold the LISTS in the current folder, of what may run, against those where the work tree departed from REFERENCE
    or from a base: what is added runs no code, whichever verb reads it. Where Git knows no base, they decide alone."""
    for which in lists:
        LIMITS.pop(Path.cwd() / which, None)
    for name in (reference, *BASES) if reference not in (None, "HEAD") else BASES:
        with contextlib.suppress(GpustackError):
            git = Git("", "")
            there = git.entries(git.base(name), *lists)
            known = {which: entry.blob for which, entry in there.items() if entry.mode.startswith("100")}
            contents = dict(git.contents(known.values()))
            for which in lists:
                LIMITS[Path.cwd() / which] = contents[known[which]] if which in known else b""
            return
