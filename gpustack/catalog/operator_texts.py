"""From which releases of the operator a text is that a cluster runs, by its digest."""

from __future__ import annotations

import hashlib
from typing import Any

from gpustack.catalog import _data


def releases_with(text: str, at: str) -> tuple[str, ...]:
    """The releases that have TEXT in the place AT, oldest first; none for a text that nobody knows there.

    AT is a path in a pod template by the names of containers ("initContainers.toolkit-validation.args.0"), or a
    ConfigMap and its key ("ConfigMap/default-gpu-clients data.clients.yaml").
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    known: list[dict[str, Any]] = _data.load("operator-texts")
    return next((tuple(each["releases"]) for each in known if each["sha256"] == digest and at in each["at"]), ())
