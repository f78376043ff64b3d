"""Sections of the policy language that a team's own distributions bring: `spec.constructs.<name>`.

Solves: what a team renders for every cluster (its NetworkPolicies, a custom resource of its own) is code, and code that
a policy repository could bring would be anybody's who opens a pull request. So it comes from installed distributions
alone: one has an entry point in the group `gpustack.constructs`, by the section's name, and is listed in
constructs.allow.yaml with its version and the digest of its files, there and in the base's copy of that list. One that
isn't listed, or isn't what is listed, is refused before a line of it is imported.

    - name: acme-gpu
      version: 1.4.0
      sha256: 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
      why: NetworkPolicies of the platform team
"""

import hashlib
import importlib.util
import os
import pathlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import metadata
from typing import Annotated, Any

from pydantic import BaseModel

from gpustack.policy.language.base import Section
from gpustack.policy.language.forms import form, refuse
from gpustack.policy.loading.brought import LIST
from gpustack.policy.loading.decisions import SHA256, WORDS
from gpustack.policy.loading.entries import Entries

GROUP = "gpustack.constructs"
"""The group of entry points."""
NAMED = re.compile(r"[a-z][A-Za-z0-9]{0,62}")
"""What a section may be called."""
INSTALLERS = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
"""Files that say how a distribution was installed: they differ from machine to machine, and nothing imports them."""
CODE = (".py", ".pyc", ".so", ".pyd")


class AllowedConstruct(Section):
    """One distribution whose constructs may be rendered."""

    name: Annotated[str, form("distribution")]
    """Its name, as `pip list` prints it."""
    version: Annotated[str, form("dist_version")]
    """Its version."""
    sha256: Annotated[str, SHA256]
    """The digest of its files: gpustack says it where the list doesn't have it yet."""
    why: Annotated[str, WORDS]
    """What it is for, for whoever reads it in a year."""


ENTRIES = Entries("GPU911", AllowedConstruct)


class RefusedError(Exception):
    """Why a distribution can't be used, as the end of a sentence that begins with its name."""


@dataclass(frozen=True)
class Construct:
    """The section NAME: entry point VALUE of DISTRIBUTION in VERSION, whose files have the digest SHA256."""

    name: str
    value: str
    distribution: str
    version: str
    sha256: str

    @property
    def title(self) -> str:
        return f"{self.distribution} {self.version}"

    @cache  # noqa: B019 - there are few, and they live as long as the program
    def model(self) -> type[BaseModel]:
        """The model of the section's fields. Imports it. Raises RefusedError."""
        model = _loaded(self.value)
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise RefusedError(f"{self.value} is not a model of pydantic")
        if model.model_config.get("extra") != "forbid":
            raise RefusedError(f"{self.value} lets unknown keys pass: set extra='forbid' in its model_config")
        return model

    def type(self) -> Any:
        """The cdk8s construct. Imports it, and so starts Node. Raises RefusedError."""
        where = getattr(self.model(), "construct", None)
        if not isinstance(where, str) or ":" not in where:
            raise RefusedError(f"{self.value} doesn't name its construct: construct = 'package.module:Class'")
        return _loaded(where)


def _loaded(where: str) -> Any:
    """The object at WHERE (package.module:name)."""
    try:
        return metadata.EntryPoint("", where, GROUP).load()
    except Exception as error:  # its code, whatever that does
        said = str(error).partition("\n")[0]
        raise RefusedError(f"{where} can't be imported: {type(error).__name__}: {said}") from error


@dataclass(frozen=True)
class Constructs:
    """The sections by name. `refused` says why distributions on the list can't be used. Equal `digest`, equal code."""

    known: Mapping[str, Construct] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    digest: str = ""

    def check(self, name: str, given: Any) -> None:
        """Hold what is GIVEN for the section NAME to its model. Raises pydantic's ValidationError, and errors that
        pydantic carries where there is no such section, or its code can't be used."""
        if name not in self.known:
            raise refuse("construct", f"there is no construct {name!r}", self._remedy(name))
        try:
            self.known[name].model().model_validate(given)
        except RefusedError as error:
            raise refuse("construct", f"{self.known[name].title} can't be used: {error}", "mend it") from None

    def _remedy(self, name: str) -> str:
        """What to do about a section NAME that there isn't."""
        for entry in metadata.entry_points(group=GROUP):
            if entry.name == name and entry.dist is not None:
                wrong = next((why for why in self.refused if why.startswith(f"{entry.dist.name} ")), "")
                if wrong:
                    return f"{wrong}; if that is right, write {to_add(entry.dist.name)} there"
                return f"if the code of {entry.dist.name} is to be run, add to {LIST}: - {to_add(entry.dist.name)}"
        if self.refused:
            return f"{LIST} names what can't be used: {'; '.join(self.refused)}"
        near = get_close_matches(name, self.known, 1)
        guess = f"did you mean {near[0]}? " if near else ""
        return f"{guess}install the distribution that has it, and list it in {LIST}"


