"""The pages of components: one for each, current where they are generated, and complete about what is rendered."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest

from gpustack.components.registry import REGISTRY
from tests.fidelity import coverage
from tools.make_docs import COMPONENTS, about, pages

ALL = {path: path.read_text(encoding="utf-8") for path in sorted(COMPONENTS.glob("*.md"))}
PAGE = {name: path for path, text in ALL.items() for name in about(text)}


def test_every_component_has_a_page() -> None:
    """Each component of the registry has one page, each page is about a component, and the list has all."""
    assert set(PAGE) == {entry.id for entry in REGISTRY}
    assert sum(len(about(text)) for text in ALL.values()) == len(PAGE)
    assert [path.name for path, text in ALL.items() if not about(text)] == ["index.md"]


@pytest.mark.parametrize(
    ("path", "wanted"), list(pages()), ids=lambda value: value.name if isinstance(value, Path) else ""
)
def test_generated_parts_are_current(path: Path, wanted: str) -> None:
    """Fields are those of the models, differences those of the deviations: python tools/make_docs.py writes them."""
    assert path.read_text(encoding="utf-8") == wanted


def rendered() -> dict[str, set[tuple[str, str]]]:
    """Kind and name of every object that a component renders in some policy of the coverage suite."""
    found: dict[str, set[tuple[str, str]]] = {}
    for kind in (*coverage.PREFIX, "pages"):
        for policy in coverage.policies(kind):
            for component, inputs in policy.inputs.items():
                for body in coverage.bodies(component, inputs):
                    found.setdefault(component, set()).add((body["kind"], body["metadata"]["name"]))
    return found


@pytest.mark.parametrize("component", [entry.id for entry in REGISTRY if not entry.id.startswith("extra-")])
def test_pages_name_what_is_rendered(component: str) -> None:
    """Every object that the component renders is on its page by name, with * for what varies, and by kind. A
    name that is nothing but * is one of its line's kind."""
    text = ALL[PAGE[component]] if component in PAGE else ""
    names = [(line, name) for line in text.splitlines() for name in re.findall(r"`([^`\s]+)`", line)]
    objects = rendered()[component]
    for kind, name in objects:
        words = "bindings" if kind.endswith("RoleBinding") and kind not in text else f"{kind}(s|es)?"
        assert re.search(rf"\b{words}\b", text), f"{kind} {name}: no such kind on the page"
        fitting = [line for line, glob in names if fnmatch.fnmatchcase(name, glob) and (glob != "*" or kind in line)]
        assert kind == "Namespace" or fitting, f"no {name} on the page"
