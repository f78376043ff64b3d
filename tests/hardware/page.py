"""Write docs/measured.md: what NVIDIA's programs did with each text, from tests/hardware/measured.

python -m tests.hardware.page
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.hardware.measured import FOLDER, files, load
from tests.hardware.pack.pack import CASES

PAGE = Path(__file__).resolve().parents[2] / "docs/measured.md"
HEAD = Path(__file__).with_name("page.md")
GROUPS = {
    "plain": "Whole texts",
    "entry": "Entries: `sharing: {timeSlicing: {resources: [{…}]}}`",
    "block": "Blocks: `sharing: {timeSlicing: {…}}`",
    "flag": "Flags: `flags: {…}` beside `nvidia.com/gpu` shared by four",
    "further": "With another environment or arguments",
}


def page() -> str:
    """The page's text."""
    found = {file.stem: load(file) for file in files()}
    rows = [
        f"| {body['plugin']} | {', '.join(body['gpus'])} | {body['driver']} | {body['date']} | {len(body['cases'])} |"
        for body in found.values()
    ]
    table = ["| programs | GPUs | driver | date | texts |", "|---|---|---|---|---|", *rows]
    text = HEAD.read_text(encoding="utf-8").replace("{machines}", "\n".join(table)) + "\n"
    cases, one = yaml.safe_load(CASES.read_text(encoding="utf-8")), found["h200-v0.19.0"]["cases"]
    others = {name: body["cases"] for name, body in found.items() if name in {"h200-v0.18.2", "h200-v0.17.4"}}
    for group, title in GROUPS.items():
        text += (
            f"## {title}\n\n| name | text | device plugin v0.19.0, one H200 | labels: product, replicas, strategy |\n"
        )
        text += "|---|---|---|---|\n"
        for name, case in cases[group].items():
            plugin = did(one[name])
            text += f"| {name} | {shown(case)} | {plugin} | {labels(one[name])} |\n"
            for older, row in others.items():
                if did(row[name]) != plugin:
                    text += f"| | | {older.removeprefix('h200-')}: {did(row[name])} | {labels(row[name])} |\n"
        text += "\n"
    return text.rstrip() + "\n"


def shown(case: Any) -> str:
    """A case in a cell: its text on one line, and what is around it."""
    whole = case if isinstance(case, dict) else {"text": case}
    parts = [code(whole["text"])] if whole["text"] is not None else ["no file"]
    parts += [
        code(f"{name}={value}") if value is not None else f"without {name}"
        for name, value in whole.get("env", {}).items()
    ]
    return ", ".join([*parts, *(code(each) for each in whole.get("args", []))])


def code(text: str) -> str:
    """TEXT as code in a cell, shortened; a line's end is shown as such."""
    line: str = (
        text.replace("\r\n", "\n")
        .strip("\n")
        .replace("\ufeff", "")
        .replace("\n", " ⏎ ")
        .replace("\t", "→")
        .replace("|", "\\|")
    )
    return f"`{line[:150]}{'…' if len(line) > 150 else ''}`" if line else "nothing"


def did(row: dict[str, Any]) -> str:
    """What the plugin did."""
    if "offers" in row:
        two = ", two for a container are refused" if row.get("two") else ""
        return ", ".join(f"{name}: {count}" for name, count in row["offers"].items()) + two
    if "waits" in row:
        return "waits for the MPS daemon" if "MPS" in row["waits"] else "waits"
    return "exits: " + str(row["ends"]).split(": ")[-1].replace("|", "\\|")[:90]


def labels(row: dict[str, Any]) -> str:
    """What GPU feature discovery wrote."""
    if "discovery" in row:
        return "exits"
    own = {**load(FOLDER / "h200-v0.19.0.json")["labels"], **row.get("labels", {})}
    return ", ".join(str(own.get(f"nvidia.com/gpu.{key}")) for key in ("product", "replicas", "sharing-strategy"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
