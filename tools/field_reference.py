"""The field reference of docs/policy.md, written from the models: what the docs say about a field is what its class
says.

Sections are tables; sections inside them are rows with a dotted path. What many sections have (an image, arguments,
a list of environment variables) is described once, at the end.
"""

from __future__ import annotations

import functools
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.fields import FieldInfo

from gpustack.policy.help.describe import descriptions, models, nested, summary
from gpustack.policy.help.schema import EXTENDS
from gpustack.policy.language import operand
from gpustack.policy.language.base import Section
from gpustack.policy.language.forms import Form, Number, TextAt
from gpustack.policy.language.node_pools import Count
from gpustack.policy.language.spec import ClusterPolicySpec

BEGIN, END = "<!-- reference:begin -->", "<!-- reference:end -->"
COMMON = (
    operand.Operand,
    operand.Workload,
    operand.SideModule,
    operand.Component,
    operand.DriverManager,
    operand.ImageSource,
)
"""What components have in common, the most specific first."""

FIELDS = re.compile(r"(<!-- fields:begin ([^>]+) -->).*?<!-- fields:end -->", re.DOTALL)
"""A table of fields in another page, by its marks."""

WORDS = {bool: "true or false", int: "number", str: "text", Any: "anything"}


def replaced(page: str) -> str:
    """PAGE with what stands between the two marks replaced by the reference of today. ValueError without the marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} with a {END} after it")
    return f"{head}{begin}\n\n{markdown()}\n{end}{tail}"


def replaced_fields(page: str, policy_page: str) -> str:
    """PAGE with each table of fields written anew: what stands between `<!-- fields:begin PATH PATH -->` and
    `<!-- fields:end -->` becomes a table of the sections and fields at these paths, with links into POLICY_PAGE.
    """

    def table(marks: re.Match[str]) -> str:
        return f"{marks[1]}\n\n{fields_table(marks[2].split(), policy_page)}\n\n<!-- fields:end -->"

    return FIELDS.sub(table, page)


def fields_table(paths: list[str], policy_page: str) -> str:
    """The table of the sections and fields at PATHS ("toolkit", "hostPaths.rootFS"), with links into POLICY_PAGE.

    Raises KeyError for a path that the language doesn't have.
    """
    from gpustack.catalog import releases

    defaults = releases.release(releases.latest()).defaults
    rows = [row for path in paths for row in _rows_at(path, defaults)]
    return _table(rows).replace("](#", f"]({policy_page}#")


def _rows_at(path: str, defaults: Mapping[str, Any]) -> Iterator[Row]:
    """The row of the field at PATH and, where it is a section, the rows of its own fields."""
    owner: type[Section] = ClusterPolicySpec
    *way, last = path.split(".")
    for step in way:
        owner = nested(owner.model_fields[step.removesuffix("[]")].annotation)[0]
    field = owner.model_fields[last]
    inner, text = _in_place(field.annotation), descriptions(owner)[last]
    if inner is None:
        yield path, _words(field.annotation, field.metadata), _default(path, field, defaults), text
        return
    common = _common(inner)
    value: Any = defaults
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    yield path, _link(common) if common else "section", _image(value), text
    yield from _rows(inner, path, defaults)


def markdown() -> str:
    """The reference as Markdown, ending in a line break."""
    from gpustack.catalog import releases

    release = releases.latest()
    defaults = releases.release(release).defaults
    sections = {
        name: model for name, field in ClusterPolicySpec.model_fields.items() for model in nested(field.annotation)
    }
    blocks = [f"Defaults are those of {release}; a platform may change them.", *_plain_fields()]
    blocks += [block for name, model in sections.items() for block in _section(name, model, defaults)]
    blocks += ["### Shared types"]
    blocks += [block for model in _shared(list(sections.values())) for block in _type(model)]
    return "\n\n".join(blocks) + "\n"


def _plain_fields() -> Iterator[str]:
    """Fields of `spec` that are not sections."""
    texts = descriptions(ClusterPolicySpec)
    rows = [("extends", "list of text", "", EXTENDS["description"])]
    for name, field in ClusterPolicySpec.model_fields.items():
        if not nested(field.annotation):
            rows.append((name, _words(field.annotation, field.metadata), "", texts[name]))
    yield "### Fields of `spec` that are not sections"
    yield _table(rows)


def _section(name: str, model: type[Section], defaults: Mapping[str, Any]) -> Iterator[str]:
    listed = typing.get_origin(ClusterPolicySpec.model_fields[name].annotation) is list
    yield f"### `{name}`"
    yield summary(model)
    common = _common(model)
    if common:
        yield f"Has the fields of {_link(common)}. {_image(defaults.get(name))}".rstrip()
    rows = list(_rows(model, f"{name}[]" if listed else name, defaults))
    if rows:
        yield _table(rows)


def _type(model: type[Section]) -> Iterator[str]:
    yield f"#### {model.__name__}"
    yield summary(model)
    common = _common(model, proper=True)
    if common:
        yield f"Has the fields of {_link(common)}."
    rows = list(_rows(model, "", {}))
    if rows:
        yield _table(rows)


Row = tuple[str, str, str, str]


def _rows(model: type[Section], path: str, defaults: Mapping[str, Any]) -> Iterator[Row]:
    """Path, type, default and description of MODEL's fields, without those that a common class describes."""
    texts = descriptions(model)
    common = _common(model, proper=not path)
    for name, field in model.model_fields.items():
        if common and name in common.model_fields:
            continue
        below = f"{path}.{name}" if path else name
        inner = _in_place(field.annotation)
        if inner:
            yield below, "section", "", texts[name]
            yield from _rows(inner, below, defaults)
        else:
            yield below, _words(field.annotation, field.metadata), _default(below, field, defaults), texts[name]


