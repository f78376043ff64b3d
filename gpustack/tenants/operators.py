"""The rule about pods that want to steer the GPU operator, which gpustack stands in for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..checks.language.operators import SECTIONS
from ..checks.rule import Hit, hit, rule

if TYPE_CHECKING:
    from .tenants import Tenant

_KIND = re.compile(
    r"(?i)(?<![\w-])(clusterpolic(?:y|ies)|nvidiadrivers?|gpuclusters?)(?:\.(?:v1(?:alpha1)?\.)?nvidia\.com)?(?![\w.-])"
)
_WRITES = re.compile(
    r"(?i)\b(?:kubectl|oc)\b[^|;&\n]*\s(?:patch|apply|edit|replace|set|annotate|label|delete|create)\b"
    r"|\bcurl\b[^|;&\n]*(?:PATCH|PUT|POST|DELETE)"
)
KINDS = {"c": "ClusterPolicy", "n": "NVIDIADriver", "g": "GPUCluster"}


@rule("GPU723", "warning", over="workload")
def patching_the_operator(tenant: Tenant) -> Iterator[Hit]:
    """A pod that changes an object of the GPU operator."""
    for (key, index), container in tenant.containers if tenant.whole else ():
        for part in ("command", "args"):
            text = _text(container, part)
            match = _KIND.search(text)
            if match is None or not _WRITES.search(_text(container, "command", "args")):
                continue
            kind = KINDS[match[1][0].lower()]
            yield hit(tenant.at(key, index, part), who=tenant.who, kind=kind, instead=SECTIONS[kind])
            break


def _text(container: Any, *parts: str) -> str:
    """What stands under PARTS of CONTAINER, as one line of words."""
    lists = (container.get(part) for part in parts)
    return " ".join(str(word) for words in lists if isinstance(words, list) for word in words)
