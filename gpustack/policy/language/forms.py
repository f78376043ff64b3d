"""How a text or number has to look, as an annotation that pydantic checks and that can say what is wrong.

Solves: the API server refuses a bad label or quantity when the manifest is applied, hours after the merge and far from
the line that holds it. So each such field has a form (`forms.yaml` lists them), and a refusal says in words what the
form is and, for the mistakes that people make, what to write instead.

Rejected: `Field(pattern=...)`. It compiles an expression per field when the models are built, which every run pays for,
and its message is the expression itself.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from string import Template
from typing import Any, Self

from pydantic import GetCoreSchemaHandler, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from gpustack.catalog import _data
from gpustack.model import INT32
from gpustack.text.refusals import Texts


def absent(value: Any) -> Any:
    """VALUE without the keys that are null: in a policy null counts as absent."""
    if isinstance(value, dict) and None in value.values():
        return {key: item for key, item in value.items() if item is not None}
    return value


def refuse(rule: str, what: str, remedy: str = "") -> PydanticCustomError:
    """An error of type RULE for pydantic to carry; diagnostics find the remedy in its context."""
    return PydanticCustomError(rule, "{what}", {"what": what, "remedy": remedy})


TEXTS = Texts(str(Path(__file__).with_name("refusals.yaml")))


def refuse_as(rule: str, case: str, **words: object) -> PydanticCustomError:
    """The same for what the table refusals.yaml says of CASE of RULE, with WORDS for its `$name`s."""
    said = TEXTS.table[rule][case]
    return refuse(rule, *(Template(said[part]).substitute(words) for part in ("what", "remedy")))


def refuse_at(place: tuple[str | int, ...], error: PydanticCustomError, value: Any) -> ValidationError:
    """ERROR about the VALUE at PLACE below what is validated: pydantic takes the place over into its own report."""
    return refuse_all([(place, error, value)])


def refuse_all(errors: Iterable[tuple[tuple[str | int, ...], PydanticCustomError, Any]]) -> ValidationError:
    """Several ERRORS at once, each with its place and value, as `refuse_at` does one."""
    lines = [InitErrorDetails(type=error, loc=place, input=value) for place, error, value in errors]
    return ValidationError.from_exception_data("policy", lines)


LONGEST = 4096
"""Characters of the longest text in a form, of those that have no limit of their own: as long as a path may be."""


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """What a text has to look like: an annotation for `str`.

    `what` completes "is not a valid ...", `rule` says the form in words, `hints` are (expression, remedy) of mistakes,
    in which `\\g<0>` is what was written.
    `empty` lets "" pass, which charts write for "not set". `too_much` says in which way a text of this form is beyond
    what the API holds, "" for one that is not; a JSON schema can't."""

    name: str
    what: str
    rule: str
    pattern: str
    longest: int = 0
    empty: bool = False
    hints: tuple[tuple[str, str], ...] = ()
    too_much: Callable[[str], str] | None = None

    def check(self, value: str) -> str:
        """Return VALUE, or raise what is wrong with it."""
        if not value and self.empty:
            return value
        if len(value) > (self.longest or LONGEST) or not re.fullmatch(self.pattern, value):
            limit = f", {self.longest} characters at most" if self.longest else ""
            shown = f"{value[:60]}..." if len(value) > 63 else value
            hints = ((re.search(pattern, value[:LONGEST]), text) for pattern, text in self.hints)
            remedy = next((found.expand(text) for found, text in hints if found), "")
            raise refuse(self.name, f"{shown!r} is not a valid {self.what}: {self.rule}{limit}", remedy)
        if self.too_much and (what := self.too_much(value)):
            raise refuse(self.name, f"{value!r} is not a valid {self.what}: {what}", "write less")
        return value

    def schema(self) -> dict[str, Any]:
        """The same as a JSON schema of a string."""
        limit = {"maxLength": self.longest} if self.longest else {}
        return {"type": "string", "pattern": f"^(?:{self.pattern}){'?' if self.empty else ''}$", **limit}

    def or_empty(self) -> Self:
        return dataclasses.replace(self, empty=True)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))


_KNOWN: dict[str, Any] = _data.read(Path(__file__).with_suffix(".yaml"))


def form(name: str, too_much: Callable[[str], str] | None = None) -> Form:
    """The form NAME of the data file beside this module; TOO_MUCH as in `Form`."""
    said = _KNOWN[name]
    hints = tuple((wrong, remedy) for wrong, remedy in said.get("hints", ()))
    return Form(name, **{**said, "pattern": _whole(said["pattern"]), "hints": hints}, too_much=too_much)


def _whole(pattern: str) -> str:
    """PATTERN with its parts in it."""
    return re.sub(r"<([a-z_]+)>", lambda part: _whole(_KNOWN["parts"][part[1]]), pattern)


@dataclasses.dataclass(frozen=True, slots=True)
class TextAt:
    """A text stands for a map with the one key KEY: an annotation for a map of texts."""

    key: str

    def spread(self, value: Any) -> Any:
        return {self.key: value} if isinstance(value, str) else value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self.spread, handler(source))


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """A whole number from `least` to `most`, or text in a form: for `int | str`, which a union would report twice."""

    form: Form
    most: int = INT32
    least: int = 0

    def check(self, value: Any) -> int | str:
        if isinstance(value, str):
            return self.form.check(value)
        if type(value) is int and self.least <= value <= self.most:
            return value
        if type(value) is int and value > self.most:
            raise refuse(self.form.name, f"{value} is too large: {self.most} at most", "write a smaller number")
        remedy = f'write it in quotes: "{value}"' if type(value) is float else ""
        raise refuse(self.form.name, f"{value!r} is not a valid {self.form.what}: {self.form.rule}", remedy)

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def schema(self) -> dict[str, Any]:
        """The same as a JSON schema."""
        return {"anyOf": [{"type": "integer", "minimum": self.least, "maximum": self.most}, self.form.schema()]}
