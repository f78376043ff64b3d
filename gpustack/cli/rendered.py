"""The files that were rendered for a cluster, as its index lists them and with the bytes that it says."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..model import StaleError


def content(out: Path, cluster: str) -> dict[str, bytes]:
    """The files of CLUSTER by their paths from its folder. Raises StaleError where they aren't what was rendered."""
    from ..compiler import folders, index

    listed = index.index_data(out, cluster).get("files")
    files = as_listed(out / cluster, listed, folders.regular_files(out / cluster))
    if not files:
        what = f"{out / index.INDEX / cluster}.json lists no file"
        raise StaleError.of("GPU967", what, remedy="run `gpustack render`")
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
            what = f"{folder / name} isn't what was rendered"
            why = "an artifact holds what `gpustack render` wrote, and nothing that was edited or got lost since"
            raise StaleError.of("GPU967", what, why=why, remedy="run `gpustack render`")
        files[name] = body
    return files
