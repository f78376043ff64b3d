"""The exporter's list of metrics is read by the exporter's own rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.policy.configurations.dcgm_csv import read_metrics

GOOD = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature"


def test_rows_comments_and_empty_lines() -> None:
    """A row has three fields, with spaces around them; # in column one begins a comment, an empty line is none."""
    found = read_metrics(
        f"# DCGM FIELD, type, help\n\n{GOOD}\nDCGM_FI_DEV_DEC_UTIL ,     gauge, Decoder (in %).\r\n#x\n"
    )
    assert found.problems == ()
    assert [(row.name, row.type, row.help) for row in found.rows] == [
        ("DCGM_FI_DEV_GPU_TEMP", "gauge", "Temperature"),
        ("DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder (in %)."),
    ]
    assert found.rows[1].places == ((4, 1), (4, 28), (4, 35))


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("DCGM_FI_DEV_GPU_TEMP, gauge, Temperature, in C", (1, 43), "the row has 4 fields, not 3"),
        (f"{GOOD}\n  # note", (2, 3), "an indented # begins no comment"),
        (f"{GOOD}\n # DCGM_FI_DEV_FB_FREE, gauge, free", (2, 2), "an indented # begins no comment"),
        (f"{GOOD}\n   \n{GOOD}", (2, 1), "a line of spaces is a row"),
        ("DCGM_FI_DEV_GPU_TEMP, gauge", (1, 1), "the row has 2 fields, not 3"),
        ("DCGM_FI_DEV_GPU_TEMP", (1, 1), "the row has 1 field, not 3"),
        ("DCGM_FI_DEV_GPU_TMP, gauge, x", (1, 1), "DCGM has no field DCGM_FI_DEV_GPU_TMP"),
        ("DCGM_FI_UNKNOWN, gauge, x", (1, 1), "DCGM has no field DCGM_FI_UNKNOWN"),
        ("DCGM_FI_DEV_GPU_TEMP, guage, x", (1, 23), "guage is not a type of a metric"),
        ("DCGM_FI_DEV_GPU_TEMP,\tgauge, x", (1, 22), "gauge is not a type of a metric; tabs around it are part of it"),
        ('DCGM_FI_DEV_GPU_TEMP, gauge, "a, b"', (1, 30), "a quote after a space"),
        ('DCGM_FI_DEV_GPU_TEMP, gauge, the "b"', (1, 34), 'a " inside a text without quotes'),
        ('DCGM_FI_DEV_GPU_TEMP,gauge,"a', (1, 28), "the quote is not closed"),
        ('DCGM_FI_DEV_GPU_TEMP,gauge,"a" b', (1, 31), "something follows the closing quote"),
        ("# nothing\n", (1, 1), "the list has no metric"),
    ],
)
def test_what_stops_the_exporter(text: str, place: tuple[int, int], what: str) -> None:
    """Each mistake is told where it stands (dcgm.yaml csv_types; Go's encoding/csv)."""
    (problem,) = read_metrics(text).problems
    assert problem.place == place
    assert problem.what.startswith(what)
    assert problem.why
    assert problem.remedy


@pytest.mark.parametrize(
    "text",
    [
        'DCGM_FI_DEV_GPU_TEMP,gauge,"Temperature, in C"',
        'DCGM_FI_DEV_GPU_TEMP,gauge,"a ""quoted"" word"',
        'DCGM_FI_DEV_GPU_TEMP,gauge,"two\nlines"\n# and a comment',
        '"DCGM_FI_DEV_GPU_TEMP","gauge","x"',
        "dcgm_gpu_temp, gauge, by the name of the 1.x exporter",
        "DCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, by its name since DCGM 4.6",
        "DCGM_EXP_XID_ERRORS_COUNT, whatever, the exporter looks at no type of its own counters",
        "DCGM_FI_DRIVER_VERSION, label, Driver",
        "DCGM_FI_DEV_NVLINK_PPCNT_RECOVERY_TIME_SINCE_LAST, gauge, a field that few ask for",
    ],
)
def test_what_it_takes(text: str) -> None:
    """Quoted texts begin right behind the comma; every name of every DCGM is one."""
    found = read_metrics(text)
    assert found.problems == ()
    assert len(found.rows) == 1


def test_newer_names_and_older_exporters() -> None:
    """Exporters before DCGM 4.6 don't know its names; a tag that says no version is taken for the newest."""
    text = "DCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, x"
    (problem,) = read_metrics(text, "4.5.1-4.8.0-distroless").problems
    assert "older than the name" in problem.why
    for tag in ("4.6.0-4.8.3-distroless", "", "sha256:abc", "mine"):
        assert read_metrics(text, tag).problems == ()


@given(st.text(alphabet='DCGM_FI,"# \t\n\rgauge', max_size=80))
def test_any_text_is_answered(text: str) -> None:
    """Whatever stands there, there are rows or problems, and each problem is at a line of the text."""
    found = read_metrics(text)
    lines = text.replace("\r\n", "\n").split("\n")
    assert found.rows or found.problems
    for problem in found.problems:
        line, column = problem.place
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1
