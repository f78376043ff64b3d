"""gpustack schema: the policy language as a JSON schema, for editors; and kinds of other software, for extraObjects."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalog import kubernetes
from ..catalog.kinds import FOLDER, SCOPES, OwnKind, SchemaError, kinds_of
from ..model import Finding, InputError, Location, OutputError
from ..text.construct import Builder
from ..text.source import LIMIT, decode, load_bytes
from ..text.yaml12 import check_expansion, compose
from . import common
from .refusals import refusal, said
from .saving import save
from .text import answer, picked

if TYPE_CHECKING:
    from ..catalog.definitions import Made

TARGET = "schemas/clusterpolicy.schema.json"


def run(options: argparse.Namespace) -> int:
    if options.action:
        if options.action == "list":
            return told([plain(each) for each in kinds_of(Path.cwd()).all()], options)
        return {"add": add_kinds, "remove": remove_kinds}[options.action](options)
    from ..policy.help import schema

    text = schema.text()
    if options.out == "-":
        sys.stdout.write(text)
        return 0
    save(Path(options.out), text, "the schema", "name another file after --out")
    return 0


def add_kinds(options: argparse.Namespace) -> int:
    """Write a file for each kind and version in the files named; nothing, where one of them can't be used."""
    by_file: dict[str, Made] = {}
    for file in options.files:
        for made in read(file, options):
            if made.kind.file in by_file and by_file[made.kind.file].text != made.text:
                raise InputError(unusable(file, f"{title(made.kind)} is in several files, and not the same in each"))
            by_file[made.kind.file] = made
    known = [made.kind for made in by_file.values() if kubernetes.having(made.kind.api_version, made.kind.kind)]
    fresh = {file: made for file, made in by_file.items() if made.kind not in known}
    there = {each.file: each for each in kinds_of(Path.cwd()).readable()}
    done = [{**plain(made.kind), "did": write(made, there)} for made in fresh.values()]
    crds = {made.kind.crd for made in fresh.values() if made.kind.crd}
    gone = [each for each in there.values() if each.crd in crds and each.file not in fresh]
    for each in gone:
        delete(each.file)
    done += [{**plain(each), "did": "removed", "why": f"{each.crd} serves it no longer"} for each in gone]
    done += [{**plain(each), "did": "left", "why": "gpustack has a schema of it"} for each in known]
    return told(done, options)


def write(made: Made, there: Mapping[str, OwnKind]) -> str:
    """Write the file of MADE beside those that are THERE; returns what that did."""
    path = Path(FOLDER) / made.kind.file
    if path.is_file() and not path.is_symlink() and path.read_text("utf-8", "replace") == made.text:
        return "unchanged"
    save(path, made.text, "the schema", "give gpustack the permission that it lacks")
    return "updated" if made.kind.file in there else "added"


def remove_kinds(options: argparse.Namespace) -> int:
    kinds = list(kinds_of(Path.cwd()).readable())
    chosen: dict[str, OwnKind] = {}
    for name in options.names:
        hits = [each for each in kinds if name in names_of(each)]
        if not hits:
            have = common.some(each.kind for each in kinds) or "nothing"
            raise refusal("GPU910", "no kind", folder=FOLDER, name=repr(name), have=have)
        chosen.update((each.file, each) for each in hits)
    for each in chosen.values():
        delete(each.file)
    return told([{**plain(each), "did": "removed"} for each in chosen.values()], options)


def names_of(kind: OwnKind) -> set[str]:
    """By what KIND may be called on the command line."""
    whole = f"{kind.api_version}/{kind.kind}"
    return {kind.kind, f"{kind.version}/{kind.kind}", whole, whole.replace("/", " "), f"{kind.kind}.{kind.group}"} | (
        {title(kind), kind.crd, kind.file} - {""}
    )


