"""What a rule is, over what it looks, and the registry of all of them.

A rule is a generator of hits over one of these, whichever says enough (the cheapest comes first):

    over="spec"     the effective spec; the rule gets what it means, a Cluster. Runs once for all clusters of a spec,
                    before anything is rendered.
    over="object"   one rendered object (model.Resource), by itself. Runs once for each component that is synthesised.
    over="render"   a Render: the spec, and all objects that it renders to. Runs once for all clusters of a spec.
    over="engine"   an EngineObjects: what is rendered for Argo CD or Flux, and what that syncs. Runs once for all
                    clusters of a spec that names an engine.
    over="origins"  a Written: the spec, and who wrote which value of it. Runs once for each policy file that changed.
    over="workload" a Tenant: one workload of a tenant, and what the cluster offers. Runs where tenants' manifests are
                    checked, and for each workload among the policy's extraObjects.
    over="manifest" a TenantObject: one object of a tenant, with pods or without, and what the cluster offers. Runs
                    where rules over workloads do.

All are pure, and what they find is kept: with the stack, with the component, with the source. So no rule sees the
date. One that depends on it says from which day on a hit counts (`since`), and before which (`until`); who knows the
date picks. Rejected: handing the date to the rule, which would make every cached answer wrong by tomorrow.
"""

import datetime
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any, Literal, TypeVar, get_args

from ..catalog import _data
from ..model import Finding, Severity

Over = Literal["spec", "object", "render", "engine", "origins", "workload", "manifest"]
_NAMES = ("Cluster", "Resource", "Render", "EngineObjects", "Written", "Tenant", "TenantObject")
TYPES = dict(zip(get_args(Over), _NAMES, strict=True))
"""The type of what a rule over each of these takes, by name."""
TENANTS: tuple[Over, ...] = ("workload", "manifest")
"""What rules look at in tenants' manifests."""
Check = Callable[[Any], Iterator["Hit"]]
CheckT = TypeVar("CheckT", bound=Check)


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that a rule found: WHAT is wrong at the policy PATH, WHY it matters, and the REMEDY. What of these it
    doesn't say stands with the rule's page (pages.py), under CASE where the rule finds several things; WORDS are the
    values that its texts name. `hit` makes one of those.

    PATH begins with `spec`. A rule over an object names the place in the object instead (`metadata.labels`): for an
    object of extraObjects that becomes a place in the policy, any other is shown at the section that renders it. A rule
    over a tenant's workload or manifest names the place in the manifest.

    INSIDE is a line and column (from 1) of the text at PATH, where that is a configuration of its own (a block scalar
    in `config.data`, say): the finding then points there. KEY says that the last key of PATH is what is wrong, a name
    that the policy gives (a label's, a profile's), and not its value. SINCE and UNTIL bound the days on which the hit
    counts. POOL is the name of a node pool that it is about: hits that say the same of several pools are told as one,
    and the names take the place of POOLS in WHAT."""

    path: str
    what: str = ""
    why: str = ""
    remedy: str = ""
    inside: tuple[int, int] | None = None
    key: bool = False
    since: datetime.date | None = None
    until: datetime.date | None = None
    pool: str = ""
    case: str = ""
    words: tuple[tuple[str, str], ...] = ()


def hit(
    path: str,
    case: str = "",
    /,
    *,
    why: str = "",
    remedy: str = "",
    inside: tuple[int, int] | None = None,
    at_key: bool = False,
    since: datetime.date | None = None,
    until: datetime.date | None = None,
    pool: str = "",
    **words: object,
) -> Hit:
    """A hit at PATH that says what the rule's page says of CASE, with WORDS for its `$name`s. AT_KEY is `Hit.key`."""
    told = tuple((name, str(value)) for name, value in words.items())
    return Hit(path, "", why, remedy, inside, at_key, since, until, pool, case, told)


def meant(near: Iterable[str]) -> str:
    """The remedy that offers the names NEAR to the wrong one; "" without any: the page's remedy stands then."""
    names = " or ".join(near)
    return f"did you mean {names}?" if names else ""


POOLS = "{pools}"
"""Stands in what a hit says for the node pools that it is about."""


