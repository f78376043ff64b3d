"""`helm install` and `helm upgrade` as they stand in scripts, Makefiles, pages and pipelines. Nothing is run.

Variables are what the text itself or --set says; what only a shell could know stays in the values as ${...}.
"""

import bisect
import functools
import itertools
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any

from gpustack.catalog import _data
from gpustack.model import InputError, Location, Path
from gpustack.text.read import value as parse

from ..documents import COMMAND, Item, documents, filled, heredocs
from ..installation import Leaves, Said, lay, leaves_of, walked
from . import sets
from .context import CHART, Context, words
from .hcl import LONGEST
from .sets import pairs, put, typed

MOST = 400_000
"""Letters that variables of a file come to, wherever it has them."""
_SET = re.compile(
    r"""^[ \t]*(?:-[ ]|(?:export|local|readonly|set)\s+)?\$?(\w+)(?:[ \t]*([:?+]?)=[ \t]*|:[ \t]+)
    (?:"([^"`]*)"|'([^']*)'|\(([^()`]*)\)|((?:\$\{\w+:?-)?[^\s"'$`{}()]+\}?)|(?<=\ =\ |[:?+]=\ )([^"'$`{}()\n]+))
    [ \t]*(?:\#.*)?$""",
    re.MULTILINE | re.VERBOSE,
)
_PATCH = re.compile(
    r"\b(?:kubectl|oc)\s+patch\s+clusterpolic(?:[^\n]|\\\n)*?\s(?:-p|--patch)[ =]*([\"'])(.*?)(?<!\\)\1", re.DOTALL
)
_PATCHES = re.compile(r"\b(?:kubectl|oc)\s+patch\s+clusterpolic")
_NAMED = re.compile(
    r"\"?\$\{(\w+)\[@\]\}\"?|\$\((\w+)\)|\$(\w+)|\$\{(\w+)\}|\$\{\{\s*(?:\w+\.)*(\w+)\s*\}\}"
    r"|%(\w+)%|[$<]\((?:[^()]|\([^()]*\))*\)|`[^`]*`"
)
_CONDITION = re.compile(r"^[ \t]*(if|case|ifeq|ifneq|ifdef|ifndef|fi|esac|endif)\b(?!:).*", re.MULTILINE)
_MACRO = re.compile(r"\$\((call|foreach) ((?:[^()]|\([^() ]*\))*)\)")
_DEFINE = re.compile(r"^define (\w+).*?\n(.*?)^endef", re.MULTILINE | re.DOTALL)
_FENCE = r"(?:{name}(?:(?!^```).)*^```(?:yaml|yml)[^\n]*\n|^```(?:yaml|yml)[^\n]*\n(?=\s*#[^\n]*{name}))(.*?)^```"


def recognised(item: Item) -> bool:
    """Whether ITEM has a command of Helm's in it and names the operator's chart, or a patch of its ClusterPolicy."""
    commands = CHART in item.text and any(COMMAND.search(text) for _, text in scripts(item))
    return item.outer is None and (commands or bool(_PATCHES.search(item.text)))


def scripts(item: Item) -> Iterator[tuple[Location, str]]:
    """The texts in ITEM that may hold commands, with their places: of YAML each scalar, and lists of words."""
    if isinstance(item.data, str):
        yield (
            Location(item.file, 1),
            made(item.text) if "$(call " in item.text or "$(foreach " in item.text else item.text,
        )
    else:
        yield from ((item.where(*path), text) for path, text in texts(item.data) if COMMAND.search(text))


def made(text: str) -> str:
    """TEXT of a Makefile with what it calls and repeats written out, as far as it says of what."""
    macros = {match[1]: match[2] for match in _DEFINE.finditer(text)}
    lists = {name: "".join(said) for name, _, *said in _SET.findall(text)}

    def one(match: re.Match[str]) -> str:
        first, *more = match[2].split(",")
        if match[1] == "call":
            return re.sub(
                r"\$\((\d)\)", lambda at: [first, *more, *[""] * 9][int(at[1])].strip(), macros.get(first, match[0])
            )
        words = re.sub(r"\$\((\w+)\)", lambda name: lists.get(name[1], name[0]), more[0]).split()
        return " ".join(more[1].replace(f"$({first.strip()})", word) for word in words)

    lines = _DEFINE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for _ in range(5):
        lines = _MACRO.sub(one, lines)
    return lines