def delete(file: str) -> None:
    try:
        (Path(FOLDER) / file).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(said("GPU924", "kept", path=f"{FOLDER}/{file}", reason=error.strerror)) from None


def title(kind: OwnKind) -> str:
    return f"{kind.api_version} {kind.kind}"


def plain(kind: OwnKind) -> dict[str, Any]:
    """What is told of KIND."""
    said = {"scope": SCOPES[kind.namespaced], "file": f"{FOLDER}/{kind.file}"}
    return {**picked(kind, "apiVersion=api_version kind"), **said, **picked(kind, "definition=crd unchecked")}


def told(done: list[dict[str, Any]], options: argparse.Namespace) -> int:
    """Print what was DONE, or what there is."""
    return answer(options.format, 0, {"kinds": done}, lines(done))


def lines(done: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The same for people."""
    for each in done:
        did = f"{each['did']}: " if "did" in each else ""
        why = f" ({each['why']})" if "why" in each else ""
        yield f"{did}{each['apiVersion']} {each['kind']}, {each['scope']}{why}"
        if each["unchecked"] and each.get("did") != "removed":
            yield f"  left to the API server: {common.some(each['unchecked'])}"


def read(file: str, options: argparse.Namespace) -> Iterator[Made]:
    """The kinds in FILE. Raises InputError for a file without any, and for what can't be used."""
    from ..catalog.definitions import from_definition

    shown = "standard input" if file == "-" else file
    count = 0
    for body in objects(documents(file, shown)):
        try:
            if body.get("kind") == "CustomResourceDefinition":
                count += 1
                yield from from_definition(body)
            elif "kind" not in body and ("properties" in body or "$ref" in body):
                count += 1
                yield of_schema(body, options)
        except SchemaError as error:
            metadata = body.get("metadata")
            name = f"{metadata.get('name')}: " if isinstance(metadata, dict) else ""
            raise InputError(unusable(shown, f"{name}{error}")) from None
    if not count:
        remedy = "name a file with CustomResourceDefinitions, such as `kubectl get crds -o yaml` prints"
        raise InputError(unusable(shown, "no CustomResourceDefinition and no JSON schema is in it", remedy))


def documents(file: str, shown: str) -> Iterator[Any]:
    """Each document of FILE as plain data."""
    raw = sys.stdin.buffer.read(LIMIT + 1) if file == "-" else load_bytes(Path(file), shown)
    if len(raw) > LIMIT:
        raise InputError(unusable(shown, f"it has more than {LIMIT // 1024 // 1024} MiB", "split it"))
    text = decode(raw, shown)
    for node in compose(text, shown):
        check_expansion(node, text, shown)
        yield Builder(text, shown).build(node)


def objects(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The mappings among VALUES, and those in lists of Kubernetes."""
    for each in values:
        if isinstance(each, dict):
            items = each.get("items") if str(each.get("kind", "")).endswith("List") else None
            yield from objects(items) if isinstance(items, list) else [each]


def of_schema(body: Mapping[str, Any], options: argparse.Namespace) -> Made:
    """The kind of the JSON schema BODY, with what OPTIONS say of it."""
    from ..catalog.definitions import Heads, from_schema, heads_in

    says = heads_in(body)
    api_version, kind = options.api_version or says[0], options.kind or says[1]
    heads = {"--api-version": api_version, "--kind": kind, "--scope": options.scope}
    if lacks := [option for option, value in heads.items() if not value]:
        raise SchemaError(f"a JSON schema doesn't say all of its kind: add {' and '.join(lacks)}")
    group, _, version = api_version.rpartition("/")
    return from_schema(body, Heads(group, version, kind, options.scope))


def unusable(shown: str, why: str, remedy: str = "") -> Finding:
    """The finding for a file of definitions that can't be used."""
    remedy = remedy or "mend the file, or take the definition from the software's own release"
    return Finding.error("GPU910", f"{shown} can't be used", location=Location(shown), why=why, remedy=remedy)
