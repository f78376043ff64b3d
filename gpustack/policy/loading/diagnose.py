"""Says what is wrong with a policy that pydantic refuses, at the line where it was written.

Solves: pydantic knows the merged data only. Here its errors are led back through the origins to the file and line, and
said in the words of the person who wrote it: the text as written (1.30, not 1.3), what is wanted, and what to write.
"""

import copy
import difflib
import functools
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gpustack.model import Finding, Location, Path, children, dotted
from gpustack.policy.loading.layers import Merged, Part, has
from gpustack.policy.loading.lists import OBJECTS

UNKNOWN_KEY, WRONG_TYPE, WRONG_VALUE = "GPU016", "GPU017", "GPU018"

MOST = 100
"""Findings that are worked out for one policy."""


class _Error(NamedTuple):
    """One error of pydantic's: at PATH of the data, about the key itself if KEY, with the value as it was written."""

    details: ErrorDetails
    path: Path
    key: bool
    written: str

    @property
    def kind(self) -> str:
        return self.details["type"]

    @property
    def value(self) -> Any:
        return self.details["input"]


_Words = tuple[str, str, str, str]
"""The rule, what is wrong, why that is so, and the remedy."""


def diagnose(
    error: ValidationError, merged: Merged, model: type[BaseModel] | None = None, at: Path = ("spec",)
) -> list[Finding]:
    """Return a finding for each mistake in ERROR, which MODEL (ClusterPolicySpec) raised on MERGED.

    AT is where MODEL's data stands in a policy. The findings are in pydantic's order, and at most MOST: who has more
    mistakes than that has made one of them many times."""
    if model is None:
        from gpustack.policy.language.spec import ClusterPolicySpec

        model = ClusterPolicySpec
    findings = []
    errors = error.errors(include_url=False)[: MOST * 4]
    mistakes = _in_quotes(_distinct([_mistake(details, merged) for details in errors]), merged, model)
    # A value that follows from another is as wrong as that one, which is among the mistakes.
    writers = [merged.nearest_writer(each.path) for each in mistakes]
    own = [each for each, by in zip(mistakes, writers, strict=True) if by is None or by[0].kind != "derived"]
    for mistake in (own or mistakes)[:MOST]:
        rule, what, why, remedy = _words(mistake, model, at)
        where, source = _where(mistake, merged)
        why = "; ".join(filter(None, (why, source)))
        findings.append(Finding(rule, "error", what, dotted((*at, *mistake.path)), where, why, remedy))
    return findings


def unknown_nulls(parts: Iterable[Part]) -> Iterator[Finding]:
    """A finding for each key in PARTS that the language doesn't have and that has no value: null is absence, so the
    merged spec has no trace of it, and whoever misspelt it expects something."""
    for part in parts:
        if part.clean is part.data:
            continue
        from gpustack.policy.language.spec import ClusterPolicySpec
        from gpustack.policy.loading.suggest import keys_at, remedy

        for path in nulls(part.data):
            keys = list(keys_at(ClusterPolicySpec, path[:-1]))
            if keys and path[-1] not in keys:
                name, where = dotted(("spec", *path)), part.locate(path, key=True)
                do = remedy(ClusterPolicySpec, path)
                yield Finding(UNKNOWN_KEY, "error", f"unknown key {name}", name, where, "", do)


def nulls(data: Any, path: Path = (), but: Path = OBJECTS) -> Iterator[Path]:
    """The places of the nulls in DATA, which stands at PATH; what stands at BUT is left out."""
    for key, value in children(data):
        if value is None:  # no item of a list: such a part is refused before
            yield (*path, key)
        elif (*path, key) != but:
            yield from nulls(value, (*path, key), but)


