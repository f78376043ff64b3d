"""Edits of files that people write, with their comments and all else kept.

Solves: a program that writes one value of a YAML file anew must leave the rest as it is, byte by byte where it can.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping

import ruamel.yaml
from ruamel.yaml.scalarstring import DoubleQuotedScalarString


def set_section(text: str, section: str, before: str, values: Mapping[str, str | None]) -> str:
    """TEXT with VALUES in the mapping SECTION at its top, None for keys that go. No other line is touched; a section
    that isn't there comes right above the key BEFORE.
    """
    lines = text.splitlines(keepends=True)
    keys = ruamel.yaml.YAML(pure=True).compose(text).value
    starts = [key.start_mark.line for key, _ in keys] + [len(lines)]
    at = next((index for index, (key, _) in enumerate(keys) if key.value == section), None)
    if at is None:
        first = last = starts[next(index for index, (key, _) in enumerate(keys) if key.value == before)]
    else:
        first, last = starts[at], starts[at + 1]
        while last > first + 1 and not lines[last - 1].startswith((" ", "\t")):  # what is said of the next one
            last -= 1
    yaml = ruamel.yaml.YAML(pure=True)
    yaml.preserve_quotes, yaml.width = True, 10**6
    data = yaml.load("".join(lines[first:last])) or {section: {}}
    if data[section] is None:
        data[section] = {}
    for key, value in values.items():
        if value is None:
            data[section].pop(key, None)
        else:
            data[section][key] = DoubleQuotedScalarString(value) if " " in value or ":" in value else value
    out = io.StringIO()
    yaml.dump(data, out)
    made = out.getvalue()
    if not data[section] and "\n{}" in made:  # an empty mapping has no lines of its own
        comment = re.search(r" #.*", lines[first])
        made = f"{section}: {{}}{comment[0] if comment else ''}\n"
    return "".join([*lines[:first], made, *lines[last:]])
