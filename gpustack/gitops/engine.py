"""What a GitOps engine is to gpustack: a record that answers every question about it.

One module of `engines/` holds one: its section of the policy language, its objects, its marks on what is rendered, and
the sentences about it. All others ask the record, so a further engine is one more module, and no code compares names.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from ..catalog import _data
from ..model import Body, Resource
from ..policy.language.base import Section
from ..registry.media import Media

if TYPE_CHECKING:
    from ..policy.language.gitops import GitOps
    from .plan import Plan
    from .reads import Reads

Settings = TypeVar("Settings", bound=Section)
Paths = tuple[tuple[str, ...], ...]
Roots = Literal["one", "beside", "shared"]
"""Whom the root objects of a cluster serve: that one, that one beside others where the engine runs, or all at once."""


class Trouble(NamedTuple):
    """What is wrong in the section `gitops`: where (below spec.gitops), what, why, and what to do."""

    path: str
    what: str
    why: str
    remedy: str


class Accounts(NamedTuple):
    """Users and groups that an engine acts as in the cluster."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Applies(NamedTuple):
    """How an engine applies what is rendered, for whoever hands a cluster over to it or takes it back.

    `manager` is its manager of fields. Objects of `kind` make it apply: `again` is the command that makes one do so
    now, with $name and $namespace, `hold` the patch by which one stops. `override` is the Deployment that is to be told
    the former managers (`--override-manager`), "" for an engine that takes their fields over without."""

    manager: str
    kind: str
    again: str
    hold: Body
    override: str = ""


@dataclass(frozen=True)
class Told:
    """What a kind of engine object tells its engine, as paths in the object.

    `says` is what it is, for the person who applies it. `syncs` is what isn't synced any more without it, "" for a
    kind that syncs nothing; of a kind with `each_stage` there is one for each stage. `reads` is from where, `goes`
    to where, `how` in which way, `permits` what others may do because of it, and `kinds` with which kinds of objects.
    `folder` is what is applied, `prunes` whether what leaves it is deleted, and `ends` what then becomes of all of it
    when the object goes."""

    says: str
    syncs: str = ""
    each_stage: bool = False
    reads: Paths = ()
    goes: Paths = ()
    how: Paths = ()
    permits: Paths = ()
    kinds: Paths = ()
    folder: tuple[str, ...] = ()
    prunes: tuple[str, ...] = ()
    ends: str = ""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Told:
        """What the FACTS of a data file say, in which a path is a text with dots."""
        one = {name: tuple(facts[name].split(".")) for name in ("folder", "prunes") if name in facts}
        lists = {name: said for name, said in facts.items() if isinstance(said, list)}
        several = {name: tuple(tuple(path.split(".")) for path in said) for name, said in lists.items()}
        return cls(**{**facts, **one, **several})