def _mistake(details: ErrorDetails, merged: Merged) -> _Error:
    """Find the data that DETAILS is about. Its `loc` also names the alternatives of unions, which no policy has."""
    node: Any = merged.spec
    path: Path = ()
    steps = list(details["loc"])
    key = bool(steps) and steps[-1] == "[key]"
    missing = steps.pop() if details["type"] == "missing" else None
    for step in steps:
        if has(node, step):
            node = node[step]
            path = (*path, step)
    if missing is not None:
        path = (*path, missing)
    writer = merged.writer(path)
    text = writer[0].written(writer[1]) if writer and not isinstance(node, (dict, list)) else None
    if path[:1] == ("secrets",) and not details["type"].endswith("literal_error"):
        text = "***"  # where a value is: whoever misreads that writes the value
    return _Error(details, path, key, text if text is not None else str(details["input"]))


def _distinct(mistakes: list[_Error]) -> list[_Error]:
    """Keep one mistake per place: of a union, the alternative that came furthest."""
    deeper = {mistake.path[:length] for mistake in mistakes for length in range(len(mistake.path))}
    kept: dict[tuple[Path, bool], _Error] = {}
    for mistake in mistakes:
        by_type = mistake.kind.endswith("_type")
        if by_type and mistake.path in deeper:
            continue
        place = (mistake.path, mistake.key)
        if place not in kept or (kept[place].kind.endswith("_type") and not by_type):
            kept[place] = mistake
    return list(kept.values())


def _in_quotes(mistakes: list[_Error], merged: Merged, model: type[BaseModel]) -> list[_Error]:
    """MISTAKES, with a number that would be no better as the text that MODEL wants told by what is wrong with that."""
    numbers = [each for each in mistakes if each.kind == "string_type" and type(each.value) in (int, float)]
    bare = {each.path: each.written for each in numbers if each.path[:1] not in ((), ("secrets",))}
    if not bare:
        return mistakes
    data: Any = copy.deepcopy(merged.spec)
    try:
        for path, text in bare.items():
            functools.reduce(operator.getitem, path[:-1], data)[path[-1]] = text
        model.model_validate(data)
    except (LookupError, TypeError):  # the value stands in a place of its own making: one of the forms of a union
        return mistakes
    except ValidationError as error:
        again = {each.path: each for each in (_mistake(details, merged) for details in error.errors(include_url=False))}
        return [again.get(each.path, each) if each.path in bare else each for each in mistakes]
    return mistakes


def _where(mistake: _Error, merged: Merged) -> tuple[Location | None, str]:
    """Return the place to show, and who wrote the value if that was not the user."""
    writer = merged.nearest_writer(mistake.path)
    if writer is None:
        return None, ""
    part, own = writer
    if part.text is None:
        return merged.cause(part), "" if part.kind == "policy" else f"the value is a default: {part.file}"
    # A section's own place is its key: its value starts with whatever comes first in it.
    about_key = mistake.key or mistake.kind == "extra_forbidden" or isinstance(mistake.value, (dict, list))
    return part.locate(own, key=about_key), ""


def _words(mistake: _Error, model: type[BaseModel], at: Path) -> _Words:
    name = dotted((*at, *mistake.path))
    if mistake.kind == "extra_forbidden":
        from gpustack.policy.loading.suggest import remedy

        return UNKNOWN_KEY, f"unknown key {name}", "", remedy(model, mistake.path, mistake.value, at)
    if mistake.kind == "missing":
        what = f"{name} is missing"
        return WRONG_TYPE, what, "it has no default", f"add {mistake.path[-1]}, or delete what it belongs to"
    if mistake.key:
        what = f"the key of {name} can't be used: {_message(mistake)}"
        return WRONG_VALUE, what, "", _own(mistake) or "correct the key"
    if mistake.kind in _TYPES:
        wanted, suggest = _TYPES[mistake.kind]
        return WRONG_TYPE, f"{name} must be {wanted}, not {_shown(mistake)}", "", suggest(mistake)
    if mistake.kind == "literal_error":
        return _choice(mistake, name)
    if mistake.kind in _BOUNDS:
        bound = f"{_BOUNDS[mistake.kind]} {next(iter(mistake.details['ctx'].values()))}"
        what = f"{name} must be {bound}, not {_shown(mistake)}"
        return WRONG_VALUE, what, "", f"write a number that is {bound}"
    return WRONG_VALUE, f"{name}: {_message(mistake)}", "", _own(mistake) or f"change {name}"


