"""Where a value stands in a text: every path of every document, whatever its style."""

from __future__ import annotations

from typing import Any

import pytest
import ruamel.yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpustack.model import Location, Path
from gpustack.text.positions import inside_scalar, locate, written
from gpustack.text.read import parse

TEXT = """\
# a comment
spec:
  extends: [base, eks]
  "driver": {enabled: true, rdma: {enabled: 'no'}}
  nodePools:
  - name: training
    count: 12
  -
    name: inference
  empty:
  config: |
    version: v1
      indented: x

    end
"""


@pytest.mark.parametrize(
    ("path", "key", "line", "column"),
    [
        ((), False, 2, 1),
        (("spec",), True, 2, 1),
        (("spec",), False, 3, 3),
        (("spec", "extends"), True, 3, 3),
        (("spec", "extends", 1), False, 3, 19),
        (("spec", "driver"), True, 4, 3),
        (("spec", "driver"), False, 4, 13),
        (("spec", "driver", "enabled"), False, 4, 23),
        (("spec", "driver", "rdma", "enabled"), True, 4, 36),
        (("spec", "nodePools", 0), False, 6, 5),
        (("spec", "nodePools", 0, "count"), False, 7, 12),
        (("spec", "nodePools", 1, "name"), True, 9, 5),
        (("spec", "config"), False, 11, 11),
        # nearest ancestors of what does not exist, by their key where they have one
        (("spec", "release"), False, 2, 1),
        (("spec", "driver", "rdma", "useHostMofed"), False, 4, 29),
        (("spec", "driver", "enabled", "deeper", "still"), True, 4, 14),
        (("spec", "nodePools", 0, "os"), False, 6, 5),
        (("spec", "nodePools", 7, "os"), False, 5, 3),
        (("spec", "extends", "x"), False, 3, 3),
        (("other",), False, 2, 1),
    ],
)
def test_values_and_keys_are_found(path: Path, key: bool, line: int, column: int) -> None:
    """The line and column are those of an editor, counted from 1, with the line's own text."""
    where = locate(TEXT, "p.yaml", path, key=key)
    assert where == Location("p.yaml", line, column, TEXT.split("\n")[line - 1])


def test_crlf_and_byte_order_mark() -> None:
    """Windows line ends are no part of the line, and positions are the same with them."""
    for path, line, column in ((("a", "b"), 2, 6), (("c",), 3, 4)):
        assert locate("a:\r\n  b: 1\r\nc: 2\r\n", "f", path) == Location(
            "f", line, column, ["", "  b: 1", "c: 2"][line - 1]
        )


def test_aliases_and_merge_keys_lead_to_where_the_value_is_written() -> None:
    """A value from << stands where the anchor has it, one that is overridden at its own place."""
    text = "base: &base\n  a: 1\n  b: 2\nmore: &more {b: 3, c: 4}\nuser:\n  <<: [*base, *more]\n  a: 0\nlist: [*base]\n"
    assert locate(text, "f", ("user", "a")).line == 7
    assert locate(text, "f", ("user", "b")).line == 3
    assert locate(text, "f", ("user", "c")).line == 4
    assert locate(text, "f", ("user", "d"), key=True).line == 5
    assert locate(text, "f", ("list", 0, "b"), key=True).line == 3


def test_a_text_that_is_none_has_a_top() -> None:
    """Where the text can't be read, or holds nothing, the place is its first line; nothing is raised."""
    for text in ("a: [", "", "a: &x {<<: *x}\n", "# only\n"):
        assert locate(text, "f", ("a", "b")).line == 1


def test_scalars_are_given_as_written() -> None:
    """The author's 1.30 is 1.30, and a mapping is no scalar."""
    assert written("a: 1.30\nb: '0x1'\nc: {}\n", ("a",)) == "1.30"
    assert written("a: 1.30\nb: '0x1'\nc: {}\n", ("b",)) == "0x1"
    assert written("a: 1.30\nb: '0x1'\nc: {}\n", ("c",)) is None
    assert written("a: 1.30\n", ("x",)) is None


def test_lines_of_an_embedded_text_are_found() -> None:
    """Line and column of a configuration in a literal block are led back to the file, for any indentation."""
    path: Path = ("spec", "config")
    assert inside_scalar(TEXT, "f", path, 1) == Location("f", 12, 5, "    version: v1")
    assert inside_scalar(TEXT, "f", path, 2, 3) == Location("f", 13, 7, "      indented: x")
    assert inside_scalar(TEXT, "f", path, 4) == Location("f", 15, 5, "    end")
    indicated = "a: |2-\n    x\n   y\n"
    assert inside_scalar(indicated, "f", ("a",), 2, 2) == Location("f", 3, 4, "   y")
    assert inside_scalar(indicated.replace("\n", "\r\n"), "f", ("a",), 2, 2) == Location("f", 3, 4, "   y")


