"""Reading a file: plain data by YAML 1.2, or one error that says where, why and what to do; nothing else escapes."""

from __future__ import annotations

import hashlib
import json
import math
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
import yaml as pyyaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpustack.model import Finding, InputError, Location, masked
from gpustack.text import source, yaml12
from gpustack.text.read import Document, parse, read


def refusal(content: str | bytes, tmp_path: Path) -> Finding:
    """The one finding that CONTENT is refused with, checked for what every finding must have."""
    path = tmp_path / "f.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return refused(path)


def refused(path: Path) -> Finding:
    """The one finding that the file PATH is refused with."""
    with pytest.raises(InputError) as caught:
        read(path, "f.yaml")
    (finding,) = caught.value.findings
    assert finding.severity == "error"
    assert finding.what
    assert finding.remedy
    assert finding.location is not None
    assert finding.location.file == "f.yaml"
    return finding


def at(line: int, column: int, text: str) -> Location:
    """A place in the file."""
    return Location("f.yaml", line, column, text)


# --- what is read ---------------------------------------------------------------------------------------------------


def test_a_document_holds_name_text_data_and_digest(tmp_path: Path) -> None:
    """The name is the one to show, the text the file's, and the digest SHA-256 of its bytes, as sha256sum prints it."""
    (tmp_path / "g.yaml").write_bytes(b"a: 1\n")
    found = read(tmp_path / "g.yaml", "x/g.yaml")
    assert (found.file, found.text, found.data) == ("x/g.yaml", "a: 1\n", {"a": 1})
    assert found.digest == hashlib.sha256(b"a: 1\n").hexdigest()


def read_bytes(content: bytes, tmp_path: Path) -> Document:
    """The document in a file with CONTENT."""
    path = tmp_path / "f.yaml"
    path.write_bytes(content)
    return read(path, "f.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # strings in YAML 1.2 that were something else in YAML 1.1
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("OFF", "OFF"),
        ("y", "y"),
        ("12:30", "12:30"),
        ("22:00:00", "22:00:00"),
        ("1_000", "1_000"),
        ("0b101", "0b101"),
        ("2024-01-31", "2024-01-31"),
        ("=", "="),
        ("+.inf.", "+.inf."),
        (".", "."),
        ("1.34.1", "1.34.1"),
        ("0x", "0x"),
        ("1e", "1e"),
        ("tRue", "tRue"),
        ("nUll", "nUll"),
        # numbers
        ("0o17", 15),
        ("0xfF", 255),
        ("-12", -12),
        ("+3", 3),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.30", 1.3),
        (".5", 0.5),
        ("1.", 1.0),
        ("-1e3", -1000.0),
        ("6.5E-1", 0.65),
        # booleans and null
        ("true", True),
        ("TRUE", True),
        ("False", False),
        ("null", None),
        ("Null", None),
        ("~", None),
        ("", None),
        # quotes make strings
        ('"true"', "true"),
        ("'12'", "12"),
        ('""', ""),
        # the tags of the core schema, where they fit
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("!!float 12", 12.0),
        ("!!null ~", None),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: Any) -> None:
    """A scalar is what section 10.3.2 of YAML 1.2.2 says, and nothing that only YAML 1.1 made of it."""
    found = parse(f"a: {text}\n", "f")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfa: \xc3\xa4\n", "\ufeffa: ä\n".encode("utf-16-le"), "\ufeffa: ä\n".encode("utf-16-be")],
    ids=["utf-8", "utf-16-le", "utf-16-be"],
)
def test_byte_order_marks_are_tolerated(content: bytes, tmp_path: Path) -> None:
    """A mark, which Windows editors write, is no part of the first key, in UTF-8 and in UTF-16."""
    assert read_bytes(content, tmp_path).data == {"a": "ä"}


