"""What reads an input gets: the record to write into, all other documents, and the files beside them."""

import contextlib
import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any

from gpustack.catalog import _data
from gpustack.model import InputError, Location, Path, children

from ..documents import OBJECT, Item, Reader
from ..installation import Installation, Leaves, lay

CHART = "gpu-operator"


@functools.cache
def words(name: str) -> tuple[str, ...]:
    """The words NAME of shapes.yaml, whichever lists they stand in."""
    rows = _data.read(File(__file__).with_name("shapes.yaml"))[name]
    return tuple(word for row in rows for word in ([row] if isinstance(row, str) else row))


def chart_named(name: str) -> bool:
    """Whether NAME is the operator's chart: by itself, behind a repository or an address, or its archive."""
    return bool(re.fullmatch(rf"(?:.*[/=])?(?:nvidia-)?{CHART}(?:-v?[\d.]+\.tgz|&.*)?/?", name))


@dataclass
class Context:
    """ITEMS are all documents, lists taken apart; KNOWN the files that were named, by what they are called in messages;
    READ those of them that another one named, so that they aren't read for themselves. MEMBER is the cluster that is
    meant, of inputs that are about several."""

    installation: Installation
    reader: Reader
    items: list[Item] = field(default_factory=list)
    known: dict[str, File] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    member: str = ""
    installer: Item | None = None

    @functools.cached_property
    def variables(self) -> dict[str, Any]:
        """What plays, roles and other files without a kind say of variables by their names, the first of each."""
        known: dict[str, Any] = {}
        for item in self.items:
            for play in item.data if isinstance(item.data, list) else [item.data]:
                if isinstance(play, dict) and not play.get("kind") and not item.line:
                    known = {**play, **(play["vars"] if isinstance(play.get("vars"), dict) else {}), **known}
        return known

    def find(self, kind: str, name: str) -> Item | None:
        """The object NAME of KIND among the inputs."""
        of_kind = (each for each in self.items if each.text_at("kind") == kind)
        return next((each for each in of_kind if each.text_at("metadata", "name") == name), None)

    def file(self, item: Item, name: str, *, optional: bool = False, words: Mapping[str, str] | None = None) -> Leaves:
        """The values in the file that ITEM calls NAME, WORDS filled in; a missing one is asked for, unless OPTIONAL."""
        own = {key: each if isinstance(each, str) else json.dumps(each) for key, each in self.variables.items()}
        more = words if words is not None else own
        reader, files = replace(self.reader, answers={**more, **self.reader.answers}), list[Item]()
        with contextlib.suppress(InputError) if words is not None else contextlib.nullcontext():
            files = list(reader.beside(item, name, self.known))  # of a template, what isn't understood is asked for
        if not files and not optional:
            self.installation.tell("values file", name, item.where(), file=item.file, name=name)
        leaves: Leaves = {}
        for each in files:
            lay(leaves, self.reading(each).leaves())
        return leaves

    def installs(self, item: Item) -> None:
        """Remember that ITEM installs the chart; a second one is told."""
        known, self.installer = self.installer, item
        if known is not None and known.where() != item.where():
            alike = known.text_at("kind") and known.text_at("kind") == item.text_at("kind")
            self.installation.tell(
                "several" if alike else "several commands", item.file, item.where(), first=known.where()
            )
        self.installation.installed = True

    def reading(self, item: Item) -> Item:
        """ITEM of a file that another one names; what its template leaves undecided is told."""
        self.read.add(item.file)
        self.undecided(item)
        return item

    def undecided(self, item: Item) -> None:
        """Tell of each action in the template ITEM that nobody decided."""
        for key, line in item.actions:
            where = item.outer[0].where(*item.outer[1]) if item.outer else Location(item.file, line)
            self.installation.tell("undecided", key, where)

    def take(self, leaves: Leaves) -> None:
        """Put LEAVES, values of the chart, over those that are known."""
        lay(self.installation.values, leaves)

    def version(self, item: Item, *path: str | int) -> None:
        """Take the chart's version, if there is one at PATH of ITEM."""
        said = item.said(*path)
        if said is not None and not re.search(r"[{<]", str(said.value)) and self.installation.version is None:
            self.installation.version = said


def said_by(data: Any) -> bool:
    """Whether DATA is an object of one of the kinds that others hold, and no reference to one."""
    if not isinstance(data, dict) or not isinstance(data.get("spec"), dict):
        return False
    return f"{str(data.get('apiVersion', '')).partition('/')[0]}/{data.get('kind')}" in words("held")


def held(item: Item, path: Path = ()) -> Iterator[Item]:
    """The objects of such kinds inside of ITEM, below PATH, also in texts, as cloud-init has them."""
    data = item.get(*path)
    if isinstance(data, str) and OBJECT.search(data):
        with contextlib.suppress(InputError):
            inner = [part for each in item.inner(*path) for part in expanded(each)]
            yield from (each for each in inner if each.text_at("kind"))
    for step, each in children(data):
        if said_by(each):
            yield item.part(*path, step)
        else:
            yield from held(item, (*path, step))


def expanded(item: Item) -> Iterator[Item]:
    """ITEM, or what it lists. An item of a NodeList doesn't say what it is."""
    items, kind = item.get("items"), item.text_at("kind")
    if isinstance(item.data, list) and item.data and all(isinstance(each, dict) for each in item.data):
        for index in range(len(item.data)):
            yield from expanded(item.part(index))
        return
    if not kind.endswith("List") or not isinstance(items, list):
        yield item
        if (
            not isinstance(item.data, str)
            and not said_by(item.data)
            and not item.text_at("apiVersion").startswith("gpustack.dev/")
        ):
            yield from held(item)
        return
    of = {"kind": kind.removesuffix("List"), "apiVersion": item.get("apiVersion")} if kind != "List" else {}
    for index, body in enumerate(items):
        if isinstance(body, dict):
            part = item.part("items", index)
            yield from expanded(Item(part.file, part.text, {**of, **body}, part.at, part.outer))