def _message(mistake: _Error) -> str:
    return mistake.details["msg"].rstrip(".")


def _own(mistake: _Error) -> str:
    """Return the remedy that a rule of the models gave along, or ""."""
    return str(mistake.details.get("ctx", {}).get("remedy", ""))


def _choice(mistake: _Error, name: str) -> _Words:
    """The value is not one of a few: name the nearest."""
    allowed = re.findall(r"'([^']*)'", str(mistake.details.get("ctx", {}).get("expected", "")))
    listed = ", ".join(choice or '""' for choice in allowed)
    text = mistake.written
    what = f"{name} must be one of {listed}, not {_shown(mistake)}"
    if not isinstance(mistake.value, str) and text in allowed:
        return WRONG_TYPE, what, "without quotes, it is not text", f'put it in quotes: "{text}"'
    near = [choice for choice in allowed if choice.lower() == text.lower()]
    near = near or difflib.get_close_matches(text, allowed, n=1, cutoff=0.5)
    return WRONG_VALUE, what, "", f"did you mean {near[0]}?" if near else f"write one of {listed}"


def _shown(mistake: _Error) -> str:
    """Return the value the way it was written, with what it is."""
    value, text = mistake.value, mistake.written
    text = text if len(text) <= 60 else f"{text[:57]}..."
    if isinstance(value, str):
        return f'the text "{text}"'
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the {'boolean' if isinstance(value, bool) else 'number'} {text}"


def _for_boolean(mistake: _Error) -> str:
    text = mistake.written.strip().lower()
    for word, spellings in (("true", ("true", "yes", "on", "y", "1")), ("false", ("false", "no", "off", "n", "0"))):
        if text in spellings:
            return f"did you mean {word} (no quotes)?" if text == word else f"did you mean {word}?"
    return _unwrapped(mistake, "write true or false")


def _for_text(mistake: _Error) -> str:
    if isinstance(mistake.value, (dict, list)):
        return _unwrapped(mistake, "write a text")
    return f'put it in quotes: "{mistake.written}"'


def _for_number(mistake: _Error) -> str:
    text = mistake.written.strip()
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return f"did you mean {text} (no quotes)?"
    whole = re.fullmatch(r"([-+]?[0-9]+)\.0+", text)
    return f"did you mean {whole[1]}?" if whole else _unwrapped(mistake, "write a whole number")


def _for_mapping(mistake: _Error) -> str:
    if isinstance(mistake.value, bool):
        return f"did you mean {{enabled: {mistake.written}}}?"
    if re.fullmatch(r"[0-9]+", mistake.written) and isinstance(mistake.value, str):
        return f"did you mean {mistake.written} (no quotes)?"
    return "write its fields below it, indented, without dashes"


def _for_list(mistake: _Error) -> str:
    if isinstance(mistake.value, dict):
        return "put a dash before each item"
    return f"did you mean [{mistake.written}]?"


def _unwrapped(mistake: _Error, otherwise: str) -> str:
    value = mistake.value
    if isinstance(value, dict) and len(value) == 1:
        return f"{otherwise}; it has the key {next(iter(value))} below it: check the indentation"
    return otherwise


_TYPES: dict[str, tuple[str, Callable[[_Error], str]]] = {
    "bool_type": ("true or false", _for_boolean),
    "string_type": ("a text", _for_text),
    "int_type": ("a whole number", _for_number),
    "int_from_float": ("a whole number", _for_number),
    "model_type": ("a mapping", _for_mapping),
    "dict_type": ("a mapping", _for_mapping),
    "list_type": ("a list", _for_list),
}

_BOUNDS = {"greater_than_equal": "at least", "less_than_equal": "at most"}
