"""A rendered cluster as an OCI artifact of one layer, which Flux's OCIRepository and Argo CD unpack.

The same files give the same digest on every machine: the archive has no times, owners or modes of files, and is stored,
not compressed, in its gzip: what a compressor makes of it depends on the library that a Python was built with. It is a
megabyte for a large cluster, most of it CRDs.
"""

import io
import json
import struct
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from .media import MANIFESTS, Media
from .reference import Reference, digest_of

if TYPE_CHECKING:
    from .client import Client

SOURCE = "org.opencontainers.image.source"
REVISION = "org.opencontainers.image.revision"

_EMPTY = b"{}"
_BLOCK = 0xFFFF


@dataclass(frozen=True, slots=True)
class Artifact:
    """A manifest, and the layer that it is about."""

    manifest: bytes
    layer: bytes

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)


def artifact(files: Mapping[str, bytes], media: Media, annotations: Mapping[str, str]) -> Artifact:
    """FILES by their paths as an artifact of the types MEDIA; ANNOTATIONS say where they are from."""
    layer = layer_of(files)
    body = {
        "schemaVersion": 2,
        "mediaType": MANIFESTS[0],
        **({"artifactType": media.artifact} if media.artifact else {}),
        "config": {"mediaType": media.config, "digest": digest_of(_EMPTY), "size": len(_EMPTY)},
        "layers": [{"mediaType": media.layer, "digest": digest_of(layer), "size": len(layer)}],
        **({"annotations": dict(sorted(annotations.items()))} if annotations else {}),
    }
    return Artifact(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(), layer)


def layer_of(files: Mapping[str, bytes]) -> bytes:
    """The layer that holds FILES."""
    return stored(archive(files))


def files_in(layer: bytes) -> dict[str, bytes]:
    """The files in a LAYER as `layer_of` makes it. Raises ValueError for another."""
    try:
        with tarfile.open(fileobj=io.BytesIO(layer), mode="r:gz") as tar:
            opened = ((entry.name, tar.extractfile(entry)) for entry in tar if entry.isfile())
            return {name: file.read() for name, file in opened if file is not None}
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise ValueError(str(error)) from error


def push(client: "Client", where: Reference, made: Artifact) -> str:
    """Write MADE under the tag of WHERE; returns its digest. Raises InputError."""
    client.put_blob(where, _EMPTY)
    client.put_blob(where, made.layer)
    return client.put_manifest(where, made.manifest, MANIFESTS[0])


def archive(files: Mapping[str, bytes]) -> bytes:
    """FILES as a tar archive, folders before what is in them."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folders = {str(parent) for name in files for parent in PurePosixPath(name).parents if parent.name}
        for name in sorted({*folders, *files}):
            entry = tarfile.TarInfo(name)
            if name in files:
                entry.mode, entry.size = 0o644, len(files[name])
                tar.addfile(entry, io.BytesIO(files[name]))
            else:
                entry.mode, entry.type = 0o755, tarfile.DIRTYPE
                tar.addfile(entry)
    return made.getvalue()


def stored(content: bytes) -> bytes:
    """CONTENT in a gzip member (RFC 1952) of stored blocks (RFC 1951, 3.2.4)."""
    parts = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"]
    for start in range(0, max(len(content), 1), _BLOCK):
        block = content[start : start + _BLOCK]
        final = start + _BLOCK >= len(content)
        parts += [struct.pack("<BHH", final, len(block), len(block) ^ 0xFFFF), block]
    parts.append(struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF))
    return b"".join(parts)
