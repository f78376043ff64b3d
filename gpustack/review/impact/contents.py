"""Tests by which the lists of tiers bound texts that programs read: by the fields in them, not by their name.

Solves: a text of a configuration is one field of a policy, and how GPUs are shared stands in it beside which path of
the host is mounted. So it is parsed, and only fields that say counts and layouts may change. The same sharing can be
written in several places, by a pool or in such a text: `Apart` says of both how far apart pods on shared GPUs are kept.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import yaml

from ...api import keys
from ...catalog import _data, plugin_config
from ...policy.configurations import dcgm_csv, go_template, promql
from ...policy.configurations.plugin_text import PluginConfig, Shared, read_plugin_config
from .amounts import shares
from .leaves import Leaf, Leaves, changed, leaves

LONG = 200_000
"""Characters of a text that is taken apart."""
_FIELD = re.compile(r"DCGM_[A-Z0-9_]+")
REFUSES = "failRequestsGreaterThanOne"
LABEL = ("metadata", "labels", "grafana_dashboard")
FOLDER, QUERY = 100, 4000
"""Characters of the name of a folder, and of a query that is taken apart."""
_TEXT = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`'
_SELECTOR = re.compile(rf"([\w:]*)\s*\{{((?:[^{{}}\"'`]|{_TEXT})*)\}}")
_MATCHER = re.compile(rf"(\w+)\s*(=~|!~|!=|=)\s*({_TEXT})")
OPERATORS = {"and", "or", "unless", "bool", "atan2"}
"""Words between two queries."""
_GROUP = re.compile(r"\((?!\?)|\)(?![*+?{])")
_NAMED = re.compile(r"\w{3,}(?:\.[*+]\w*){0,4}")
_QUOTED = re.compile(rf"\s*(?:{_TEXT})\s*(?:,|$)")

WORDS = {"": "exclusive", "mps": "MPS", "timeSlicing": "time slicing"}
DISTANCE = {"": 2, "mps": 1, "timeSlicing": 0}
"""How far pods on one GPU are kept apart, by the kind of sharing."""


class Apart(NamedTuple):
    """The `kind` of sharing, of which resources (None: of all), and whether a share gets another name; numbers are in
    what nodes advertise. `single`: several shares are refused. `why` says why it isn't known."""

    kind: str = ""
    names: frozenset[str] | None = frozenset()
    renamed: bool = False
    single: bool = False
    why: str = ""

    @property
    def words(self) -> str:
        """How, in words."""
        if self.why:
            return f"not known ({self.why})"
        of = f" of {', '.join(sorted(self.names))}" if self.names else ""
        single = ", one for a container" if self.single else ""
        return f"{WORDS[self.kind]}{of}{', called .shared' if self.renamed else ''}{single}"

    def distance(self, name: str) -> int:
        """How far pods with the resource NAME are kept apart."""
        return DISTANCE[self.kind] if self.names is None or name in self.names else DISTANCE[""]

    def closer_than(self, was: Self) -> bool:
        """Whether pods that ask for the same may be closer together than they WERE, or nobody knows."""
        if self.why:
            return True
        if was.why:
            return bool(self.kind)
        names = {keys.GPU, *(was.names or ()), *(self.names or ())}
        closer = any(self.distance(name) < was.distance(name) for name in names)
        return closer or (bool(self.kind) and ((was.renamed and not self.renamed) or (was.single and not self.single)))


def of_entries(kind: str, shared: Shared, *, single: bool) -> Apart:
    """What the entries of a text say. SINGLE: a container that asks for several shares is refused."""
    names = frozenset(entry.name for entry in shared.entries if entry.replicas > 1)
    return Apart(kind, names, shared.renamed, single) if names else Apart()


def of_config(config: PluginConfig) -> Apart:
    """What a whole text says."""
    if config.refused or config.lacking or config.ambiguous:
        return Apart(why="the device plugin refuses it")
    if not config.kind:
        return Apart()
    shared = config.sharing[config.kind]
    built_in = config.kind == "mps" and bool(plugin_config.sharing()["mps_fail_requests_default"])
    return of_entries(config.kind, shared, single=built_in if shared.fails is None else shared.fails)


def as_apart(leaf: Leaf) -> bool:
    """Whether a device plugin's configuration that was there keeps pods as far apart as it did: nodes choose it by a
    label, which no policy has to say."""
    if leaf.old is None or leaf.new is None:
        return True
    texts = (str(leaf.old), str(leaf.new))
    if max(map(len, texts)) > LONG:
        return False
    old, new = (of_config(read_plugin_config(text)) for text in texts)
    return old == new or not new.closer_than(old)


def metrics(leaf: Leaf) -> bool:
    """Whether it is a list of metrics that the exporter reads: fields of DCGM, their types and help."""
    if leaf.new is None:
        return True
    if not isinstance(leaf.new, str) or len(leaf.new) > LONG:
        return False
    listed = dcgm_csv.read_metrics(leaf.new)
    return bool(listed.rows) and not listed.problems and all(_FIELD.fullmatch(row.name) for row in listed.rows)


def only(leaf: Leaf, allowed: Sequence[Sequence[str]]) -> bool:
    """Whether both texts can be read, and differ in nothing but what is ALLOWED."""
    old, new = _read(leaf.old), _read(leaf.new)
    if old is None or new is None:
        return False
    return all(any(each.path[: len(path)] == tuple(path) for path in allowed) for each in changed(old, new))


