"""Which findings somebody accepts, by acceptances.yaml, and what is wrong with acceptances."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..policy.loading.decisions import AcceptanceSpec
from .impact.effects import Effect, Impact
from .impact.tiers import RED, REFUSED

SHORT = 19
"""Characters of a digest that people compare: sha256: and twelve more."""
Listed = Sequence[AcceptanceSpec]


def applied(impact: Impact, listed: Listed, today: datetime.date, used: Listed = ()) -> Impact:
    """IMPACT, with who accepts a finding at each that is accepted on the day TODAY. USED is what is merged already: it
    was for the merge that brought it, and else whoever takes a change back could merge it again unseen."""
    fresh = [one for one in listed if one not in used]
    known = {(one.finding, one.before, one.after): one for one in fresh if one.last >= today}
    effects = []
    for effect in impact.effects:
        one = known.get((effect.id, effect.before, effect.after)) if acceptable(effect) else None
        effects.append(replace(effect, accepted=one.words) if one else effect)
    return replace(impact, effects=tuple(effects))


def acceptable(effect: Effect) -> bool:
    """Whether somebody can accept EFFECT, and has to."""
    return REFUSED < effect.tier <= RED


def complaints(impact: Impact, listed: Listed, today: datetime.date, used: Listed = ()) -> Iterator[str]:
    """What is wrong with acceptances: used, expired, for another content, or of no finding."""
    by_id = {effect.id: effect for effect in impact.effects}
    unused = 0
    for one in listed:
        effect = by_id.get(one.finding)
        if effect is None:
            unused += 1
        elif one in used and not effect.accepted:
            yield f"the acceptance of {one.finding} by {one.by} was used by the merge that brought it: accept it again"
        elif one.last < today:
            yield f"the acceptance of {one.finding} by {one.by} expired on {one.until}"
        elif (one.before, one.after) != (effect.before, effect.after) and not effect.accepted:
            yield f"the acceptance of {one.finding} by {one.by} is for another content: it changed since"
    if unused:
        yield f"{unused} acceptance{'' if unused == 1 else 's'} of no finding here: take out what is merged"


def fails(impact: Impact, limit: int) -> bool:
    """Whether something of tier LIMIT or a lower number isn't accepted."""
    told = min((effect.tier for effect in impact.effects), default=None)
    silent = impact.tier is not None and impact.tier <= limit and (told is None or impact.tier < told)
    return silent or any(effect.tier <= limit and not effect.accepted for effect in impact.effects)


def agreement(effect: Effect) -> str:
    """Who accepts EFFECT, or what an acceptance of it is bound to; "" where it needs none."""
    if effect.accepted:
        return f"accepted by {effect.accepted}"
    bound = f"{effect.id}, {effect.before[:SHORT]} -> {effect.after[:SHORT]}"
    return f"to accept: {bound}" if acceptable(effect) else ""
