"""One HTML file, which needs nothing but a browser."""

from __future__ import annotations

from ....review.report import changes, dangers, frame
from . import Compared, head, missing, verdict


def write(found: Compared) -> str:
    """FOUND as a page."""
    lines = [head(found), *filter(None, (verdict(found), missing(found)))]
    parts = [
        frame.section("summary", "What it comes to", "".join(f"<p>{frame.text(line)}</p>\n" for line in lines)),
        dangers.section(found.impact, found.difference.total),
        changes.section(found.difference),
    ]
    return frame.page("gpustack diff", f"{found.difference.before} to {found.difference.after}", parts)
