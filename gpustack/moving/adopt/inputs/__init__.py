"""The shapes that settings of the operator are kept in, a module each, recognised by content.

Objects are read by their kind, if it has rules of its own, all else by content. All write into one `Installation`.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as File
from pathlib import PurePath

from gpustack.model import InputError, Location, dotted
from gpustack.policy.loading.foreign import recognise
from gpustack.policy.loading.load import display
from gpustack.text.read import Document

from ..documents import ENDINGS, TEMPLATES, Item, Reader, files
from ..installation import Installation, at, understood
from ..pieces import config_map
from . import argocd, bundles, flux, helm, objects, overlays, programs, releases, shell, terraform
from .context import Context, expanded
from .hcl import plain

Handler = Callable[[Item, Context], None]
KINDS: dict[str, Handler] = {
    "nvidia.com/ClusterPolicy": objects.cluster_policy,
    "gpustack.dev/ClusterPolicy": objects.cluster_policy,
    "nvidia.com/NVIDIADriver": objects.driver,
    "nvidia.com/GPUCluster": objects.gpu_cluster,
    "v1/Secret": objects.secret,
    "operators.coreos.com/Subscription": objects.subscription,
    "operators.coreos.com/ClusterServiceVersion": objects.service_version,
    "helm.toolkit.fluxcd.io/HelmRelease": flux.helm_release,
    "helm.cattle.io/HelmChart": flux.helm_chart,
    "argoproj.io/Application": argocd.application,
    "argoproj.io/ApplicationSet": argocd.application_set,
}
"""Who reads objects of kinds that have rules of their own, in their order."""
FILES: tuple[tuple[Callable[[Item], object], Handler], ...] = (
    (overlays.is_overlay, overlays.overlay),
    (bundles.is_fleet, bundles.fleet),
    (terraform.recognised, lambda item, context: None),  # its blocks are items of their own
    (releases.recognised, releases.read),
    (lambda item: helm.is_plugins(item) or helm.is_networks(item), helm.another),
    (helm.recognised, helm.take),
    (shell.recognised, shell.read),
)
"""Who reads what isn't an object, by a test of its content: the first counts."""


def members(named: Sequence[str], answers: Mapping[str, str]) -> list[str]:
    """The clusters that the files and folders NAMED are about where one of them lists several."""
    items = documents_of(named, Context(Installation(), Reader(answers)))
    sets = [name for each in items if each.text_at("kind") == "ApplicationSet" for name in argocd.members(each)]
    return [*sets, *(name for each in items if bundles.is_fleet(each) for name in bundles.members(each))]


def read_all(named: Sequence[str], answers: Mapping[str, str], live: Sequence[Item] = (), member: str = "") -> Context:
    """Read the paths NAMED and LIVE objects, of several clusters MEMBER's; InputError for what can't be read."""
    context = Context(Installation(), Reader(answers), member=member)
    context.items = [*live, *documents_of(named, context)]
    overlays.build(context)
    notes = context.installation.notes
    for _ in range(2):  # once more where a file names another one, which may have been read for itself before that
        read = {*context.read}
        context.installation, context.installer = Installation(notes=[*notes]), None
        look(context)
        if context.read == read:
            break
    return context


def documents_of(named: Sequence[str], context: Context) -> list[Item]:
    """The documents in the files and folders NAMED, and what is inside of them."""
    for word in named:
        for path in files(word):
            context.known[display(path, File.cwd())] = path
    answers, items = context.reader.answers, list[Item]()
    for _ in range(2):
        raw, context.installation.notes = list[Item](), []
        for name, path in context.known.items():
            if path.suffix in TEMPLATES and str(path) not in named:
                continue
            with given(name, path, named, context):
                raw += replace(context.reader, answers={**of_chart(path, context), **context.reader.answers}).items(
                    path, name
                )
        made = [*terraform.evaluated(raw, context.reader), *programs.evaluated(raw, context.reader.answers)]
        items = [each for one in (*made, *raw) for each in expanded(one)]
        more = flux.substitutes(items)
        if set(more) <= set(context.reader.answers):
            break
        context.reader.answers = {**more, **answers}
    return flux.patched(items, context)


