"""gpustack.lock: which versions of gpustack render the clusters of a fleet, each by the digest of its files.

Solves: another version may render every cluster differently, and that would be one merge. The first version on the list
renders all clusters; another one those that have a change which names it (`gpustack: 0.15.0`, see rings.py), and so it
goes from ring to ring as any change does. Of several that a cluster has, the one further down renders it.

    - version: 0.14.0
      sha256: 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
"""

import pathlib
from collections.abc import Sequence
from typing import Annotated

from gpustack.policy.language.base import Section
from gpustack.policy.loading.brought import LOCK
from gpustack.policy.loading.decisions import SHA256
from gpustack.policy.loading.entries import Entries
from gpustack.policy.loading.envelope import Envelope
from gpustack.policy.loading.ring import VERSION
from gpustack.policy.loading.rings import Change, Rings


class Version(Section):
    """One version of gpustack."""

    version: Annotated[str, VERSION]
    """What it calls itself."""
    sha256: Annotated[str, SHA256]
    """The digest of its files: `gpustack version --lock` prints both."""


ENTRIES = Entries("GPU913", Version)


def versions_of(root: pathlib.Path) -> list[Version]:
    """The versions that the project ROOT lists, none without a list. Raises InputError with all that is wrong there."""
    return list(ENTRIES.of_file(root / LOCK, LOCK, "version", lambda entry: entry.version).values())


def is_of_base(root: pathlib.Path, version: Version) -> bool:
    """Whether the base of ROOT lists VERSION, so that it may be started, or there is no base."""
    base = ENTRIES.of_base(root / LOCK, LOCK)
    return base is None or version in base


def renderer(listed: Sequence[Version], rings: Rings, policy: Envelope) -> tuple[Version, Change | None]:
    """Which of LISTED renders the cluster of POLICY, and the change that says so, None where the list does."""
    named = {each.version: each for each in rings.of(policy)}
    version = next((each for each in reversed(listed) if each.version in named), listed[0])
    return version, named.get(version.version)
