"""SARIF 2.1.0, the format of code scanning services.

Each rule comes along with its page, so that whoever sees a result sees what it is about. A finding about many clusters
is one result, with their names among its properties; a waived one is suppressed, with the reason as justification.
"""

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from ... import __version__
from ...checks import pages
from ...checks.errors import RAISED
from ...checks.rule import all_rules
from ...compiler.cache import digest
from ...compiler.judge import GroupedFinding, also
from ...model import Location
from ..text import as_json, excerpt, whole
from . import Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
Object = dict[str, Any]


def write(report: Report) -> str:
    ids = sorted({item.finding.rule for item in report.lint.findings})
    run = {
        "tool": {"driver": {"name": "gpustack", "version": __version__, "rules": [descriptor(name) for name in ids]}},
        "invocations": [{"executionSuccessful": not report.lint.unusable, "exitCode": report.code}],
        "columnKind": "unicodeCodePoints",
        "results": [result(item, ids) for item in report.lint.findings],
    }
    return as_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def descriptor(name: str) -> Object:
    """What rule NAME is: its page, or for what is not a rule, its title."""
    rule = next((each for each in all_rules() if each.id == name), None)
    if rule is None:
        return {"id": name, "shortDescription": {"text": RAISED.get(name, "This can't be used.")}}
    page = pages.page(rule)
    snippets = [f"{word}:\n\n```yaml\n{text}```" for word, text in (("Bad", page.bad), ("Good", page.good))]
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in rule.check.__name__.split("_")),
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": page.why},
        "help": {"text": page.why, "markdown": "\n\n".join([page.why, *snippets])},
        "defaultConfiguration": {"level": rule.severity},
    }


def result(item: GroupedFinding, ids: Sequence[str]) -> Object:
    finding = item.finding
    more = (("Why", finding.why), ("Do", finding.remedy))
    said = [also(item).what, *(f"{word}: {text}" for word, text in more if text)]
    file = finding.location.file if finding.location else ""
    fingerprint = digest(finding.rule, whole(file), finding.path, whole(finding.what))[:32]
    made: Object = {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": finding.severity,
        "message": {"text": "\n".join(said)},
        "partialFingerprints": {"finding/v1": fingerprint},
        "properties": {"clusters": list(item.clusters)},
    }
    place: Object = {"physicalLocation": physical(finding.location)} if finding.location else {}
    if finding.path:
        place["logicalLocations"] = [{"fullyQualifiedName": finding.path, "kind": "member"}]
    if place:
        made["locations"] = [place]
    if finding.waived:
        made["suppressions"] = [{"kind": "external", "status": "accepted", "justification": finding.waived}]
    return made


def physical(location: Location) -> Object:
    """A place in a file; names of files are relative to where the verb was run."""
    made: Object = {"artifactLocation": {"uri": quote(os.fsencode(location.file)), "uriBaseId": "%SRCROOT%"}}
    if location.line is not None:
        region: Object = {"startLine": location.line}
        if location.column is not None:
            region["startColumn"] = location.column
        if location.text is not None:
            region["snippet"] = {"text": excerpt(location.column or 1, location.text)[1]}
        made["region"] = region
    return made