def of_chart(template: File, context: Context) -> dict[str, str]:
    """What a chart's values say for its TEMPLATE, both inputs; they are ours only where it bundles our chart."""
    home = template.parent.parent
    if template.parent.name != "templates":
        return {}
    files = {path.name: (name, path) for name, path in context.known.items() if path.parent == home}
    parts = {
        key: [*context.reader.items(files[key][1], files[key][0])]
        for key in files
        if key in {"Chart.yaml", "values.yaml"}
    }
    own = [each for each in parts.get("values.yaml", []) if isinstance(each.data, dict)]
    bundles = any(helm.dependency(each) for each in parts.get("Chart.yaml", []))
    context.read |= {each.file for each in own if not bundles}
    leaves = [
        (path[:end], at(each.data, path[:end]))
        for each in own
        for path in each.leaves()
        for end in range(1, len(path) + 1)
    ]
    return {f"Values.{dotted(path)}": plain(value) for path, value in leaves}


@contextlib.contextmanager
def given(name: str, path: File, named: Sequence[str], context: Context) -> Iterator[None]:
    """Raise InputError of the file NAME at PATH where it is one of NAMED; of one in a folder, only tell it."""
    try:
        yield
    except InputError as error:
        if str(path) in named:
            raise
        template = path.parent.name == "templates" and (path.parent.parent / "Chart.yaml").is_file()
        found = error.findings[0]
        context.installation.tell("chart template" if template else "unreadable", name, found.location, what=found.what)


def handler_of(item: Item) -> str | None:
    """The one of KINDS that the object ITEM is, by its group where it says that: other projects have the same kinds."""
    group, kind = item.text_at("apiVersion").partition("/")[0], item.text_at("kind")
    return next(
        (name for name in KINDS if name == f"{group}/{kind}" or (not group and name.endswith(f"/{kind}"))), None
    )


def look(context: Context) -> Context:
    """Let each module read what it knows of the items of CONTEXT."""
    known = [(handler_of(item), item) for item in context.items]
    for name, read in KINDS.items():
        for item in (each for kind, each in known if kind == name):
            with understood(f"the {item.text_at('kind')}", item.where()):
                read(item, context)
    for item in context.items:
        for key, line in item.twice:
            context.installation.tell("twice", key, Location(item.file, line), line=line)
        whole = (item.text_at("kind") and not overlays.is_overlay(item)) or item.line
        with understood(f"the {item.text_at('kind')}" if whole else item.file, item.where()):
            (an_object if whole else a_file)(item, context)
    for item in (each for each in context.items if each.file not in context.read):
        context.undecided(item)
    if not context.installation.told:
        helm.held(context)
    return context


def an_object(item: Item, context: Context) -> None:
    """Read the object or the block of a program ITEM where no module knows its kind, and tell of patches in it."""
    if not handler_of(item):
        objects.other(item, context)
        releases.read(item, context)
        if shell.recognised(item):  # a Job, a Task of Tekton, a script in a ConfigMap
            shell.read(item, context)
    if "gpu" in str(item.data) and not item.text_at("apiVersion").startswith("kustomize.toolkit."):
        releases.patches(item, context)


def a_file(item: Item, context: Context) -> None:
    """Read ITEM, which isn't an object, by what it holds."""
    handler = next((handler for recognised, handler in FILES if recognised(item)), None)
    if alias := helm.aliased(item, context):
        handler = functools.partial(helm.take, alias=(alias,))
    if handler is not None and item.file not in context.read:
        handler(item, context)
        if handler is releases.read and shell.recognised(item):
            shell.read(item, context)
    elif handler is None and not any(item.holds(each) for each in context.items):
        not_known(item, context)


def not_known(item: Item, context: Context) -> None:
    """Say what a document is that tells nothing of an installation."""
    if (piece := config_map(item, context.items)) is not None:
        context.installation.objects.append((piece, Location(item.file)))
        return
    if (isinstance(item.data, str) and PurePath(item.file).suffix not in ENDINGS) or "API Version" in str(item.data):
        context.installation.tell("program", item.file, item.where())
        return
    try:
        data = item.data if isinstance(item.data, dict) else {}
        finding = recognise(Document(item.file, item.text, data, ""), "ClusterPolicy")
    except InputError:
        return
    what = finding.what.removesuffix(", not a ClusterPolicy")
    if what.startswith("this is "):
        context.installation.note("dropped", item.file, what, finding.remedy, finding.location)
    else:
        context.installation.tell("no setting", item.file, finding.location)
