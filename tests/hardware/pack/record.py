"""Write what run.py brought back as facts: tests/hardware/measured/<GPU>-<plugin version>.json, a line for each case.

    python -m tests.hardware.pack.record FOLDER

What is the same in every case stands once: the labels and the allocation of the case `none`. Nothing in it names one
card.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

MEASURED = Path(__file__).resolve().parent.parent / "measured"
_ANNOTATION = re.compile(r"(nvidia-device-plugin_)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def main(folder: Path) -> None:
    """Record every plugin-*.json of FOLDER, with the card's own nvml.json and nvidia-smi.xml."""
    MEASURED.mkdir(exist_ok=True)
    for file in sorted(folder.glob("plugin-*.json")):
        raw = json.loads(file.read_text(encoding="utf-8"))
        (MEASURED / f"{card(raw)}-{raw['plugin']}.json").write_text(facts(raw), encoding="utf-8")
    limits = json.loads((folder / "nvml.json").read_text(encoding="utf-8"))
    (MEASURED / f"{card(limits)}-nvml.json").write_text(limits_text(limits), encoding="utf-8")
    smi = (folder / "nvidia-smi.xml").read_text(encoding="utf-8")
    (MEASURED / f"{card(limits)}-nvidia-smi.xml").write_text(smi, encoding="utf-8")


def card(machine: dict[str, Any]) -> str:
    """The names of the machine's cards, as part of a file's name: h200."""
    names = {name.removeprefix("NVIDIA ").split()[0].lower() for name in machine["gpus"]}
    return "-".join(sorted(names)) + (f"-x{len(machine['gpus'])}" if len(machine["gpus"]) > 1 else "")


def facts(raw: dict[str, Any]) -> str:
    """The results RAW of one version as text: JSON with a line for each case."""
    plain = raw["cases"]["none"]
    one = next(iter(plain["resources"].values()))["one"]
    head = {key: raw[key] for key in ("plugin", "date", "driver", "gpus", "kernel", "environment", "discovery")}
    head |= {"labels": plain["gfd"]["labels"], "allocation": one}
    lines = [f" {json.dumps(key)}: {json.dumps(value, sort_keys=True)}," for key, value in head.items()]
    cases = {name: case(found, plain["gfd"]["labels"], one) for name, found in sorted(raw["cases"].items())}
    rows = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in cases.items()]
    text = "{\n" + "\n".join(lines) + '\n "cases": {\n' + ",\n".join(rows) + "\n }\n}\n"
    return _ANNOTATION.sub(r"\1REPLACED", text)


def case(found: dict[str, Any], labels: dict[str, str], one: dict[str, Any]) -> dict[str, Any]:
    """One case: what the plugin did (`offers`, `ends` or `waits`), and which labels differ from LABELS.

    `two` says that two shares for one container are refused; `allocation` is there where it differs from ONE; a label
    that is gone is null; `discovery` says why GPU feature discovery ended.
    """
    row: dict[str, Any] = {}
    said = found["log"].splitlines()[-1][-200:] if found["log"] else ""
    if found["exit"] is not None:
        row["ends"] = said
    elif not found["resources"]:
        row["waits"] = said
    else:
        row["offers"] = {name: len(each["devices"]) for name, each in found["resources"].items()}
        if any(each.get("two", "ok") not in {"ok", ""} for each in found["resources"].values()):
            row["two"] = "refused"
        differing = [each["one"] for each in found["resources"].values() if each["one"] != one]
        if differing:
            row["allocation"] = {key: value for key, value in differing[0].items() if value != one[key]}
    if found["gfd"]["exit"] != 0:
        row["discovery"] = found["gfd"]["log"].splitlines()[-1][-200:]
    else:
        had = found["gfd"]["labels"]
        row["labels"] = {key: had.get(key) for key in sorted({*had, *labels}) if had.get(key) != labels.get(key)}
    return row


def limits_text(limits: dict[str, Any]) -> str:
    """NVML's answers as JSON, a line for each MIG profile."""
    text = json.dumps(limits, indent=1, sort_keys=True)
    return re.sub(r"\{\s+(\"ce\"[^{}]*)\}|\[\s+([-\d,\s]+)\]", _joined, text) + "\n"


def _joined(match: re.Match[str]) -> str:
    return re.sub(r"\s+", " ", match[0]).replace("[ ", "[").replace(" ]", "]").replace("{ ", "{").replace(" }", "}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