def test_windows_and_old_mac_line_ends_are_tolerated(tmp_path: Path) -> None:
    """CRLF and CR end lines as LF does, also within block scalars, where they become LF."""
    for end in ("\r\n", "\r"):
        found = read_bytes(f"a: |{end}  x{end}  y{end}b: 1{end}".encode(), tmp_path)
        assert found.data == {"a": "x\ny\n", "b": 1}


def test_anchors_aliases_and_merge_keys() -> None:
    """An alias is its anchor's value; << brings in keys, of which own ones win, and of several mappings the first."""
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  <<: [*x, *y]\n  a: 0\nl: [*x]\nq: {'<<': 1}\n"
    found = parse(text, "f")
    assert found["z"] == {"a": 0, "b": 1, "c": 2}
    assert found["l"] == [{"a": 1, "b": 1}]
    assert found["q"] == {"<<": 1}


@pytest.mark.parametrize(
    "text",
    ["a: 1\n---\n", "a: 1\n...\n", "---\na: 1\n...\n---\n# nothing\n", "# c\n---\n---\na: 1\n", "%YAML 1.2\n---\na: 1"],
)
def test_document_marks_around_one_document_are_fine(text: str) -> None:
    """Marks that begin or end nothing are no second document."""
    assert parse(text, "f") == {"a": 1}


def test_json_is_read() -> None:
    """A JSON document is a YAML document."""
    assert parse('{"a": [1, 2.5, true, null, "\\u00e4"]}', "f") == {"a": [1, 2.5, True, None, "ä"]}


# --- what is refused ------------------------------------------------------------------------------------------------


def test_tab_indentation_is_called_that(tmp_path: Path) -> None:
    """A tab that indents a line is named with its line, whatever it follows."""
    for text, line in (("a:\n\tb: 1\n", 2), ("a: 1\n\tb: 2\n", 2), ("a:\n  - b\n  \t- c\n", 3), ("a: |\n\tx\n", 2)):
        found = refusal(text, tmp_path)
        assert found.rule == "GPU003"
        assert f"line {line} is indented with a tab" in found.what
        assert found.location == at(line, text.split("\n")[line - 1].index("\t") + 1, text.split("\n")[line - 1])
        assert "spaces" in found.remedy


def test_duplicate_keys_name_both_lines(tmp_path: Path) -> None:
    """A key that stands twice is an error at the second, which names the line of the first, in any style and depth."""
    found = refusal("s:\n  driver: 1\n  x: 2\n  driver: 3\n", tmp_path)
    assert (found.rule, found.location) == ("GPU004", at(4, 3, "  driver: 3"))
    assert "driver" in found.what
    assert "lines 2 and 4" in found.what
    for text in ('{a: 1, "a": 2}', "a: 1\n'a': 2\n", "a:\n- b: 1\n  b: 1\n", "x: &x {a: 1}\ny:\n  <<: *x\n  <<: *x\n"):
        assert refusal(text, tmp_path).rule == "GPU004"


@pytest.mark.parametrize(
    ("key", "sort"),
    [("1", "a number"), ("1.5", "a number"), ("true", "a boolean"), ("~", "empty"), ("0x1F", "a number")],
)
def test_keys_are_strings(key: str, sort: str, tmp_path: Path) -> None:
    """A key that YAML reads as something else is refused, and the remedy is the key in quotes."""
    found = refusal(f"a:\n  {key}: x\n", tmp_path)
    assert (found.rule, found.location) == ("GPU005", at(2, 3, f"  {key}: x"))
    assert sort in found.what
    assert f'"{key}"' in found.remedy


def test_templates_are_recognised(tmp_path: Path) -> None:
    """A Helm template, whose braces YAML reads as mappings, is told to be rendered first."""
    found = refusal("a: {{ .Values.x }}\n", tmp_path)
    assert (found.rule, found.location) == ("GPU005", at(1, 5, "a: {{ .Values.x }}"))
    assert "template" in found.remedy
    assert "quotes" in refusal("? [a]\n: b\n", tmp_path).remedy


