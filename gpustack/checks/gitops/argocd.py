"""A rule about an Application and its AppProject together: Argo CD refuses what the project does not permit.

It compares them by patterns (its glob library; for kinds that of Go, which has no braces), those of its own each with a
`!` before it where it forbids. Neither the API's schema nor Argo CD's diff engine says whether a project permits an
Application. What a project permits is said in three values, since a cluster has a name and an address, and the policy
knows only one of them: True, False, and None where the other one decides.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, unquote

from ...gitops.engines.argocd import ENGINE
from ...model import Body
from ..rule import Hit, hit, rule
from ..subjects import EngineObjects, Synced

HOST = re.compile(r"(?:[-\w.~!$&'()*+,;=:%]*@)?(?:\[[0-9a-f:.]*:[0-9a-f:.]*\]|[-\w.~!$&'()*+,;=<>\"]*)(?::[0-9]*)?")
PLAIN_PATH = re.compile(r"[-\w.~!$&'()*+,;=:@/%\[\]]*", re.ASCII)
BAD_ESCAPE = re.compile(r"%(?![0-9a-f]{2})")
COLON_FIRST = re.compile(r"[^/a-z][^/]*:|[a-z][-+.a-z0-9]*[^-+.:/a-z0-9][^/]*:")
HOST_ALSO = "!$&'()*+,;=:<>\"[]@%"
"""What Go takes for a host with a port, and for a path, as they stand. Others it refuses or escapes."""
SHORT_SSH = re.compile(r"(?:ssh://)?[^/:]*?@[^@]+")


def matches(pattern: str, text: str, separator: str = "") -> bool:
    """Whether PATTERN is about TEXT; `*` and `?` stop at the SEPARATOR. One that can't be read is about nothing."""
    if pattern.startswith("!"):
        return not matches(pattern[1:], text, separator)
    expression = _expression(pattern, separator)
    return pattern == "*" or (expression is not None and expression.fullmatch(text) is not None)


