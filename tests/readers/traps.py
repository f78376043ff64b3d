"""Strings that some YAML reader takes for something else than a string, or for another string, when they stand plain.

Sources: the type rules of YAML 1.1 (yaml.org/type: bool, null, int, float, timestamp, merge, value), the core schema of
YAML 1.2 (chapter 10.3), and shared facts on Go's reader (0o17 is 15, 1_000 is 1000, yes is true).
"""

from __future__ import annotations

WORDS = (
    "y", "Y", "n", "N", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF", "yEs", "nO",
    "true", "True", "TRUE", "tRUE", "false", "False", "FALSE", "~", "null", "Null", "NULL", "nUlL", ".inf", ".Inf",
    ".INF", "+.inf", "-.inf", "-.INF", ".nan", ".NaN", ".NAN", "inf", "-inf", "nan", "NaN", "Infinity", "-Infinity",
)  # fmt: skip

NUMBERS = (
    "0", "1", "-1", "+1", "-0", "00", "007", "017", "0o17", "0O17", "-0o17", "0x1F", "0X1F", "-0x1f", "0x_1F",
    "0b101", "0B1", "-0b1", "0b_1", "1_000", "1__0", "-1_0", "1_", "1.", "1.0", ".5", "-.5", "+.5", "+12.3",
    "1e3", "1E3", "1e+3", "1e-3", "1.5e3", "1.5e+3", "1.e+3", ".5e-3", "1_0.5", "1_000e3", "0e0", "1e16", "1e999",
    "-1e999", "12:30", "12:30:45", "-12:30:45", "190:20:30", "1:2.5", "190:20:30.15", "685_230.15", "0.", "09",
    "08.5", "0x", "0o", "0b", "1e", "1e+", "-", "+", ".", "-.", "+.", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "-9223372036854775809", "0x1p-2", "1,000", "1d", "1f", "12e03", "1.2.3", "4e2a",
    "0xfffffffffffffffff",
)  # fmt: skip

TIMES = (
    "2001-01-01", "2001-1-1", "2001-12-14t21:59:43.10-05:00", "2001-12-14T21:59:43Z", "2001-12-14 21:59:43.10 -5",
    "2001-12-15 2:59:43.10", "2001-01-01T00:00:00", "0001-01-01", "2001-13-45", "2026-11-27T00:00:00+00:00",
)  # fmt: skip

MARKS = (
    "", " ", "  ", " a", "a ", "\ta", "a\t", "a\tb", "=", "<<", "<", "<<:", "---", "--- a", "...", "... a", "--",
    "---a", "-", "- a", "-a", "--a", "- ", "?", "? a", "?a", ":", ": a", ":a", "a:", "a: b", "a:b", "a :b", "a : b",
    "a:\tb", "a #b", "a#b", "#", "#a", "a\t#b", "a #", "%", "%YAML 1.1", "@a", "`a", "&a", "*a", "!a", "!!str a", "!",
    "|", "|-", ">", ">-", "|\n", "[", "]", "[]", "[a", "{", "}", "{}", "{{ .a }}", "{a: b}", "a{b: c}", "a, b", ",a",
    ",", "a]", "'", "''", "'a'", "it's", '"', '"a"', 'a "b"', 'a"b', "\\", "\\n", "a\\", "a\\nb", "a  b", "$a",
    "$(A)", "(a)", "a*b", "a&b", "::1", "fe80::1", "http://a:80/b?c=d&e#f", "unix:///run/a.sock",
    "nvcr.io/nvidia/driver:550-ubuntu22.04", "sum(rate(a{b=\"c\"}[5m])) > 0", "100m", "8Gi", "30s", "1Gi", "10.0.0.1",
    "10.0.0.0/8", "a@sha256:0123", "80%", "~a", "^a$", "_", "_1", "/", "//", "a;b", "a|b", "a>b", "-c", "-1a", "+a",
    "--1", "--.5", "a: ", "a:#", "a:[", "a:{", "a:,", "a:\"b",
)  # fmt: skip

LINES = (
    "\n", "\n\n", "\n\n\n", "a\n", "a\nb", "a\nb\n", "a\n\n", "a\n\n\nb", "a\nb\n\n\n", "\na", "\n\na\n", "\n a",
    " a\nb", "  a\n b\n", " \n", " \na", "  \n a\n", "a\n ", "a\n \n", "a\n \n\n", "a \nb", "a\n\tb\n", "\ta\nb\n",
    "\n\ta\n", "a\n\t\n", "a\n\t", "a\t\n", "\t\n", "\t\na", "a\n---\nb\n", "---\n", "---\na\n", "...\na", "a\n...\n",
    "#!/bin/sh\nset -e\n", "# a\n# b", "a: b\nc: d\n", "- a\n- b\n", "a\n  b\n    c\n", "    a\n", "|\na", "> a\n",
    "\"a\nb\"", "'a\n'", "%a\n", "a\r\nb\r\n", "a\rb", "\r", "\r\n", "a\n\r", "a\\\nb", "key: |\n  a\n\n", "\n\n \n",
    "a\n   \n\n   \nb\n", "\u00e9\n\u4e2d\n", "\U0001f600\na\n",
)  # fmt: skip

UNSEEN = (
    "\0", "a\0b", "\x01", "\x07", "\x08", "\x0b", "\x0c", "\x1b[0m", "\x1f", "\x7f", "a\x7f", "\x80", "\x85",
    "a\x85b", "\x85\n", "a\n\x85b\n", "\x9f", "\xa0", "a\xa0", "\xa0a", "\xad", "\u2028", "a\u2028b\n", "\u2029",
    "a\nb\u2029", "\ufeff", "a\ufeff", "\ufeffa\nb", "a\n\ufeff\n", "\u200b", "\u202ea", "\u2066a", "\ufffd",
    "\ufffe", "\uffff", "\ufff0", "\ud7ff", "\ue000", "\U00010000", "\U0001f600", "\U0001fffe", "\U000e0001",
    "\U0010ffff", "\u00e9", "\u4e2d\u6587", "\u0661", "\u061c", "a\x00\nb", "\x1b\n", "\u3000", "\u2003a",
    "\u00e9 # a", "\u00e9: a", "\u00e9:", "- \u00e9",
)  # fmt: skip

LONG = tuple(
    char * length
    for char in ("a", "a b", "\u00e9", "\U0001f600", "\\", "\x01", "\n", "a\n")
    for length in (511, 999, 1000, 1024, 1025, 3000)
)

TRAPS: tuple[str, ...] = WORDS + NUMBERS + TIMES + MARKS + LINES + UNSEEN + LONG

ALPHABET = (
    "aAbeEfoxXyYnNtTzZ_019.+-:, \t\n\r#?!&*|>%@`'\"\\/=~<[]{}()$"
    "\0\x07\x1b\x7f\x80\x85\xa0\xad\xe9\u2028\u2029\u200b\u202e\ufeff\ufffd\ufffe\u4e2d\ud7ff\ue000\U0001f600\U0010ffff"
)
"""What random strings are made of: everything that has a meaning to a reader somewhere."""
