"""All objects of a kind, followed as a controller does it: list, watch from there, list anew when that breaks off."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.control_plane.api import Api, ApiError, Body, Watch

Handler = Callable[[str, Body], None]
"""Takes ADDED, MODIFIED or DELETED, and the object."""


class Reflector:
    """A thread that tells `handle` of every object of a kind, until `stop`."""

    def __init__(self, api: Api, kind: str, handle: Handler) -> None:
        self._api, self._kind, self._handle = api, kind, handle
        self._known: dict[str, Body] = {}
        self._watch: Watch | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"reflector-{kind}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stopped.set()
        if self._watch is not None:
            self._watch.close()
        self._thread.join(60)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                version = self._list()
                self._watch = self._api.watch(self._kind, version, seconds=30)
                for event in self._watch:
                    if event["type"] == "ERROR" or self._stopped.is_set():
                        break
                    if event["type"] != "BOOKMARK":
                        self._tell(event["type"], event["object"])
            except (OSError, ApiError):
                self._stopped.wait(0.2)  # the API server is away: tests stop it

    def _list(self) -> str:
        """Tell of everything that is there, and of what has gone unseen; the version to watch from."""
        listed = self._api.request("GET", self._api.path(self._kind)).body
        found = {one["metadata"]["uid"]: one for one in listed["items"]}
        for uid in self._known.keys() - found.keys():
            self._tell("DELETED", self._known[uid])
        for one in found.values():
            self._tell("ADDED", one)
        return str(listed["metadata"]["resourceVersion"])

    def _tell(self, event: str, body: Body) -> None:
        if event == "DELETED":
            self._known.pop(body["metadata"]["uid"], None)
        else:
            self._known[body["metadata"]["uid"]] = body
        self._handle(event, body)
