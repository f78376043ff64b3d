"""Rules about the section `gitops`: what the engine must know, what goes together, and what has no effect."""

import json
import re
from collections.abc import Iterator

from ...cluster.resolve import Cluster
from ...gitops.engine import Trouble
from ...gitops.engines import chosen, engines, names
from ...model import dotted
from ...policy.language.gitops import GitOps
from ...policy.language.reconciler import runs
from ...policy.language.repository import CLUSTER, address, is_digest, is_oci, revision
from ...policy.language.types import IMAGE_TAG
from ..rule import Hit, hit, rule
from ..subjects import Written


@rule("GPU832", "error")
def incomplete(cluster: Cluster) -> Iterator[Hit]:
    """A section `gitops` that lacks what an engine can't do without."""
    given = cluster.spec.gitops
    if given is None:
        return
    engine = chosen(given)
    if engine is None:
        yield hit(
            "spec.gitops",
            "engine",
            titles=" and ".join(each.title for each in engines()),
            engines=" or ".join(names()),
        )
        return
    if given.repository.url is None and not engine.brings_source(given):
        yield hit(
            "spec.gitops.repository",
            "repository",
            remedy="set spec.gitops.repository.url" + (f", or {engine.source_field}" if engine.source_field else ""),
        )
    yield from (_hit(trouble) for trouble in engine.missing(given))


def _hit(trouble: Trouble) -> Hit:
    return Hit(f"spec.gitops.{trouble.path}", trouble.what, trouble.why, trouble.remedy)


@rule("GPU833", "error")
def contradicting(cluster: Cluster) -> Iterator[Hit]:
    """Parts of `gitops` that can't both be meant."""
    given = cluster.spec.gitops
    if given is None:
        return
    repository, engine = given.repository, chosen(given)
    if engine is not None:
        yield from (_hit(trouble) for trouble in engine.contradictions(given))
    wanted = revision(repository).name
    if is_oci(repository) and not re.fullmatch(IMAGE_TAG.pattern, wanted):
        yield hit("spec.gitops.repository.revision", "oci", wanted=wanted)
    if not is_oci(repository) and is_digest(wanted):
        yield hit("spec.gitops.repository.revision", "commit")
    if is_oci(repository) and {"{", "}"} & {*address(repository, "")}:
        yield hit("spec.gitops.repository.url", "other name")
    if not is_oci(repository) and CLUSTER in (repository.url or ""):
        yield hit("spec.gitops.repository.url", "name in git")
    if not is_oci(repository) and repository.dist == "oci":
        yield hit("spec.gitops.repository.dist", "no artifact")


@rule("GPU834", "warning", over="origins")
def in_vain(written: Written) -> Iterator[Hit]:
    """A word in `gitops` that changes nothing."""
    given = written.spec.gitops
    if given is None or given.engine is None:
        return
    for path, why in idle(given):
        if written.by(f"spec.gitops.{path}") == "policy":
            yield hit(f"spec.gitops.{path}", why=why)


def idle(given: GitOps) -> Iterator[tuple[str, str]]:
    """(path in the section, why it does nothing) of what is set."""
    engine = chosen(given)
    for other in engines():
        if other is not engine and other.of(given).model_dump(exclude_none=True, exclude_defaults=True):
            yield other.name, f"the engine is {given.engine}"
    if engine is not None:
        yield from engine.idle(given)


@rule("GPU835", "warning")
def substituted(cluster: Cluster) -> Iterator[Hit]:
    """An object that wants Flux to replace its variables, which nothing does."""
    spec = cluster.spec
    engine = chosen(spec.gitops)
    for index, body in enumerate(spec.extraObjects if engine and engine.verbatim else ()):
        given = body["metadata"].get("annotations") or {}
        wanted = [key for key, kept in engine.verbatim.items() if given.get(key, kept) != kept] if engine else []
        for key in wanted if "${" in json.dumps(body, default=str) else ():
            yield Hit(
                dotted(("spec", "extraObjects", index, "metadata", "annotations", key)),
                f"nothing replaces the variables of {body['kind']} {body['metadata']['name']}",
            )


@rule("GPU836", "note")
def nothing_to_wait_for(cluster: Cluster) -> Iterator[Hit]:
    """An engine, and no NodePolicy by whose state it could tell whether the GPU stack is well."""
    spec = cluster.spec
    if spec.gitops is not None and spec.gitops.engine is not None and not runs(spec):
        yield hit("spec.gitops")
