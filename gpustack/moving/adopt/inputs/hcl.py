"""Expressions of HCL as values, as far as the inputs tell them. Nothing is run, and no file is read here.

What nobody says stays as written, in ${...}, to be asked for; a file's text is a `Beside`, for readers to follow.
"""

from __future__ import annotations

import itertools
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from gpustack.model import INT64, children

from ..documents import MOST, Beside, named_by
from ..installation import walked
from .sets import typed, unknown

if TYPE_CHECKING:
    from lark import Token, Tree

    Node = Tree[Token]

_INSIDE = re.compile(r"(?<!\$)\$\{([^{}]*)\}")
_SIGNS = "== eq != ne < lt > gt <= le >= ge + add - sub * mul && and_ || or_".split()
_OPERATORS = {sign: getattr(operator, name) for sign, name in zip(_SIGNS[::2], _SIGNS[1::2], strict=True)}
LONGEST = 100_000
"""Letters of a text and items of a list: more is made by nobody but to hinder."""
STEPS = 500_000
"""Expressions of a file that are evaluated; an item that one comes to counts as another, and so do 50 letters."""
Argument = Callable[[], Any]
"""What an argument comes to, when it is asked for."""


def small(data: Any) -> bool:
    """Whether DATA hold no more values than a document may."""
    return next(itertools.islice(walked(data), MOST, None), None) is None


def _joined(by: str, each: list[Any]) -> str:
    texts = list(map(str, each))
    if len(by) * len(texts) + sum(map(len, texts)) > LONGEST:
        raise OverflowError
    return by.join(texts)


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) * len(new) > LONGEST:
        raise OverflowError
    return text.replace(old, new)


def _flat(data: Any) -> Iterator[Any]:
    for each in data:
        yield from _flat(each) if isinstance(each, list) else [each]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "merge": lambda *maps: {key: value for each in maps for key, value in (each or {}).items()},
    "concat": lambda *lists: [one for each in lists for one in ([each] if unknown(each) else each)],
    "compact": lambda each: [one for one in each if one not in (None, "")],
    "flatten": lambda each: list(_flat(each)),
    "coalesce": lambda *each: next(one for one in each if one not in (None, "")),
    "lookup": lambda data, key, *default: data.get(key, *default),
    "contains": lambda data, each: each in data,
    "length": len,
    "keys": sorted,
    "values": lambda data: [data[key] for key in sorted(data)],
    "join": _joined,
    "split": lambda by, text: text.split(by),
    "replace": _replaced,
    "lower": str.lower,
    "upper": str.upper,
    "trimspace": str.strip,
    **dict.fromkeys(("tobool", "tonumber"), typed),
    "tostring": lambda each: each if unknown(each) else plain(each),
    **dict.fromkeys(("tolist", "toset", "tomap", "sensitive", "nonsensitive", "yamlencode", "jsonencode"), lambda x: x),
    **dict.fromkeys(("yamldecode", "jsondecode"), lambda each: each if isinstance(each, Beside) else json.loads(each)),
}
"""What functions of Terraform make of their arguments; of what is encoded the data count, and not the text."""


def plain(data: Any) -> str:
    """DATA inside of a text."""
    return data if isinstance(data, str) else json.dumps(data)


