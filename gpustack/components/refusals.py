"""Why a component can't be rendered, see text/refusals.py."""

from ..model import Finding
from ..text.refusals import Texts

TEXTS = Texts(__file__)


def refused(rule: str, path: str, case: str = "", **words: object) -> Finding:
    """The finding RULE at PATH of the policy ("driver.image"); in its texts that is $field, and $path with `spec.`."""
    place = f"spec.{path}"
    return TEXTS.finding(rule, case, at=place, severity="error", path=place, field=path, **words)
