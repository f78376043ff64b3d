"""`helm install` and `helm upgrade` as they stand in scripts, Makefiles, pages and pipelines. Nothing is run.

Variables are what the text itself or --set says; what only a shell could know stays in the values as ${...}.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from gpustack.model import InputError, Location
from gpustack.text.read import value as parse

from ..documents import COMMAND, Item, filled
from ..installation import Leaves, Said, lay, leaves_of
from .context import CHART, Context
from .sets import pairs, put, typed

_SET = re.compile(
    r"^\s*(?:export\s+)?(\w+)(?:\s*[:?]?=\s*|:[ \t]+)([\"']?)(?:\$\{\w+:?-)?([^\s\"'$`{}]+)\}?\2\s*(?:#.*)?$",
    re.MULTILINE,
)
_PATCH = re.compile(
    r"\b(?:kubectl|oc)\s+patch\s+clusterpolic(?:[^\n]|\\\n)*?\s(?:-p|--patch)[ =]*([\"'])(.*?)(?<!\\)\1", re.DOTALL
)
_PATCHES = re.compile(r"\b(?:kubectl|oc)\s+patch\s+clusterpolic")
_NAMED = re.compile(r"\$\((\w+)\)|\$(\w+)|\$\{(\w+)\}")
SHORT = {"-n": "namespace", "-f": "values", "-l": "labels", "-o": "output"}
WITH_VALUE = {
    *("namespace", "values", "labels", "output", "version", "set", "set-string", "set-json", "set-file", "set-literal"),
    *("repo", "timeout", "kubeconfig", "kube-context", "history-max", "description", "post-renderer", "name-template"),
    *("username", "password", "ca-file", "cert-file", "key-file", "keyring"),
}


def recognised(item: Item) -> bool:
    """Whether ITEM has a command of Helm's in it that names the operator's chart, or a patch of its ClusterPolicy."""
    return item.outer is None and (any(True for _ in commands(item.text)) or bool(_PATCHES.search(item.text)))


def commands(text: str) -> Iterator[tuple[int, str]]:
    """Each command about the chart in TEXT with the line that it begins on."""
    number = 1
    for line in text.replace("\\\n", "\\\f").split("\n"):
        for match in COMMAND.finditer(line):
            if CHART in line[match.end() :]:
                words = f"{match[1]} {line[match.end() :]}".replace("\\\f", " ")
                yield number + line.count("\f", 0, match.start()), words
                break
        number += 1 + line.count("\f")


def read(item: Item, context: Context) -> None:
    """Read the commands in ITEM; of several, the later wins."""
    known = {name: value for name, _, value in _SET.findall(item.text)} | dict(context.reader.answers)

    def one(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        context.reader.used |= {name} & set(context.reader.answers)
        return str(known.get(name, f"${{{name}}}"))

    read_patches = {patch.start() for patch in _PATCH.finditer(item.text) if patched(patch, item, context)}
    for each in _PATCHES.finditer(item.text):
        if each.start() not in read_patches:
            place = Location(item.file, item.text.count("\n", 0, each.start()) + 1)
            context.installation.tell("patched", item.file, place)
    for line, text in commands(item.text):
        where = Location(item.file, line)
        words = shlex.shlex(filled(_NAMED.sub(one, text), known), posix=True, punctuation_chars="();<>|&`")
        words.whitespace_split = True
        try:
            command(list(words), item, where, context)
        except ValueError as error:
            context.installation.tell("command", item.file, where, error=error)


def patched(patch: re.Match[str], item: Item, context: Context) -> bool:
    """Take PATCH of the ClusterPolicy in ITEM: a merge patch, or JSON's additions; whether it could be read."""
    text = patch[2].replace('\\"', '"') if patch[1] == '"' else patch[2]
    where = Location(item.file, item.text.count("\n", 0, patch.start()) + 1)
    try:
        parsed = parse(text, item.file)
    except InputError:
        return False
    data: Any = parsed[1] if parsed else None
    made: Leaves = {}
    if isinstance(data, dict) and isinstance(data.get("spec"), dict):
        made = {path: Said(each, where) for path, each in leaves_of(data["spec"])}
    for each in data if isinstance(data, list) else []:
        steps = str(each.get("path", "")).split("/") if isinstance(each, dict) else []
        if steps[:2] != ["", "spec"] or each.get("op") not in {"add", "replace"} or {"-", "0"} & set(steps):
            return False
        at = tuple(step.replace("~1", "/").replace("~0", "~") for step in steps[2:])
        made |= {path: Said(one, where) for path, one in leaves_of(each.get("value"), at)}
    lay(context.installation.spec, made)
    return bool(made)


def command(words: list[str], item: Item, where: Location, context: Context) -> None:
    """Take what the WORDS after `helm install` say."""
    installation = context.installation
    end = next((index for index, word in enumerate(words) if set(word) & set("();<>|&`") and "=" not in word), None)
    rest, plain, flags = iter(words[:end]), [], list[tuple[str, str]]()
    for word in rest:
        flag, equals, value = word.partition("=")
        flag = SHORT.get(flag, flag.removeprefix("--") if flag.startswith("--") else "")
        if flag in WITH_VALUE:
            flags.append((flag, value if equals else next(rest, "")))
        elif not word.startswith("-"):
            plain.append(word)
    plain = [word for word in plain if not re.fullmatch(r"\$\{\w+\}", word)]
    if not any(CHART in word for word in plain):
        return
    if len(plain) > 1 and "${" not in plain[0]:
        installation.helm_release = plain[0]
    else:
        installation.tell("generated", "nfd.helmRelease", where)
    for flag, value in sorted(flags, key=lambda each: each[0] != "values"):
        if flag == "values" and (value == "-" or any(value in line for line in item.text.splitlines() if "<<" in line)):
            continue  # a heredoc of this text, whose documents are items
        if flag == "values":
            context.take(context.file(Item(item.file, "", {}), value))
        elif flag == "version" and "${" not in value:
            installation.version = installation.version or Said(value, where)
        elif flag == "namespace" and "${" not in value:
            installation.namespace = value
        elif flag.startswith("set"):
            assign(flag, value, where, context)


def assign(flag: str, text: str, where: Location, context: Context) -> None:
    """Take TEXT of one of Helm's flags --set..."""
    for name, value in pairs(text) if flag in {"set", "set-string"} else [text.partition("=")[::2]]:
        made: Any = typed(value) if flag == "set" else json.loads(value) if flag == "set-json" else value
        if flag == "set-file":
            context.installation.tell("values file", name, where, file=where.file, name=value)
        else:
            put(context.installation.values, name, made, where)


KINDS: dict[str, object] = {}
FILES = ((recognised, read),)
