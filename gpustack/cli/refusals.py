"""What the verbs say where they can't do what was asked for, see text/refusals.py."""

from ..model import InputError
from ..text.refusals import Texts

TEXTS = Texts(__file__)
said = TEXTS.finding


def refusal(rule: str, case: str, /, **words: object) -> InputError:
    """The error whose one finding `said` makes."""
    return InputError(said(rule, case, at="", severity="error", **words))
