"""The change groups, each folded to a line that says how many clusters it is in."""

from __future__ import annotations

from collections.abc import Iterator

from ..diff.groups import Difference, Group
from ..diff.present import blocks, count
from ..diff.ranges import summary
from .frame import Section, text

OPEN = 3
"""So many groups are shown unfolded."""
TAGS = {"+": "ins", "-": "del"}


def section(difference: Difference) -> Section:
    """The section of DIFFERENCE."""
    made = [block(group, difference.total, unfolded=at < OPEN) for at, group in enumerate(difference.groups)]
    return Section("changes", "Changes", "".join(made))


def block(group: Group, total: int, *, unfolded: bool) -> str:
    """One group."""
    title = f"{summary(group.clusters, total)} ({count(group)})"
    lines = "\n".join(_lines(group))
    return (
        f"<details data-row{' open' if unfolded else ''}>"
        f'<summary>{text(title)}</summary>\n<pre tabindex="0">{lines}</pre></details>\n'
    )


def _lines(group: Group) -> Iterator[str]:
    for one in blocks(group):
        yield f"{text(one.mark)} {text(one.title)}"
        for line in one.lines:
            shown = f"{text(line.mark)} {text(line.text)}".rstrip()
            tag = TAGS.get(line.mark)
            yield f"  <{tag}>{shown}</{tag}>" if tag else f"  {shown}"
