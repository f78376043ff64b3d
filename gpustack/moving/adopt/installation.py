"""What was read of an installation of the operator, whatever it was read from: one record.

Solves: people keep the settings of one operator in a dozen shapes. Each of `inputs/` reads one of them into this
record, and what makes a policy of it knows none of them. Every value keeps the file and line that it was read from.
"""

import contextlib
import copy
import itertools
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from string import Template
from typing import Any, Literal

from gpustack.catalog import _data
from gpustack.model import Body, InputError, Location, Path, children, dotted
from gpustack.policy.loading.layers import has


@dataclass(frozen=True, slots=True)
class Said:
    """A value, and where somebody wrote it."""

    value: Any
    where: Location


Leaves = dict[Path, Said]
"""Values by path: scalars, lists whole, and maps that are empty."""
Sort = Literal["dropped", "open", "changed", "assumed", "sharing"]


@dataclass(frozen=True, slots=True)
class Note:
    """What became of something that isn't simply carried over. `dropped`: it is not in the policy, and WHY. `open`:
    somebody has to answer or decide. `changed`: the policy's release changes it. `assumed`: nothing said it, and the
    policy needs it. `sharing`: who says how GPUs are shared."""

    sort: Sort
    path: str
    why: str
    remedy: str = ""
    where: Location | None = None


@dataclass
class Installation:
    """`values` are the chart's, by the chart's names; `spec` has a policy's names: of custom resources, or of a policy.
    `defaults`: who filled in what the custom resource lacks, its chart or the operator. `installed`: an input installs
    the chart, whether it says any values or not."""

    values: Leaves = field(default_factory=dict)
    spec: Leaves = field(default_factory=dict)
    defaults: Literal["chart", "operator"] = "chart"
    version: Said | None = None
    namespace: str = ""
    helm_release: str = ""
    installed: bool = False
    openshift: bool = False
    objects: list[tuple[Body, Location]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def told(self) -> bool:
        """Whether the inputs told anything of an installation."""
        return bool(self.values or self.spec or self.version or self.installed)

    def note(self, sort: Sort, path: str, why: str, remedy: str = "", where: Location | None = None) -> None:
        """Remember what became of PATH."""
        self.notes.append(Note(sort, path, why, remedy, where))

    def tell(self, case: str, path: str, where: Location | None = None, **words: object) -> None:
        """Remember what became of PATH, as notes.yaml says it of CASE with WORDS."""
        texts = _data.read(pathlib.Path(__file__).with_name("notes.yaml"))[case]
        why, remedy = (Template(texts.get(part, "")).substitute(words) for part in ("why", "remedy"))
        self.note(texts["sort"], path, why, remedy, where)

    def of_kind(self, *kinds: str) -> Iterator[Body]:
        """The objects of KINDS that run, or stand beside the values."""
        return (body for body, _ in self.objects if body.get("kind") in kinds)


@contextlib.contextmanager
def understood(what: str, where: Location | None = None) -> Iterator[None]:
    """Raise InputError where WHAT, which somebody else wrote, doesn't have the form of its kind."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        why = f"something in it has another type than is read there ({error})"
        remedy = "correct it, or leave it out; kubectl apply --dry-run=server -f FILE says what is wrong with an object"
        raise InputError.of("GPU050", f"{what} can't be read", location=where, why=why, remedy=remedy) from None


def leaves_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The leaves of VALUE, which stands at PATH."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves_of(item, (*path, key))
    else:
        yield path, value


def walked(data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """DATA, which stand at PATH, and all that is in them, with its path."""
    yield path, data
    for step, each in children(data):
        yield from walked(each, (*path, step))


def at(spec: Any, path: Path) -> Any:
    """The value at PATH of SPEC, None where nothing stands there."""
    for step in path:
        if not has(spec, step):
            return None
        spec = spec[step]
    return spec


def lay(below: Leaves, above: Leaves) -> None:
    """Put ABOVE over BELOW as Helm does: maps merge, all else is replaced whole, null takes a value away."""
    for path, said in above.items():
        under = [known for known in below if known[: len(path)] == path or path[: len(known)] == known]
        if said.value == {} and any(len(known) > len(path) for known in under):
            continue
        for known in under:
            del below[known]
        if said.value is not None:
            below[path] = said


def nested(leaves: Leaves) -> dict[str, Any]:
    """LEAVES as the tree that they are of; a number is the position in a list."""
    root: dict[str, Any] = {}
    for path, said in sorted(leaves.items(), key=lambda item: [step for step in item[0] if isinstance(step, int)]):
        node: Any = root
        for step, after in itertools.pairwise(path):
            empty: Any = [] if isinstance(after, int) else {}
            if isinstance(node, list):
                node.extend({} for _ in range(len(node), int(step) + 1))
                node = node[int(step)]
            else:
                node = node.setdefault(step, empty)
        if said.value != {} or path[-1] not in node:
            node[path[-1]] = copy.deepcopy(said.value)
    return root


def shown(path: Path) -> str:
    """PATH below `spec` as people write it."""
    return dotted(("spec", *path))
