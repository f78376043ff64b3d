"""A small synchronous client of the API server, for tests and for what they simulate.

It speaks HTTP as the tests need it: objects are plain dicts, paths come from the server's own discovery, each thread
has a connection of its own, and what the server refuses is an ApiError that says what was asked and what was answered.
No client library stands between, so that a test sees status codes, warnings and conflicts as they are.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

Body = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

IDLE_SECONDS = 30
"""After so long a connection isn't used again; the API server closes idle ones after 90 s."""

WELL_KNOWN = {
    **dict.fromkeys(
        ("ConfigMap", "Event", "Namespace", "Node", "Pod", "Secret", "Service", "ServiceAccount"),
        "v1",
    ),
    **dict.fromkeys(("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"), "apps/v1"),
    **dict.fromkeys(("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"), "rbac.authorization.k8s.io/v1"),
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "Lease": "coordination.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1",
}
"""Kinds that are called by their name alone; others are `group/version/Kind`."""


class ApiError(Exception):
    """The API server answered with an error; `status` is its code, `body` its Status object."""

    def __init__(self, method: str, path: str, status: int, body: Body) -> None:
        self.status = status
        self.body = body
        self.reason = str(body.get("reason", ""))
        self.message = str(body.get("message", ""))
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")

    @property
    def causes(self) -> list[str]:
        """What the Status gives as causes, one text each."""
        found = self.body.get("details", {}).get("causes", [])
        return [f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in found]


@dataclass(frozen=True)
class Answer:
    """What the API server said to a request that it granted."""

    status: int
    body: Body
    warnings: tuple[str, ...] = ()


