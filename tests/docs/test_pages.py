"""What the pages show works, and what is generated in them is current."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.cli import parser_for
from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.stack import compile_stack
from gpustack.policy.loading.load import load, spec_key
from gpustack.review.advisory import advisory
from tools.field_reference import replaced

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FRAME: dict[str, Any] = {
    "release": "v26.7.0",
    "cluster": {"kubernetesVersion": "1.34", "containerRuntime": "containerd"},
    "nodePools": [{"name": "pool", "os": "ubuntu22.04"}],
}
"""What a fragment of a spec stands in when it is tried."""


def blocks() -> Iterator[tuple[str, str]]:
    """Every YAML example in the pages, with its place."""
    for page in (page for page in PAGES if page.parent.name != "rules"):  # tests/checks/test_rules.py has those
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            yield f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}", found[1]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all examples."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


@pytest.mark.parametrize(("place", "text"), list(blocks()), ids=lambda value: value if ":" in value[:60] else "")
def test_examples_compile(place: str, text: str, tmp_path: Path, store: Store) -> None:
    """Each policy in the pages, and each part of one, compiles as it stands; each advisory can be read."""
    data = yaml.safe_load(text)
    if "affected" in data:
        (tmp_path / "advisory.yaml").write_text(text, encoding="utf-8")
        assert advisory(tmp_path / "advisory.yaml")[0] == data["id"]
        return
    if "rollout" in data:  # what a change says beside its spec
        spec = {"dcgmExporter": {"serviceMonitor": {"interval": "60s"}}}
        data = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "PolicyChange", "spec": spec, **data}
    if "kind" not in data:
        data = {
            "apiVersion": "gpustack.dev/v1alpha1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "example"},
            "spec": {**FRAME, **data, "cluster": {**FRAME["cluster"], **data.get("cluster", {})}},
        }
    if data["kind"] in {"Fleet", "PolicyChange"}:  # beside a policy, and beside each other
        beside = {"Fleet": "fleet.yaml", "PolicyChange": "changes/example.yaml"}
        fleet = {"rings": [{"name": "canary", "clusters": ["example"]}]}
        frame = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "Fleet", "spec": fleet}
        for name, content in ((beside["Fleet"], frame), (beside[data["kind"]], {**data, "metadata": None})):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(yaml.safe_dump(content), encoding="utf-8")
        data = {**frame, "kind": "ClusterPolicy", "metadata": {"name": "example"}, "spec": FRAME}
    for name in data["spec"].get("extends", []):
        layer = tmp_path / "layers" / f"{name}.yaml"
        layer.parent.mkdir(exist_ok=True)
        layer.write_text(
            "apiVersion: gpustack.dev/v1alpha1\nkind: PolicyLayer\nspec: {release: v26.7.0}\n", encoding="utf-8"
        )
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    loaded = load(path, root=tmp_path)
    assert compile_stack(loaded.spec, spec_key(loaded.merged), store).files, place


def test_the_field_reference_is_current() -> None:
    """docs/policy.md lists the fields that the models have: python tools/make_docs.py writes it anew."""
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    assert replaced(page) == page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file in the repository names one that exists."""
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


COMMAND = re.compile(r"^ *(?:- run: |\$ )?(?:[A-Z_]+=\S+ )*(?:ci/|\.venv/bin/)?gpustack +([a-z].*)", re.MULTILINE)
"""A line of a block that starts the program."""


def test_commands_are_understood() -> None:
    """Each line in a block of a page that starts gpustack has words and options that the verb takes."""
    lines = [
        (page.name, found[1])
        for page in PAGES
        for block in re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for found in COMMAND.finditer(block.replace("\\\n", " "))
    ]
    assert len(lines) > 80
    for page, line in lines:
        words = shlex.split(re.split(r" (?:[|&;<>]|2>)", line)[0], comments=True)
        if words[0] != "help":
            assert parser_for(words[0]).parse_args(words).verb == words[0], f"{page}: {line}"


def texts(tree: ast.Module) -> Iterator[str]:
    """The texts of a program; of its docstrings those of rules, which are titles."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and not getattr(node, "decorator_list", [])
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def elsewhere(text: str) -> list[str]:
    """The pages below docs/ that TEXT names without a word on whose they are."""
    return re.findall(r"(?<!gpustack's )(?<!/)\bdocs/[a-z][\w./-]*", text)


def test_messages_say_whose_docs() -> None:
    """A message or a rule that leads to a page of docs/ is read in other repositories, so it says that the page
    is gpustack's; and there is such a page.
    """
    found = []
    for path in sorted((ROOT / "gpustack").rglob("*.py")):
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            found += [(path.name, each) for each in elsewhere(text)]
    for path in (
        path for room in ("checks", "tenants", "review") for path in (ROOT / "gpustack" / room).rglob("*.yaml")
    ):
        found += [(path.name, each) for each in elsewhere(path.read_text(encoding="utf-8"))]
    assert found == []
    for path in sorted((ROOT / "gpustack").rglob("*.py")):
        for named in re.findall(r"\bdocs\([\"\']([\w.-]+)", path.read_text(encoding="utf-8")):
            assert (ROOT / "docs" / named).exists(), f"{path.name}: {named}"
