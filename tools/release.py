"""Build a release into a folder: what people install, and what they check it by.

    make release                    into release/; ARGS='--out FOLDER --image' also the reconciler's image

What comes out depends on the commit and the pinned packages alone: built twice, in two clones, it has the same bytes.
Times are that of the commit, and archives are stored in order.

    gpustack_gitops-VERSION*.whl, .tar.gz   the wheel and the sources
    sbom.cdx.json                           what the wheel runs on, with hashes (CycloneDX 1.6)
    image/                                  the reconciler's image as an OCI layout, made without a container engine
    image.cdx.json                          what is in that image
    provenance.json                         of which commit all of this was made (in-toto statement, SLSA provenance
                                            v1); unsigned: the workflow that publishes signs it
    SHA256SUMS

The image is Debian's Python (tools/debian_root.sh) below the steps of the Containerfile (image_root.py). Debian's
archive keeps only its newest packages, so the same bytes come of the same packages: their list, with hashes, is beside
it (image-packages.sha256).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from gpustack import __version__  # noqa: E402  the script is run by its path
from tools import image_root  # noqa: E402  as above

NAME = "gpustack-gitops"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]*?))?\s*\\?$")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
NOBODY = 65532
BASE = ROOT / ".tools/debian-root"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def git(*words: str) -> str:
    """What Git says."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def packages(out: Path, when: int) -> None:
    """The wheel and the sources."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(when)}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, env=environment, stdout=subprocess.DEVNULL)


def pins(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Name, version and hashes of each package of a file of requirements."""
    found: tuple[str, str, list[str]] | None = None
    for line in text.splitlines():
        if match := PIN.match(line):
            if found:
                yield found
            found = match[1], match[2], []
        elif found:
            found[2].extend(HASH.findall(line))
    if found:
        yield found


def of_python(requirements: str) -> Iterator[tuple[str, list[str]]]:
    """The packages of the file of requirements REQUIREMENTS, as addresses of packages, and their hashes."""
    for name, version, hashes in pins((ROOT / "requirements" / requirements).read_text("utf-8")):
        yield f"pkg:pypi/{name.lower()}@{version}", hashes


def of_system(listed: str, system: str) -> Iterator[tuple[str, list[str]]]:
    """The same of packages for Debian, or a SYSTEM made of it, that `sha256sum` has LISTED by their files' names."""
    for line in listed.splitlines():
        digest, file = line.split()
        name, version, architecture = unquote(file.removesuffix(".deb")).split("_")
        yield f"pkg:deb/{system}/{name}@{quote(version)}?arch={architecture}", [digest]


def bill(what: str, parts: Iterable[tuple[str, list[str]]], when: int) -> str:
    """The PARTS of WHAT, as a CycloneDX document without a serial number of its own."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    def component(address: str, hashes: list[str]) -> Component:
        url = PackageURL.from_string(address)
        digests = [HashType(alg=HashAlgorithm.SHA_256, content=each) for each in hashes]
        return Component(
            name=url.name,
            version=url.version,
            type=ComponentType.LIBRARY,
            purl=url,
            bom_ref=str(url),
            hashes=digests,
        )

    whole = Component(name=what, version=__version__, type=ComponentType.APPLICATION, bom_ref=what)
    needed = [component(*part) for part in parts]
    made = Bom(components=needed)
    made.metadata.component = whole
    made.metadata.timestamp = datetime.fromtimestamp(when, UTC)
    made.register_dependency(whole, needed)
    document = json.loads(JsonV1Dot6(made).output_as_string())
    del document["serialNumber"]  # random, and a name that nobody asks by
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def layer(folder: Path, below: str, when: int) -> bytes:
    """FOLDER as a layer, at the path BELOW: everybody may read it, root owns it, and times are WHEN."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            entry = tar.gettarinfo(path, str(Path(below) / path.relative_to(folder)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime, entry.mode = when, 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            with path.open("rb") if entry.isreg() else io.BytesIO() as content:
                tar.addfile(entry, content)
    return made.getvalue()