class Watch:
    """A stream of events, until the server ends it or `close` does, from any thread."""

    def __init__(self, connection: http.client.HTTPSConnection, answer: http.client.HTTPResponse) -> None:
        self._socket = connection.sock
        self._connection = connection
        self._answer = answer

    def __iter__(self) -> Iterator[Body]:
        try:
            for line in self._answer:
                yield json.loads(line)
        except (OSError, ValueError, http.client.HTTPException):
            return  # broken off in the middle: who watches lists anew
        finally:
            self._connection.close()

    def close(self) -> None:
        """End it; whoever iterates comes to the end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


@dataclass
class Api:
    """The API server at `host:port`, as the user that `token` belongs to."""

    port: int
    ca: str
    token: str
    host: str = "127.0.0.1"
    timeout: float = 30
    _local: threading.local = field(default_factory=threading.local, repr=False)
    _open: list[http.client.HTTPSConnection] = field(default_factory=list, repr=False)
    _resources: dict[str, tuple[str, bool]] = field(default_factory=dict, repr=False)

    def as_user(self, token: str) -> Api:
        """The same server, as another user; `close` of this one closes that one's connections too."""
        return Api(self.port, self.ca, token, self.host, self.timeout, _open=self._open)

    def close(self) -> None:
        """Close the connections of all threads."""
        while self._open:
            self._open.pop().close()

    # --- requests -----------------------------------------------------------------------------------------------------

    def connect(self, timeout: float | None = None) -> http.client.HTTPSConnection:
        """A new connection."""
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout or self.timeout, context=context)

    def request(
        self, method: str, path: str, body: object = None, *, content: str = "application/json", **query: str
    ) -> Answer:
        """Send one request; a body of bytes as it is. A read is sent again, once, over a connection that went stale.

        A write is not: so a connection that was idle for long, which the server may have closed, is not used for any.
        """
        path += f"?{urlencode(query)}" if query else ""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", "Content-Type": content}
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            if connection is not None and time.monotonic() - self._local.used > IDLE_SECONDS:
                connection.close()  # it connects anew by itself
            if connection is None:
                connection = self._local.connection = self.connect()
                self._open.append(connection)
            self._local.used = time.monotonic()
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                raw = answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                if connection in self._open:
                    self._open.remove(connection)
                self._local.connection = None
                if attempt == 2 or method != "GET":
                    raise
                continue
            if answer.status >= 400:
                raise ApiError(method, path, answer.status, _status(raw))
            warnings = tuple(answer.msg.get_all("Warning", []))
            return Answer(answer.status, json.loads(raw) if raw[:1] == b"{" else {}, warnings)
        raise AssertionError("unreachable")

    def path(self, kind: str, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """Where objects of KIND are: `Pod`, or `group/version/Kind`."""
        api_version, _, short = kind.rpartition("/")
        api_version = api_version or WELL_KNOWN[kind]
        key = f"{api_version}/{short}"
        if key not in self._resources:
            self._discover(api_version)
        if key not in self._resources:
            raise LookupError(f"the API server does not know {key}")
        plural, namespaced = self._resources[key]
        parts = [_root(api_version)]
        if namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        return "/".join([*parts, plural, *filter(None, (name, subresource))])

    def knows(self, api_version: str, kind: str) -> bool:
        """Whether the server has the kind now."""
        key = f"{api_version}/{kind}"
        if key not in self._resources:
            self._discover(api_version)
        return key in self._resources

    def namespaced(self, api_version: str, kind: str) -> bool:
        """Whether objects of a known kind have a namespace."""
        return self.knows(api_version, kind) and self._resources[f"{api_version}/{kind}"][1]

    def _discover(self, api_version: str) -> None:
        try:
            listed = self.request("GET", _root(api_version)).body["resources"]
        except ApiError as error:
            if error.status != 404:
                raise
            return
        for one in listed:
            if "/" not in one["name"]:
                self._resources[f"{api_version}/{one['kind']}"] = (one["name"], one["namespaced"])

    # --- verbs --------------------------------------------------------------------------------------------------------

    def get(self, kind: str, name: str, namespace: str = "") -> Body:
        """The object; an ApiError with 404 where there is none."""
        return self.request("GET", self.path(kind, name, namespace)).body

    def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        """The object, or None."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def list(self, kind: str, namespace: str = "", *, labels: str = "", fields: str = "") -> list[Body]:
        """The objects, of all namespaces where none is given."""
        query = urlencode({"labelSelector": labels, "fieldSelector": fields})
        items: list[Body] = self.request("GET", f"{self.path(kind, namespace=namespace)}?{query}").body["items"]
        return items

    def create(self, body: Body, **query: str) -> Body:
        """Create an object."""
        return self.request("POST", self._collection(body), body, **query).body

    def update(self, body: Body, *, subresource: str = "", **query: str) -> Body:
        """Replace an object."""
        return self.request("PUT", self._place(body, subresource), body, **query).body

    def apply(self, body: Body, text: bytes = b"", *, manager: str = "test", dry_run: bool = False) -> Answer:
        """Server-side apply of BODY (or of TEXT, the YAML it came from), strict: an unknown field is an error."""
        wanted = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"}
        wanted |= {"dryRun": "All"} if dry_run else {}
        path = f"{self._place(body)}?{urlencode(wanted)}"
        return self.request("PATCH", path, text or body, content=APPLY)

    def patch(
        self,
        kind: str,
        name: str,
        patch: object,
        namespace: str = "",
        *,
        how: str = MERGE,
        subresource: str = "",
        **query: str,
    ) -> Body:
        """Patch an object: a merge patch, unless `how` says STRATEGIC or JSON_PATCH."""
        path = self.path(kind, name, namespace, subresource)
        return self.request("PATCH", path, patch, content=how, **query).body

    def delete(self, kind: str, name: str, namespace: str = "", *, uid: str = "", grace: int | None = None) -> Body:
        """Delete an object, with its uid as a precondition where one is given; what it owns goes in the background."""
        options: Body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        return self.request("DELETE", self.path(kind, name, namespace), options).body

    def evict(self, name: str, namespace: str, *, uid: str = "", dry_run: bool = False) -> Answer:
        """Ask for a pod's eviction: 429 is a PodDisruptionBudget's no."""
        options: Body = {"preconditions": {"uid": uid}} if uid else {}
        if dry_run:
            options["dryRun"] = ["All"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        return self.request("POST", self.path("Pod", name, namespace, "eviction"), body)

    def token_for(self, account: str, namespace: str, *, pod: Body | None = None) -> str:
        """A token of a ServiceAccount (TokenRequest), bound to POD where one is given, as the kubelet asks for it."""
        spec: Body = {"expirationSeconds": 3600}
        if pod is not None:
            meta = pod["metadata"]
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = self.path("ServiceAccount", account, namespace, "token")
        return str(self.request("POST", path, body).body["status"]["token"])

    def watch(self, kind: str, version: str, *, seconds: int = 300, fields: str = "") -> Watch:
        """Events from VERSION on, bookmarks among them."""
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": seconds, "allowWatchBookmarks": "true"}
        path = f"{self.path(kind)}?{urlencode({**query, **({'fieldSelector': fields} if fields else {})})}"
        connection = self.connect(seconds + 30)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            if answer.status >= 400:
                raise ApiError("GET", path, answer.status, _status(answer.read()))
        except BaseException:
            connection.close()
            raise
        return Watch(connection, answer)

    def _collection(self, body: Mapping[str, Any]) -> str:
        kind = f"{body['apiVersion']}/{body['kind']}"
        return self.path(kind, namespace=body["metadata"].get("namespace", ""))

    def _place(self, body: Mapping[str, Any], subresource: str = "") -> str:
        kind, meta = f"{body['apiVersion']}/{body['kind']}", body["metadata"]
        return self.path(kind, meta["name"], meta.get("namespace", ""), subresource)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _status(raw: bytes) -> Body:
    """The Status object of an error; a few errors are plain text."""
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": raw.decode("utf-8", "replace").strip()}
