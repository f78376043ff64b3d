"""Whose the fields of rendered objects are: former managers', or those of who applies the render (moving.md M6)."""

from typing import Any

from gpustack.model import Body

from .plan import Render
from .seen import Seen, facts, space


class Fields:
    """The managed fields of what stands in the cluster for a render. `manager` applies it. `lacking` are rendered
    objects of kinds that were looked at, the reconciler's aside, that it hasn't applied; `former` are live ones that
    others have fields of. `known`: managed fields were seen at all."""

    def __init__(self, seen: Seen, render: Render) -> None:
        self.seen, self.manager = seen, render.applies.manager if render.applies else str(facts()["by_hand"])
        lives = [live for _, body in render.bodies if (live := self.live(body))]
        pairs = [(body, self.live(body)) for stage, body in render.bodies if stage != "reconciler" and telling(body)]
        shown = ["managedFields" in live["metadata"] for _, live in pairs if live is not None]
        self.known = bool(shown) and all(shown)
        self.lacking = [
            body
            for body, live in pairs
            if (body["kind"] in seen.looked if live is None else "managedFields" in live["metadata"])
            and self.own(live) is None
        ]
        self.former = [live for live in lives if self.old(live) is not None]

    def live(self, body: Body) -> Body | None:
        """What stands in the cluster for BODY, which is rendered."""
        return self.seen.find(body["kind"], str(body["metadata"]["name"]), space(body))

    def own(self, live: Body | None) -> int | None:
        """Which entry of LIVE is what the new manager has applied."""
        return _entry(live, [self.manager], "Apply")

    def old(self, live: Body) -> int | None:
        """Which entry of LIVE is of a former manager."""
        return _entry(live, facts()["managers"], "Update")

    def taken(self, live: Body) -> list[dict[str, Any]]:
        """The JSON patch that makes a former manager's fields of LIVE the new one's; it fails if LIVE has changed."""
        at, entries = "/metadata/managedFields", live["metadata"]["managedFields"]
        old, own = self.old(live), self.own(live)
        known = [index for index in (old, own) if index is not None]
        return [
            *({"op": "test", "path": f"{at}/{each}/manager", "value": entries[each]["manager"]} for each in known),
            {"op": "replace", "path": f"{at}/{old}/manager", "value": self.manager},
            {"op": "replace", "path": f"{at}/{old}/operation", "value": "Apply"},
            *([] if own is None else [{"op": "remove", "path": f"{at}/{own}"}]),
        ]

    def merged(self, live: Body) -> list[dict[str, Any]]:
        """The managed fields of LIVE after the same."""
        old, own = self.old(live), self.own(live)
        taken = {"manager": self.manager, "operation": "Apply"}
        entries = enumerate(live["metadata"]["managedFields"])
        return [{**each, **taken} if index == old else each for index, each in entries if index != own]


def telling(body: Body) -> bool:
    """Whether the rendered BODY has any field that somebody can own: a bare ServiceAccount has none."""
    return bool(body.keys() - {"apiVersion", "kind", "metadata"} or body["metadata"].keys() - {"name", "namespace"})


def _entry(live: Body | None, managers: list[str], operation: str) -> int | None:
    entries = (live or {"metadata": {}})["metadata"].get("managedFields") or []
    for index, each in enumerate(entries):
        if each.get("manager") in managers and each.get("operation") == operation and not each.get("subresource"):
            return index
    return None
