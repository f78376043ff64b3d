"""The structure of pages, without a browser: what screen readers, keyboards and careful people rely on."""

from __future__ import annotations

import html.parser
import itertools
import re
from dataclasses import dataclass, field

from gpustack.model import Finding
from gpustack.review.diff.groups import Difference, Group
from gpustack.review.diff.objects import Identity, ObjectChange
from gpustack.review.impact.effects import Effect, Impact
from gpustack.review.impact.rule import all_rules
from gpustack.review.report import changes, findings, frame, matrix, pictures
from tests.review.impact.test_rules import spec

all_rules()
EVIL = "<img src=x onerror=alert(1)>\"'&lt; \x1b[31m\u202e"
VOID = {"meta", "link", "input", "br", "img", "path", "circle", "rect"}


@dataclass
class Element:
    """A tag with its attributes, and the words below it."""

    tag: str
    attributes: dict[str, str | None]
    words: list[str] = field(default_factory=list)


class Reader(html.parser.HTMLParser):
    """Reads a page, and fails where tags are not closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(page)
        assert not self.open, [element.tag for element in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open, tag
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.words.append(data)

    def all(self, tag: str) -> list[Element]:
        """The elements with TAG."""
        return [element for element in self.elements if element.tag == tag]


def whole(text: str = "x") -> str:
    """A page with every section, and TEXT wherever a value may stand."""
    policy = spec("lab-a100")
    change = ObjectChange("added", Identity("", "Thing", text, text), body={"data": {text: text}, "image": text})
    made = (
        Effect("IMP402", 1, text, text, text, (text,), (1, 2), partly=True),
        Effect("IMP204", 3, text, text, text, (text,)),
    )
    cluster = matrix.Cluster(policy, {"Driver": text})
    sections = [
        matrix.section({text: cluster, "b": matrix.Cluster(policy, {"Driver": "y"})}),
        pictures.section({text: policy, "b": policy}),
        findings.section([(Finding("GPU101", "note", text, remedy=text, waived=text), (text,))], 2),
        changes.effects(Impact(made), 2),
        changes.groups(Difference(text, text, 2, (Group((text,), (change,)),))),
    ]
    return frame.page(text, text, [*sections, findings.meanings(sections)])


def test_landmarks_and_headings() -> None:
    """One header, one main, one h1, a navigation and sections with names; no heading level is left out."""
    page = Reader(whole())
    for tag in ("header", "main", "footer", "h1", "nav", "search"):
        assert len(page.all(tag)) == 1, tag
    assert page.all("html")[0].attributes["lang"] == "en"
    levels = [int(element.tag[1]) for element in page.elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_every_reference_leads_somewhere() -> None:
    """Ids are there once; links, labels and descriptions name ids that are there; patterns too."""
    text = whole()
    page = Reader(text)
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            for one in (element.attributes.get(name) or "").split():
                assert one in ids, one
        target = element.attributes.get("href") or ""
        assert not target.startswith("#") or target[1:] in ids
    assert set(re.findall(r"url\(#([\w-]+)\)", text)) <= set(ids)


def test_the_skip_link_comes_first() -> None:
    """The first thing that the keyboard reaches is the way past the navigation, to the main part."""
    page = Reader(whole())
    first = next(element for element in page.elements if element.tag in {"a", "input", "summary"})
    assert (first.attributes["class"], first.attributes["href"]) == ("skip", "#main")
    assert page.all("main")[0].attributes["id"] == "main"


def test_tables_have_captions_and_scopes() -> None:
    """Each table says what it is, each heading whether it is a column's or a row's; what scrolls takes the focus."""
    page = Reader(whole())
    assert len(page.all("table")) == len(page.all("caption")) == 2
    assert {element.attributes.get("scope") for element in page.all("th")} == {"col", "row"}
    regions = [element for element in page.elements if element.attributes.get("role") == "region"]
    assert all(region.attributes.get("tabindex") == "0" and region.attributes.get("aria-label") for region in regions)
    assert all(element.attributes.get("tabindex") == "0" for element in page.all("pre"))


def test_pictures_have_words() -> None:
    """Each picture has a title and a description; the one that holds what they share is hidden from readers."""
    page = Reader(whole())
    pictured = [element for element in page.all("svg") if element.attributes.get("aria-hidden") != "true"]
    assert pictured
    assert all(element.attributes["role"] == "img" and element.attributes["aria-labelledby"] for element in pictured)


def test_nothing_is_loaded() -> None:
    """No address of anything outside the page, a policy that forbids it, and the one script that is allowed."""
    text = whole()
    page = Reader(text)
    assert not re.search(r"(?:src|href|action)=[\"']?(?![\"'#]|data:)", text)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    policy = next(element.attributes["content"] for element in page.all("meta") if "http-equiv" in element.attributes)
    assert policy is not None
    assert "default-src 'none'" in policy
    assert len(page.all("script")) == 1


def test_values_are_text() -> None:
    """Whatever values hold: the page has the same tags, no attribute of theirs, and no control character."""
    evil, good = Reader(whole(EVIL)), Reader(whole("x"))
    assert [element.tag for element in evil.elements] == [element.tag for element in good.elements]
    assert not [name for element in evil.elements for name in element.attributes if name.startswith("on")]
    assert not {c for c in whole(EVIL) if ord(c) < 32} - {"\n"}
    assert "\u202e" not in whole(EVIL)


def test_a_version_unlike_the_others_is_marked() -> None:
    """Not by colour alone: with a word that a screen reader stresses and a sign before it."""
    policy = spec("lab-a100")
    clusters = {
        name: matrix.Cluster(policy, {"Driver": version}) for name, version in (("a", "1"), ("b", "1"), ("c", "2"))
    }
    body = matrix.section(clusters).body
    assert body.count("<strong>") == 1
    assert "<strong>2</strong>" in body


def test_no_version_is_marked_without_a_majority() -> None:
    """The caption says where a value is marked: where most clusters have another one."""
    policy = spec("lab-a100")
    clusters = {name: matrix.Cluster(policy, {"Driver": name}) for name in ("1", "2", "3")}
    assert "<strong>" not in matrix.section(clusters).body


def test_versions_of_images() -> None:
    """The version is the tag of the rendered image, from whatever registry; images of no column are left out."""
    texts = [
        "  - name: a\n    image: mirror.example.com:5000/x/driver:580.1-ubuntu22.04\n",
        "  - image: nvcr.io/nvidia/driver:595.2-rhel9\n    image: nvcr.io/nvidia/other:1\n",
        "    image: nvcr.io/nvidia/cloud-native/k8s-mig-manager@sha256:abc\n",
    ]
    assert matrix.versions(texts) == {"Driver": "580.1-ubuntu22.04, 595.2-rhel9", "MIG manager": "sha256:abc"}


def test_sections_without_content_are_left_out() -> None:
    """No heading stands over nothing, in the page and in its navigation."""
    text = frame.page("a", "b", [findings.section([], 1), frame.Section("x", "Here", "<p>y</p>")])
    assert "Findings" not in text
    assert text.count("Here") == 2
