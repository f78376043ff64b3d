"""What differs between releases, other than images and defaults: one name per difference.

A release's data file lists under `lacks` the traits that it does not have yet; the newest release has all. A component
asks for a trait where it renders the difference, so a new release is a data file and, where it changes behaviour, one
trait here and one place in one component. Source: facts/operator-releases.md; section 1 lists all differences.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Traits:
    """True: as in the newest release. False: as it was before."""

    peermem_validation: bool = True
    """The validator knows the stand-alone component nvidia-peermem (since v26.3.0)."""


def without(names: list[str]) -> Traits:
    """The traits of a release that lacks NAMES. Raises ValueError for a name that no trait has."""
    known = {field.name for field in fields(Traits)}
    unknown = sorted(set(names) - known)
    if unknown:
        raise ValueError(f"no trait is called {', '.join(unknown)}")
    return Traits(**dict.fromkeys(names, False))
