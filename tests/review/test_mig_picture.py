"""Pictures of MIG layouts: the same bytes each time, readable by everybody."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.review import mig_picture
from gpustack.review.mig_picture import Drawing, of_layout, of_spec, svg, terminal
from gpustack.review.templates import template
from tests.components.common import spec

H100 = "H100-80GB"
SVG = "{http://www.w3.org/2000/svg}"


def cluster() -> ClusterPolicySpec:
    """A cluster with whole GPUs, and some that are cut in two ways."""
    pool: dict[str, Any] = {"os": "ubuntu22.04", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}
    groups = [{"indices": [0, 1, 2, 5], "layout": {"1g.10gb": 7}}, {"indices": [3], "layout": {"3g.40gb": 1}}]
    return spec(nodePools=[{**pool, "name": "a"}, {**pool, "name": "b", "sharing": {"mig": {"devices": groups}}}])


def test_in_a_terminal() -> None:
    """Each instance stands over its memory slices; slices that nothing takes are dotted."""
    assert terminal([of_layout("GPU", H100, {"3g.40gb": 1, "1g.10gb": 3})]).splitlines() == [
        "GPU",
        "  3g.40gb + 3 x 1g.10gb: 6 of 7 compute slices, 7 of 8 memory slices",
        "  0         1         2         3         4         5         6         7",
        "  +---------------------------------------+---------+---------+---------+.........+",
        "  | 3g.40gb                               | 1g.10gb | 1g.10gb | 1g.10gb |         |",
        "  +---------------------------------------+---------+---------+---------+.........+",
    ]


def test_long_names_in_a_terminal() -> None:
    """Where a name would make the drawing too wide, a letter stands for it."""
    lines = terminal([of_layout("GPU", H100, {"1g.10gb+me": 1, "3g.40gb": 1})]).splitlines()
    assert lines[-1] == "  a 3g.40gb, b 1g.10gb+me"
    assert max(map(len, lines)) <= mig_picture.COLUMNS
    assert all(line.isascii() for line in lines)


def test_pools() -> None:
    """GPUs of a pool that are cut alike are drawn once, whole ones are said to be whole."""
    drawings = of_spec(cluster())
    assert [(drawing.caption, drawing.detail.partition(":")[0]) for drawing in drawings] == [
        ("a: 8 x NVIDIA-H100-80GB-HBM3", "whole"),
        ("b: GPUs 0-2, 5, NVIDIA-H100-80GB-HBM3", "7 x 1g.10gb"),
        ("b: GPU 3, NVIDIA-H100-80GB-HBM3", "3g.40gb"),
        ("b: GPUs 4, 6-7, NVIDIA-H100-80GB-HBM3", "whole"),
    ]


@pytest.mark.parametrize(
    ("product", "mig", "detail"),
    [
        ("NVIDIA-L4", {"layout": {"1g.10gb": 7}}, "whole; this GPU takes no MIG"),
        ("NVIDIA-X1", {"layout": {"1g.10gb": 7}}, "the GPU isn't known"),
        ("NVIDIA-H200", {"layout": {"1g.10gb": 7}}, "unknown MIG profile '1g.10gb'"),
        ("NVIDIA-H200", {"layout": {"3g.71gb": 3}}, "doesn't fit"),
        ("NVIDIA-H200", {"config": "nope"}, "what the MIG layout nope does isn't known"),
        ("NVIDIA-RTX-PRO-4500-Blackwell", {"layout": {"1g.16gb": 2}}, "isn't known"),
    ],
)
def test_what_cannot_be_drawn(product: str, mig: dict[str, Any], detail: str) -> None:
    """Words stand where no picture can."""
    pool = {"name": "a", "os": "ubuntu22.04", "gpuProduct": product, "sharing": {"mig": mig}}
    (drawing,) = of_spec(spec(nodePools=[pool]))
    assert detail in drawing.detail
    assert drawing.slices == 0


def test_svg_is_for_everybody() -> None:
    """The SVG has a title and a description that it names, patterns beside colours, and a dark scheme."""
    text = svg("MIG of <prod>", of_spec(cluster()))
    root = ElementTree.fromstring(text)  # noqa: S314 - our own output
    names = root.get("aria-labelledby", "").split()
    assert root.get("role") == "img"
    assert [element.get("id") for element in root[:2]] == names
    assert root[0].text == "MIG of <prod>"
    assert "7 x 1g.10gb: 7 of 7 compute slices" in (root[1].text or "")
    patterns = {pattern.get("id") for pattern in root.iter(f"{SVG}pattern")}
    assert set(re.findall(r"fill: url\(#([a-z-]+)\)", text)) == patterns
    assert "@media (prefers-color-scheme: dark)" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_svg_draws_each_instance() -> None:
    """A box for each instance, as wide as its part of the memory, and one for what is left."""
    root = ElementTree.fromstring(svg("x", [of_layout("GPU", H100, {"3g.40gb": 1, "1g.10gb": 3})]))  # noqa: S314
    boxes = [
        (rect.get("class"), int(rect.get("x", "")) - mig_picture.MARGIN, int(rect.get("width", "")))
        for rect in root.iter(f"{SVG}rect")
        if rect.find(f"{SVG}title") is not None
    ]
    eighth = mig_picture.WIDTH // 8
    assert boxes == [
        ("g3", 0, 4 * eighth),
        *(("g1", start * eighth, eighth) for start in (4, 5, 6)),
        ("unused", 7 * eighth, eighth),
    ]


def test_same_bytes() -> None:
    """The order in which a layout is written doesn't show."""
    one, two = {"3g.40gb": 1, "1g.10gb": 3}, {"1g.10gb": 3, "3g.40gb": 1}
    assert svg("x", [of_layout("GPU", H100, one)]) == svg("x", [of_layout("GPU", H100, two)])


def test_text_is_escaped() -> None:
    """What a policy says is text in the picture."""
    text = svg("<a>&", [Drawing('b<"', "c & d")])
    assert "<a>" not in text
    ElementTree.fromstring(text)  # noqa: S314 - our own output


def test_contrast() -> None:
    """Text stands on a ground of contrast 7 at least, in both schemes (WCAG 2.2, 1.4.6)."""
    light, _, dark = template("mig.css").partition("@media")
    for scheme in (light, dark):
        colours = dict(re.findall(r"\.(ground|label|caption|detail|name)[^}]*?fill: (#[0-9a-f]{6})", scheme))
        grounds = re.findall(r"\.(?:ground|ground, \.label|label) \{ fill: (#[0-9a-f]{6})", scheme)
        texts = [colour for name, colour in colours.items() if name in {"caption", "detail", "name"}]
        assert texts
        assert all(contrast(text, ground) >= 7 for text in texts for ground in grounds)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
