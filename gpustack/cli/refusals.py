"""What the verbs say where they can't do what was asked for, see text/refusals.py."""

from __future__ import annotations

from ..text.refusals import Texts

TEXTS = Texts(__file__)
said = TEXTS.finding
