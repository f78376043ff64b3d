"""docs/platforms.md and docs/gpus.md: what the catalogue knows, for people who choose a platform or a GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpustack.catalog import gpus, platforms

DOCS = Path(__file__).parents[1] / "docs"
RELEASE, KUBERNETES = "v26.7.0", "1.34"

MADE = "<!-- Made from gpustack/catalog/data by tools/make_docs.py. -->"
KNOWN = {
    "documented": "documented",
    "issue": "public issues",
    "inferred": "by analogy",
}
PLATFORMS = f"""\
{MADE}
# Platforms

`cluster.platform` names one of these. It changes defaults, as listed here for {RELEASE} on Kubernetes {KUBERNETES}; a
layer or the policy wins over it. `gpustack explain CLUSTER` says of each value whether the platform wrote it. None of
them was tried on a cluster by this project. How well the settings are known: *documented* by NVIDIA or the vendor, from
*public issues*, or *by analogy* to a platform that is documented.

| `cluster.platform` | For | Known |
|---|---|---|
"""
GPUS = f"""\
{MADE}
# GPU products

`nodePools[].gpuProduct` is what the node's label `nvidia.com/gpu.product` says. A product that is not listed is no
error; it is not checked ([GPU309](rules/GPU309.md)). Profiles of a GPU with MIG: `gpustack mig list PRODUCT`
([MIG](mig.md)).

| `gpuProduct` | Board | Family | Memory, GB | Compute capability | MIG |
|---|---|---|---|---|---|
"""


def catalogue_pages() -> Iterator[tuple[Path, str]]:
    """Both pages, and what they should be."""
    yield DOCS / "platforms.md", platforms_page()
    yield DOCS / "gpus.md", gpus_page()


def platforms_page() -> str:
    """A table of all platforms, and a section for each."""
    known = [platforms.platform(name) for name in platforms.names()]
    rows = [f"| [`{found.name}`](#{found.name}) | {found.title} | {KNOWN[found.confidence]} |" for found in known]
    return PLATFORMS + "\n".join([*rows, "", *(section(found) for found in known)])


def section(found: platforms.Platform) -> str:
    """The section of one platform."""
    lists = {
        "Defaults that it changes": [f"`{line}`" for line in changes(found.name)],
        "What its node image has": [
            f"`{name}`: {has.what}{'' if has.sure else ' (not certain)'}" for name, has in found.brings.items()
        ],
        "What it needs": list(needs(found)),
        "Good to know": list(found.caveats),
        "Not certain": list(found.uncertain),
    }
    parts = [f"## {found.name}", f"{found.title}. Known: {KNOWN[found.confidence]}."]
    if not changes(found.name):
        parts.append(f"It changes no default of {RELEASE}.")
    parts += [f"{title}:\n\n" + "\n".join(f"- {line}" for line in lines) for title, lines in lists.items() if lines]
    return "\n\n".join(parts) + "\n"


def changes(name: str) -> list[str]:
    """What the platform called NAME changes, as `path: value` lines."""
    return list(leaves(platforms.defaults(name, RELEASE, KUBERNETES), ""))


def leaves(tree: Mapping[str, Any], path: str) -> Iterator[str]:
    """`path: value` for each leaf of TREE; environment variables by name."""
    for key, value in tree.items():
        below = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from leaves(value, below)
        elif key == "env":
            yield from (f"{below}: {variable['name']}={variable['value']}" for variable in value)
        else:
            yield f"{below}: {value if isinstance(value, str) else json.dumps(value)}"


def needs(found: platforms.Platform) -> Iterator[str]:
    """What no manifest can do, and what the namespace needs."""
    yield from found.host_needs
    if found.operator_min:
        yield f"`release` {found.operator_min} or newer."
    if found.container_runtime:
        yield f"Container runtime {found.container_runtime}."
    if found.node_pool_options:
        yield "Node pools made with " + ", ".join(f"`{option}`" for option in found.node_pool_options) + "."
    if found.node_pool_labels:
        labels = ", ".join(f"`{key}={value}`" for key, value in found.node_pool_labels.items())
        yield f"Node pools labelled {labels}."
    if found.psa_required:
        yield "Privileged Pod Security on the namespace; the labels are rendered along."
    if found.quota:
        yield "A ResourceQuota for critical pods in the namespace; it is rendered along."


def gpus_page() -> str:
    """A table of all products."""
    rows = []
    for name in gpus.products():
        found = gpus.product(name)
        mig = {None: "no", "unknown": "yes, its placements are not known"}.get(found.mig, "yes")
        cells = (f"`{name}`", found.board, found.family, str(found.memory_gb), found.compute_capability, mig)
        rows.append("| " + " | ".join(cells) + " |")
    return GPUS + "\n".join(rows) + "\n"


def write() -> None:
    """Write both pages."""
    for path, text in catalogue_pages():
        path.write_text(text, encoding="utf-8")