@cache
def _expression(pattern: str, separator: str) -> re.Pattern[str] | None:
    one = f"[^{re.escape(separator)}]" if separator else "."
    parts = []
    depth = 0
    for part in re.findall(r"\\.|\*\*|\[!?[^\]]*\]|.", pattern, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(part, 0)
        if part.startswith("[") and len(part) > 1:
            parts.append(_character(part))
        elif len(part) == 2 and part[0] == "\\":
            parts.append(re.escape(part[1]))
        else:
            special = {"**": ".*", "*": f"{one}*", "?": one, "{": "(?:", "}": ")"}
            parts.append("|" if part == "," and depth else special.get(part, re.escape(part)))
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        return None


def _character(part: str) -> str:
    """One character of those in a part such as `[abc]`, `[a-z]` or `[!abc]`."""
    inside = part[1:-1]
    negated = "^" if inside.startswith("!") else ""
    inside = inside.removeprefix("!")
    if re.fullmatch(r".-.", inside, re.DOTALL):
        return f"[{negated}{re.escape(inside[0])}-{re.escape(inside[2])}]"
    return f"[{negated}{re.escape(inside)}]" if inside else "(?!)"


def names(pattern: str, text: str) -> bool:
    """Whether PATTERN is about a kind or group TEXT, as Go's path/filepath reads it: `[^a]` is what it calls not a."""
    parts = re.findall(r"\\.|\[\^?(?:\\.|[^\]\\])+\]|.", pattern, re.DOTALL)
    if {"[", "\\"} & {*parts}:
        return False
    special = {"*": "[^/]*", "?": "[^/]"}
    translated = (part if part[0] in "[\\" else special.get(part, re.escape(part)) for part in parts)
    return re.fullmatch("".join(translated), text) is not None


def repository(url: str) -> str:
    """URL, a pattern too, as Argo CD compares it: as Go's net/url writes it, "" for one that Go can't read."""
    url = url.strip().lower()
    if SHORT_SSH.fullmatch(url) and not url.startswith("ssh://"):
        url = f"ssh://{url.replace(':', '/', 1)}"
    address, *asked = re.split(r"(?=[?#])", url.removesuffix(".git"), maxsplit=1)
    scheme, mark, rest = address.partition("://")
    host, slash, path = rest.partition("/") if mark else ("", "", address)
    if not HOST.fullmatch(host) or BAD_ESCAPE.search(address) or COLON_FIRST.match(path if not mark else ""):
        return ""
    if not PLAIN_PATH.fullmatch(path):  # then all of it is escaped, also what would be a pattern
        path = quote(unquote(path), safe="$&+,/:;=@")
    user, at, host = host.rpartition("@")
    host = f"{quote(unquote(user), safe='$&+,;=:')}{at}{quote(host, safe=HOST_ALSO)}"
    whole = "".join((scheme if mark else "", mark, host, slash, path, *asked))
    return whole.removeprefix("ssh://")


def permits_source(patterns: Iterable[str], url: str) -> bool:
    """Whether a project with `sourceRepos` PATTERNS permits the repository URL."""
    permitted = False
    for pattern in patterns:
        negated = pattern.startswith("!")
        if matches(("!" if negated else "") + repository(pattern.removeprefix("!")), repository(url), "/"):
            permitted = True
        elif negated:
            return False
    return permitted


def permits_destination(items: Iterable[Mapping[str, str]], wanted: Mapping[str, str]) -> bool | None:
    """Whether a project with `destinations` ITEMS permits the cluster and namespace WANTED.

    None where that hangs on the cluster's address and WANTED has its name, or the other way round."""
    known, other = ("server", "name") if wanted.get("server") else ("name", "server")
    permitted, unknown = False, False
    for item in items:
        namespace, cluster, otherwise = item.get("namespace", ""), item.get(known, ""), item.get(other, "")
        inside = matches(namespace, wanted.get("namespace", ""))
        here = otherwise == "*" or matches(cluster, wanted.get(known, ""))
        if here and inside:
            permitted = True
        elif (inside and not here and cluster.startswith("!")) or (here and not inside and namespace.startswith("!")):
            return False
        elif otherwise:
            unknown = unknown or inside or otherwise.startswith("!") or namespace.startswith("!")
    return None if unknown and not permitted else permitted


def permits_kind(spec: Mapping[str, object], group: str, kind: str, *, namespaced: bool) -> bool:
    """Whether a project with SPEC permits objects of KIND in GROUP."""
    where = "namespace" if namespaced else "cluster"
    allowed, refused = spec.get(f"{where}ResourceWhitelist"), spec.get(f"{where}ResourceBlacklist")

    def listed(items: object) -> bool:
        given = items if isinstance(items, list) else []
        return any(names(one.get("group", ""), group) and names(one.get("kind", ""), kind) for one in given)

    return (listed(allowed) or (namespaced and allowed is None)) and not listed(refused)


WHERE = "spec.gitops"
OWN = "permit it in the AppProject, or leave out spec.gitops.argocd.project: then one that fits is rendered"


@rule("GPU839", "error", over="engine")
def not_permitted(made: EngineObjects) -> Iterator[Hit]:
    """An Application that its AppProject does not permit."""
    brought = [body for body in made.spec.extraObjects if body["kind"] == "AppProject"]
    projects = {key(body): body for body in (*brought, *made.bodies) if body["kind"] == "AppProject"}
    own = ENGINE.of(made.spec.gitops).project if made.spec.gitops else None
    hits = dict[Hit, None]()
    for application in (body for body in made.bodies if body["kind"] == "Application"):
        wanted = (application["metadata"]["namespace"], application["spec"]["project"])
        project = projects.get(wanted)
        if project is None:
            for space in (space for space, name in projects if name == wanted[1]):
                path, place = f"{WHERE}.argocd.project", space or "none"
                hits[hit(path, "elsewhere", name=wanted[1], space=place, namespace=wanted[0])] = None
        else:
            synced = made.synced[application["metadata"]["name"]]
            hits |= dict.fromkeys(_refused(application["spec"], project, synced, project["metadata"]["name"] == own))
    yield from hits


def key(body: Body) -> tuple[str, str]:
    """The namespace and name of a project."""
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def _refused(application: Body, project: Body, synced: Synced, own: bool) -> Iterator[Hit]:
    """What of the Application with spec APPLICATION, which syncs SYNCED, the PROJECT does not permit."""
    spec: dict[str, Any] = project["spec"]
    name = f"the AppProject {project['metadata']['name']}" if own else "its AppProject"
    at, mend = (f"{WHERE}.argocd.project", OWN) if own else (None, "")
    url = application["source"]["repoURL"]
    if not permits_source(spec.get("sourceRepos") or (), url):
        yield hit(at or f"{WHERE}.repository.url", "repository", remedy=mend, name=name, url=url)
    destination = application["destination"]
    spaces = sorted({destination.get("namespace", ""), *synced.namespaces})
    allowed = spec.get("destinations") or ()
    outside = [one for one in spaces if permits_destination(allowed, {**destination, "namespace": one}) is False]
    if outside:
        cluster = destination.get("name") or destination.get("server") or "of no name"
        where, names = at or f"{WHERE}.argocd.destination", ", ".join(each or "none" for each in outside)
        yield hit(where, "destination", remedy=mend, name=name, cluster=cluster, spaces=names)
    kinds = [one for one in synced.kinds if not permits_kind(spec, one[0], one[1], namespaced=one[2])]
    if kinds:
        told = sorted(f"{kind} ({group})" if group else kind for group, kind, _ in kinds)
        yield hit(at or f"{WHERE}.argocd", "kinds", remedy=mend, name=name, kinds=", ".join(told))
