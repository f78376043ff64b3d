"""A rule's docstring as its page: what is wrong, why, and a snippet each that breaks the rule and that doesn't.

    First line: what is wrong, as a sentence.

    A paragraph or two: why it matters, where the fact is from.

    Bad:
        a part of a policy's spec that the rule speaks up about

    Good:
        the same without the mistake

Snippets stand in the spec FRAME: what they say replaces its sections, but for `cluster`, to which they add.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from .rule import Rule

FRAME: dict[str, Any] = {
    "release": "v26.7.0",
    "cluster": {"kubernetesVersion": "1.34", "containerRuntime": "containerd"},
    "nodePools": [{"name": "training", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}],
}

_SOURCE = re.compile(r"\s+\([a-z-]+\.md\b[^)]*\)")
"""Where a fact is from, for those who work on the code."""
_SNIPPET = re.compile(r"^(Bad|Good):\n((?:(?:    .*)?\n)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """What a docstring says. Snippets are YAML, "" where there is none."""

    title: str
    why: str
    bad: str
    good: str


def page(rule: Rule) -> Page:
    """The page of RULE. Raises ValueError for a docstring that lacks a part."""
    found = parse(rule.check)
    lacking = [name for name in ("title", "why", "bad", "good") if not getattr(found, name)]
    if lacking:
        raise ValueError(f"the docstring of {rule.id} ({rule.check.__name__}) lacks {' and '.join(lacking)}")
    return found


def parse(check: Callable[..., Any]) -> Page:
    """The parts of the docstring of CHECK, as far as they are there."""
    text = inspect.cleandoc(check.__doc__ or "") + "\n"
    snippets = {name: dedent(body).strip("\n") + "\n" for name, body in _SNIPPET.findall(text)}
    head, _, rest = text.partition("\n\n")
    why = _SOURCE.sub("", _SNIPPET.sub("", rest)).strip()
    return Page(" ".join(head.split()), why, snippets.get("Bad", ""), snippets.get("Good", ""))


def framed(snippet: dict[str, Any]) -> dict[str, Any]:
    """The spec of a cluster with what SNIPPET says."""
    cluster = {**FRAME["cluster"], **snippet.get("cluster", {})}
    return {**FRAME, **snippet, "cluster": cluster}
