"""Files that are a list of entries of one model: waivers, acceptances, what may lie in dist/, whose constructs may run.

Solves: each of them says of every entry at once what is wrong with it, at its line, and none that is wrong counts. How
entries are read is said here once; what tells two of them apart is the file's own.
"""

import os
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from gpustack.catalog import _data
from gpustack.model import Finding, InputError
from gpustack.policy.loading.brought import LIMITS
from gpustack.policy.loading.envelope import valid
from gpustack.policy.loading.layers import Part
from gpustack.text.positions import locate
from gpustack.text.read import value
from gpustack.text.source import decode, load_bytes

if TYPE_CHECKING:
    from gpustack.policy.language.base import Section

E = TypeVar("E", bound="Section")


@dataclass(frozen=True, slots=True)
class Entries(Generic[E]):
    """A kind of list: which RULE refuses, and the MODEL of an entry. The data file beside this module has its words."""

    rule: str
    model: type[E]

    @property
    def words(self) -> dict[str, str]:
        """What the data file says of this kind of list."""
        return dict(_data.read(pathlib.Path(__file__).with_suffix(".yaml"))[self.rule])

    def read(self, text: str, display: str, wrong: list[Finding]) -> Iterator[tuple[int, E]]:
        """The entries of TEXT, with their indices; WRONG gets what is wrong with one. InputError where it's no list."""
        parsed = value(text, display)
        items = parsed[1] if parsed is not None else []
        if not isinstance(items, list):
            what, remedy = f"{display} is not a list of {self.words['many']}", self.words["begins"]
            raise InputError(Finding(self.rule, "error", what, "", locate(text, display, ()), "", remedy))
        for index, item in enumerate(items):
            entry = self._one(index, item, text, display, wrong)
            if entry is not None:
                yield index, entry

    def of_file(self, path: pathlib.Path, display: str, name: str, key: Callable[[E], str]) -> dict[str, E]:
        """The entries of the file PATH, called DISPLAY, by their KEY, which is what their field NAME says; nothing
        where there is no such file. Raises InputError with all that is wrong with it."""
        if not os.path.lexists(path):
            return {}
        text = decode(load_bytes(path, display), display)
        wrong: list[Finding] = []
        listed: dict[str, E] = {}
        for index, entry in self.read(text, display, wrong):
            if listed.setdefault(key(entry), entry) is not entry:
                where, what = locate(text, display, (index, name)), f"{getattr(entry, name)} is listed twice"
                wrong.append(Finding(self.rule, "error", what, "", where, "", "keep one of them"))
        if wrong:
            raise InputError(*wrong)
        return listed

    def of_base(self, path: pathlib.Path, display: str) -> list[E] | None:
        """The entries of the file PATH as the base has it, [] if they can't be read; None without a base."""
        if path not in LIMITS:
            return None
        try:
            return [entry for _, entry in self.read(decode(LIMITS[path], display), display, [])]
        except InputError:
            return []

    def _one(self, index: int, item: object, text: str, display: str, wrong: list[Finding]) -> E | None:
        if not isinstance(item, dict):
            where, path = locate(text, display, (index,)), f"{self.words['section']}[{index}]"
            what, remedy = f"{self.words['one']} is a mapping", f"write {self.words['fields']} below its dash"
            wrong.append(Finding(self.rule, "error", what, path, where, "", remedy))
            return None
        part = Part("policy", display, item, (index,), text)
        return valid(self.model, part, wrong, (self.words["section"], index))
