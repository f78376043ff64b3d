"""What happens when a name is not in the catalogue: an error that carries the names it may have been meant to be.

The errors are KeyErrors, not GpustackErrors: the catalogue knows no file and no line. Whoever looks a name up for a
policy turns the error into a Finding with its location.
"""

from collections.abc import Iterable
from typing import Any, ClassVar


class UnknownName(KeyError):  # noqa: N818  # the words of the domain: UnknownRelease, UnknownPlatform
    """NAME is not in the catalogue. `nearest` holds up to three names that are, best first; it may be empty."""

    what: ClassVar[str] = "name"

    def __init__(self, name: str, nearest: Iterable[str] = ()) -> None:
        super().__init__(name)
        self.name = name
        self.nearest = tuple(nearest)

    def __str__(self) -> str:
        text = f"unknown {self.what} {self.name!r}"
        return f"{text}; did you mean {' or '.join(self.nearest)}?" if self.nearest else text

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.name, self.nearest))


ALIKE = 0.6
"""How much two names must have in common for one to be meant by the other; SequenceMatcher's measure."""


def nearest(name: str, candidates: Iterable[str], count: int = 3) -> list[str]:
    """Up to COUNT of CANDIDATES that look like NAME, best first. Only letters and digits count, in any case."""
    from difflib import SequenceMatcher

    wanted = squeezed(name)
    scored = []
    for candidate in candidates:
        text = squeezed(candidate)
        matcher = SequenceMatcher(None, wanted, text)
        ratio = matcher.ratio() if matcher.real_quick_ratio() >= ALIKE else 0.0  # a text of pages is like no name
        if wanted and text and (wanted in text or text in wanted):
            # "h100" is all that people remember of NVIDIA-H100-80GB-HBM3; the more of a name they have, the better
            shared = min(len(wanted), len(text)) / max(len(wanted), len(text))
            ratio = max(ratio, 0.75 + 0.2 * shared)
        if ratio >= ALIKE:
            scored.append((-ratio, len(candidate), candidate))
    return [candidate for _, _, candidate in sorted(scored)[:count]]


def squeezed(name: str) -> str:
    """NAME without what people write in several ways: case, dots, dashes."""
    return "".join(c for c in name.lower() if c.isalnum())
