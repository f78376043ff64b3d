"""JUnit's XML as CI servers read it: a test suite for each cluster, a test case for each of its findings.

What makes the verb fail is a failure, what was waived is skipped, anything else passes and has its text as output. A
cluster without findings has one case that passes, so that it shows.
"""

from collections.abc import Iterable
from xml.etree import ElementTree

from ...model import Finding
from ..text import printable, text
from . import Report


def write(report: Report) -> str:
    by_suite: dict[str, list[Finding]] = {name: [] for name in report.lint.clusters}
    for item in report.lint.findings:
        place = item.finding.location
        for name in item.clusters or (place.file if place else "policies",):
            by_suite.setdefault(name, []).append(item.finding)
    root = ElementTree.Element("testsuites", name=f"gpustack {report.verb}")
    for name, findings in by_suite.items():
        root.append(suite(name, findings, report))
    for key in ("tests", "failures", "skipped"):
        root.set(key, str(sum(int(child.get(key, "0")) for child in root)))
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode").encode("ascii", "xmlcharrefreplace").decode()
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'  # the same bytes, whatever the terminal's encoding is


def suite(name: str, findings: Iterable[Finding], report: Report) -> ElementTree.Element:
    name = clean(name)
    element = ElementTree.Element("testsuite", name=name, errors="0")
    for finding in findings:
        title = clean(f"{finding.rule} {finding.path}".strip())
        case = ElementTree.SubElement(element, "testcase", classname=name, name=title)
        if report.fails(finding):
            failure = ElementTree.SubElement(case, "failure", message=clean(finding.what), type=finding.severity)
            failure.text = clean(text(finding))
        elif finding.waived:
            ElementTree.SubElement(case, "skipped", message=clean(f"waived by {finding.waived}"))
        else:
            ElementTree.SubElement(case, "system-out").text = clean(text(finding))
    if not len(element):
        ElementTree.SubElement(element, "testcase", classname=name, name="no findings")
    for key, value in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
        element.set(key, str(len(element.findall(value))))
    return element


def clean(words: str) -> str:
    """WORDS, which may have several lines, without control characters: XML 1.0 can't write most of them."""
    return "\n".join(map(printable, words.split("\n")))
