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
    found = (part if part[0] in "[\\" else special.get(part, re.escape(part)) for part in parts)
    return re.fullmatch("".join(found), text) is not None


def repository(url: str) -> str:
    """URL as Argo CD compares it."""
    url = url.strip().lower()
    if SHORT_SSH.fullmatch(url) and not url.startswith("ssh://"):
        url = f"ssh://{url.replace(':', '/', 1)}"
    return url.removesuffix(".git").removeprefix("ssh://")


def permits_source(patterns: Iterable[str], url: str) -> bool:
    """Whether a project with `sourceRepos` PATTERNS permits the repository URL."""
    found = False
    for pattern in patterns:
        negated = pattern.startswith("!")
        if matches(("!" if negated else "") + repository(pattern.removeprefix("!")), repository(url), "/"):
            found = True
        elif negated:
            return False
    return found


def permits_destination(items: Iterable[Mapping[str, str]], wanted: Mapping[str, str]) -> bool | None:
    """Whether a project with `destinations` ITEMS permits the cluster and namespace WANTED.

    None where that hangs on the cluster's address and WANTED has its name, or the other way round.
    """
    known, other = ("server", "name") if wanted.get("server") else ("name", "server")
    found, unknown = False, False
    for item in items:
        namespace, cluster, otherwise = item.get("namespace", ""), item.get(known, ""), item.get(other, "")
        inside = matches(namespace, wanted.get("namespace", ""))
        here = otherwise == "*" or matches(cluster, wanted.get(known, ""))
        if here and inside:
            found = True
        elif (inside and not here and cluster.startswith("!")) or (here and not inside and namespace.startswith("!")):
            return False
        elif otherwise:
            unknown = unknown or inside or otherwise.startswith("!") or namespace.startswith("!")
    return None if unknown and not found else found


def permits_kind(spec: Mapping[str, object], group: str, kind: str, *, namespaced: bool) -> bool:
    """Whether a project with SPEC permits objects of KIND in GROUP."""
    where = "namespace" if namespaced else "cluster"
    allowed, refused = spec.get(f"{where}ResourceWhitelist"), spec.get(f"{where}ResourceBlacklist")

    def listed(items: object) -> bool:
        given = items if isinstance(items, list) else []
        return any(names(one.get("group", ""), group) and names(one.get("kind", ""), kind) for one in given)

    return (listed(allowed) or (namespaced and allowed is None)) and not listed(refused)
