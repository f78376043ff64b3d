"""Pull requests against the example fleet: what a policy says before and after, rendered, compared and judged.

A case changes one policy of policies/ by values that are laid over it. Rules that refuse a policy are not asked: what a
refused change would be told as doesn't depend on who refuses it today.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpustack.cli import common
from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.engine import EngineTexts
from gpustack.compiler.stack import compile_stack
from gpustack.policy.loading.load import Loaded, Memo, load, spec_key
from gpustack.review.diff.objects import Identity, ObjectChange, Objects, Rendered, compare
from gpustack.review.impact.effects import Impact, impact
from gpustack.review.impact.origin import Fleet
from tests.project import ROOT

Values = Mapping[str, Any]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MEMO = Memo()
CLUSTER = "c"


class All(Container[str]):
    """Every rule."""

    def __contains__(self, rule: object) -> bool:
        return True


@dataclass(frozen=True)
class Request:
    """A change of the policy of CLUSTER: what is laid over it before (BASE) and after. NEW: there was no cluster."""

    cluster: str
    after: Values
    base: Values
    new: bool = False


def request(cluster: str, after: Values, base: Values | None = None, *, new: bool = False) -> Request:
    """What AFTER changes where BASE is laid over the policy of CLUSTER already."""
    return Request(cluster, laid(base or {}, after), base or {}, new)


def laid(base: Values, over: Values) -> dict[str, Any]:
    """OVER laid over BASE, as layers are."""
    made = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(made.get(key), Mapping)
        made[key] = laid(made[key], value) if both else value
    return made


@functools.cache
def _store() -> Store:
    folder = common.named_folder("GPUSTACK_CACHE", "XDG_CACHE_HOME", ".cache") or Path("/nonexistent")
    return Store(folder, own_digest())


def loaded(cluster: str, over: Values) -> Loaded:
    """The policy of an example cluster with OVER over it."""
    return load(ROOT / "policies" / f"{cluster}.yaml", root=ROOT, memo=MEMO, overrides=dict(over))


@functools.cache
def _parsed(text: str) -> Any:
    return yaml.load(text, Loader=LOADER)  # noqa: S506 - a safe loader, in C where there is one


def rendered(found: Loaded) -> Objects:
    """What a policy renders to, the engine's objects included."""
    stack = compile_stack(found.spec, spec_key(found.merged), _store(), All())
    texts = {file.path: file.text for file in stack.files} | EngineTexts(stack.plan).of(CLUSTER)
    made = {}
    for path, text in texts.items():
        body = _parsed(text)
        made[Identity.of(body, path.split("/")[1] if path.startswith(".gitops/") else "")] = Rendered(body, path)
    return made


def judge(asked: Request, fleet: Sequence[str] = ()) -> tuple[Impact, Sequence[ObjectChange]]:
    """What ASKED does, and its changes; FLEET are the example clusters whose policies are merged already."""
    after = loaded(asked.cluster, asked.after)
    before = None if asked.new else loaded(asked.cluster, asked.base)
    changes = compare(rendered(before) if before else {}, rendered(after))
    specs = [loaded(name, {}).spec for name in fleet]
    known = Fleet.of([*specs, *([before.spec] if before else [])], [*specs, after.spec])
    pair = (before.spec if before else None, after.spec)
    told = impact({CLUSTER: changes}, {CLUSTER: pair}, new={CLUSTER} if asked.new else set(), fleet=lambda: known)
    return told, changes
