"""What the compiler says where it can't render or write, see text/refusals.py."""

from ..text.refusals import Texts

TEXTS = Texts(__file__)
said = TEXTS.finding