def texts(data: Any) -> Iterator[tuple[Path, str]]:
    """The texts in DATA, words of a command of Helm's as one."""
    for path, each in walked(data):
        if isinstance(each, str) or (isinstance(each, list) and each[:1] == ["helm"]):
            yield path, each if isinstance(each, str) else shlex.join(map(str, each))


def commands(item: Item) -> Iterator[tuple[Location, str]]:
    """The words of each command of Helm's in ITEM, with its place."""
    for place, text in scripts(item):
        number = place.line or 1
        for line in re.sub(r"[\\`^]\r?\n", "\f", text).split("\n"):
            if match := COMMAND.search(line):
                at = number + line.count("\f", 0, match.start())
                yield Location(item.file, at), f"{match[1]} {line[match.end() :]}".replace("\f", " ")
            number += 1 + line.count("\f")


def variables(item: Item, context: Context) -> tuple[dict[str, str], dict[str, list[tuple[int, str]]]]:
    """What the text of ITEM, else other files without a kind, say of variables, and of those that a condition sets
    which and where. What is set twice isn't known."""
    known, left = dict[str, str](), [MOST]
    asked: dict[str, list[tuple[int, str]]] = {}
    texts = [each.text for each in context.items if isinstance(each.data, dict | str) and not each.get("kind")]
    for text in [*texts, item.text]:
        own: dict[str, str] = {}
        plain = re.sub(r"\\\n", " \f", text)
        conditions = list(_CONDITION.finditer(plain))
        starts = [each.start() for each in conditions]
        depths = [0, *itertools.accumulate(-1 if each[1] in {"fi", "esac", "endif"} else 1 for each in conditions)]
        for match in _SET.finditer(plain):
            name, how, *said = (each or "" for each in match.groups())
            value = filled(_NAMED.sub(functools.partial(taken, own, left), "".join(said)), own)
            more = how == "+" or f"${name}" in "".join(said)
            same = more or own.get(name, value) == value
            whole = f"{own.get(name, '')} {value}" if how == "+" else value
            own[name] = whole if same and len(whole) <= LONGEST else "$("
            above = bisect.bisect(starts, match.start())
            if text is item.text and depths[above] > 0:
                line = plain.count("\n", 0, match.start()) + plain.count("\f", 0, match.start())
                asked.setdefault(name, []).append((line + 1, conditions[above - 1][0].strip()))
        known |= {name: value for name, value in own.items() if "$(" not in value}
    return known, asked


def taken(known: Mapping[str, str], left: list[int], match: re.Match[str]) -> str:
    """What KNOWN has for the variable of MATCH, else what stands there, or where no letters are LEFT for it."""
    said = known.get(called(match), match[0])
    left[0] -= len(said)
    return said if left[0] > 0 else match[0]


def called(match: re.Match[str]) -> str:
    """The name of the variable that MATCH stands for, "" for what a command prints."""
    return next(filter(None, match.groups()), "")


def read(item: Item, context: Context) -> None:
    """Read the commands in ITEM; of several, the later wins."""
    answers, left = context.reader.answers, [MOST]
    known, asked = variables(item, context)
    known |= {name.rpartition(".")[2]: value for name, value in answers.items()}

    def one(match: re.Match[str]) -> str:
        name = called(match)
        context.reader.used |= (used := {key for key in answers if name and key.rpartition(".")[2] == name})
        for line, condition in asked.pop(name, ()) if not used else ():
            context.installation.tell("condition", name, Location(item.file, line), condition=condition, name=name)
        said = known.get(name, f"${{{name or 'output'}}}")
        left[0] -= len(said)
        return said if left[0] > 0 else "${output}"

    starts = [each.start() for each in _PATCHES.finditer(item.text)]
    for start, end in itertools.pairwise([*starts, len(item.text)]):
        place, patch = Location(item.file, item.text.count("\n", 0, start) + 1), _PATCH.match(item.text[start:end])
        if not patch or not patched(patch, place, context):
            context.installation.tell("patched", item.file, place)
    for number, (where, text) in enumerate(commands(item)):
        if number == 1:
            context.installation.tell("several commands", item.file, where)
        line = shlex.shlex(filled(_NAMED.sub(one, text), known), posix=True, punctuation_chars="();<>|&`")
        line.whitespace_split = True
        try:
            if left[0] < 0:
                raise ValueError("its variables come to too much")
            command(list(line), item, where, context)
        except ValueError as error:
            context.installation.tell("command", item.file, where, error=error)


