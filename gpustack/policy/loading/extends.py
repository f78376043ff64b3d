"""Finds the layers that a policy extends, and the order in which they count.

A layer is the file layers/<name>.yaml beside the policies. Layers may extend layers. Order: what a layer extends comes
before it, otherwise from left to right, and later ones win; a layer that is reached in several ways counts once, at the
first place.

A name is only ever a file name in that one folder. Paths would let a policy read any file of the machine that renders
it, which in CI is somebody else's.
"""

import difflib
import functools
import os
import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from gpustack.model import InputError
from gpustack.policy.loading.envelope import Envelope, open_layer, told
from gpustack.policy.loading.layers import Part
from gpustack.text.read import read

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?\Z")

SHOWN = 12
"""Layers of a circle that are named, from its start and its end."""


def is_layer_name(name: str) -> bool:
    """Tell whether NAME can be the name of a layer: a plain file name."""
    return _NAME.match(name) is not None


@dataclass(frozen=True)
class Layer:
    """One layer file. Policies of a fleet share the object, and with it what merging finds out about its data."""

    name: str
    envelope: Envelope

    @functools.cached_property
    def part(self) -> Part:
        document = self.envelope.document
        return Part("layer", document.file, self.envelope.spec, ("spec",), document.text)


@dataclass
class Layers:
    """The layers folder FOLDER, every file of which is read once. DISPLAY says by which name messages call a file."""

    folder: pathlib.Path
    display: Callable[[pathlib.Path], str]
    known: dict[str, Layer] = field(default_factory=dict)

    def of(self, policy: Envelope) -> list[Layer]:
        """The layers of POLICY, in the order in which they are merged. Raises InputError (GPU013) for what can't be a
        name, a missing layer, a cycle and a link out of the folder."""
        ordered: dict[str, Layer] = {}
        # Not recursive: a chain of layers may be longer than Python's stack.
        chain: dict[str, Layer] = {}
        waiting = [(policy, iter(policy.extends))]
        while waiting:
            user, names = waiting[-1]
            name = next(names, None)
            if name is None:
                waiting.pop()
                if chain:
                    done, layer = chain.popitem()
                    ordered[done] = layer
            elif name in chain:
                _refuse_cycle(user, name, list(chain))
            elif name not in ordered:
                chain[name] = self._load(user, name)
                waiting.append((chain[name].envelope, iter(chain[name].envelope.extends)))
        return list(ordered.values())

    def _load(self, user: Envelope, name: str) -> Layer:
        if name not in self.known:
            path = self._find(user, name)
            self.known[name] = Layer(name, open_layer(read(path, self.display(path)), name))
        return self.known[name]

    def _find(self, user: Envelope, name: str) -> pathlib.Path:
        """Return the file of layer NAME, which USER extends."""
        if not is_layer_name(name):
            stem = pathlib.PurePath(name).name.removesuffix(".yaml").removesuffix(".yml")
            stem = stem if is_layer_name(stem) else "the file's name without folder and .yaml"
            _refuse(user, name, "no layer name", do=stem)
        path = self.folder / f"{name}.yaml"
        if not path.is_file():
            self._refuse_missing(user, name, path)
        if pathlib.Path(os.path.realpath(path)).parent != pathlib.Path(os.path.realpath(self.folder)):
            _refuse(user, name, "elsewhere", folder=self.display(self.folder))
        return path

    def _refuse_missing(self, user: Envelope, name: str, path: pathlib.Path) -> NoReturn:
        stems = [file.stem for file in sorted(self.folder.glob("*.yaml"))]
        near = difflib.get_close_matches(name.lower().removesuffix(".yaml"), stems, n=2, cutoff=0.5)
        if path.is_symlink():
            remedy = f"{self.display(path)} is a link to nothing: correct it"
        elif path.exists():
            remedy = f"{self.display(path)} exists and is not a file: replace it"
        elif path.with_suffix(".yml").is_file():
            remedy = f"rename {name}.yml to {name}.yaml"
        elif near:
            remedy = f"did you mean {' or '.join(near)}?"
        else:
            remedy = f"there are: {', '.join(stems[:12])}" if stems else f"create {self.display(path)}"
        _refuse(user, name, "missing", there=self.display(path), do=remedy)


def _refuse_cycle(user: Envelope, name: str, chain: list[str]) -> NoReturn:
    names = [*chain[chain.index(name) :], name]
    if len(names) > SHOWN:
        names[SHOWN // 2 : -SHOWN // 2] = [f"... {len(names) - SHOWN} more ..."]
    _refuse(user, name, "circle", cycle=" -> ".join(names))


def _refuse(user: Envelope, name: str, case: str, **words: Any) -> NoReturn:
    index = user.document.data["spec"]["extends"].index(name)
    raise InputError(told(user.document, ("spec", "extends", index), "GPU013", case, name=name, **words))