def test_merge_conflicts_are_recognised(tmp_path: Path) -> None:
    """Git's conflict markers are named, and not what the parser stumbles over after them."""
    found = refusal("b: 1\n<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n", tmp_path)
    assert (found.rule, found.location) == ("GPU003", at(2, 1, "<<<<<<< HEAD"))
    assert "merge conflict" in found.what


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ("a: b: c\n", 1, 5, "colon"),
        ("a\nb: c\n", 2, 2, "colon"),
        ("a:\n  b: 1\n c: 2\n", 3, 2, "fit"),
        ("a:\n- b\nc\n", 3, 2, "colon"),
        ("a:\n  - b\n  c: d\n", 3, 3, "list"),
        ("a: - b\n", 1, 4, "list"),
        ("a: [1, 2\nb: c\n", 2, 2, "bracket"),
        ("a: {b: 1\n", 1, 9, "brace"),
        ("a: [\n", 1, 5, "missing"),
        ("b: 1\na: 'foo\n\n", 2, 4, "quoted"),
        ('a: "foo\n---\n', 1, 4, "quoted"),
        ("a: @x\n", 1, 4, "character"),
        ("a: %x\n", 1, 4, "character"),
        ('a: "\\q"\n', 1, 5, "escape"),
        ("a: *x\n", 1, 4, "alias"),
        ("a: &x 1\nb: &x 2\n", 2, 4, "anchor"),
        ("a: !e!x 1\n", 1, 4, "tag"),
        ("a: 1\n%YAML 1.1\n", 2, 10, "follows"),
        ("{a: 1}\nb: 2\n", 2, 1, "follows"),
        ("<<: 1\n", 1, 5, "merge key"),
        ("<<: [{a: 1}, b]\n", 1, 14, "merge key"),
    ],
)
def test_syntax_errors_are_said_in_plain_words(text: str, line: int, column: int, word: str, tmp_path: Path) -> None:
    """What YAML can't read is said with the place and a remedy, in words about the text and not about the parser."""
    found = refusal(text, tmp_path)
    assert (found.rule, found.location) == ("GPU003", at(line, column, text.split("\n")[line - 1]))
    assert word in found.what
    assert "while parsing" not in f"{found.what} {found.why}"


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system", "!foo", "!!binary", "!!set", "!!int", "!!timestamp"]
)
def test_tags_are_refused(tag: str, tmp_path: Path) -> None:
    """Tags of programming languages, unknown ones and ones that don't fit the value are refused, and run nothing."""
    found = refusal(f"a: 1\nb: {tag} x\n", tmp_path)
    assert (found.rule, found.location) == ("GPU009", at(2, 4, f"b: {tag} x"))
    assert tag in found.what


@pytest.mark.parametrize(
    ("number", "meant"),
    [
        ("0440", "write 288 or 0o440"),
        ("-010", "write -8 or -0o10"),
        ("+07", "write 7 or 0o7"),
        ("08", "write 8 if"),
        ("00", "write 0 or"),
    ],
)
def test_numbers_do_not_begin_with_a_zero(number: str, meant: str, tmp_path: Path) -> None:
    """A number that YAML 1.2 takes for decimal and kubectl's reader for octal (0440 is mode 288 there) is refused, with
    both ways to write it. Source: yaml.v2's resolver, strconv.ParseInt(text, 0, 64)."""
    found = refusal(f"a: {number}\n", tmp_path)
    assert (found.rule, found.location) == ("GPU010", at(1, 4, f"a: {number}"))
    assert number in found.what
    assert found.remedy.startswith(meant)
    assert "in quotes" in found.remedy


@pytest.mark.parametrize("text", ["0", "-0", "0.5", "0o440", "0x1f", "'0440'", "0440m", "2026-01-02", "0e3"])
def test_zeros_that_mean_one_thing(text: str, tmp_path: Path) -> None:
    """What every reader takes for the same value may begin with a zero."""
    read_bytes(f"a: {text}\n".encode(), tmp_path)


