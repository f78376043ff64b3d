"""Terraform's helm_release: heredocs, yamlencode, file, templatefile and `set`, with variables by their defaults.

HCL is read by a library and not run: what needs Terraform to be known stays in the values as ${...}, and is asked for.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from gpustack.model import InputError, Location

from ..documents import HCL, Item, Reader, documents
from ..installation import Installation, Said, leaves_of
from .context import CHART, Context, chart_named
from .sets import put, typed

_CALL = re.compile(
    r"(file|templatefile|merge|yamlencode|jsonencode|lookup|try|coalesce|concat|to(?:bool|string|number|list|set|map))\((.*)\)",
    re.DOTALL,
)
_CHOICE = re.compile(r"([\w.]+)\s*\?\s*([^?:]+?)\s*:\s*([^?:]+)")
_LITERAL = re.compile(r"true|false|null|-?\d+|\"[^\"$\\]*\"")
_PART = re.compile(r"\"?\$\{(?:set|each)\.(?:value[.\[\"]+)?(\w+)[\"\]]*\}\"?")
_EACH = re.compile(
    r"\[\s*for\s+(\w+)\s*,\s*(\w+)\s+in\s+([\w.]+)\s*:\s*\{\s*\"?name\"?\s*[=:]\s*\1\s*,?\s*\"?value\"?\s*[=:]\s*\2\s*,?\s*\}\s*\]"
)
_NAME = re.compile(r"((?:var|local)\.\w+)((?:\.\w+|\[\"[^\"]+\"\])*)")
_INSIDE = re.compile(r"\$\{((?:var|local)\.\w+(?:\.\w+|\[\"[^\"]+\"\])*)\}")


def recognised(item: Item) -> bool:
    """Whether ITEM is a file of Terraform, and not an object in one."""
    return PurePath(item.file).suffix in HCL and isinstance(item.data, str)


def read(item: Item, context: Context) -> None:
    """Read the helm_release of the operator's chart, if ITEM has one."""
    if CHART not in item.text.replace("_", "-") or item.file.endswith(".tfvars"):
        return
    files = [tree(each) for each in context.items if recognised(each) and "helm_release" not in each.text]
    terraform = Terraform(item, context, [*files, tree(item)])
    for block in blocks(terraform.trees[-1], "resource", "helm_release"):
        if chart_named(str(terraform.of(block.get("chart")))):
            terraform.release(block)
    inputs = terraform.trees[-1].get("inputs")  # of Terragrunt
    for block in [*blocks(terraform.trees[-1], "module"), *([inputs] if isinstance(inputs, dict) else [])]:
        for each in charts(block):
            terraform.release(each)


def manifests(item: Item) -> Iterator[Item]:
    """The objects that resources `kubernetes_manifest` of ITEM make."""
    if recognised(item) and "kubernetes_manifest" in item.text:
        terraform = Terraform(item, Context(Installation(), Reader()), [tree(item)])
        for block in blocks(terraform.trees[-1], "resource", "kubernetes_manifest"):
            yield Item(item.file, "", terraform.of(block.get("manifest")))


def charts(data: Any, key: str = "") -> Iterator[dict[str, Any]]:
    """What stands in DATA, the value of KEY in a module, as a release of the operator's chart."""
    if isinstance(data, dict):
        named = chart_named(str(data.get("chart", "")).strip('"'))
        if named or (
            key.strip('"').replace("_", "-").endswith(CHART) and {"values", "set"} & set(data) and "source" not in data
        ):
            yield data
        else:
            for name, each in data.items():
                yield from charts(each, name)


def tree(item: Item) -> dict[str, Any]:
    """The file ITEM as data. Raises InputError for what isn't HCL."""
    import hcl2

    options = hcl2.SerializationOptions(with_comments=False, with_meta=True, preserve_heredocs=False)
    try:
        data: dict[str, Any] = hcl2.loads(item.text, serialization_options=options)
    except Exception as error:  # noqa: BLE001 - the library has no error of its own
        line = getattr(error, "line", None)
        what = f"{item.file} can't be read as HCL"
        raise InputError.of("GPU003", what, location=Location(item.file, line), why=str(error)[:200]) from None
    return data


