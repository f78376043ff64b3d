"""docs/rules/: a page for each rule, and the list of all ids that findings have."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from gpustack.checks.errors import RAISED
from gpustack.checks.pages import page
from gpustack.checks.rule import Rule, all_rules

ROOT = Path(__file__).parents[1]
RULES = ROOT / "docs" / "rules"
PACKAGE = ROOT / "gpustack"

FAMILIES = {
    "1": "The policy",
    "2": "What objects name, and what is rendered",
    "3": "MIG",
    "4": "The support matrix",
    "5": "Configurations inside a policy",
    "6": "Monitoring",
    "7": "Workloads of tenants",
    "8": "GitOps, and the hygiene of a render",
}
OVER = {
    "spec": "the effective spec",
    "origins": "the effective spec, and who wrote what of it",
    "object": "each rendered object",
    "render": "everything that is rendered",
    "engine": "what is rendered for Argo CD or Flux, and what that syncs",
    "workload": "each workload of tenants, and of the policy's extraObjects, beside what the cluster offers",
    "manifest": "each object of tenants, and of the policy's extraObjects, beside what the cluster offers",
}
INTRODUCTION = """\
# Rules

`gpustack lint` runs all rules; every `gpustack render` does too, and an error stops it before anything is written. How
to read, report and waive findings is on the page [lint](../lint.md). An id has one meaning, for ever.
"""
HEAD = """\
| Rule | Severity | What it is about |
|---|---|---|"""
ELSE = """\
## What is not a rule

These are raised where something can't be read, rendered or done. They can't be waived.

| Id | What it means | Raised by |
|---|---|---|
"""


def rule_pages() -> Iterator[tuple[Path, str]]:
    """Every page of docs/rules, and what it should be."""
    for rule in all_rules():
        yield RULES / f"{rule.id}.md", rule_page(rule)
    yield RULES / "index.md", index()


def rule_page(rule: Rule) -> str:
    """The page of RULE."""
    found, where = page(rule), source(rule)
    return f"""\
<!-- Made from {where} by tools/make_docs.py. -->
# {rule.id}: {title(rule)}

{rule.severity.capitalize()}. Looks at {OVER[rule.over]}.

{found.why}

## Bad

```yaml
{found.bad}```

## Good

```yaml
{found.good}```
"""


def index() -> str:
    """The list of rules, and of all other ids."""
    parts = [INTRODUCTION]
    for digit, family in FAMILIES.items():
        rows = [
            f"| [{rule.id}]({rule.id}.md) | {rule.severity} | {title(rule)} |"
            for rule in all_rules()
            if rule.id[3] == digit
        ]
        if rows:
            parts.append("\n".join([f"## {family}\n", HEAD, *rows, ""]))
    raised = raising()
    rows = [f"| {name} | {what} | {', '.join(f'`{file}`' for file in raised[name])} |" for name, what in RAISED.items()]
    parts.append(ELSE + "\n".join(rows) + "\n")
    return "\n".join(parts)


def title(rule: Rule) -> str:
    """The title of RULE's page, as a heading."""
    return page(rule).title.rstrip(".").replace("|", "\\|")


def source(rule: Rule) -> str:
    """The file that RULE is in."""
    return Path(inspect.getfile(rule.check)).relative_to(ROOT).as_posix()


def raising() -> dict[str, list[str]]:
    """For each id of errors.yaml, the files below gpustack/ that raise it."""
    found: dict[str, list[str]] = {name: [] for name in RAISED}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in sorted(set(re.findall(r'"(GPU[0-9]{3})"', path.read_text(encoding="utf-8")))):
            if name in found:
                found[name].append(path.relative_to(PACKAGE).as_posix())
    return found


def write() -> None:
    """Write all pages, and remove those of rules that are gone."""
    RULES.mkdir(exist_ok=True)
    pages = dict(rule_pages())
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    for path in set(RULES.glob("*.md")) - pages.keys():
        path.unlink()