@pytest.mark.parametrize("number", [".inf", "-.INF", ".NaN", "1e999", "-1e999"])
def test_numbers_are_finite(number: str, tmp_path: Path) -> None:
    """Infinity and not-a-number, which no JSON can hold, are refused."""
    found = refusal(f"a: {number}\n", tmp_path)
    assert (found.rule, found.location) == ("GPU010", at(1, 4, f"a: {number}"))
    assert number in found.what


@pytest.mark.parametrize("number", [str(2**63), str(-(2**63) - 1), "0xffffffffffffffff", "9" * 5000, "0o" + "7" * 30])
def test_integers_have_64_bits(number: str, tmp_path: Path) -> None:
    """An integer that Go's int64 can't hold is refused, however long it is."""
    found = refusal(f"a: {number}\n", tmp_path)
    assert found.rule == "GPU010"
    assert "64 bits" in found.what
    assert len(found.what) < 100


def test_a_second_document_is_named_with_its_line(tmp_path: Path) -> None:
    """Several documents in one file are refused at the `---` of the second."""
    found = refusal("a: 1\n# c\n---\n# d\nb: 2\n", tmp_path)
    assert (found.rule, found.location) == ("GPU007", at(3, 1, "---"))
    assert "line 3" in found.what
    assert refusal("---\na: 1\n---\nb: 2\n---\nc: 3\n", tmp_path).location == at(3, 1, "---")


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments\n", "---\n", "---\n...\n---\n", "\ufeff", "~\n"])
def test_empty_files_are_refused(text: str, tmp_path: Path) -> None:
    """A file without a value, be it empty or all comments, is called empty."""
    found = refusal(text, tmp_path)
    assert found.rule == "GPU008"
    if text != "~\n":
        assert "empty" in found.what


@pytest.mark.parametrize(
    ("text", "sort"), [("- a: 1\n", "a list"), ("foo\n", "a single value"), ("a:b\n", "a single value")]
)
def test_the_top_is_a_mapping(text: str, sort: str, tmp_path: Path) -> None:
    """A list or a single value at the top is not a policy."""
    found = refusal(text, tmp_path)
    assert (found.rule, found.location) == ("GPU008", at(1, 1, text.rstrip()))
    assert sort in found.what


# --- what is not text ------------------------------------------------------------------------------------------------


def test_bytes_that_are_no_utf_8_are_named(tmp_path: Path) -> None:
    """A Latin-1 umlaut is refused with its byte offset, line and column."""
    found = refusal(b"a: 1\nb: ab\xfcc\n", tmp_path)
    assert (found.rule, found.location) == ("GPU002", at(2, 6, "b: ab\ufffdc"))
    assert "byte 10 (line 2)" in found.why
    assert "0xfc" in found.why
    assert "UTF-8" in found.remedy


def test_a_nul_is_named(tmp_path: Path) -> None:
    """A NUL, as in binary files and in UTF-16 without a mark, is refused with its offset and line."""
    found = refusal(b"a: 1\nb: \x00\n", tmp_path)
    assert found.rule == "GPU002"
    assert "byte 8 (line 2)" in found.why
    assert "byte 1 (line 1)" in refusal("a: 1\n".encode("utf-16-le"), tmp_path).why


@pytest.mark.parametrize("char", ["\x01", "\x7f", "\x85", "\u2028", "\u2029", "\ufeff", "\ufffe", "\x1b"])
def test_invisible_characters_are_named(char: str, tmp_path: Path) -> None:
    """A control character or a line break that only some readers know is refused at its place, with its number."""
    found = refusal(f"a: 1\nb: x{char}y\n", tmp_path)
    assert found.rule == "GPU002"
    assert found.location is not None
    assert (found.location.line, found.location.column) == (2, 5)
    assert f"U+{ord(char):04X}" in found.what


def test_binary_files_are_recognised(tmp_path: Path) -> None:
    """An archive, a program or a picture is called what it is."""
    assert "gzip" in refusal(b"\x1f\x8b\x08\x00\x00\xff", tmp_path).what
    assert "program" in refusal(b"\x7fELF\x02\x01\x01\x00", tmp_path).what
    assert refusal(bytes(range(256)), tmp_path).rule == "GPU002"


