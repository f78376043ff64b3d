"""A JSON document, like that of the other verbs: keys are only ever added."""

from ..text import document, plain
from . import Report


def write(report: Report) -> str:
    """Exit code, what was looked at and when, clusters, counts, and the findings with the clusters of each."""
    findings = [{**plain(item.finding), "clusters": list(item.clusters)} for item in report.lint.findings]
    looked = {"verb": report.verb, "lookedAt": report.looked, "rendered": report.rendered} if report.looked else {}
    return document(report.code, findings, **looked, clusters=list(report.lint.clusters), counts=report.counts) + "\n"