@dataclass
class Evaluator:
    """What expressions of TEXT come to. NAMED says what `var.x` and the like are, as written where nobody does; OWN are
    names of the expression itself, ANSWERS fill in the rest. LEFT is how many of STEPS are, for all of the file."""

    text: str
    named: Callable[[str, str, str], Any]
    own: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    left: list[int] = field(default_factory=lambda: [STEPS])

    def of(self, node: Node) -> Any:
        """What NODE comes to."""
        self.left[0] -= 1
        rule = getattr(self, f"_{node.data}", self.written) if self.left[0] > 0 else self.written
        try:
            made = rule(node)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError):
            return self.written(node)
        self.left[0] -= len(made) if isinstance(made, list) else len(made) // 50 if isinstance(made, str) else 0
        large = len(made) > LONGEST if isinstance(made, str | list) else isinstance(made, int) and abs(made) > INT64
        return self.written(node) if large else made

    def written(self, node: Node) -> str:
        """NODE as it is written, or its answer."""
        text = f"${{{self.text[node.meta.start_pos : node.meta.end_pos]}}}"
        return self.answers.get(named_by(text), text)

    def parsed(self, text: str) -> Any:
        """What the expression TEXT comes to."""
        import hcl2

        tree = hcl2.parses_to_tree(f"x = {text}")
        (node,) = next(iter(tree.find_data("attribute"))).children[-1:]
        return replace(self, text=f"x = {text}\n").of(node)

    def template(self, text: str) -> str:
        """TEXT with what stands in ${...}, where that is known."""

        def one(match: re.Match[str]) -> str:
            made = self.parsed(match[1])
            return match[0] if unknown(made) else plain(made)

        return _INSIDE.sub(one, text).replace("$${", "${")

    def _expr_term(self, node: Node) -> Any:
        return self.of(next(trees(node)))

    _interpolation = _expr_term

    def _literal_value(self, node: Node) -> Any:
        return json.loads(str(node.children[0]))

    _int_lit = _float_lit = _literal_value

    def _string(self, node: Node) -> Any:
        parts = [next(trees(each), None) or each.children[0] for each in trees(node)]
        made = [json.loads(f'"{each}"', strict=False) if isinstance(each, str) else self.of(each) for each in parts]
        if len(made) == 1 and not isinstance(parts[0], str):
            return made[0]
        return "".join(map(plain, made)).replace("$${", "${")

    def _heredoc_template(self, node: Node) -> str:
        head, *lines = str(node.children[0]).split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        text = "".join(f"{line}\n" for line in lines[:-1])
        return self.template(dedent(text) if head.startswith("<<-") else text)

    _heredoc_template_trim = _heredoc_template

    def _tuple(self, node: Node) -> list[Any]:
        return [self.of(each) for each in trees(node)]

    def _object(self, node: Node) -> dict[str, Any]:
        return {self.key(key): self.of(value) for key, value in map(trees, trees(node))}

    def key(self, node: Node) -> str:
        """The key that NODE is: a name stands for itself."""
        inner = next(trees(node), node)
        inner = next(trees(inner), inner)
        return str(inner.children[0]) if inner.data in {"identifier", "keyword"} else str(self.of(inner))

    def _conditional(self, node: Node) -> Any:
        decided, yes, no = trees(node)
        asked = typed(self.of(decided))
        return self.of(yes if asked else no) if isinstance(asked, bool) else self.written(node)

    def _binary_op(self, node: Node) -> Any:
        left, term = trees(node)
        sign, right = trees(term)
        word, known = str(sign.children[0]), typed(self.of(left))
        if (word, known) in {("&&", False), ("||", True)}:
            return known
        other = typed(self.of(right))
        lost = unknown(known) or unknown(other)
        if word in {"+", "-", "*"}:
            lost = lost or not all(isinstance(each, int | float) for each in (known, other))
        return self.written(node) if lost else _OPERATORS[word](known, other)

    def _unary_op(self, node: Node) -> Any:
        value = typed(self.of(next(trees(node))))
        return self.written(node) if unknown(value) else not value if str(node.children[0]) == "!" else -value

    def _function_call(self, node: Node) -> Any:
        name, *given = trees(node)
        function, words = str(name.children[0]), [self.of(each) for one in given for each in trees(one)]
        if any(str(each) == "..." for one in given for each in one.children):
            words += words.pop()
        if function in {"file", "templatefile"} and not unknown(words[0]):
            return Beside(words[0], words[1] if len(words) > 1 and isinstance(words[1], dict) else {})
        if sum(len(each) for each in words if isinstance(each, list | dict)) > LONGEST:
            raise OverflowError
        if function == "try":
            return next(each for each in words if not unknown(each))
        if function == "coalesce":
            words = [each for each in words if not unknown(each)]
        lost = function not in {"concat", "compact", "tostring", "yamlencode"} and any(map(unknown, words))
        return self.written(node) if lost else _FUNCTIONS[function](*words)

    def _identifier(self, node: Node) -> Any:
        name = str(node.children[0])
        return self.own[name] if name in self.own and small(self.own[name]) else self.written(node)

    def _get_attr_expr_term(self, node: Node) -> Any:
        base, step = trees(node)
        inner = next(trees(base), base)
        name = str(next(trees(step)).children[0])
        if inner.data == "identifier" and (root := str(inner.children[0])) not in self.own:
            return self.named(root, name, self.written(node))
        return self.step(self.of(base), name, node)

    def _index_expr_term(self, node: Node) -> Any:
        base, index = trees(node)
        inner = next(trees(index), None)
        return self.step(self.of(base), self.of(inner) if inner else int(str(index.children[-1])), node)

    def step(self, data: Any, key: Any, node: Node) -> Any:
        """What stands at KEY of DATA, NODE as it is written where nothing does."""
        known = isinstance(data, dict | list) and (key in data if isinstance(data, dict) else key < len(data))
        return data[key] if known else self.written(node)

    def _for_tuple_expr(self, node: Node) -> Any:
        intro, made, *condition = trees(node)
        return [inner.of(made) for inner in self.each(intro, condition)]

    def _for_object_expr(self, node: Node) -> Any:
        intro, key, made, *condition = trees(node)
        return {str(inner.of(key)): inner.of(made) for inner in self.each(intro, condition)}

    def each(self, intro: Node, condition: list[Node]) -> Iterator[Evaluator]:
        """Who evaluates each round of a `for`, with the names that it has there."""
        *names, source = trees(intro)
        for pair in pairs(self.of(source)):
            own = dict(zip((str(each.children[0]) for each in names), pair[-len(names) :], strict=True))
            inner = replace(self, own={**self.own, **own})
            if not condition or typed(inner.of(next(trees(condition[0])))) is True:
                yield inner

    def arguments(self, node: Node) -> dict[str, Argument]:
        """The arguments of the block NODE by name."""
        inner = [each for each in trees(last(node)) if each.data == "attribute"]
        return {self.key(next(trees(each))): partial(self.of, last(each)) for each in inner}

    def body(self, node: Node) -> dict[str, Any]:
        """The arguments of the body NODE, and its blocks in lists; what is dynamic made of what it is for."""
        made: dict[str, Any] = {}
        for each in trees(node):
            name, *rest = trees(each)
            kind = word = self.key(name)
            if each.data == "attribute":
                made[word] = self.of(rest[0])
                continue
            inner = last(each)
            if word == "dynamic":
                kind = str(self.of(rest[0]))
            blocks = self.dynamic(kind, inner) if word == "dynamic" else [self.body(inner)]
            made[kind] = [*(made[kind] if isinstance(made.get(kind), list) else []), *blocks]
        return made

    def dynamic(self, kind: str, node: Node) -> Iterator[Any]:
        """The blocks of KIND that the dynamic block NODE makes; as it is written where that isn't known."""
        parts = {self.key(next(trees(each))): last(each) for each in trees(node)}
        source = self.of(parts["for_each"]) if "for_each" in parts else ""
        name = str(self.of(parts["iterator"])).strip("${}") if "iterator" in parts else kind
        if "content" not in parts or not isinstance(source, dict | list):
            yield f"${{what a dynamic block {kind} makes}}"
            return
        for key, value in pairs(source):
            own = {**self.own, name: {"key": key, "value": value}}
            yield replace(self, own=own).body(parts["content"])


def pairs(data: Any) -> Iterable[tuple[Any, Any]]:
    """Keys and values of DATA. Raises TypeError where it has none."""
    if not isinstance(data, dict | list):
        raise TypeError(f"{data!r} is neither a map nor a list")
    return children(data)


def trees(node: Node) -> Iterator[Node]:
    """What NODE is made of, but for its signs, comments and lines."""
    return (each for each in node.children if not isinstance(each, str) and each.data != "new_line_or_comment")


def last(node: Node) -> Node:
    """The last part of NODE: the body of a block, the value of an argument."""
    return [*trees(node)][-1]


def blocks(tree: Node) -> Iterator[tuple[list[str], Node]]:
    """The words before each block and argument at the top of TREE, and what it is."""
    for each in trees(tree):
        words = [
            str(next(trees(part), part).children[0]) for part in trees(each) if part.data in {"identifier", "string"}
        ]
        yield words, each