def test_broken_utf_16_is_refused(tmp_path: Path) -> None:
    """UTF-16 that ends in the middle of a character is refused as such."""
    assert refusal(b"\xff\xfea", tmp_path).rule == "GPU002"
    assert refusal("\ufeffa: \x00\n".encode("utf-16-le"), tmp_path).rule == "GPU002"


# --- what would take too long or too much ---------------------------------------------------------------------------


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20)
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (BOMB, "too much"),
        (BOMB.replace("[", "{<<: [").replace("]", "]}").replace("x, " * 8 + "x", "{y: 1}"), "too much"),
        ("a: &x [1, *x]\n", "inside the value"),
        ("a: &x {<<: *x}\n", "inside the value"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 5000)), "nested"),
        ("a: " + "[" * 100_000, "nested"),
        ("a: " + "[" * 300 + "]" * 300, "nested"),
        ("a: " + "{b: " * 100_000, "nested"),
        ("a:\n  " + "- " * 50_000 + "x\n", "nested"),
        ("? " * 50_000, "nested"),
        ("".join(" " * depth + "a:\n" for depth in range(1000)), "nested"),
        ("".join(" " * depth + "- a:\n" for depth in range(0, 800, 2)), "nested"),
    ],
    ids="bomb merge-bomb recursive recursive-merge alias-chain open closed braces dashes questions maps lists".split(),
)
def test_bombs_are_refused_before_they_go_off(text: str, word: str, tmp_path: Path) -> None:
    """Aliases that stand for too much, for themselves or in a long chain, and deep nesting end at once in an error."""
    started = time.process_time()
    found = refusal(text, tmp_path)
    assert found.rule == "GPU006"
    assert word in found.what
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 198 + "]" * 198,
        "a: " + "[], ".join(["["] + [""] * 500) + "]",
        "a: |\n" + "".join(" " * 60 + f"{{ line {n}\n" for n in range(300)),
        "x: &x [1, 2]\n" + "".join(f"a{n}: *x\n" for n in range(1000)),
    ],
    ids=["deep enough", "many brackets", "braces in text", "many aliases"],
)
def test_what_only_looks_like_a_bomb_is_read(text: str) -> None:
    """Depth within the limit, many brackets side by side, and brackets and indentation in a text are read."""
    assert parse(text, "f") == pyyaml.safe_load(text)


