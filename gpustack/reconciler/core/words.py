"""How much of a text is kept where somebody else may have written it: a reason of a pause, a refusal of a webhook.

Solves: all annotations of a node have 256 KiB together. A reason that fills them would make every write on that node
fail, the one that gives it back included.
"""

from __future__ import annotations

MOST = 1000
"""Bytes."""
_CUT = "..."


def brief(text: str, most: int = MOST) -> str:
    """TEXT, or its beginning, in at most MOST bytes of UTF-8."""
    whole = text.encode("utf-8", "replace")
    if len(whole) <= most:
        return text
    return whole[: most - len(_CUT)].decode("utf-8", "ignore") + _CUT
