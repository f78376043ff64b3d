"""How Argo CD compares an Application with its AppProject: by patterns (its glob library; for kinds that of Go, which
has no braces), those of its own each with a `!` before it where it forbids.

Neither the API's schema nor Argo CD's diff engine says whether a project permits an Application. What a project permits
is said in three values, since a cluster has a name and an address, and the policy knows only one of them: True, False,
and None where the other one decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from urllib.parse import quote, unquote

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

    None where that hangs on the cluster's address and WANTED has its name, or the other way round.
    """
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