def blocks(data: dict[str, Any], kind: str, label: str = "") -> Iterator[dict[str, Any]]:
    """The blocks of KIND in DATA, of a resource those with LABEL."""
    for each in data.get(kind, []):
        named = each.get(f'"{label}"', {}) if label else each
        yield from (body for body in named.values() if isinstance(body, dict)) if label else [named]


class Terraform:
    """ITEM with the variables and locals that its TREES tell."""

    def __init__(self, item: Item, context: Context, trees: list[dict[str, Any]]) -> None:
        self.item, self.context, self.trees = item, context, trees
        self.known: dict[str, Any] = {}
        for each in trees:
            for block in blocks(each, "variable"):
                self.known |= {
                    f"var.{name[1:-1]}": body.get("default") for name, body in block.items() if isinstance(body, dict)
                }
            for block in blocks(each, "locals"):
                self.known |= {f"local.{name}": body for name, body in block.items()}
        for given in (tree(each) for each in context.items if each.file.endswith(".tfvars")):
            self.known |= {f"var.{name}": value for name, value in given.items() if not name.startswith("__")}

    def release(self, block: dict[str, Any]) -> None:
        """Take what BLOCK, a helm_release, says."""
        installation, where = self.context.installation, Location(self.item.file, block.get("__start_line__"))
        installation.installed = True
        told = [str(self.of(block.get(key)) or "") for key in ("namespace", "name")]
        namespace, name = ("" if "${" in each else each for each in told)
        installation.namespace, installation.helm_release = (
            namespace or installation.namespace,
            name or installation.helm_release,
        )
        version = self.of(block.get("version") or block.get("chart_version"))
        if isinstance(version, str) and "${" not in version:
            installation.version = installation.version or Said(version, where)
        for entry in block.get("values", []) if isinstance(block.get("values"), list) else []:
            self.values(self.of(entry), where)
        made = [each for one in block.get("dynamic") or [] for each in self.dynamic(one.get('"set"'))]
        if None in made:
            installation.tell("not known", "dynamic", where, data="what a dynamic block makes")
        for kind in ("set", "set_sensitive", "set_list", "dynamic"):
            written = block.get(kind) or []
            if isinstance(written, str) and (each := _EACH.fullmatch(written.removeprefix("${").removesuffix("}"))):
                known = self.of(f"${{{each[3]}}}")
                pairs = known.items() if isinstance(known, dict) else ()
                written = [{"name": name, "value": one} for name, one in pairs] or written
            if isinstance(written, str):
                installation.tell("not known", kind, where, data=f"{written:.80}")
                continue
            for entry in filter(None, made) if kind == "dynamic" else written:
                data = self.of(entry)
                value = data.get("value")
                plain = value if data.get("type") == "string" or isinstance(value, list) else typed(value)
                put(installation.values, str(data.get("name")), plain, where)

    def dynamic(self, body: Any) -> Iterator[dict[str, Any] | None]:
        """The blocks that BODY, of a dynamic "set", makes of a map or a list; None where that isn't known."""
        each = self.of(body.get("for_each")) if isinstance(body, dict) else None
        pairs = (
            list(each.items()) if isinstance(each, dict) else list(enumerate(each)) if isinstance(each, list) else None
        )
        content = (body.get("content") or [{}])[0] if isinstance(body, dict) else {}
        if pairs is None:
            yield None
        for key, value in pairs or []:
            parts = {"key": key, "value": value, **(value if isinstance(value, dict) else {})}
            found = {name: _PART.fullmatch(str(content.get(name, ""))) for name in ("name", "value")}
            known = {name: parts.get(match[1]) for name, match in found.items() if match}
            yield known if known.get("name") is not None else None

    def values(self, data: Any, where: Location) -> None:
        """Take DATA, one entry of `values`: a map, or the text of one."""
        if isinstance(data, dict):
            self.context.take({path: Said(each, where) for path, each in leaves_of(data)})
        elif isinstance(data, str) and not re.fullmatch(r"\$\{[^}]*\}", data.strip()):
            at = self.item.text.find(data.strip().partition("\n")[0])
            start = self.item.text.count("\n", 0, at) if at >= 0 else (where.line or 1) - 1
            found = list(documents("\n" * start + data.lstrip("\n"), self.item.file))
            for each in found:
                self.context.take(each.leaves())
            if any(isinstance(each.data, str) for each in found):
                self.context.installation.tell("not known", "values", where, data=f"{data!s:.80}")
        elif data is not None:
            self.context.installation.tell("not known", "values", where, data=f"{data!s:.80}")

    def of(self, data: Any) -> Any:
        """DATA as Terraform would have it, as far as that is known; else as it is written, in ${}."""
        if isinstance(data, dict):
            return {key.strip('"'): self.of(each) for key, each in data.items() if not key.startswith("__")}
        if isinstance(data, list):
            return [self.of(each) for each in data]
        if not isinstance(data, str):
            return data
        if data.startswith('"'):
            try:
                text = str(json.loads(data, strict=False))
            except ValueError:
                text = data.strip('"')
            return _INSIDE.sub(lambda match: self.text(match[1], match[0]), text)
        inner = data.removeprefix("${").removesuffix("}").strip()
        if call := _CALL.fullmatch(inner):
            return self.call(call[1], call[2], data)
        if choice := _CHOICE.fullmatch(inner):
            decided = typed(self.of(f"${{{choice[1]}}}"))
            return self.of(f"${{{choice[2 if decided else 3]}}}") if isinstance(decided, bool) else data
        if literal := _LITERAL.fullmatch(inner):
            return json.loads(literal[0])
        return self.name(inner, data)

    def text(self, name: str, written: str) -> str:
        """The variable NAME inside a text, WRITTEN there so."""
        data = self.name(name, written)
        return json.dumps(data) if isinstance(data, bool | dict | list) else str(data)

    def name(self, name: str, written: str) -> Any:
        """What the variable or local NAME is; WRITTEN where nobody says."""
        answers = self.context.reader.answers
        if name in answers:
            self.context.reader.used.add(name)
            return answers[name]
        match = _NAME.fullmatch(name)
        known = self.of(self.known.get(match[1])) if match else None
        for step in re.findall(r"\w[\w-]*", match[2]) if match else ():
            known = known.get(step) if isinstance(known, dict) else None
        return written if known is None else known

    def call(self, function: str, arguments: str, written: str) -> Any:
        """What FUNCTION makes of its ARGUMENTS."""
        import hcl2

        if function.endswith("encode"):
            return self.of(hcl2.loads(f"x = {arguments}\n")["x"])
        given = [self.of(each) for each in hcl2.loads(f"x = [{arguments}]\n")["x"]] if function != "file" else []
        if function == "lookup" and isinstance(given[0], dict):
            given = [given[0].get(given[1]), *given[2:]]
        if function not in {"merge", "templatefile", "file", "concat"}:  # the first that is known
            return next((each for each in given if each is not None and "${" not in str(each)), written)
        if function == "concat":
            return [one for each in given for one in each] if all(isinstance(each, list) for each in given) else written
        if function == "merge":
            merged: dict[str, Any] = {}
            for each in given:
                if not isinstance(each, dict):
                    return written
                merged |= each
            return merged
        name = re.match(r'\s*"(?:\$\{path\.(?:module|root)\}/)?([^"$]+)"', arguments)
        words = given[1] if len(given) > 1 and isinstance(given[1], dict) else {}
        plain = {key: json.dumps(each) if not isinstance(each, str) else each for key, each in words.items()}
        own = {key: each for key, each in plain.items() if "${" not in each}
        reader = Reader({**own, **self.context.reader.answers}, self.context.reader.used)
        beside: list[Item] = []
        with contextlib.suppress(InputError):  # a template that isn't understood is asked for as it stands here
            beside = list(reader.beside(self.item, name[1], self.context.known)) if name else []
        for each in beside:
            self.context.take(self.context.reading(each).leaves())
        return None if beside else written


KINDS: dict[str, object] = {}
FILES = ((recognised, read),)
