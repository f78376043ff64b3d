"""Why a text can't be used: what findings say of it stands in the table beside this module, by id and case.

Solves: the code that reads is about places and nodes, and each refusal took more lines than what finds it. A `$word` of
a text is what the reader gives, `$file` the file's name. Only who refuses something reads the table.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template
from typing import Any, NoReturn

import yaml

from gpustack.model import InputError, Location


@cache
def table() -> dict[str, dict[str, dict[str, str]]]:
    """The texts by id and case."""
    read: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return read


def refusal(rule: str, case: str, where: Location, **words: object) -> InputError:
    """The error of the id RULE at WHERE, as the table says it of CASE with WORDS."""
    texts = table()[rule][case]
    what, why, remedy = (
        Template(texts.get(part, "")).substitute(words, file=where.file) for part in ("what", "why", "remedy")
    )
    return InputError.of(rule, what, location=where, why=why, remedy=remedy)


def refuse(rule: str, case: str, where: Location, **words: object) -> NoReturn:
    """Raise `refusal`."""
    raise refusal(rule, case, where, **words)