def test_nesting_is_bounded_without_the_parsers_help(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The C composer, which overflows its stack on deep nesting, never sees a text that was not measured before."""

    def composed(text: str) -> list[Any]:
        raise AssertionError("composed")

    monkeypatch.setattr(yaml12, "_documents", composed)
    for text in (
        "a: " + "[" * 500 + "]" * 500,
        "? " * 500,
        "a:\n" + "".join(" " * n + "- a:\n" for n in range(2, 600, 2)),
    ):
        assert refusal(text, tmp_path).rule == "GPU006"


def test_large_files_are_refused_unread(tmp_path: Path) -> None:
    """A file over 8 MiB is refused with the limit, without reading all of it; one of just under is read."""
    path = tmp_path / "f.yaml"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    found = refused(path)
    assert found.rule == "GPU001"
    assert "8 MiB" in found.what
    path.write_bytes(b"a: 1\n#" + b"x" * (source.LIMIT - 6))
    assert read(path, "f").data == {"a": 1}


def test_a_policy_is_read_in_about_a_millisecond(tmp_path: Path) -> None:
    """25 lines take under 2 ms at best of 20, which is far from what the pure Python parsers take."""
    path = tmp_path / "f.yaml"
    path.write_text("spec:\n" + "".join(f"  key{n}: {{name: value{n}, list: [a, b, {n}]}}\n" for n in range(24)))
    times = []
    for _ in range(20):
        started = time.perf_counter()
        read(path, "f")
        times.append(time.perf_counter() - started)
    assert min(times) < 0.002


# --- what is not a file -----------------------------------------------------------------------------------------------


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    """A typing error in a file name is answered with the names that are there."""
    for name in ("prod-eu-1.yaml", "prod-us-1.yaml", "unrelated.yml", "notes.txt"):
        (tmp_path / name).write_text("a: 1")
    found = refused(tmp_path / "prod-eu1.yaml")
    assert found.rule == "GPU001"
    assert "does not exist" in found.what
    assert "prod-eu-1.yaml" in found.remedy
    assert "notes" not in found.remedy
    assert "unrelated.yml" in refused(tmp_path / "unrelated.yaml").remedy
    assert "no folder" in refused(tmp_path / "nowhere" / "f.yaml").remedy
    assert refused(tmp_path / "notes.txt" / "f.yaml").rule == "GPU001"


def test_special_files_are_refused_without_waiting(tmp_path: Path) -> None:
    """A folder, a pipe that nobody writes to, a device that never ends and a socket are named, and none is opened."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert "named pipe" in refused(fifo).what
    assert "folder" in refused(tmp_path).what
    assert "device" in refused(Path("/dev/zero")).what
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket is short
        server.bind("s")
        os.chdir(here)
        assert "socket" in refused(tmp_path / "s").what


def test_links_are_followed_or_called_broken(tmp_path: Path) -> None:
    """A link to a file is read; a link to nothing, or to itself, is called that."""
    (tmp_path / "real").write_text("a: 1")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "broken").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")
    assert read(tmp_path / "link", "f").data == {"a": 1}
    found = refused(tmp_path / "broken")
    assert "link to nothing" in found.what
    assert "gone" in found.why
    assert "itself" in refused(tmp_path / "loop").what


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error"), OSError("odd")]
)
def test_unreadable_files_say_what_the_system_says(
    error: OSError, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file without permission, or on a broken disk, is refused with the system's reason."""

    def failing(path: Path, **_: object) -> bytes:
        raise error

    (tmp_path / "f.yaml").write_text("a: 1")
    monkeypatch.setattr(source, "read_regular", failing)
    found = refused(tmp_path / "f.yaml")
    assert found.rule == "GPU001"
    assert (error.strerror or str(error)) in found.why


def test_impossible_paths_are_refused(tmp_path: Path) -> None:
    """A path with a NUL in it, or a name that is too long, is an error like any other."""
    assert refused(tmp_path / "a\0b").rule == "GPU001"
    assert refused(tmp_path / ("x" * 5000)).rule == "GPU001"


# --- against other readers ------------------------------------------------------------------------------------------

WORDS = "yes No on OFF ~ null true False 0o17 0x1F 12:30 1.30 1.5e3 .5 -1 +2 0.0 v1.2 a-b x=y a:b a#b {} []".split()
"""Plain scalars about which readers differ. (Where ruamel.yaml keeps to YAML 1.1 even for YAML 1.2 documents, that is
for dates and 1_000, the expressions of the specification are the judge: see the test after the next.)"""

TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=8)
SCALARS = (
    st.sampled_from(WORDS)
    | TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False))
    | TEXTS.map(lambda text: "'" + text.replace("'", "''") + "'")
)
KEYS = st.sampled_from(["yes", "on", "a", "b c", '"1"', "'true'", "v1.2", "x-y", "k_1"])


def indented(text: str) -> str:
    """TEXT, two columns further in."""
    return "".join(f"  {line}\n" for line in text.splitlines())


def block_list(items: list[str]) -> str:
    """A list with a dash per item."""
    return "".join(f"-\n{indented(item)}" if "\n" in item else f"- {item}\n" for item in items) or "[]"


def block_map(items: dict[str, str]) -> str:
    """A mapping with a line or more per key."""
    return "".join(f"{k}:\n{indented(v)}" if "\n" in v else f"{k}: {v}\n" for k, v in items.items()) or "{}"


