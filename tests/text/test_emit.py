"""What text/emit.py promises beside being read right (test_emit_readers.py): form, order, refusals and cost."""

from __future__ import annotations

import enum
import pickle
import random
import time
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.text.emit import _KEYS, _SCALARS, EmitError, _Cache, emit, emit_value
from tests.bench.emit_soak import daemon_set
from tests.readers.python_readers import PYTHON_READERS
from tests.readers.strategies import TEXT, VALUE
from tests.readers.traps import NUMBERS, TIMES, WORDS

# One text per value


def shuffled(value: Any, rng: random.Random) -> Any:
    """VALUE with the keys of every mapping put in at random."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], rng) for key in rng.sample(list(value), len(value))}
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


@settings(max_examples=80, deadline=None)
@given(value=st.dictionaries(TEXT, VALUE, max_size=5), seed=st.integers(0, 999))
def test_insertion_order_leaves_no_trace(value: Any, seed: int) -> None:
    """Equal values give equal bytes, in whatever order their keys were put in."""
    other = shuffled(value, random.Random(seed))
    assert emit(value) == emit(other)
    assert emit_value(value) == emit_value(other)


def test_the_cache_leaves_no_trace() -> None:
    """A string is written alike the first time and later, and as key and as value each in its own form."""
    body = daemon_set()
    _SCALARS.clear()
    _KEYS.clear()
    assert emit(body) == emit(body)
    assert emit_value({"a": "a", "1": "1"}) == '"1": "1"\na: a\n'


def test_an_object_has_the_order_that_people_know() -> None:
    """apiVersion, kind, metadata lead; name and namespace lead in metadata, name (else key) in items; else sorted."""
    body = {
        "spec": {
            "template": {"metadata": {"labels": {"b": "1", "a": "x"}, "name": "pod"}, "kind": "k", "apiVersion": "v"},
            "env": [
                {"value": "1", "name": "A"},
                {"effect": "E", "key": "b"},
                {"key": "k", "b": "v", "name": "c"},
            ],
            "name": "not first",
            "args": ["b", "a"],
        },
        "data": {},
        "metadata": {"labels": {}, "annotations": {"z": "1"}, "namespace": "ns", "name": "o"},
        "kind": "DaemonSet",
        "apiVersion": "apps/v1",
    }
    assert emit(body) == (
        "apiVersion: apps/v1\n"
        "kind: DaemonSet\n"
        "metadata:\n"
        "  name: o\n"
        "  namespace: ns\n"
        "  annotations:\n"
        '    z: "1"\n'
        "  labels: {}\n"
        "data: {}\n"
        "spec:\n"
        "  args:\n"
        "  - b\n"
        "  - a\n"
        "  env:\n"
        "  - name: A\n"
        '    value: "1"\n'
        "  - key: b\n"
        "    effect: E\n"
        "  - name: c\n"
        "    b: v\n"
        "    key: k\n"
        "  name: not first\n"
        "  template:\n"
        "    apiVersion: v\n"
        "    kind: k\n"
        "    metadata:\n"
        "      name: pod\n"
        "      labels:\n"
        "        a: x\n"
        '        b: "1"\n'
    )


def test_keys_are_sorted_by_code_point() -> None:
    """Capitals before small letters, digits as characters, astral characters last: no locale, no natural order."""
    keys = ["a", "B", "a10", "a9", "_", "\uffff", "\U00010000", "a-b", "a.b"]
    expected = ["B", "_", "a", "a-b", "a.b", "a10", "a9", "\uffff", "\U00010000"]
    assert list(PYTHON_READERS["pyyaml"](emit_value(dict.fromkeys(keys, 1)))) == expected


def test_containers_in_lists() -> None:
    """A list in a list stands on its dash, a list in a mapping at the indent of its key, empty ones in brackets."""
    value = {"a": [[["x", {"y": [1]}], []], {}, {"b": {"c": []}}], "d": {}}
    assert emit_value(value) == ('a:\n- - - x\n    - "y":\n      - 1\n  - []\n- {}\n- b:\n    c: []\nd: {}\n')


@pytest.mark.parametrize(("value", "text"), [({}, "{}\n"), ([], "[]\n"), ("", '""\n'), (True, "true\n"), (0, "0\n")])
def test_values_without_children(value: Any, text: str) -> None:
    """A value needs no mapping around it."""
    assert emit_value(value) == text


def test_a_value_has_no_order_of_an_object() -> None:
    """A configuration file is no Kubernetes object: its keys are sorted, whatever they are called."""
    value = {"kind": "a", "apiVersion": "b", "flags": {"z": 1, "name": "c"}, "aa": 1}
    assert emit_value(value) == "aa: 1\napiVersion: b\nflags:\n  name: c\n  z: 1\nkind: a\n"


def test_a_shared_part_is_written_out_twice() -> None:
    """Parts that are one object in Python become two texts, not an anchor and an alias."""
    part = {"x": ["1"]}
    assert emit_value({"a": part, "b": part}) == 'a:\n  x:\n  - "1"\nb:\n  x:\n  - "1"\n'


# Strings


@pytest.mark.parametrize("text", [*WORDS, *NUMBERS, *TIMES, "=", "<<", "", "-", "1.2.3.4", "10.0.0.0/8", "2e3a"])
def test_what_may_be_more_than_a_string_is_quoted(text: str) -> None:
    """Words, numbers and times of any YAML are in double quotes, as values and as keys, for readers yet unknown too."""
    assert emit_value(text) == f'"{text}"\n'
    assert emit_value({text: 1}) == f'"{text}": 1\n'


@pytest.mark.parametrize(
    "text",
    [
        "nvidia",
        "nvidia.com/gpu.deploy.driver",
        "nvcr.io/nvidia/driver:580-ubuntu22.04",
        "/run/nvidia/driver",
        "unix:///run/a.sock",
        "--fail-on-init-error=false",
        "-c",
        "$(NODE_NAME)",
        "s0",
        "100m",
        "8Gi",
        "30s",
        "set -e; exec nvidia-smi | grep 'a b' && echo \"c\"",
        'sum(rate(DCGM_FI{gpu="0"}[5m])) > 0',
        "v26.7.0",
        "yesterday",
        "nobody",
        "Null-Modem",
    ],
)
def test_what_is_a_string_to_everyone_stays_plain(text: str) -> None:
    """Names, images, paths, options, quantities and commands stand without quotes, as in kubectl's output."""
    assert emit_value({"a": text}) == f"a: {text}\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('a\\b"c\t: d', r'"a\\b\"c\t: d"'),
        ("a\r\nb", r'"a\r\nb"'),
        ("\0\x07\x1b\x7f\x85\xa0", r'"\0\x07\x1b\x7f\x85\xa0"'),
        ("\u2028\u2029\ufeff\u200b\u202e", r'"\u2028\u2029\ufeff\u200b\u202e"'),
        ("\u00e9\u4e2d\U0001f600", '"\u00e9\u4e2d\U0001f600"'),
        ("\U000e0041", r'"\U000e0041"'),
        (" a", '" a"'),
        ("a ", '"a "'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
    ],
)
def test_quotes_and_escapes(text: str, written: str) -> None:
    """What a reader could change or a person can't see is escaped; letters of any script stand as they are."""
    assert emit_value(text) == written + "\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\nb\n", "|\n    a\n    b\n"),
        ("a\nb", "|-\n    a\n    b\n"),
        ("a\n\n", "|+\n    a\n\n"),
        ("a\n\n\nb\n", "|\n    a\n\n\n    b\n"),
        ("\na\n", "|\n\n    a\n"),
        (" a\nb\n", "|2\n     a\n    b\n"),
        ("\n\ta", "|2-\n\n    \ta\n"),
        ("#!/bin/sh\n\techo 'a'\n", "|\n    #!/bin/sh\n    \techo 'a'\n"),
        ("---\na: b\n", "|\n    ---\n    a: b\n"),
        ("\u00e9\n", "|\n    \u00e9\n"),
        ("a\n ", r'"a\n "' + "\n"),
        ("\n\n", r'"\n\n"' + "\n"),
        ("a\u2028\nb", r'"a\u2028\nb"' + "\n"),
    ],
)
def test_lines(text: str, written: str) -> None:
    """Several lines stand as a literal block where that loses nothing, else in double quotes."""
    assert emit_value({"a": {"b": text, "c": 1}}) == f"a:\n  b: {written}  c: 1\n"


