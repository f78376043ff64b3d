"""gpustack adopt: what an installation of the operator is set to, as a policy that means the same."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import Finding, InputError
from . import common
from .refusals import refusal, said
from .saving import save

if TYPE_CHECKING:
    from ..moving.adopt import Adopted
    from ..moving.adopt.documents import Item
    from ..moving.adopt.installation import Installation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from .live import connect

    what = "a file or folder: Helm values, HelmRelease, Application, ClusterPolicy, `kubectl get ... -o yaml`, ..."
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help=what)
    parser.add_argument(
        "--out", metavar="FILE", type=common.named, help="where the policy goes (default: standard output)"
    )
    parser.add_argument(
        "--set",
        dest="answers",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=answer,
        help="a variable of a template, or a field of the policy: cluster.platform=eks-al2023; may be repeated",
    )
    connect.add_connection(parser)
    parser.add_argument("--keep-release", action="store_true", help="take the release that runs, not the newest")
    parser.add_argument("--no-cache", action="store_true", help="compute everything again; the result is the same")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how to print the report")


def answer(text: str) -> tuple[str, str]:
    """NAME=VALUE in its two parts."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def run(options: argparse.Namespace) -> int:
    from ..moving import adopt
    from ..moving.adopt.write import HEAD

    out = Path(options.out) if options.out else None
    if out is not None and out.is_file() and HEAD not in out.read_text("utf-8", "replace")[:200]:
        raise refusal("GPU049", "there", out=out)
    answers = dict(options.answers)
    context = adopt.read_all(options.inputs, answers, looked_at(options))
    names = options.inputs or [f"the cluster {options.context or 'of the kubeconfig'}"]
    if not context.installation.told:
        raise InputError(nothing(names, context.installation))
    own = {name: value for name, value in answers.items() if name not in context.reader.used}
    head = f"{HEAD} from {', '.join(dict.fromkeys(Path(word).name for word in names))}"
    with common.store(options) as store:
        adopted = adopt.adopt(context.installation, named(options), own, store, keep=options.keep_release, head=head)
    if out is not None:
        save(out, adopted.text, "the policy", "name another file with --out")
    return tell(adopted, options)


def looked_at(options: argparse.Namespace) -> list[Item]:
    """The objects of the cluster, where one is named, or nothing else is."""
    from ..moving.adopt.inputs.live import look
    from .live import connect

    if options.inputs and not (options.context or options.kubeconfig):
        return []
    return connect.run(options, lambda cluster: look(cluster, options.namespace, connect.DEFAULT_NAMESPACE))


def named(options: argparse.Namespace) -> str:
    """What the cluster is called: as the file is that the policy goes to, else as the first input is."""
    from ..moving.adopt.pools import plain

    return plain(Path(options.out or [*options.inputs, options.context or "cluster"][0]).stem, 0, {})


def tell(adopted: Adopted, options: argparse.Namespace) -> int:
    """Print the report, and the policy where it goes to no file; 2 where it doesn't render yet."""
    from ..moving.adopt import report
    from .text import document, plain, print_findings, printable, say

    code = 2 if adopted.findings or any(note.sort == "open" for note in adopted.notes) else 0
    if options.format == "json":
        print(document(code, [plain(each) for each in adopted.findings], **report.data(adopted)))
        return code
    if not options.out:
        sys.stdout.write(adopted.text)
    stream = sys.stdout if options.out else sys.stderr
    for line in report.lines(adopted):
        say(printable(line), stream)
    if adopted.findings:
        say("The policy doesn't render yet:", stream)
        print_findings(adopted.findings, sys.stderr)
    return code


def nothing(inputs: list[str], installation: Installation) -> Finding:
    """The finding for INPUTS that tell nothing of an installation."""
    told = [f"{note.path}: {note.why}" for note in installation.notes]
    told += [f"{where.file}: a {body['kind']}, {body['metadata']['name']}" for body, where in installation.objects]
    return said("GPU049", "nothing", inputs=", ".join(inputs[:3]), told="; ".join(told[:5]))
