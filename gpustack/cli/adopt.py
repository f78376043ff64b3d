"""gpustack adopt: what an installation of the operator is set to, as a policy that means the same."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..compiler.cache import Store
from . import common
from .refusals import refusal
from .saving import save
from .text import document, plain, print_findings, printable, say

if TYPE_CHECKING:
    from ..moving.adopt import Adopted
    from ..moving.adopt.documents import Item


def answer(text: str) -> tuple[str, str]:
    """NAME=VALUE in its two parts."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def run(options: argparse.Namespace) -> int:
    if options.fleet:
        return run_fleet(options)
    out = Path(options.out) if options.out else None
    taken(out)
    with common.store(options) as store:
        adopted = adopted_of(options, named(options), dict(options.answers), store)
    if out is not None:
        save(out, adopted.text, "the policy", "name another file with --out")
    return tell([adopted], options, {options.out or "": adopted.text})


def run_fleet(options: argparse.Namespace) -> int:
    """Adopt several clusters, and write what they share into layers."""
    from ..moving.adopt import fleet
    from ..moving.adopt.write import HEAD

    adopted: dict[str, Adopted] = {}
    with common.store(options) as store:
        for name, more in (known := clusters(options)).items():
            answers = {key: value for key, value in options.answers if key.partition(":")[0] not in known}
            answers |= {key.partition(":")[2]: value for key, value in options.answers if key.startswith(f"{name}:")}
            one = argparse.Namespace(**{**vars(options), **more})
            adopted[name] = adopted_of(one, name, answers, store)
    texts = fleet.files(adopted, f"{HEAD} --fleet")
    for file in texts if options.out else ():
        taken(Path(options.out, file))
    for file, text in texts.items() if options.out else ():
        save(Path(options.out, file), text, "the policy", "name another folder with --out")
    return tell(list(adopted.values()), options, texts)


def clusters(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The inputs and the context of each cluster. Raises InputError where two would have one name."""
    from ..moving.adopt.documents import ENDINGS
    from ..moving.adopt.inputs import members
    from ..moving.adopt.pools import plain

    words = list(options.inputs)
    if len(words) == 1 and Path(words[0]).is_dir():
        entries = sorted(Path(words[0]).iterdir())
        words = [str(each) for each in entries if each.suffix in ENDINGS or each.is_dir()]
    stems = [Path(word).stem for word in words]
    found: list[tuple[str, dict[str, Any]]] = []
    for word, stem in zip(words, stems, strict=True):
        name, equals, paths = word.partition("=")
        known = stem if stems.count(stem) == 1 else Path(word).absolute().parent.name
        inputs = paths.split(",") if equals else [word]
        more = {"inputs": inputs, "context": None, "kubeconfig": None}
        several = members(inputs, dict(options.answers))
        prefix = f"{name}-" if equals and several else ""
        found += [(f"{prefix}{each}", {**more, "member": each}) for each in several]
        found += [] if several else [(name if equals else known, more)]
    contexts = options.context.split(",") if options.context else [None] * (not found)
    found += [(each or "cluster", {"inputs": [], "context": each}) for each in contexts]
    names = [plain(name, 0, {}) for name, _ in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise refusal("GPU049", "twice", names=", ".join(twice))
    return {name: more for name, (_, more) in zip(names, found, strict=True)}


def taken(out: Path | None) -> None:
    """Refuse to write over a file OUT that adopt hasn't written."""
    from ..moving.adopt.write import HEAD

    # Path's own raises for a name that is too long.
    if out is not None and os.path.isfile(out) and HEAD not in out.read_text("utf-8", "replace")[:200]:  # noqa: PTH113
        raise refusal("GPU049", "there", out=out)


def adopted_of(options: argparse.Namespace, name: str, answers: dict[str, str], store: Store) -> Adopted:
    """The policy of the cluster NAME, of its inputs in OPTIONS."""
    from ..moving import adopt
    from ..moving.adopt import pieces
    from ..moving.adopt.write import HEAD
    from .live import connect

    context = adopt.read_all(options.inputs, answers, looked_at(options), vars(options).get("member", ""))
    names = options.inputs or [f"the cluster {options.context or 'of the kubeconfig'}"]
    found = context.installation
    own = {key: value for key, value in answers.items() if key not in context.reader.used}
    if not found.told:
        beside = pieces.alone(found)
        if not (own and beside):
            told = [f"{note.path}: {note.why}{f'; {note.remedy}' if note.remedy else ''}" for note in found.notes]
            told += pieces.described(found)
            case = "beside" if beside else "nothing"
            raise refusal("GPU049", case, inputs=", ".join(names[:3]), told="; ".join(told[:5]))
    head = f"{HEAD} from {', '.join(dict.fromkeys(Path(word).name for word in names))}"
    adopted = adopt.adopt(found, name, own, store, keep=options.keep_release, head=head)
    if options.tries:
        connect.run(options, lambda cluster: tried(cluster, adopted))
    return adopted


async def tried(cluster: Any, adopted: Adopted) -> None:
    """Let the API server say, by a dry run, which template each DaemonSet of ADOPTED that runs would have."""
    from ..api.expectations import kind_of
    from ..live.state import raw
    from ..moving.adopt.carry import fields
    from ..reconciler.shell.cluster import ApiError

    live = {body["metadata"]["name"]: body for body in adopted.draft.installation.of_kind("DaemonSet")}
    for body in adopted.sets:
        name, space = body["metadata"]["name"], body["metadata"]["namespace"]
        if name not in adopted.rolls:
            continue
        try:
            made = (await cluster.apply(raw(kind_of(body)), name, body, namespace=space, dry_run=True)).body
            adopted.rolls[name] = fields(live[name], made["spec"]["template"])
        except ApiError as error:
            adopted.rolls[name] = [f"a refusal: {error}"]
    adopted.tried = True


def looked_at(options: argparse.Namespace) -> list[Item]:
    """The objects of the cluster, where one is named, or nothing else is."""
    from ..moving.adopt.inputs.live import look
    from .live import connect

    if options.inputs and not (options.context or options.kubeconfig):
        if options.tries:
            raise refusal("GPU049", "untried")
        return []
    return connect.run(options, lambda cluster: look(cluster, options.namespace, connect.DEFAULT_NAMESPACE))


def named(options: argparse.Namespace) -> str:
    """What the cluster is called: as the file is that the policy goes to, else as the first input is."""
    from ..moving.adopt.pools import plain

    return plain(Path(options.out or [*options.inputs, options.context or "cluster"][0]).stem, 0, {})


def tell(clusters: list[Adopted], options: argparse.Namespace, texts: dict[str, str]) -> int:
    """Print the report of each of CLUSTERS, and TEXTS where they go to no file; 2 where one doesn't render yet."""
    from ..moving.adopt import report

    findings = [finding for each in clusters for finding in each.findings]
    code = 2 if findings or any(note.sort == "open" for each in clusters for note in each.notes) else 0
    if options.format == "json":
        told = [report.data(each) for each in clusters]
        more = {"clusters": told, "files": texts} if options.fleet else told[0]
        print(document(code, [plain(each) for each in findings], **more))
        return code
    if not options.out:
        sys.stdout.write("---\n".join(texts.values()))
    stream = sys.stdout if options.out else sys.stderr
    for each in clusters:
        for line in report.lines(each):
            say(printable(line), stream)
        if each.findings:
            say("The policy doesn't render yet:", stream)
            print_findings(each.findings, sys.stderr)
    return code
