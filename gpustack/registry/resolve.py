"""What a tag stands for at the moment: the digest of the index, and of the image of each platform."""

from collections.abc import Iterator, Mapping
from typing import Any

from .client import Client, Manifest
from .credentials import as_json
from .media import INDEXES, MANIFESTS
from .reference import Reference
from .trouble import unusable

PLATFORMS = ("linux/amd64", "linux/arm64")
"""The platforms that GPU nodes have."""


def resolve(client: Client, image: Reference) -> tuple[str, Mapping[str, str]]:
    """The digest that pins IMAGE on all platforms, and that of each of PLATFORMS which it has. Raises InputError."""
    manifest = client.manifest(image)
    body = as_json(manifest.content)
    if not isinstance(body, dict):
        raise unusable(image, "it is not a manifest")
    kind = manifest.media_type if manifest.media_type in (*INDEXES, *MANIFESTS) else str(body.get("mediaType", ""))
    if kind in INDEXES:
        by_platform: dict[str, str] = {}
        for platform, digest in _entries(body):
            by_platform.setdefault(platform, digest)
    elif kind in MANIFESTS:
        by_platform = {_platform(_config(client, image, manifest, body)): manifest.digest}
    else:
        raise unusable(image, f"it is of the kind {kind or manifest.media_type or 'unknown'}, which no runtime pulls")
    there = {platform: by_platform[platform] for platform in PLATFORMS if platform in by_platform}
    if not there:
        raise unusable(image, f"it has no image for {' or '.join(PLATFORMS)}")
    return manifest.digest, there


def _entries(index: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Platforms and digests of an index. Entries for other things, such as attestations, have no known platform."""
    entries = index.get("manifests")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("platform"), dict) and isinstance(entry.get("digest"), str):
            yield _platform(entry["platform"]), entry["digest"]


def _config(client: Client, image: Reference, manifest: Manifest, body: dict[str, Any]) -> dict[str, Any]:
    described = body.get("config")
    digest = described.get("digest") if isinstance(described, dict) else None
    config = as_json(client.blob(image, digest)) if isinstance(digest, str) else None
    if not isinstance(config, dict):
        raise unusable(image, f"its manifest {manifest.digest} has no configuration")
    return config


def _platform(described: Mapping[str, Any]) -> str:
    """linux/arm64; the variant v8 is the only one that arm64 has."""
    return f"{described.get('os')}/{described.get('architecture')}"