def _in_place(annotation: Any) -> type[Section] | None:
    """The section that a field of type ANNOTATION always has, and that is described where it stands."""
    plain = isinstance(annotation, type) and issubclass(annotation, Section) and annotation not in COMMON
    return annotation if plain else None


def _shared(sections: list[type[Section]]) -> list[type[Section]]:
    """The models that get a table at the end: the common ones, and those that sections hold in a list or may lack."""
    linked: dict[type[Section], None] = dict.fromkeys(COMMON)
    for model in models(ClusterPolicySpec):
        for field in model.model_fields.values():
            if not _in_place(field.annotation):
                linked.update(dict.fromkeys(nested(field.annotation)))
    return [model for model in linked if model not in sections]


def _common(model: type[Section], *, proper: bool = False) -> type[Section] | None:
    """The most specific common class that MODEL builds on; PROPER: other than itself."""
    return next((cls for cls in COMMON if issubclass(model, cls) and not (proper and cls is model)), None)


def _image(section: Any) -> str:
    """What the release says about the image and the switch of a component's SECTION."""
    if not isinstance(section, Mapping):
        return ""
    said = []
    if section.get("version") and section.get("image"):
        path = "/".join(part for part in (section.get("repository"), section["image"]) if part)
        said.append(f"Image: `{path}:{section['version']}`.")
    if "enabled" in section:
        said.append(f"Enabled: {json.dumps(section['enabled'])}.")
    return " ".join(said)


def _default(path: str, field: FieldInfo, defaults: Mapping[str, Any]) -> str:
    value: Any = defaults
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if value is None and isinstance(field.default, str):
        value = field.default
    if value is None:
        return ""
    return _image(value) if field.annotation in COMMON else f"`{json.dumps(value)}`"


def _words(annotation: Any, metadata: typing.Iterable[Any] = ()) -> str:
    """The type of a field in words, models as links."""
    for item in metadata:
        if isinstance(item, Form):
            return item.what
        if isinstance(item, Number):
            return item.form.what
        if isinstance(item, TextAt):
            return f"text or {_words(annotation)}"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _words(arguments[0], arguments[1:])
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" if value else "empty" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words(option) for option in arguments if option is not type(None))
    if origin is list:
        return f"list of {_words(arguments[0])}"
    if annotation == dict[str, Any]:
        return "map"
    if origin is dict:
        return f"map: {_words(arguments[0])} to {_words(arguments[1])}"
    if annotation in WORDS:
        return WORDS[annotation]
    return _link(annotation)


@functools.cache
def _listed() -> dict[type[Section], str]:
    """The models of which a section of the policy is a list: they are described there, below the section's name."""
    return {
        model: name
        for name, field in ClusterPolicySpec.model_fields.items()
        if typing.get_origin(field.annotation) is list
        for model in nested(field.annotation)
    }


def _link(model: type[Section]) -> str:
    words = f"[{model.__name__}](#{_listed().get(model, model.__name__).lower()})"
    return f"number or {words}" if model is Count else words


def _table(rows: list[Row]) -> str:
    lines = ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
    for path, kind, default, meaning in rows:
        cells = (f"`{path}`", kind, default, meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
