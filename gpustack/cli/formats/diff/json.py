"""For programs, versioned; keys are only ever added within a version. Values of Secrets are hidden here too."""

from typing import Any

from ....review.diff.fields import FieldChange, Item
from ....review.diff.objects import ObjectChange
from ....review.diff.present import HIDDEN, hides
from ....review.impact.effects import Effect
from ....review.impact.tiers import TIERS
from ...text import as_json, picked
from . import Compared

VERSION = 2
"""2: tiers in the place of severities and of the list of dangers."""


def write(compared: Compared) -> str:
    """COMPARED as a JSON document."""
    difference, impact = compared.difference, compared.impact
    groups = [
        {
            "clusters": list(group.clusters),
            **({"by": group.by} if group.by else {}),
            "changes": [change_data(change) for change in group.changes],
        }
        for group in difference.groups
    ]
    told: dict[str, Any] = {"version": VERSION, **picked(difference, "before after"), "clusters": difference.total}
    told |= {"tier": impact.tier, "tierName": None if impact.tier is None else TIERS[impact.tier].name}
    told |= {"routine": impact.routine, "acceptances": list(compared.complaints)}
    told |= {"impact": [effect_data(effect) for effect in impact.effects], "withoutNumbers": list(impact.unknown)}
    return as_json({**told, "groups": groups}) + "\n"


def effect_data(effect: Effect) -> dict[str, Any]:
    """One effect, with all that is said about it."""
    return {
        **picked(effect, "rule id tier"),
        "tierName": TIERS[effect.tier].name,
        **picked(effect, "title where what"),
        "clusters": list(effect.clusters),
        "nodes": None if effect.nodes is None else {"min": effect.nodes[0], "max": effect.nodes[1]},
        "nodesPartly": effect.partly,
        **picked(effect, "why remedy"),
        **{name: said or None for name, said in picked(effect, "before after accepted").items()},
    }


def change_data(change: ObjectChange) -> dict[str, Any]:
    made: dict[str, Any] = {"what": change.what, "tier": change.tier, **change.identity._asdict(), "file": change.file}
    if change.was:
        made["was"] = change.was.name
    if change.moved:
        made["moved"] = list(change.moved)
    made["fields"] = [field_data(change, field) for field in change.fields]
    return made


def field_data(change: ObjectChange, field: FieldChange) -> dict[str, Any]:
    made: dict[str, Any] = {"op": field.op, "path": [step(each) for each in field.path]}
    hidden = hides(change, field)
    if field.op != "add":
        made["before"] = HIDDEN if hidden else plain(field.before)
    if field.op != "remove":
        made["after"] = HIDDEN if hidden else plain(field.after)
    return made


def step(one: Any) -> Any:
    """A step of a path: a key, a position, or the fields that an item of a list is known by."""
    return dict(one.key) if isinstance(one, Item) else one


def plain(value: Any) -> Any:
    """VALUE as JSON holds it: YAML has days, which become text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [step(item) if isinstance(item, Item) else plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