class Engine(ABC, Generic[Settings]):
    """A GitOps engine. `name` is that in a policy and of folders, `title` what people call it.

    What a render doesn't ask for stands in the data file beside its module (`record`), or in the class as all the rest.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    settings: type[Settings]
    """Its section of the language, `spec.gitops.<name>`."""
    unasked: ClassVar[bool] = False
    """Whether an artifact has its media types where nothing says who reads it."""
    source_field: ClassVar[str] = ""
    """What a policy may set in place of a repository: a field, with what it is to hold."""
    annotations: ClassVar[tuple[str, ...]]
    """What the annotations that it reads begin with, its own the first."""
    hooks: ClassVar[tuple[str, ...]] = ()
    """Annotations that make an object run at another time than the rest."""
    verbatim: ClassVar[Mapping[str, str]] = {}
    """Annotations that keep it from replacing `${...}` in an object."""
    large: ClassVar[Mapping[str, str]] = {}
    """Annotations by which it applies an object that is too large for a client-side apply."""
    partial: ClassVar[Mapping[str, str]] = {}
    """Annotations of an object that is a part of somebody else's: merged into it, and never deleted."""

    @property
    def record(self) -> Any:
        """The content of the data file beside its module."""
        return _data.read(Path(inspect.getfile(type(self))).with_suffix(".yaml"))

    @cached_property
    def media(self) -> Media:
        """The media types of the artifacts that are pushed for it."""
        return Media(**self.record["media"])

    @cached_property
    def applies(self) -> Applies:
        """How it applies what is rendered."""
        return Applies(**self.record["applies"])

    @cached_property
    def kinds(self) -> Mapping[str, Told]:
        """The kinds of its own objects."""
        return {name: Told.of(facts) for name, facts in self.record["kinds"].items()}

    def trouble(self, case: str) -> Trouble:
        """What its data file says of CASE."""
        return Trouble(**self.record["troubles"][case])

    def of(self, given: GitOps) -> Settings:
        """Its settings in the section GIVEN."""
        settings: Settings = getattr(given, self.name)
        return settings

    # What a policy says of it.

    def brings_source(self, given: GitOps) -> bool:
        """Whether GIVEN names a source that is in the cluster already, and so needs no repository."""
        return False

    def missing(self, given: GitOps) -> Iterator[Trouble]:
        """What it can't do without, beside a repository, and GIVEN doesn't say."""
        return iter(())

    def contradictions(self, given: GitOps) -> Iterator[Trouble]:
        """What in GIVEN can't be meant together."""
        return iter(())

    def idle(self, given: GitOps) -> Iterator[tuple[str, str]]:
        """(path below spec.gitops, why it does nothing) of what is set."""
        return iter(())

    @abstractmethod
    def accounts(self, given: GitOps) -> Accounts | None:
        """Whom it acts as in the cluster; None where GIVEN doesn't tell."""

    @abstractmethod
    def destination(self, given: GitOps) -> tuple[str, ...]:
        """To which cluster an engine that serves several applies; () for one that runs in the cluster itself."""

    def spelled(self, given: GitOps) -> tuple[tuple[str, ...], str]:
        """Which of its installations it is, as far as the settings tell, and how they call the cluster that it applies
        to; ((), "") where its clusters don't have to do with one another."""
        del given
        return (), ""

    # What is rendered for it.

    @abstractmethod
    def mark(self, resource: Resource, *, keep: bool) -> Body:
        """The body of RESOURCE with what the engine reads of it; KEEP: it must not be pruned."""

    @abstractmethod
    def guarded(self, notes: Mapping[str, Any]) -> str:
        """What keeps it from pruning an object with the annotations NOTES, as the end of a sentence; "" for nothing."""

    @abstractmethod
    def objects(self, plan: Plan, cluster: str) -> list[Body]:
        """What is rendered for CLUSTER."""

    @abstractmethod
    def roots(self, plan: Plan, cluster: str) -> list[Body]:
        """What a person applies once, so that CLUSTER is synced; without one all clusters."""

    @abstractmethod
    def runs_inside(self, plan: Plan) -> bool:
        """Whether it runs in the cluster that it syncs, and so serves no other."""

    @abstractmethod
    def rooted(self, plan: Plan) -> Roots:
        """Whom the roots of PLAN serve."""

    @abstractmethod
    def namespace(self, given: GitOps) -> str:
        """The namespace of its objects."""

    @abstractmethod
    def reads(self, bodies: Sequence[Any]) -> Reads | None:
        """What it reads, by its objects among BODIES; None where they don't say it."""


def annotated(body: Body, wanted: Mapping[str, str], lists: Iterable[str] = ()) -> Body:
    """BODY with the annotations WANTED; those that it has win. Of LISTS (`A=x,B=y`) each option counts by itself."""
    meta = body["metadata"]
    given: dict[str, str] = meta.get("annotations") or {}
    both = {**wanted, **given}
    for key in lists:
        if key in wanted and key in given:
            ours = dict(option.split("=", 1) for option in wanted[key].split(","))
            theirs = [option.strip() for option in given[key].split(",")]
            said = {option.partition("=")[0] for option in theirs}
            both[key] = ",".join([*theirs, *(f"{name}={value}" for name, value in ours.items() if name not in said)])
    return {**body, "metadata": {**meta, "annotations": both}}
