"""A comparison as text, Markdown, HTML, JSON or one unified diff."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import Any

from ...review.diff.groups import Difference, Group
from ...review.diff.present import HIDDEN, Block, blocks, count
from ...review.diff.ranges import fold, summary

VERSION = 1


def written(found: Difference, how: str, budget: int) -> str:
    """FOUND in the format HOW, with a line end at the end."""
    if how == "markdown":
        return markdown(found, budget)
    made = {"json": as_json, "html": page, "unified": unified}.get(how, text)
    return made(found)


def head(found: Difference) -> str:
    """What the comparison comes to, in a line."""
    if not found.groups:
        return f"no difference in {found.total} cluster{'' if found.total == 1 else 's'}"
    clusters = len({cluster for group in found.groups for cluster in group.clusters})
    number = len(found.groups)
    return f"{number} change{'' if number == 1 else 's'} in {clusters} of {found.total} clusters"


def text(found: Difference) -> str:
    """For a terminal."""
    return "".join(f"{line}\n" for line in _text(found))


def _text(found: Difference) -> Iterator[str]:
    yield head(found)
    for group in found.groups:
        yield ""
        yield f"{summary(group.clusters, found.total)} ({count(group)})"
        for block in blocks(group):
            yield f"  {block.mark} {block.title}"
            for line in block.lines:
                yield f"    {line.mark} {line.text}".rstrip()


def markdown(found: Difference, budget: int) -> str:
    """For a comment on a pull request: never more than BUDGET bytes. What is cut is counted."""
    made = [f"### gpustack: {head(found)}\n"]
    size = len(made[0].encode())
    end = "\n{} of {} changes are not shown here: the whole is in `gpustack diff`.\n"
    reserved = len(end.format(len(found.groups), len(found.groups)).encode())
    for number, group in enumerate(found.groups):
        part = _section(group, found.total)
        if size + len(part.encode()) + reserved > budget:
            left = len(found.groups) - number
            made.append(end.format(left, len(found.groups)))
            break
        made.append(part)
        size += len(part.encode())
    return "".join(made)


def _section(group: Group, total: int) -> str:
    lines = [line for block in blocks(group) for line in _diff_lines(block)]
    longest = max((len(run) for line in lines for run in line.split("`") if not run), default=0)
    fence = "`" * max(3, longest + 1, *(line.count("`") + 1 for line in lines))
    title = f"{html.escape(summary(group.clusters, total))} ({count(group)})"
    return f"\n<details><summary>{title}</summary>\n\n{fence}diff\n" + "\n".join(lines) + f"\n{fence}\n\n</details>\n"


def _diff_lines(block: Block) -> Iterator[str]:
    yield f"{'!' if block.mark == '~' else block.mark} {block.title}"
    for line in block.lines:
        yield f"{'#' if line.mark == '~' else line.mark}   {line.text}".rstrip()


def unified(found: Difference) -> str:
    """One diff that tools colour: a file for each group."""
    made = []
    for group in found.groups:
        made.append(f"--- {found.before}{', '.join(fold(group.clusters))}")
        made.append(f"+++ {found.after}{', '.join(fold(group.clusters))}")
        for block in blocks(group):
            made.append(f"@@ {block.title} @@")
            made += [f"{' ' if line.mark == '~' else line.mark}{line.text}" for line in block.lines]
    return "".join(f"{line}\n" for line in made)


def as_json(found: Difference) -> str:
    """For programs; values of Secrets are hidden here too."""
    document = {
        "version": VERSION,
        "before": found.before,
        "after": found.after,
        "clusters": found.total,
        "groups": [
            {"clusters": list(group.clusters), "changes": [_change(change) for change in group.changes]}
            for group in found.groups
        ],
    }
    return json.dumps(document, indent=1, default=str) + "\n"


def _change(change: Any) -> dict[str, Any]:
    secret = change.identity.kind == "Secret"
    made: dict[str, Any] = {"what": change.what, **change.identity._asdict(), "file": change.file}
    if change.was:
        made["was"] = change.was.name
    if change.moved:
        made["moved"] = list(change.moved)
    made["fields"] = [
        {
            "op": field.op,
            "path": [step if isinstance(step, (str, int)) else dict(step.key) for step in field.path],
            **({} if field.op == "add" else {"before": _value(field.before, field.path, hidden=secret)}),
            **({} if field.op == "remove" else {"after": _value(field.after, field.path, hidden=secret)}),
        }
        for field in change.fields
    ]
    return made


def _value(value: Any, path: tuple[Any, ...], *, hidden: bool) -> Any:
    if hidden and path and path[0] in {"data", "stringData"}:
        return HIDDEN
    return [dict(item.key) if hasattr(item, "key") else item for item in value] if isinstance(value, list) else value


def page(found: Difference) -> str:
    """One HTML file."""
    return (
        "<!doctype html>\n<meta charset=utf-8>\n<title>gpustack diff</title>\n<pre>"
        + html.escape(text(found))
        + "</pre>\n"
    )