def flow(items: dict[str, str]) -> str:
    """A mapping in braces."""
    inside = ", ".join(f"{key}: {value}" for key, value in items.items() if "\n" not in value)
    return "{" + inside + "}"


TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4).map(block_list)
        | st.dictionaries(KEYS, inner, max_size=4).map(block_map)
        | st.dictionaries(KEYS, inner, max_size=3).map(flow)
    ),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=4).map(block_map), st.sampled_from(["\n", "\r\n"]))
@example("a:\n  - yes\n  - 0o17\n  -\n    on: {b c: 1.30}\n", "\n")
def test_documents_are_read_as_ruamel_reads_yaml_1_2(text: str, end: str) -> None:
    """Random documents of blocks, brackets and quotes mean what ruamel.yaml, which reads YAML 1.2, says they mean."""
    expected = ruamel.yaml.YAML(typ="safe", pure=True).load(text)
    found = parse(text.replace("\n", end), "f")
    assert found == expected
    assert repr(found) == repr(expected)  # 1, 1.0 and True are equal, but not the same


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("+-.0123456789eExXobinfNatrulsTFy~_:"), min_size=1, max_size=8))
@example("0o18")
@example("1e5")
@example("+.5")
@example("-0x1")
def test_plain_scalars_are_resolved_as_the_grammar_says(text: str) -> None:
    """Any short plain scalar is a number, a boolean or null exactly if it matches its expression in section 10.3.2, but
    for numbers that begin with a zero: those are refused."""
    import re  # the expressions of the specification, not of the product

    try:
        node = pyyaml.compose(f"a: {text}\n", Loader=pyyaml.BaseLoader)
    except pyyaml.YAMLError:
        return
    if node is None or not isinstance(node.value[0][1], pyyaml.ScalarNode) or node.value[0][1].value != text:
        return
    kinds = [
        (r"null|Null|NULL|~", type(None)),
        (r"true|True|TRUE|false|False|FALSE", bool),
        (r"[-+]?0[0-9]+", InputError),
        (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", int),
        (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", float),
        (r"[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN", InputError),
    ]
    expected = next((kind for pattern, kind in kinds if re.fullmatch(pattern, text)), str)
    try:
        found = type(parse(f"a: {text}\n", "f")["a"])
    except InputError:
        assert expected is InputError or (expected is float and math.isinf(float(text)))
        return
    assert found is expected


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
@example(b"a: \xff")
@example(b"\xff\xfe")
def test_random_bytes_end_in_data_or_an_input_error(content: bytes) -> None:
    """Whatever a file holds, it is read or refused with a place; nothing else is ever raised."""
    try:
        parse(source.decode(content, "f"), "f")
    except InputError as error:
        where = error.findings[0].location
        assert where is not None
        assert where.line is not None


@settings(max_examples=400, deadline=None)
@given(st.text(st.sampled_from("ab:-?[]{}#&*!|>'\"%@,\n \t<=~1."), max_size=40))
def test_random_yaml_ends_in_data_or_an_input_error(text: str) -> None:
    """Any mix of YAML's own characters is read or refused, at a line and column that the text has, with a remedy."""
    try:
        parse(text, "f")
    except InputError as error:
        (finding,) = error.findings
        where = finding.location
        assert where is not None
        assert where.line is not None
        assert where.column is not None
        lines = text.split("\n")
        assert masked(lines[where.line - 1]) == where.text
        assert 1 <= where.column <= len(lines[where.line - 1]) + 1
        assert finding.remedy


def test_reading_imports_nothing_heavy() -> None:
    """A good file is read without pydantic and ruamel.yaml, and without the table of syntax errors."""
    import subprocess

    code = (
        "import sys; from gpustack.text.read import parse; parse('a: 1', 'f');"
        "heavy = {'pydantic', 'ruamel.yaml', 'gpustack.text.syntax', 'gpustack.text.positions'};"
        "print(*(set(sys.modules) & heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
