"""`dist.allow.yaml`: files below dist/ that no policy renders to and that are to stay, each by its content.

Solves: whatever lies in dist/ is applied, so what isn't rendered is refused; and a team may need such a file for a
while. The list names its path, the digest of its content and the reason, and stands where a review shows it: a file
that changes is refused again until somebody writes its new digest here.

    - path: dist/prod-eu-1/base/namespace-extra.yaml
      sha256: 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
      why: until the team's own repository is synced
"""

from __future__ import annotations

import os
import pathlib
from typing import Annotated

from gpustack.model import Finding, InputError
from gpustack.policy.language.base import Section
from gpustack.policy.language.forms import Form
from gpustack.policy.loading.layers import Part, merge
from gpustack.policy.loading.waiver import WORDS
from gpustack.text.positions import locate
from gpustack.text.read import value
from gpustack.text.source import decode, load_bytes

NAME = "dist.allow.yaml"
"""The file at the project's root."""

SHA256 = Form(
    "sha256", "sha256 of a file's content", "64 digits and letters a to f, as sha256sum prints them", r"[0-9a-f]{64}"
)
PATH = Form(
    "allowed_path",
    "path of a file",
    "from the project's root on, without . and ..",
    r"(?!/)(?!.*(?:^|/)\.{0,2}(?:/|$)).+",
)


class AllowedSpec(Section):
    """One file that may stay."""

    path: Annotated[str, PATH]
    """Where it is, from the project's root on, such as `dist/prod/base/extra.yaml`. It is not a pattern."""
    sha256: Annotated[str, SHA256]
    """The digest of its content."""
    why: Annotated[str, WORDS]
    """Why no policy renders to it, for whoever reads it in a year."""


def allowed(root: pathlib.Path) -> dict[str, AllowedSpec]:
    """The files that may stay by the project in ROOT, by path; none where it has no such list.

    Raises InputError with everything that is wrong with it.
    """
    path = root / NAME
    if not os.path.lexists(path):
        return {}
    text = decode(load_bytes(path, NAME), NAME)
    found = value(text, NAME)
    items = found[1] if found is not None else []
    if not isinstance(items, list):
        remedy = "start each file with a dash: `- path: dist/...`"
        what = f"{NAME} is not a list of files"
        raise InputError(Finding("GPU977", "error", what, "", locate(text, NAME, ()), "", remedy))
    wrong: list[Finding] = []
    listed: dict[str, AllowedSpec] = {}
    for index, item in enumerate(items):
        spec = _one(index, item, text, wrong)
        if spec and spec.path in listed:
            where = locate(text, NAME, (index, "path"))
            wrong.append(Finding("GPU977", "error", f"{spec.path} is listed twice", "", where, "", "keep one of them"))
        elif spec:
            listed[spec.path] = spec
    if wrong:
        raise InputError(*wrong)
    return listed


def _one(index: int, item: object, text: str, wrong: list[Finding]) -> AllowedSpec | None:
    """The file ITEM at INDEX, or None after adding to WRONG what is wrong with it."""
    from pydantic import ValidationError

    from gpustack.policy.loading.diagnose import diagnose

    if not isinstance(item, dict):
        remedy = "write path, sha256 and why below its dash"
        where = locate(text, NAME, (index,))
        wrong.append(Finding("GPU977", "error", "a file is a mapping", f"allowed[{index}]", where, "", remedy))
        return None
    merged = merge([Part("policy", NAME, item, (index,), text)])
    try:
        return AllowedSpec.model_validate(merged.spec)
    except ValidationError as error:
        wrong += diagnose(error, merged, AllowedSpec, ("allowed", index))
        return None
