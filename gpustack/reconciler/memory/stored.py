"""A client of the server in memory that only looks: `cluster.Source`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...api.objects import Object
from ..shell.cluster import EVERYTHING, PODS, Answer, ApiError, Body, Kind, Listing, Selection, leaned, within
from .eviction import tried
from .server import Server

T = TypeVar("T", bound=Object)


@dataclass
class Stored:
    """What SERVER holds, and which evictions it would allow."""

    server: Server = field(default_factory=Server)

    async def list(self, kind: Kind[T], which: Selection = EVERYTHING) -> Listing[T]:
        """All objects that WHICH selects."""
        try:
            decoded = (self.server.decode(kind, document) for document in self.server.all(kind, which))
            objects = tuple(leaned(kind, decoded))
            within(kind, len(objects))
        except ValueError as error:
            raise ApiError(str(error), 400, "BadRequest") from None
        return Listing(objects, str(self.server.version), self.server.now)

    async def create(self, kind: Kind[Any], body: Body, **where: Any) -> Answer:
        """The trial of an eviction of the pod `of` in its `namespace`; nothing else is ever created."""
        tried(self.server, self.server.get(PODS, where["of"], where["namespace"]))
        return Answer()