NONE = Constructs()


def constructs_of(root: pathlib.Path) -> Constructs:
    """What the listed distributions of ROOT bring; imports none of it. InputError for a list that can't be used."""
    known: dict[str, Construct] = {}
    refused = []
    base = ENTRIES.of_base(root / LIST, LIST)
    for spec in ENTRIES.of_file(root / LIST, LIST, "name", lambda entry: normal(entry.name)).values():
        try:
            if base is not None and key(spec) not in map(key, base):
                raise RefusedError(f"isn't on the {LIST} of the base branch like that: merge the list first, by itself")
            for construct in _checked(spec):
                other = known.setdefault(construct.name, construct)
                if other is not construct:
                    raise RefusedError(f"has a section {construct.name}, and so has {other.distribution}")
        except RefusedError as error:
            refused.append(f"{spec.name} {error}")
    parts = sorted(f"{each.name} {each.value} {each.title} {each.sha256}" for each in known.values())
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest() if parts else ""
    return Constructs(known, tuple(refused), digest)


def _checked(spec: AllowedConstruct) -> Iterator[Construct]:
    """The sections of the distribution SPEC, which is what is listed."""
    try:
        installed = metadata.distribution(spec.name)
    except metadata.PackageNotFoundError:
        raise RefusedError("isn't installed") from None
    if installed.version != spec.version:
        raise RefusedError(f"is installed in version {installed.version}, and {LIST} has {spec.version}")
    sha256 = content(installed)
    if sha256 != spec.sha256:
        raise RefusedError(f"has other files than {LIST} says: their sha256 is {sha256}")
    for entry in installed.entry_points.select(group=GROUP):
        if not NAMED.fullmatch(entry.name):
            raise RefusedError(f"has a section {entry.name!r}: a name is a small letter, then letters and digits")
        yield Construct(entry.name, entry.value, spec.name, spec.version, sha256)


def content(installed: metadata.Distribution) -> str:
    """The sha256 of INSTALLED: its files with their paths. RefusedError where what is imported is not among them."""
    lines, packages = [], set()
    for file in installed.files or ():
        path, place = file.as_posix(), pathlib.Path(str(installed.locate_file(file)))
        if path.startswith(("../", "/")) or path.endswith(".pyc"):
            continue  # scripts, which installers write for their machine, and what Python makes of the files
        if path.endswith(".pth"):
            raise RefusedError("is installed as a link to a folder: install what is built of it")
        if pathlib.PurePosixPath(path).parent.name.endswith(".dist-info") and file.name in INSTALLERS:
            continue
        try:
            data = place.read_bytes()
        except OSError:
            raise RefusedError(f"lacks its file {path}") from None
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {path}\n")
        packages.add(path.partition("/")[0])
    if not lines:
        raise RefusedError("has no list of its files")
    recorded = {line[66:].rstrip("\n") for line in lines}
    for entry in installed.entry_points.select(group=GROUP):
        _refuse_strays(installed, entry.value.partition(":")[0].partition(".")[0], recorded)
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def _refuse_strays(installed: metadata.Distribution, package: str, recorded: set[str]) -> None:
    """Raise RefusedError where the imported PACKAGE isn't that of INSTALLED, or has code that isn't RECORDED."""
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    origin = pathlib.Path(spec.origin) if spec and spec.origin else None
    top = pathlib.Path(str(installed.locate_file(""))).resolve()
    if origin is None or not origin.is_file() or not origin.resolve().is_relative_to(top):
        raise RefusedError(f"doesn't have the package {package} that its entry point names")
    name = origin.resolve().relative_to(top).as_posix()
    if name not in recorded:
        raise RefusedError(f"doesn't list {name} among its files")
    for folder, folders, files in os.walk(origin.parent) if origin.name == "__init__.py" else ():
        folders[:] = [each for each in folders if each != "__pycache__"]
        for file in files:
            path = (pathlib.Path(folder).resolve() / file).relative_to(top).as_posix()
            if file.endswith(CODE) and path not in recorded:
                raise RefusedError(f"has a file that it doesn't list: {path}")


def normal(name: str) -> str:
    """NAME of a distribution in the form that all its spellings share."""
    return re.sub(r"[-_.]+", "-", name).lower()


def to_add(distribution: str) -> str:
    """What a list says of DISTRIBUTION as it is installed, on a line."""
    installed = metadata.distribution(distribution)
    try:
        sha256 = content(installed)
    except RefusedError as error:
        return f"nothing, as it {error}"
    return f"{{name: {installed.name}, version: {installed.version}, sha256: {sha256}, why: ...}}"


def key(spec: AllowedConstruct) -> tuple[str, str, str]:
    """What SPEC allows."""
    return normal(spec.name), spec.version, spec.sha256
