"""The rule about pods and scripts that want to steer the GPU operator, which gpustack stands in for."""

import re
from collections.abc import Iterator
from typing import Any

from ..checks.language.policy import SECTIONS
from ..checks.rule import Hit, hit, rule
from ..model import dotted, mapping
from .tenants import TenantObject, pods_in, tenants_of

_KIND = re.compile(
    r"(?i)(?<![\w-])(clusterpolic(?:y|ies)|nvidiadrivers?|gpuclusters?)(?:\.(?:v1(?:alpha1)?\.)?nvidia\.com)?(?![\w.-])"
)
_WRITES = re.compile(
    r"(?i)\b(?:kubectl|oc)\b[^|;&\n]*\s(?:patch|apply|edit|replace|set|annotate|label|delete|create)\b"
    r"|\bcurl\b[^|;&\n]*(?:PATCH|PUT|POST|DELETE)"
)
LONGEST = 2000
"""How much of a line is looked at: the time that an expression takes grows with the square of it."""
KINDS = {"c": "ClusterPolicy", "n": "NVIDIADriver", "g": "GPUCluster"}


@rule("GPU723", "warning", over="manifest")
def patching_the_operator(given: TenantObject) -> Iterator[Hit]:
    """A pod that changes an object of the GPU operator, or a script that does."""
    for tenant in tenants_of(given.body, pods_in(given.body), given.offer):
        for (key, index), container in tenant.containers if tenant.whole else ():
            for part in ("command", "args"):
                if kind := _changed(_text(container, part), _text(container, "command", "args")):
                    yield hit(tenant.at(key, index, part), who=given.who, kind=kind, instead=SECTIONS[kind])
                    break
    data = mapping(given.body.get("data")) if given.body["kind"] == "ConfigMap" else {}
    for key, text in data.items():
        lines = str(text).replace("\\\n", " ").splitlines()
        kind = next((kind for line in lines if (kind := _changed(line, line))), "")
        if kind and not str(key).endswith((".md", ".txt")):
            yield hit(dotted(("data", key)), who=given.who, kind=kind, instead=SECTIONS[kind])


def _changed(text: str, line: str) -> str:
    """The kind of the operator that TEXT of the command LINE, or of a script, names and changes; "" for none."""
    match = _KIND.search(text[:LONGEST])
    return KINDS[match[1][0].lower()] if match and _WRITES.search(line[:LONGEST]) else ""


def _text(container: Any, *parts: str) -> str:
    """What stands under PARTS of CONTAINER, as one line of words."""
    lists = (container.get(part) for part in parts)
    return " ".join(str(word) for words in lists if isinstance(words, list) for word in words)
