"""The requests of a step, and how they are taken back: what a program does where a person runs commands.

Only a few verbs, and none for what a hand-over must never do: no pod, DaemonSet or custom resource is deleted. What is
done is kept in the cluster with what was before (the record), so that somebody else can go on, or back.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpustack.model import Body

from .seen import Seen, facts, space

RECORD = "gpustack-migrate"
"""The name of the ConfigMap that holds the record, and of the Lease of who runs."""


@dataclass(frozen=True)
class Act:
    """VERB on an object: BODY as it was seen (patch, delete), or as it is to be (apply). PATCH is a merge patch, of the
    SUBRESOURCE where one is named. `release` gives the nodes back (BODY is the stack's namespace), `save` writes the
    items of the List BODY to the file that it is called after."""

    verb: Literal["patch", "apply", "delete", "release", "save"]
    body: Body
    patch: Body | None = None
    subresource: str = ""

    def __post_init__(self) -> None:
        if self.verb == "delete" and self.body["kind"] not in facts()["deletable"]:
            raise ValueError(f"a hand-over deletes no {self.body['kind']}")

    @property
    def sent(self) -> Body:
        """The patch, which fails where the object is another or has changed since it was seen."""
        patch, meta = dict(self.patch or {}), self.body["metadata"]
        head = {key: meta[key] for key in ("uid", "resourceVersion") if meta.get(key)}
        return {**patch, "metadata": {**patch.get("metadata", {}), **head}}

    def entry(self) -> Body:
        """The act for the record: the object, and what is before and after. No object stands there whole: somebody else
        may write the record, and whoever goes back must not apply what he wrote."""
        body, after = self.body, self.patch
        before: Body | None = None
        if self.patch and "managedFields" in self.patch.get("metadata", {}):
            after = {"managedFields": "taken over"}
        elif self.patch:
            before = inverse(self.patch, body)
        elif self.verb == "apply":
            after = {"digest": digest(body)}
        what = {
            "uid": body["metadata"].get("uid"),
            **dict(zip(("kind", "namespace", "name"), key_of(body), strict=True)),
        }
        return {"verb": self.verb, "object": what, "before": before, "after": after}


def saving(file: str, bodies: list[Body]) -> Act:
    """The act that saves BODIES in FILE, which nobody else can read."""
    return Act("save", {"apiVersion": "v1", "kind": "List", "metadata": {"name": file}, "items": bodies})


def key_of(body: Body) -> tuple[str, str, str]:
    """Kind, namespace and name of BODY."""
    return body["kind"], space(body), body["metadata"]["name"]


def bare(body: Body) -> Body:
    """BODY without what the API server writes by itself."""
    meta = {key: value for key, value in body["metadata"].items() if key not in facts()["servers"]}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": meta}


def within(patch: Body, shape: Mapping[str, Any]) -> Body:
    """PATCH without what has no place in SHAPE."""
    both = {key: (value, shape[key]) for key, value in patch.items() if key in shape}
    return {key: within(*each) if all(isinstance(one, dict) for one in each) else each[0] for key, each in both.items()}


def digest(value: Any) -> str:
    """A name for VALUE, plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def inverse(patch: Body, body: Mapping[str, Any]) -> Body:
    """The merge patch that makes of BODY, after PATCH, what it was."""
    return {
        key: inverse(value, body.get(key) or {}) if isinstance(value, dict) else body.get(key)
        for key, value in patch.items()
    }


def changes(patch: Body, body: Mapping[str, Any]) -> bool:
    """Whether the merge patch PATCH makes BODY another."""
    return inverse(patch, body) != patch


def record(seen: Seen, namespace: str) -> list[Body]:
    """The entries of the record, oldest first. What can't be read is left out: nobody but a person wrote it."""
    entries: list[Body] = []
    for _, text in sorted(((seen.find("ConfigMap", RECORD, namespace) or {}).get("data") or {}).items()):
        try:
            entries += [each for each in json.loads(text) if each["object"]["name"] and each["step"]]
        except (ValueError, TypeError, KeyError):
            continue
    return entries


def undone(entries: list[Body], step: str, seen: Seen) -> Iterator[tuple[Body, Body | None]]:
    """What was before STEP changed it, by the ENTRIES, of each object the last first, and what is now."""
    done = set[tuple[str, ...]]()
    for each in reversed(entries):
        kind, where, name = key = tuple(each["object"][part] for part in ("kind", "namespace", "name"))
        if each["step"] == step and each.get("before") and key not in done:
            done.add(key)
            yield each["before"], seen.find(kind, name, where)
