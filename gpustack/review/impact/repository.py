"""IMP0xx: what is in the repository beside policies: it belongs to no cluster, and no rule finds it in changes.

The pages are rules like all others; whoever looks at the files makes the effects (`effect`).
"""

from __future__ import annotations

from collections.abc import Iterator

from .effects import Effect
from .rule import RULES, Hit, rule
from .subject import Subject


@rule("IMP001", 0)
def not_rendered(subject: Subject) -> Iterator[Hit]:
    """Something below the rendered folder isn't rendered.

    Engines apply files, whoever wrote them. What no policy renders to, or renders to in another form, was never
    compiled, checked or compared: it may be anything. Nobody can accept it.

    Do: run `gpustack render` for a file that a policy renders to, and remove any other yourself: render leaves it where
    it is. What a cluster needs belongs in its policy; dist.allow.yaml can list a file that must stay.
    """
    del subject
    yield from ()


@rule("IMP002", 1, 3, 4)
def steers_the_review(subject: Subject) -> Iterator[Hit]:
    """A file changes that steers the review, or that nobody knows.

    What CI runs, the version and the digests of what it runs, what is waived, which objects of other software are
    valid (`schemas/crds/`) and who owns what: a change of these may let the next change pass, or this one. Bots,
    engines, editors and shells read files of their own, and no list of them is complete. So every file is told but
    policies, layers, what they render to, and text: README.md, CHANGELOG.md, LICENSE and the like, and in docs/
    *.md, *.png and *.txt with plain names in small letters. Other *.md in folders is shown (tier 4), but right at
    the top, by a name or in a folder that programs follow (AGENTS.md, skills/). A link, or a file that can be
    executed, is never text. A lock in which only other versions of images come and go is planned. Where the project
    is a folder of a larger repository, files right in the folders above it count too, and those in hidden folders
    and in folders of CI there; other people's folders don't.

    Do: read the file's own difference; let the owners of the repository decide, apart from other changes.
    """
    del subject
    yield from ()


def effect(rule_id: str, tier: int, where: str, what: str, *, before: str = "", after: str = "") -> Effect:
    """An effect of RULE_ID on the file WHERE, in no cluster; BEFORE and AFTER are digests of the file."""
    return Effect(rule_id, tier, where, what, RULES[rule_id].page.remedy, (), before=before, after=after)
