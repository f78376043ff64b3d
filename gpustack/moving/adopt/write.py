"""The policy as text: each value with the place that it was read from, in a comment.

What the text says is read back and compared: a comment must never change a policy.
"""

import io
from collections.abc import Iterable, Mapping
from typing import Any

import ruamel.yaml
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from gpustack.model import Path, printable
from gpustack.policy.loading.envelope import API_VERSION, Kind
from gpustack.text.emit import emit, emit_value
from gpustack.text.read import parse

from .installation import Leaves

HEAD = "Written by `gpustack adopt`"
"""How a file begins that adopt may write anew."""


def text_of(
    name: str, spec: Mapping[str, Any], leaves: Leaves, lines: Iterable[str], kind: Kind = "ClusterPolicy"
) -> str:
    """The policy or layer NAME with SPEC, of which LEAVES tell the places; LINES are comments for its head."""
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": ordered(spec)}
    root = commented(body, (), {("spec", *path): said for path, said in leaves.items()})
    yaml = ruamel.yaml.YAML()
    yaml.width = 110
    yaml.indent(mapping=2, sequence=2, offset=0)
    out = io.StringIO()
    yaml.dump(root, out)
    head = "".join(f"# {printable(line)}\n" for line in lines)
    written = f"{head}{out.getvalue()}"
    return written if parse(written, name) == body else f"{head}{emit(body)}"


def ordered(spec: Mapping[str, Any]) -> dict[str, Any]:
    """SPEC with its sections in the order of the language."""
    from gpustack.policy.language.spec import PolicySpec

    known = ["extends", *PolicySpec.model_fields]
    return dict(sorted(spec.items(), key=lambda item: known.index(item[0]) if item[0] in known else len(known)))


def commented(value: Any, path: Path, leaves: Leaves) -> Any:
    """VALUE at PATH for ruamel.yaml, with the place of each of LEAVES beside it."""
    if isinstance(value, dict):
        made = CommentedMap({key: commented(item, (*path, key), leaves) for key, item in value.items()})
        for key, item in value.items():
            said = leaves.get((*path, key))
            if said is not None and said.where.file:
                where = printable(f"{said.where.file}:{said.where.line}" if said.where.line else said.where.file)
                if isinstance(item, str) and "\n" in item:
                    made.yaml_set_comment_before_after_key(key, before=where, indent=2 * len(path))
                else:
                    made.yaml_add_eol_comment(where, key)
        return made
    if isinstance(value, list):
        return CommentedSeq([commented(item, (*path, index), leaves) for index, item in enumerate(value)])
    if isinstance(value, str) and "\n" in value:
        return LiteralScalarString(value)
    quoted = isinstance(value, str) and emit_value(value)[:1] in {
        '"',
        "'",
    }  # what other readers take for something else
    return DoubleQuotedScalarString(value) if quoted else value
