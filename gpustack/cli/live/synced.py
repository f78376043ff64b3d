"""A cluster in memory as a sync of what is rendered would leave it: for plans before a merge.

Rendered objects are told from those that kubectl printed by their metadata, in which only the API server writes a UID.
They go over the cluster's own, as server-side apply would have it: UID, status and others' annotations stay. A driver
DaemonSet whose template is another gets the ControllerRevision that the cluster's controller would make, so that pods
of the former one count as outdated. A NodePolicy that is rendered no more is pruned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...api import keys

if TYPE_CHECKING:
    from ...reconciler.memory.server import Server
    from ...reconciler.shell.cluster import Kind

Document = dict[str, Any]
KINDS = ("NodePolicy", "DaemonSet", "Deployment")
"""Kinds of rendered objects that a plan depends on."""
REVISION = "as-rendered"


def rendered(kind: Kind[Any], body: Document) -> bool:
    """Whether BODY comes from a render, and not from a cluster."""
    metadata = body.get("metadata")
    return kind.name in KINDS and isinstance(metadata, dict) and "uid" not in metadata


def over(old: Document | None, body: Document) -> Document:
    """BODY as it is once it was applied over OLD."""
    metadata = body["metadata"]
    if old is None:
        return body
    both = {key: {**(old["metadata"].get(key) or {}), **(metadata.get(key) or {})} for key in ("annotations", "labels")}
    return {**body, "metadata": {**metadata, **both}, "status": old.get("status", {})}


def settle(server: Server, kind: Kind[Any], old: Document | None, name: str, namespace: str) -> None:
    """What the DaemonSet controller makes of the DaemonSet NAME, applied over OLD: a revision for another template."""
    from ...reconciler.shell.cluster import REVISIONS

    new = server.get(kind, name, namespace)
    metadata = new["metadata"]
    server.edit(kind, name, {"status": {"observedGeneration": metadata.get("generation", 1)}}, namespace)
    if old is not None and same(old, new):
        return
    newest = max((int(each.get("revision", 0)) for each in server.all(REVISIONS)), default=0)
    revision = str(metadata.get("annotations", {}).get(keys.REVISION, REVISION))
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": metadata["uid"], "controller": True}
    labels = {**metadata.get("labels", {}), keys.HASH: revision}
    made = {"name": f"{name}-{REVISION}", "namespace": namespace, "ownerReferences": [owner], "labels": labels}
    server.put(REVISIONS, {"metadata": made, "revision": newest + 1})


def same(old: Document, new: Document) -> bool:
    """Whether pods of OLD are as NEW would make them. Without a revision of ours on both, the template decides: what is
    rendered is there, and beside it nothing but what the API server adds."""
    revisions = [each["metadata"].get("annotations", {}).get(keys.REVISION) for each in (old, new)]
    if all(revisions):
        return bool(revisions[0] == revisions[1])
    return covers(old["spec"]["template"], new["spec"]["template"])


def covers(have: Any, wanted: Any) -> bool:
    """Whether HAVE has all that is WANTED; lists are equally long."""
    if isinstance(wanted, dict) and isinstance(have, dict):
        return all(key in have and covers(have[key], item) for key, item in wanted.items())
    if isinstance(wanted, list) and isinstance(have, list):
        return len(have) == len(wanted) and all(map(covers, have, wanted))
    return bool(have == wanted)


def prune(server: Server, kind: Kind[Any], names: Sequence[str]) -> None:
    """Take away the NodePolicies that are not among the rendered NAMES."""
    for each in [*server.all(kind)] if names else ():
        if each["metadata"]["name"] not in names:
            server.remove(kind, each["metadata"]["name"])
