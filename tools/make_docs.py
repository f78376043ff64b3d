"""Write the generated parts of docs/ anew.

- docs/policy.md: the field reference, from the models; docs/gitops.md: that of its section, and what was tried with
  whole engines, from tests/engines/record.yaml (engines_table.py).
- docs/components/*.md: the fields that steer a component, from the models (`<!-- fields:begin PATH PATH -->`), and what
  differs from the operator, from tests/fidelity/deviations.yaml (`<!-- differences:begin NAME NAME -->`, names of
  objects, with * and ?; `everywhere`: what is about objects of all components).
- docs/components/index.md: the list of components. A page says with `<!-- components: ID ID -->` which it is about.
- docs/components/alerts.md: the table of alerts, from the catalogue (`<!-- alerts:begin -->`).
- docs/rules/: all of it, from the rules' pages (rule_pages.py).
- docs/impact.md: all of it, from the pages of the rules of impact.
- docs/platforms.md and docs/gpus.md: all of them, from the catalogue (catalogue_pages.py).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from gpustack.catalog import alerts
from gpustack.components.registry import REGISTRY
from gpustack.review.impact.rule import Rule, all_rules
from gpustack.review.impact.tiers import TIERS
from tools import catalogue_pages, engines_table, rule_pages
from tools.field_reference import replaced, replaced_fields

ROOT = Path(__file__).parents[1]
POLICY = ROOT / "docs" / "policy.md"
IMPACT = ROOT / "docs" / "impact.md"
GITOPS = ROOT / "docs" / "gitops.md"
COMPONENTS = ROOT / "docs" / "components"
INDEX = COMPONENTS / "index.md"
DEVIATIONS = ROOT / "tests" / "fidelity" / "deviations.yaml"

ABOUT = re.compile(r"^<!-- components: ([^>]+) -->$", re.MULTILINE)
DIFFERENCES = re.compile(r"(<!-- differences:begin ([^>]+) -->).*?<!-- differences:end -->", re.DOTALL)
ALERTS = re.compile(r"(<!-- alerts:begin -->).*?<!-- alerts:end -->", re.DOTALL)
LIST = re.compile(r"(<!-- components:begin -->).*?<!-- components:end -->", re.DOTALL)


def pages() -> Iterator[tuple[Path, str]]:
    """Every page with generated parts, and what it should be."""
    yield POLICY, replaced(POLICY.read_text(encoding="utf-8"))
    yield IMPACT, impact_page()
    yield GITOPS, engines_table.with_table(replaced_fields(GITOPS.read_text(encoding="utf-8"), POLICY.name))
    for path in sorted(COMPONENTS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        text = LIST.sub(lambda marks: f"{marks[1]}\n\n{component_list()}\n\n<!-- components:end -->", text)
        text = replaced_fields(text, "../policy.md")
        text = ALERTS.sub(lambda marks: f"{marks[1]}\n\n{alert_table()}\n\n<!-- alerts:end -->", text)
        yield path, DIFFERENCES.sub(lambda marks: between(marks[1], marks[2].split()), text)


IMPACT_HEAD = """\
<!-- Made from gpustack/review/impact/ by tools/make_docs.py. -->
# What a change does

`gpustack diff` and `gpustack report` say what a change does to nodes and workloads, not only which fields are others.
Every effect has a **tier**, and a change has that of its most serious effect:

TIERS_TABLE