def patched(patch: re.Match[str], where: Location, context: Context) -> bool:
    """Take PATCH of the ClusterPolicy at WHERE, a merge patch or JSON's additions; whether it could be read."""
    text = patch[2].replace('\\"', '"') if patch[1] == '"' else patch[2]
    try:
        parsed = parse(text, where.file)
        spec = sets.patched({}, parsed[1] if parsed else None).get("spec")
    except (InputError, ValueError):
        return False
    lay(context.installation.spec, {path: Said(each, where) for path, each in leaves_of(spec or {}) if path})
    return bool(spec)


def command(line: list[str], item: Item, where: Location, context: Context) -> None:
    """Take what the words of LINE after `helm install` say."""
    installation = context.installation
    end = next((index for index, word in enumerate(line) if set(word) & set("();<>|&`") and "=" not in word), None)
    short = _data.read(File(__file__).with_name("shapes.yaml"))["short"]
    rest, plain, flags = iter(line[:end]), [], list[tuple[str, str]]()
    for word in rest:
        flag, equals, value = word.partition("=")
        flag = short.get(flag, flag.removeprefix("--") if flag.startswith("--") else "")
        if flag in words("options"):
            flags.append((flag, value if equals else next(rest, "")))
        elif not word.startswith("-"):
            plain.append(word)
    if not any(CHART in word for word in plain):
        return
    installation.installed = True
    archives = [found[1] for word in plain if (found := re.search(rf"{CHART}-(v?\d[\d.]*\d)\.tgz", word))]
    installation.version = installation.version or (Said(archives[0], where) if archives else None)
    unknown = [word for word in plain if re.fullmatch(r"\$\{\w+\}", word) and (word != plain[0] or len(plain) > 2)]
    for word in unknown:
        installation.tell("words", word, where, name=word[2:-1])
    plain = [word for word in plain if word not in unknown]
    if len(plain) > 1 and "${" not in plain[0]:
        installation.helm_release = plain[0]
    else:
        installation.tell("generated", "nfd.helmRelease", where)
    for flag, value in sorted(flags, key=lambda each: each[0] != "values"):
        if flag == "values":
            context.take(values(value, item, context))
        elif flag == "version" and "${" not in value:
            installation.version = installation.version or Said(value, where)
        elif flag == "namespace" and "${" not in value:
            installation.namespace = value
        elif flag.startswith("set"):
            assign(flag, value, where, context)


def values(names: str, item: Item, context: Context) -> Leaves:
    """The values in the files NAMES: those that ITEM shows itself, else what lies beside it."""
    made: Leaves = {}
    for name in names.split(","):
        found = list(shown(name, item))
        for start, text in found:
            above = "\n" * item.text.count("\n", 0, start)
            for each in documents(above + filled(text, context.reader.answers), item.file):
                lay(made, each.leaves())
        if name != "-" and not found:
            lay(made, context.file(Item(item.file, "", {}), name))
    return made


def shown(name: str, item: Item) -> Iterator[tuple[int, str]]:
    """What ITEM shows of the file NAME, and where: below its name on a page, or in a heredoc, if no item."""
    if fence := re.search(_FENCE.format(name=re.escape(name)), item.text, re.MULTILINE | re.DOTALL):
        yield fence.start(1), fence[1]
    for at, start, inner in heredocs(item.text):
        if name in item.text[item.text.rfind("\n", 0, at) + 1 : start]:
            yield start, "" if isinstance(item.data, str) else inner


def assign(flag: str, text: str, where: Location, context: Context) -> None:
    """Take TEXT of one of Helm's flags --set..."""
    for name, value in pairs(text) if flag in {"set", "set-string"} else [text.partition("=")[::2]]:
        made: Any = typed(value) if flag == "set" else json.loads(value) if flag == "set-json" else value
        if flag == "set-file":
            context.installation.tell("text file", name, where, file=value)
        else:
            put(context.installation.values, name, made, where)
