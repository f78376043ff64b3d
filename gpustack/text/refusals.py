"""What findings say where they aren't a rule's: the texts of a room stand in a table beside one of its modules.

Solves: the code that reads, writes and asks is about files and places, and each refusal took more lines than what finds
it. A table has what is wrong (`what`), and as far as there is something to say, `why` it matters and the `remedy`, by
id, and by case where an id has several. A `$word` in them is what the code gives, `$file` the file of the finding. Only
who refuses something reads the table.

Here is also the table of texts that can't be used: gpustack/text/ itself.
"""

from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any, NoReturn

from gpustack.model import Finding, InputError, Location, Severity


class Texts:
    """The table beside MODULE."""

    def __init__(self, module: str) -> None:
        self.path = Path(module).with_suffix(".yaml")

    @cached_property
    def table(self) -> dict[str, Any]:
        import yaml

        read: dict[str, Any] = yaml.safe_load(self.path.read_text(encoding="utf-8"))
        return read

    def finding(
        self,
        rule: str,
        case: str = "",
        where: Location | None = None,
        /,
        *,
        at: str = "",
        severity: Severity = "error",
        **words: object,
    ) -> Finding:
        """The finding of the id RULE in WHERE, AT a path of it, as the table says it of CASE with WORDS."""
        texts = self.table[rule][case] if case else self.table[rule]
        given = {"file": where.file if where else "", **words}
        what, why, remedy = (Template(texts.get(part, "")).substitute(given) for part in ("what", "why", "remedy"))
        return Finding(rule, severity, what, at, where, why, remedy)


TEXTS = Texts(__file__)


def refusal(rule: str, case: str, where: Location, **words: object) -> InputError:
    """The error for a text that can't be used, at WHERE."""
    return InputError(TEXTS.finding(rule, case, where, at="", severity="error", **words))


def refuse(rule: str, case: str, where: Location, **words: object) -> NoReturn:
    """Raise `refusal`."""
    raise refusal(rule, case, where, **words)