An id has one meaning, for ever. What is of tier 1 or 2 waits for somebody to [accept](verbs.md#accept) it, what is of
tier 0 for nobody.

What is harmless is listed, and everything else is power. What a component of gpustack makes follows from the policy:
there the fields of the policy that changed are judged, each by a list of fields with their bounds (fewer nodes at a
time, a longer wait, another version in the same repository), and rules say what they do. Objects that the policy
brings along under `extraObjects`, objects in a folder without a policy, and what changes though the policy doesn't,
are judged field by field: a ConfigMap that nothing names, a dashboard or a new alert is unclassified and shown; any
other kind, another namespace than the stack's, and each field that isn't listed is power. A new cluster is judged
like a change of each of its fields and objects; what the one cluster of the base has just so that it is most like is
planned, and so are guards that are no looser than that cluster's (budgets, windows, waits, the breaker), or than the
defaults. A digest that neither `images.lock` nor a cluster of the base has is power, whatever version stands beside it.
Amounts have bounds (half of what was to four times as much, with floors and ceilings; a limit that goes is
out of them). An older version is an outage, 1.2.0-rc1 after 1.2.0 as well; a tag that ends in another word than before,
or than in NVIDIA's releases, is another build, and power. So is what a component may do more by rights or paths of the
host, unless a release, a version or its being switched on brings it. Texts of configurations are judged by what is in
them. The lists are in `gpustack/catalog/data/tiers.yaml`.

Numbers of nodes are those of the policies (`count` of a pool), of both sides; a label that no pool says anything about
excludes no pool. Where two folders are compared, their policies are those in `policies/` beside each, as far as they
render to what is in it; without them effects come without numbers, and what nodes advertise is not compared.
"""
FAMILIES = {
    "0": "Beside policies",
    "1": "Driver pods",
    "2": "Other pods",
    "3": "GPUs",
    "4": "Rights and admission",
    "5": "Objects",
    "6": "Monitoring",
    "7": "Versions",
    "8": "The engine that syncs",
    "9": "What no rule knows",
}


def impact_page() -> str:
    """The rules of impact: a list, then what each is about."""
    rows = [f"| [{one.id}](#{one.id.lower()}) | {tiers_of(one)} | {one.page.title} |" for one in all_rules()]
    table = "\n".join(["| Id | Tier | What it is about |", "|---|---|---|", *rows, ""])
    parts = [IMPACT_HEAD.replace("TIERS_TABLE", tiers_table()), table]
    for digit, family in FAMILIES.items():
        parts.append(f"## {family}\n")
        parts += [impact_section(one) for one in all_rules() if one.id[3] == digit]
    return "\n".join(parts)


def tiers_table() -> str:
    """The tiers, and what each means."""
    rows = [f"| {number} {tier.name} | {tier.what[0].upper()}{tier.what[1:]} |" for number, tier in enumerate(TIERS)]
    return "\n".join(["| Tier | What is in it |", "|---|---|", *rows])


def tiers_of(one: Rule) -> str:
    """The tiers of a rule of impact, the most serious first."""
    return " or ".join(f"{tier} {TIERS[tier].name}" for tier in sorted(one.tiers))


def impact_section(one: Rule) -> str:
    """What a rule of impact is about."""
    remedy = one.page.remedy[0].upper() + one.page.remedy[1:]
    return f"### {one.id}\n\n**{one.page.title}.** ({tiers_of(one)})\n\n{one.page.why}\n\nWhat to do: {remedy}\n"


def alert_table() -> str:
    """The alerts: how urgent, when, for how long, which numbers a policy may change, and the runbook."""
    rows = []
    for name, one in alerts.alerts().items():
        limits = {key: " ({min} to {max} {counts})".format_map(limit) for key, limit in one.limits.items()}
        numbers = ", ".join(f"{key} {value}{limits.get(key, '')}" for key, value in one.set.items()) or "none"
        off = f" Off: {one.why_off}." if one.why_off else ""
        rows.append(
            f"| [{name}](../runbooks/{one.page}.md) | {one.severity} | {one.summary}.{off} | {one.lasts} | {numbers} |"
        )
    return "\n".join(["| Alert | Severity | When | For | Numbers |", "|---|---|---|---|---|", *rows])


def about(text: str) -> list[str]:
    """The ids of the components that a page with TEXT is about."""
    return [name for found in ABOUT.findall(text) for name in found.split()]


def component_list() -> str:
    """The components in the order in which a cluster needs them, each with its page and the page's first sentence."""
    found: dict[str, Path] = {}
    for path in sorted(COMPONENTS.glob("*.md")):
        found |= dict.fromkeys(about(path.read_text(encoding="utf-8")), path)
    listed = [(entry.id, found[entry.id]) for entry in REGISTRY if entry.id in found]
    rows = [f"| [{name}]({path.name}) | {first_sentence(path)} |" for name, path in listed]
    return "\n".join(["| Component | What it is |", "|---|---|", *rows])


def first_sentence(path: Path) -> str:
    """What the page PATH says first below its title."""
    body = ABOUT.sub("", path.read_text(encoding="utf-8").partition("\n")[2]).strip()
    paragraph = " ".join(body.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


def between(begin: str, names: list[str]) -> str:
    """The differences in objects called NAMES, between the mark BEGIN and its end."""
    reasons: dict[str, list[str]] = {}
    for entry in yaml.safe_load(DEVIATIONS.read_text(encoding="utf-8")):
        name = entry["path"].partition(":")[0].partition("/")[2]
        general = name in {"*", "nvidia-*"}
        if (
            general
            if names == ["everywhere"]
            else any(fnmatch.fnmatchcase(name, glob) for glob in names) and not general
        ):
            reasons.setdefault(entry["reason"], []).append(f"`{entry['path']}`")
    lines = [f"- {', '.join(places)}: {reason}" for reason, places in reasons.items()]
    text = "\n".join(lines) or "Nothing of its own."
    return f"{begin}\n\n{text}\n\n<!-- differences:end -->"


if __name__ == "__main__":
    for page, wanted in pages():
        page.write_text(wanted, encoding="utf-8")
    rule_pages.write()
    catalogue_pages.write()