EMBEDDED = "version: v1\nsharing:\n  mps: {a: '\u00e9', \"b\": \\x}\n\n  end\n"


@pytest.mark.parametrize(
    "scalar",
    [
        "&anchor |\n      @",
        "|4\n        @",
        ">\n      @",
        "&anchor !!str >-\n      @",
        "\"version: v1\\nsharing:\\n  mps: {a: '\\u00e9', \\x22b\\x22: \\\\x}\\n\\n  end\\n\"",
        '"version: v1\\n\\\n    sharing:\\n\\\n    \\  mps: {a: \'\u00e9\', \\"b\\": \\\\x}\\n\\n  end\\n"',
        "&anchor\n    'version: v1\n\n    sharing:\n\n    mps: {a: ''\u00e9'', \"b\": \\x}\n\n    end'",
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_of_a_text_in_any_style(scalar: str, ends: str) -> None:
    """Quoted and folded texts are broken into lines as their author likes: their characters are found all the same."""
    folded = EMBEDDED.replace("\n", "\n\n") if scalar.partition("\n")[0].endswith((">", ">-")) else EMBEDDED
    indent = scalar.rpartition("\n")[2].removesuffix("@")
    text = f"# \u00e4\na: {scalar.replace('@', folded.rstrip().replace(chr(10), chr(10) + indent))}\nb: 1\n"
    text = text.replace("\n", ends)
    value = parse(text, "f")["a"].split("\n")
    for number, line in enumerate(value, 1):
        for column, char in enumerate(line, 1):
            if not char.isspace() and char not in "'\"\\\u00e9":
                found = inside_scalar(text, "f", ("a",), number, column)
                assert (found.text or "")[(found.column or 1) - 1] == char, (number, column)
    place = inside_scalar(text, "f", ("a",), next(n for n, line in enumerate(value, 1) if "mps" in line), 3)
    assert "mps" in (place.text or "")


def test_lines_that_do_not_exist_are_one_place() -> None:
    """A line that the text doesn't have, and one of an unquoted text, is where the text starts."""
    for text in ('a: "x\\ny"\n', "a: >\n  x\n\n  y\n", "a: |\n  x\n"):
        assert inside_scalar(text, "f", ("a",), 9) == Location("f", 1, 4, text.split("\n")[0])
    assert inside_scalar("a: 1\n", "f", ("a",), 1) == Location("f", 1, 4, "a: 1")
    assert inside_scalar("a: 1\n", "f", ("b", "c"), 1).line == 1


WORDS = st.sampled_from("a b yes name 1x x-y".split())
TREES = st.recursive(
    st.sampled_from(["x", "1", "true", "~", "'q'"]),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(WORDS, inner, min_size=1, max_size=3),
    max_leaves=12,
)


def dump(value: Any, depth: int, flow: bool) -> str:
    """VALUE as YAML, in brackets from some depth on."""
    if isinstance(value, dict):
        if flow or depth > 2:
            return "{" + ", ".join(f"{key}: {dump(item, depth, True)}" for key, item in value.items()) + "}"
        return "".join(f"\n{'  ' * depth}{key}: {dump(item, depth + 1, flow)}" for key, item in value.items())
    if isinstance(value, list):
        if flow or depth > 2:
            return "[" + ", ".join(dump(item, depth, True) for item in value) + "]"
        return "".join(f"\n{'  ' * depth}- {dump(item, depth + 1, flow)}" for item in value)
    return str(value)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(WORDS, TREES, min_size=1, max_size=4), st.booleans())
@example({"a": [{"name": "x"}, {"name": ["y", {"b": "1"}]}]}, False)
def test_positions_are_those_of_ruamel(tree: dict[str, Any], flow: bool) -> None:
    """Every key and value of a random document stands where ruamel.yaml's round trip says it stands."""
    text = dump(tree, 0, flow).lstrip("\n") + "\n"
    loaded = ruamel.yaml.YAML(typ="rt", pure=True).load(text)

    def compare(node: Any, path: Path) -> None:
        in_map = hasattr(node, "items")
        for step, item in node.items() if in_map else enumerate(node) if isinstance(node, list) else ():
            if in_map:
                key, value = node.lc.key(step), node.lc.value(step)
                found = locate(text, "f", (*path, step), key=True)
                assert (found.line, found.column) == (key[0] + 1, key[1] + 1)
            else:
                value = node.lc.item(step)
            found = locate(text, "f", (*path, step))
            assert (found.line, found.column) == (value[0] + 1, value[1] + 1)
            compare(item, (*path, step))

    compare(loaded, ())
