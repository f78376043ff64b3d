"""Another engine is one block; what only looks like it is shown as all else."""

from __future__ import annotations

from typing import Any

from gpustack.cli.formats.diff.json import change_data
from gpustack.gitops.marks import Marks, marked
from gpustack.model import Body, Resource
from gpustack.review.diff.groups import Group, group
from gpustack.review.diff.objects import Identity, Objects, Rendered, compare
from gpustack.review.diff.present import Block, blocks
from tests.review.impact.test_engines import engine

KINDS = ("Namespace", "ServiceAccount", "ConfigMap", "DaemonSet")


def stack(which: Any, kinds: tuple[str, ...] = KINDS, **annotations: str) -> Objects:
    """Objects of KINDS with the marks of an engine, and ANNOTATIONS of their own."""
    found: dict[Identity, Rendered] = {}
    for kind in kinds:
        meta = {"name": kind.lower(), **({"annotations": annotations} if annotations else {})}
        body: Body = {"apiVersion": "v1", "kind": kind, "metadata": meta}
        if which:
            body = marked(Resource(body, "base", "test"), Marks(which), guarded=kind == "DaemonSet").body
        found[Identity.of(body)] = Rendered(body, f"base/{kind}.yaml")
    return found


def shown(before: Objects, after: Objects) -> tuple[Group, list[Block]]:
    """The one group of what changes, and its blocks."""
    (found,) = group({"c": compare(before, after)})
    return found, blocks(found)


def test_another_engine_is_one_block() -> None:
    """The marks of both on all objects and both engines' own objects are counted once, and each is in the JSON."""
    found, told = shown({**stack("argocd"), **engine("argocd")}, {**stack("flux"), **engine("flux")})
    (block,) = told
    assert block.title == "Argo CD -> Flux: annotations in 4 objects, 2 of its own removed, 3 of its own added"
    assert [f"{line.mark} {line.text}" for line in block.lines][:-1] == [
        "- argocd.argoproj.io/ignore-healthcheck in 1 objects: true (1)",
        (
            "- argocd.argoproj.io/sync-options in 2 objects: "
            "Prune=confirm,Delete=confirm (1), Prune=false,Delete=confirm (1)"
        ),
        "- argocd.argoproj.io/sync-wave in 4 objects: 1 (3), 7 (1)",
        "- Argo CD's AppProject argocd/gpustack-c",
        "- Argo CD's Application argocd/gpustack-c",
        "+ kustomize.toolkit.fluxcd.io/prune in 2 objects: disabled (2)",
        "+ Flux's Kustomization flux-system/gpustack-base",
        "+ Flux's Kustomization flux-system/gpustack-driver",
        "+ Flux's GitRepository flux-system/gpustack",
    ]
    assert len(found.changes) == len([change_data(change)["fields"] for change in found.changes]) == 9


def test_no_engine_any_more() -> None:
    """The same for an engine that goes, and for the marks alone, which say nothing about the engine."""
    _, (block,) = shown({**stack("argocd"), **engine("argocd")}, stack(None))
    assert block.title == "what Argo CD reads: annotations in 4 objects, 2 of its own removed"
    _, (alone,) = shown(stack("argocd"), stack(None))
    assert alone.title == "what Argo CD reads: annotations in 4 objects"


def test_what_else_changes_is_shown_beside_it() -> None:
    """An annotation of one's own that goes in the same change isn't counted among the engine's."""
    _, told = shown(stack("argocd", note="x", kept="y"), stack(None, kept="y"))
    assert [block.title for block in told] == [
        "what Argo CD reads: annotations in 4 objects",
        "note in 4 objects",
    ]


def test_a_few_marks_and_other_values_are_no_engine() -> None:
    """A mark in one object is shown there, and a value that becomes another is a change of its own."""
    _, told = shown(stack("argocd", ("ConfigMap",)), stack(None, ("ConfigMap",)))
    assert [block.title for block in told] == ["ConfigMap configmap"]
    wave = "argocd.argoproj.io/sync-wave"
    _, told = shown(stack("argocd", KINDS, **{wave: "8"}), stack("argocd", KINDS, **{wave: "9"}))
    assert [block.title for block in told] == [f'["{wave}"] in 4 objects']


def test_an_object_of_the_engines_alone_is_shown_as_such() -> None:
    """A Kustomization that comes is an object that comes."""
    _, told = shown(engine("flux", ("base",)), engine("flux"))
    assert [block.title for block in told] == ["Flux's Kustomization flux-system/gpustack-driver"]


def test_secrets_stay_apart() -> None:
    """Annotations of Secrets are shown with their object, where values may be hidden."""
    _, told = shown(stack("argocd", (*KINDS, "Secret")), stack(None, (*KINDS, "Secret")))
    assert [block.title for block in told] == ["what Argo CD reads: annotations in 4 objects", "Secret secret"]
