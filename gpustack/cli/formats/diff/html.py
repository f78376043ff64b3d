"""One HTML file, which needs nothing but a browser."""

from ....review.report import changes, frame
from ....review.templates import each
from . import Compared, head, missing, verdict


def write(compared: Compared) -> str:
    lines = [head(compared), *filter(None, (verdict(compared), missing(compared)))]
    parts = [
        frame.Section("summary", "What it comes to", each("paragraph", map(frame.text, lines))),
        changes.effects(compared.impact, compared.difference.total),
        changes.groups(compared.difference),
    ]
    return frame.page("gpustack diff", f"{compared.difference.before} to {compared.difference.after}", parts)