def test_no_document_ends_with_blank_lines() -> None:
    """Blank lines at the end of a document would fall to whoever trims it, so the last string is quoted then."""
    assert emit_value({"a": "x\n\n", "b": ["y\n\n"]}) == 'a: |+\n  x\n\nb:\n- "y\\n\\n"\n'
    assert emit_value("a\n\n") == '"a\\n\\n"\n'


def test_a_key_that_is_too_long_for_its_colon() -> None:
    """Readers look 1,024 characters for a colon: a longer key is written behind a question mark, at any place."""
    key = "k" * 1001
    assert emit_value({"k" * 1000: 1}) == "k" * 1000 + ": 1\n"
    assert emit_value({key: [{key: {"a": 1}}]}) == f'? "{key}"\n:\n- ? "{key}"\n  :\n    a: 1\n'


def test_strings_of_other_types() -> None:
    """A StrEnum or an IntEnum is written as the plain value it is, as key and value."""

    class Word(enum.StrEnum):
        LINES = "a\nb"
        YES = "yes"

    class Number(enum.IntEnum):
        ONE = 1

    assert emit_value({Word.YES: [Word.YES, Word.LINES, Number.ONE]}) == '"yes":\n- "yes"\n- |-\n  a\n  b\n- 1\n'
    assert emit_value(OrderedDict(b=OrderedDict(d=1, c=2), a=1)) == "a: 1\nb:\n  c: 2\n  d: 1\n"