def joined(hits: Iterable[Hit]) -> Iterator[Hit]:
    """HITS, those that say the same of several pools as one."""
    about: dict[Hit, list[str]] = {}
    for each in hits:
        if each.pool:
            about.setdefault(replace(each, pool=""), []).append(each.pool)
        else:
            yield each
    for each, pools in about.items():
        text = f"node pool {pools[0]}" if len(pools) == 1 else f"node pools {', '.join(pools[:-1])} and {pools[-1]}"
        yield replace(each, what=each.what.replace(POOLS, text))


@dataclass(frozen=True, slots=True)
class Rule:
    """A registered rule. `check` takes what `over` says; what a spec means, where that is a spec."""

    id: str
    severity: Severity
    check: Check
    over: Over = "spec"

    def findings(self, subject: Any) -> Iterator[Finding]:
        """What the rule has to say about SUBJECT, which is of the type that `over` says."""
        hits = [self._told(each) for each in self.check(_meaning()(subject) if self.over == "spec" else subject)]
        for hit in joined(hits) if hits else ():
            told = (hit.what, hit.path, None, hit.why, hit.remedy)
            yield Finding(self.id, self.severity, *told, hit.inside, hit.key, hit.since, hit.until)

    def _told(self, hit: Hit) -> Hit:
        """HIT with what it doesn't say itself from the rule's page: of its case, with its words."""
        if hit.what and hit.why and hit.remedy:
            return hit
        page = texts(self.check, self.id)
        page = {**page, **page["cases"][hit.case]} if hit.case else page
        words = {"path": hit.path, "field": hit.path.removeprefix("spec."), "pools": POOLS, **dict(hit.words)}
        said = {"what": hit.what, "reason": hit.why, "remedy": hit.remedy}
        told = [text or Template(page.get(part, "")).substitute(words) for part, text in said.items()]
        return replace(hit, what=told[0], why=told[1], remedy=told[2], case="", words=())


@cache
def _meaning() -> Callable[[Any], Any]:
    from ..cluster.resolve import resolve  # nobody pays for it whose render is in the cache

    return resolve


@cache
def texts(check: Callable[..., Any], name: str) -> Mapping[str, Any]:
    """What the data file beside the module of CHECK says of it, whose id is NAME; empty where it says nothing."""
    path = Path(inspect.getfile(check)).with_suffix(".yaml")
    said: Mapping[str, Any] = _data.read(path).get(name, {}) if path.is_file() else {}
    return said


def rule_modules() -> Iterator[str]:
    """The modules that hold rules, here and in `tenants`: those beside which their pages stand."""
    room = Path(__file__).parents[1]
    for pattern in ("checks/*/*.yaml", "tenants/*.yaml"):
        for pages in sorted(room.glob(pattern)):
            yield ".".join(pages.relative_to(room).with_suffix("").parts)


RULES: dict[str, Rule] = {}
"""The rules of the modules that were imported."""


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by its id. Imports all modules with rules: only who checks something pays for that."""
    for module in rule_modules():
        import_module(f"gpustack.{module}")
    return tuple(RULES[name] for name in sorted(RULES))


@cache
def rules_over(subject: Over) -> tuple[Rule, ...]:
    """The rules over SUBJECT, by their ids."""
    return tuple(each for each in all_rules() if each.over == subject)


def rule(id: str, severity: Severity, over: Over = "spec") -> Callable[[CheckT], CheckT]:  # noqa: A002 - as in findings
    """Register a function as rule ID over what OVER says, or raise TypeError where its parameter has another type. Ids
    are stable: a rule that goes leaves its id unused."""

    def register(check: CheckT) -> CheckT:
        if id in RULES:
            raise ValueError(f"two rules are called {id}: {RULES[id].check.__name__} and {check.__name__}")
        takes = next(iter(check.__annotations__.values()), TYPES[over])
        if getattr(takes, "__name__", takes) != TYPES[over]:
            raise TypeError(f"{id} looks at a {TYPES[over]}, and {check.__name__} takes a {takes}")
        RULES[id] = Rule(id, severity, check, over)
        return check

    return register