def image(out: Path, place: Path, when: int) -> None:
    """The reconciler's image in the folder OUT, as an OCI layout: PLACE, what the Containerfile's steps gave, over
    Debian's Python.
    """
    shutil.rmtree(place / "bin", ignore_errors=True)  # commands that name the Python of this machine
    for record in place.glob("*.dist-info/RECORD"):  # and lists that have them
        record.unlink()
    layers = [layer(BASE, "", when), layer(place, image_root.PLACE[1:], when)]
    blobs = out / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content: bytes, media: str, **more: Any) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content), **more}

    words = dict(image_root.instructions(2))
    config = {
        "created": datetime.fromtimestamp(when, UTC).isoformat(),
        "architecture": ARCHITECTURES[os.uname().machine],
        "os": "linux",
        "config": {
            "User": words["USER"],
            "Env": ["PATH=/usr/bin", *words["ENV"].split()],
            "Entrypoint": json.loads(words["ENTRYPOINT"]),
            "WorkingDir": words["WORKDIR"],
            "ExposedPorts": {f"{words['EXPOSE']}/tcp": {}},
            "Labels": {
                "org.opencontainers.image.revision": git("rev-parse", "HEAD"),
                "org.opencontainers.image.version": __version__,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(json.dumps(config, sort_keys=True).encode(), CONFIG),
        "layers": [blob(gzip.compress(each, mtime=0), LAYER) for each in layers],
    }
    tag = {"annotations": {"org.opencontainers.image.ref.name": __version__}}
    listed = blob(json.dumps(manifest, sort_keys=True).encode(), MANIFEST, **tag)
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [listed]}
    (out / "index.json").write_text(json.dumps(index, sort_keys=True), "utf-8")
    (out / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', "utf-8")
    shutil.copy(f"{BASE}.sha256", out.parent / "image-packages.sha256")


def provenance(files: dict[str, str]) -> str:
    """Of which commit FILES, with their digests, were made."""
    pinned = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((ROOT / "requirements").glob("*.txt"))
    }
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in files.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:gpustack:make-release:1",  # docs/making-a-release.md
                "externalParameters": {"version": __version__},
                "resolvedDependencies": [
                    {"name": NAME, "digest": {"gitCommit": git("rev-parse", "HEAD")}},
                    *(
                        {"name": f"requirements/{name}", "digest": {"sha256": digest}}
                        for name, digest in pinned.items()
                    ),
                ],
            },
            "runDetails": {"builder": {"id": os.environ.get("BUILDER", "urn:gpustack:nobody-vouches-for-this")}},
        },
    }
    return json.dumps(statement, indent=1, sort_keys=True) + "\n"


def digests(out: Path) -> dict[str, str]:
    """Each file below OUT, and its digest."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> int:
    """Build it."""
    parser = argparse.ArgumentParser(description="Build a release.")
    parser.add_argument("--out", type=Path, default=ROOT / "release")
    parser.add_argument("--image", action="store_true", help="also the reconciler's image, of Debian's packages")
    options = parser.parse_args()
    if changed := git("status", "--porcelain", "--untracked-files=normal"):
        print(f"error: a release is of a commit, and files differ from it:\n{changed}", file=sys.stderr)
        return 4
    if options.image and not Path(f"{BASE}.sha256").is_file():
        print("error: there is no .tools/debian-root for the image: run `make debian-root`, on Debian", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory() as work:  # not in the clone, whose sources would have it
        sums = build(Path(work) / "release", image_too=options.image)
        shutil.rmtree(options.out, ignore_errors=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(work) / "release", options.out)
    print(sums, end="")
    return 0


def build(out: Path, *, image_too: bool) -> str:
    """The release in the new folder OUT; returns its checksums."""
    when = int(git("show", "--no-patch", "--format=%ct", "HEAD"))
    out.mkdir()
    packages(out, when)
    (out / "sbom.cdx.json").write_text(bill(NAME, of_python("runtime.txt"), when), "utf-8")
    if image_too:
        with tempfile.TemporaryDirectory() as work:
            image(out / "image", image_root.build(Path(work)), when)
        listed = (out / "image-packages.sha256").read_text("utf-8")
        parts = [*of_python("reconciler.txt"), *of_system(listed, platform.freedesktop_os_release()["ID"])]
        (out / "image.cdx.json").write_text(bill("gpustack-reconciler", parts, when), "utf-8")
    (out / "provenance.json").write_text(provenance(digests(out)), "utf-8")
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests(out).items())
    (out / "SHA256SUMS").write_text(sums, "utf-8")
    return sums


if __name__ == "__main__":
    sys.exit(main())
