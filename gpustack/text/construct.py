"""Nodes -> plain data, by the core schema of YAML 1.2 (section 10.3).

Solves: every value is a str, int, float, bool, None, list or dict with str keys, or there is an error that says where
and why. One walk resolves scalars, checks keys and tags and builds the data.

Rejected: PyYAML's SafeConstructor with other resolvers (three times slower, and keys are checked in a second walk);
ruamel.yaml (reads YAML 1.2 right, but sixty times slower: a file at the size limit would take a minute).
"""

import re
from typing import Any, NoReturn

import yaml

from gpustack.text.go_scalars import scalar
from gpustack.text.refusals import refuse
from gpustack.text.yaml12 import COLLECTION, PLAIN, QUOTED, Node, mark

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_SPECIAL_START = frozenset("+-.0123456789~nNtTfF")
_INT = re.compile(r"[-+]?[0-9]+\Z")
_ZERO_FIRST = re.compile(r"[-+]?0[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")

_TAG = "tag:yaml.org,2002:"
_TAG_TYPES: dict[str, tuple[type, ...]] = {
    _TAG + "map": (dict,),
    _TAG + "seq": (list,),
    _TAG + "null": (type(None),),
    _TAG + "bool": (bool,),
    _TAG + "int": (int,),
    _TAG + "float": (float, int),
}