def _read(text: Any) -> Leaves | None:
    """What is in TEXT, a document of YAML without aliases; None where that isn't known."""
    if text is None:
        return {}
    if not isinstance(text, str) or len(text) > LONG:
        return None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            return None
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return leaves(content) if isinstance(content, dict) else None if content is not None else {}


def alert_label(leaf: Leaf) -> bool:
    """Whether a label of an alert says how bad it is and whose, in usual words: none by which others are silenced."""
    if leaf.new is None or (*leaf.path[:5], "record") in leaf.news:
        return True  # of a series: its name says whether it is the own one
    listed = _data.load("tiers")
    name, value = leaf.path[-1], str(leaf.new)
    if name == "severity":
        return value in listed["severities"]
    return name in {*listed["whose"], *listed["alert_labels"]} and bool(re.fullmatch(r"[\w .:/@+-]{0,80}", value))


def texts_pods_start(leaf: Leaf) -> bool:
    """Whether pods that a device plugin's configuration let start still do: none is refused for more than one share."""
    old, new = _read(leaf.old), _read(leaf.new)
    if leaf.old is None or old is None or new is None:
        return leaf.old is None
    return all(old.get(path) is True or value is not True for path, value in new.items() if path[-1] == REFUSES)


def dashboards_file(leaf: Leaf) -> bool:
    """Whether a file of a ConfigMap is a dashboard, where Grafana's sidecar looks: others are fetched or run."""
    return leaf.new is None or leaf.path[-1].endswith(".json") or LABEL not in leaf.news


def parsed(leaf: Leaf) -> bool:
    """Whether Prometheus can read an expression: else all rules of its object are gone."""
    return leaf.new is None or promql.wrong(str(leaf.new)) == ""


def template(leaf: Leaf) -> bool:
    """Whether it is an annotation by its name, with a template that Prometheus can read."""
    named = bool(re.fullmatch(r"[a-zA-Z_]\w*", leaf.path[-1], re.ASCII))
    return leaf.new is None or (named and go_template.wrong(str(leaf.new)) == "")


def asks_nothing(leaf: Leaf) -> bool:
    """Whether a template runs no query: Prometheus runs it for each alert, at each evaluation."""
    return leaf.new is None or "query" not in go_template.called(str(leaf.new))


def dashboard_read(leaf: Leaf) -> bool:
    """Whether Grafana can read a dashboard, where it is one."""
    file = leaf.path[-1].endswith(".json") and LABEL in leaf.news
    if leaf.new is None or not (file or leaf.path == ("spec", "json")):
        return True
    try:
        return isinstance(json.loads(str(leaf.new)), dict)
    except (ValueError, RecursionError):
        return False


def dashboards_files(leaf: Leaf) -> bool:
    """Whether all files of a ConfigMap that Grafana's sidecar reads from now on are dashboards."""
    kept = (path for path in leaf.news if path[0] in {"data", "binaryData"})
    return leaf.new is None or all(path[-1].endswith(".json") for path in kept)


def folder(leaf: Leaf) -> bool:
    """Whether it is the name of a folder within the one for dashboards."""
    name = str(leaf.new)
    plain = all(re.fullmatch(r"\w[\w .&()+-]*", part) and ".." not in part for part in name.split("/"))
    return leaf.new is None or (len(name) <= FOLDER and plain)


def no_milder_twin(leaf: Leaf) -> bool:
    """Whether a new alert is of a name that none has that stays, or warns itself: one that doesn't may silence it."""
    if leaf.old is not None or leaf.new is None:
        return True
    twin = any(
        path[-1] == "alert" and path[:5] != leaf.path[:5] and name == leaf.new and leaf.news.get(path) == name
        for path, name in leaf.olds.items()
    )
    return not twin or leaf.news.get((*leaf.path[:5], "labels", "severity")) in {"warning", "critical"}


def bounded_query(leaf: Leaf) -> bool:
    """Whether each selector of a query is of series by name, or by a label's value: none reads all that there are."""
    query = str(leaf.new)
    if leaf.new is None:
        return True
    if len(query) >= QUERY or "{" in _SELECTOR.sub("", query):
        return False
    return all(_bounded(word, inner) for word, inner in _SELECTOR.findall(query))


def _bounded(word: str, inner: str) -> bool:
    """Whether the matchers INNER pick some series, or WORD before them names it."""
    if word and word.lower() not in OPERATORS and "__name__" not in inner:
        return True
    matchers = _MATCHER.findall(inner)
    if any(label == "__name__" and how in {"!=", "!~"} for label, how, _ in matchers):
        return False
    named = [text[1:-1] for label, how, text in matchers if label == "__name__" and how == "=~"]
    if named:
        return all(_NAMED.fullmatch(each) for text in named for each in _GROUP.sub("", text).strip("^$").split("|"))
    return any(how == "=" and len(text) > 2 for _, how, text in matchers) or bool(_QUOTED.match(inner))


def shares_of_text(leaf: Leaf) -> bool:
    """Whether the numbers of shares in a device plugin's configuration are usual ones, entry by entry."""
    old, new = _read(leaf.old), _read(leaf.new)
    if old is None or new is None:
        return leaf.new is None
    return all(shares(each) for each in changed(old, new) if each.path[-1] == "replicas")


TEXTS = (
    *(shares_of_text, as_apart, metrics, alert_label, texts_pods_start, dashboards_file, dashboards_files),
    *(folder, no_milder_twin, bounded_query, parsed, template, asks_nothing, dashboard_read),
)
