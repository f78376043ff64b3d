"""The files that were rendered for a cluster, as its index lists them and with the bytes that it says."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..model import StaleError
from .refusals import said


def content(out: Path, cluster: str) -> dict[str, bytes]:
    """The files of CLUSTER by their paths from its folder. Raises StaleError where they aren't what was rendered."""
    from ..compiler import folders, index

    listed = index.index_data(out, cluster).get("files")
    files = as_listed(out / cluster, listed, folders.regular_files(out / cluster))
    if not files:
        raise StaleError(said("GPU967", "empty", index=f"{out / index.INDEX / cluster}.json"))
    return files


def as_listed(folder: Path, listed: Any, there: Collection[str]) -> dict[str, bytes]:
    """The files below FOLDER that an index has LISTED with their digests, of those that are THERE, by path.

    Raises StaleError where one isn't what was rendered.
    """
    from ..text.regular import read_regular

    files = {}
    for name, digest in sorted(listed.items()) if isinstance(listed, dict) else ():
        body = read_regular(folder / name) if name in there else b""
        if name not in there or hashlib.sha256(body).hexdigest() != digest:
            raise StaleError(said("GPU967", "other", path=folder / name))
        files[name] = body
    return files
