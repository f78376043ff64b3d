"""How a registry wants to be told who asks: the header WWW-Authenticate (RFC 9110, 11.6.1).

One header may hold several challenges, and a value stands in quotes or not.
"""

from __future__ import annotations

import re

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a word, in the language of the standard
_PARAMETER = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))', re.DOTALL)
_WORD = re.compile(_TOKEN)
_SCHEME = re.compile(rf"({_TOKEN})(?=[ \t]|,|$)")


def challenges(header: str) -> dict[str, dict[str, str]]:
    """The parameters of each scheme in HEADER, all names in small letters; of a scheme that comes twice the first."""
    by_scheme: dict[str, dict[str, str]] = {}
    said: dict[str, str] = {}
    position = 0
    while position < len(header):
        parameter = _PARAMETER.match(header, position)
        scheme = None if parameter else _SCHEME.match(header, position)
        if parameter:
            name, quoted, plain = parameter.groups()
            said.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if plain is None else plain)
        elif scheme:
            said = {}
            by_scheme.setdefault(scheme[1].lower(), said)
        elif header[position] == '"':
            break  # a value without an end, or in a place where none can be
        match = parameter or scheme or _WORD.match(header, position)
        position = match.end() if match else position + 1
    return by_scheme