class Builder:
    """Turns a graph of nodes into plain data. A value with aliases is built once and shared.

    A number that begins with a zero is refused: YAML 1.2 reads 0440 as 440, and kubectl as 288. With `as_kubectl` it is
    what kubectl makes of it, for manifests that others apply. With a list TWICE the last of equal keys counts, as with
    Helm and kubectl, and each is noted there with its line; else they are refused."""

    def __init__(
        self, text: str, file: str, *, as_kubectl: bool = False, twice: list[tuple[str, int]] | None = None
    ) -> None:
        self.as_kubectl, self.twice = as_kubectl, twice
        self.text = text
        self.file = file
        self.shared: dict[int, Any] | None = {} if "*" in text else None

    def build(self, node: Node) -> Any:
        tag = node.tag
        if tag is PLAIN:
            return self.plain(node)
        if tag is QUOTED:
            return node.value
        if tag is not COLLECTION:
            return self.tagged(node)
        if self.shared is not None:
            if id(node) in self.shared:
                return self.shared[id(node)]
            value = self.shared[id(node)] = self.collection(node)
            return value
        return self.collection(node)

    def collection(self, node: Node) -> Any:
        if isinstance(node, yaml.SequenceNode):
            build = self.build
            return [build(child) for child in node.value]
        return self.mapping(node)

    def plain(self, node: Node) -> Any:
        """Resolve an unquoted scalar by the core schema."""
        value: str = node.value
        if value[:1] not in _SPECIAL_START:
            return value or None
        if _INT.match(value):
            return self.zero_first(node, value) if _ZERO_FIRST.match(value) else self.integer(node, value, 10)
        if value in _NULL:
            return None
        if value in _BOOL:
            return _BOOL[value]
        if _BASED.match(value):
            return self.integer(node, value, 0)
        if _FLOAT.match(value):
            number = float(value)
            if number in (float("inf"), float("-inf")):
                self.refuse_number(node, "is too large for a number")
            return number
        if _NOT_FINITE.match(value):
            self.refuse_number(node, "is not a number that Kubernetes or JSON can hold")
        return value

    def integer(self, node: Node, value: str, base: int) -> int:
        number = int(value, base) if len(value) < 64 else 1 << 64
        if not -(1 << 63) <= number < 1 << 63:
            self.refuse_number(node, "does not fit into 64 bits")
        return number

    def zero_first(self, node: Node, value: str) -> int | float:
        """A whole number of more than one digit whose first is 0."""
        if self.as_kubectl:
            number = scalar(node)
            if isinstance(number, (int, float)) and type(number) is not bool:
                return number
        return self.refuse_zero_first(node, value)

    def mapping(self, node: Node) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: list[tuple[Node, Node]] = []
        for key, value in node.value:
            if key.tag is QUOTED:
                name = key.value
            elif key.tag is PLAIN and key.value == "<<":
                merged.append((key, value))
                continue
            else:
                name = self.build(key)
                if type(name) is not str:
                    self.refuse_key(key, name)
            if name in data and self.twice is None:
                self.refuse_duplicate(node, key, name)
            elif name in data and self.twice is not None:
                self.twice.append((name, key.start_mark.line + 1))
            data[name] = self.build(value)
        if merged:
            if len(merged) > 1:
                self.refuse_duplicate(node, merged[1][0], "<<")
            data = self.inherited(merged[0][1]) | data
        return data

    def inherited(self, node: Node) -> dict[str, Any]:
        """Return what a merge key (<<) brings in: of several mappings, the first that has a key gives its value."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        data: dict[str, Any] = {}
        for item in reversed(nodes):
            value = self.build(item)
            if not isinstance(value, dict):
                refuse("GPU003", "merge key", mark(item, self.text, self.file))
            data.update(value)
        return data

    def tagged(self, node: Node) -> Any:
        """Build a value with a tag: the core schema's own tags are honoured where they fit, all others refused."""
        tag = str(node.tag)
        if tag == f"{_TAG}str" and isinstance(node, yaml.ScalarNode):
            return node.value
        if tag in _TAG_TYPES:
            value = self.plain(node) if isinstance(node, yaml.ScalarNode) else self.collection(node)
            fits = isinstance(value, _TAG_TYPES[tag]) and (type(value) is not bool or tag == f"{_TAG}bool")
            if fits:
                return float(value) if tag == f"{_TAG}float" else value
        return self.refuse_tag(node, tag)

    def refuse_tag(self, node: Node, tag: str) -> NoReturn:
        shown = f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag
        where = mark(node, self.text, self.file)
        if where.text is None:  # of a Secret: a password may begin like a tag
            shown = "behind the '!'"
        refuse("GPU009", "tag", where, shown=shown)

    def refuse_number(self, node: Node, reason: str) -> NoReturn:
        where = mark(node, self.text, self.file)
        shown = node.value if len(node.value) <= 40 else node.value[:37] + "..."
        if where.text is None:
            shown = "a value of a Secret"
        refuse("GPU010", "number", where, shown=shown, reason=reason)

    def refuse_zero_first(self, node: Node, value: str) -> NoReturn:
        sign, digits = ("-" if value[0] == "-" else ""), value.lstrip("+-")
        decimal = f"{sign}{digits.lstrip('0') or '0'}"
        meant = f"{decimal} if it is decimal"
        if re.fullmatch("[0-7]{2,20}", digits):
            meant = f"{int(sign + digits, 8)} or {sign}0o{digits.lstrip('0') or '0'} if it is octal, {meant}"
        where = mark(node, self.text, self.file)
        hidden = where.text is None or len(value) > 20
        shown, meant = ("here", "it without the zero") if hidden else (value, meant)
        refuse("GPU010", "zero", where, shown=shown, meant=meant)

    def refuse_key(self, key: Node, name: Any) -> NoReturn:
        where = mark(key, self.text, self.file)
        if isinstance(name, (dict, list)):
            refuse("GPU005", "template" if "{{" in (where.text or "") else "collection", where)
        sort = {bool: "a boolean", int: "a number", float: "a number", type(None): "empty"}[type(name)]
        refuse("GPU005", "other type" if key.value else "empty", where, key=key.value, sort=sort)

    def refuse_duplicate(self, node: Node, key: Node, name: str) -> NoReturn:
        first = next(other for other, _ in node.value if other.value == key.value or self.build(other) == name)
        lines = {"first": first.start_mark.line + 1, "second": key.start_mark.line + 1}
        refuse("GPU004", "twice", mark(key, self.text, self.file), name=name, **lines)
