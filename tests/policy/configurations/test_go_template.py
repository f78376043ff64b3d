"""Templates of alerts are read as Go's text/template reads them (its lexer and parser, and Prometheus' functions)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.policy.configurations.go_template import wrong

GOOD = [
    "plain",
    "{{ $labels.instance }} of {{ $value | humanize }}",
    "{{ .Labels.a }}",
    "{{- if gt $value 1.0 -}} a {{- else if eq $value 2.0 }} b {{ else }} c {{ end }}",
    '{{ range query "up" }}{{ .Labels.x }}{{ .Value }}{{ end }}',
    "{{ with printf \"up{x='%s'}\" .Labels.x | query }}{{ . | first | value }}{{ end }}",
    "{{ $x := 1 }}{{ $x }}",
    "{{/* a comment */}}",
    '{{ reReplaceAll "a(b)" "$1" $labels.x }}',
    '{{ range $i, $e := query "up" }}{{ $i }}{{ end }}',
    '{{ (first (query "up")).Value }}',
    '{{ define "x" }}a{{ end }}{{ template "x" . }}',
    '{{ "{{" }}',
    '{{ range query "up" }}{{ if .Value }}{{ break }}{{ end }}{{ end }}',
]
BAD = [
    *(
        "{{ $labels.",
        "{{",
        "{{ }}",
        "{{ $foo }}",
        "{{ nosuch 1 }}",
        "{{ if }}x{{ end }}",
        "{{ if $value }}",
        "{{ end }}",
    ),
    *("{{ $value | }}", "{{ ( $value }}", "{{ $value ) }}", '{{ "a }}', "{{ ; }}", "{{ else }}", '{{ $value | "a" }}'),
    *(
        "{{ $labels.x }",
        "{{ break }}",
        "{{ $value || 1 }}",
        "{{ $labels. }}",
        "{{ if true }}{{ $y := 1 }}{{ end }}{{ $y }}",
    ),
]


@pytest.mark.parametrize("text", GOOD)
def test_what_prometheus_reads(text: str) -> None:
    """As people write it."""
    assert wrong(text) == ""


@pytest.mark.parametrize("text", BAD)
def test_what_prometheus_refuses(text: str) -> None:
    """What is wrong is said in words."""
    assert wrong(text)


@given(
    st.lists(
        st.sampled_from(["{{", "}}", "$x", "if", "end", "(", ")", "|", '"a"', ".", "=", ":=", " ", "-"]), max_size=12
    )
)
def test_every_text_has_an_answer(parts: list[str]) -> None:
    """No traceback, whatever stands there."""
    assert isinstance(wrong("".join(parts)), str)