# Numbers


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (True, "true"),
        (False, "false"),
        (2**64 - 1, "18446744073709551615"),
        (-(2**63), "-9223372036854775808"),
        (1.0, "1"),
        (-0.0, "0"),
        (2.0**53, "9007199254740992"),
        (1e16, "1.0e+16"),
        (-1e16, "-1.0e+16"),
        (1.5e300, "1.5e+300"),
        (1e-05, "1.0e-05"),
        (5e-324, "5.0e-324"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
    ],
)
def test_numbers(number: float, text: str) -> None:
    """Whole numbers are integers up to 2**53; other floats have a dot and a signed exponent, which PyYAML asks for."""
    assert emit_value([number]) == f"- {text}\n"


# Refusals


class Unknown:
    """A type that JSON has not."""


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "None"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (2**64, "64 bits"),
        (-(2**63) - 1, "64 bits"),
        ("a\ud800", "U+D800"),
        ("a\n\udfff", "U+DFFF"),
        ((1, 2), "tuple"),
        (b"a", "bytes"),
        (Unknown(), "Unknown"),
        ({1: "a"}, "key 1"),
        ({None: "a"}, "key None"),
        ({True: "a"}, "key True"),
        ({1.5: "a"}, "key 1.5"),
        ({1: "a", "b": "c"}, "keys"),
    ],
)
def test_what_yaml_cannot_hold_is_refused_with_its_place(value: Any, what: str) -> None:
    """None, NaN, half surrogates, other types and their like end in an EmitError that names path and remedy."""
    body = {"spec": {"containers": [{"name": "a"}, {"name": "b", "env.x": [["a", value]]}]}}
    with pytest.raises(EmitError) as caught:
        emit(body)
    assert str(caught.value).startswith('spec.containers[1]["env.x"][0][1] ')
    assert what in str(caught.value)
    assert caught.value.path == ("spec", "containers", 1, "env.x", 0, 1)
    assert isinstance(caught.value, ValueError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - a worker's way home


def test_a_half_surrogate_in_a_key_is_refused_in_words_that_print() -> None:
    """The message itself is text that any terminal takes."""
    with pytest.raises(EmitError, match=r'^a\["b\\ud83d"\] holds half a surrogate pair \(U\+D83D\)') as caught:
        emit_value({"a": {"b\ud83d": 1}})
    str(caught.value).encode()


def test_a_value_that_is_refused_alone() -> None:
    """Without a path the message speaks of the value."""
    with pytest.raises(EmitError, match=r"^the value is None"):
        emit_value(None)  # type: ignore[arg-type]


def test_nesting_without_end_is_refused() -> None:
    """A value that holds itself, or is nested deeper than readers go, is an EmitError and no overflow of the stack."""
    loop: list[Any] = []
    loop.append({"a": loop})
    with pytest.raises(EmitError, match="nested deeper than 64"):
        emit_value(loop)


# Cost


def test_the_cache_is_bounded() -> None:
    """A process that writes strings without end keeps a bounded number of bounded ones."""
    cache = _Cache(str.upper)
    for number in range(_Cache._COUNT + 10):
        assert cache[f"a{number}"] == f"A{number}"
    assert len(cache) <= _Cache._COUNT
    long = "a" * (_Cache._LENGTH + 1)
    assert cache[long] == long.upper()
    assert long not in cache


def test_a_daemon_set_is_written_at_four_megabytes_a_second() -> None:
    """The emitter is the hot path of a fleet: 4 MB/s at least on one core, a tenth of what it does when undisturbed."""
    body = daemon_set()
    size = len(emit(body))
    times = []
    for _ in range(20):
        start = time.perf_counter()
        emit(body)
        times.append(time.perf_counter() - start)
    assert size / min(times) > 4e6
