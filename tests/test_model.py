"""The words that every room shares: numbers with an end, and sentences without passwords."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.model import Finding, Location, children, has_credentials, numbers, whole

PARTS = st.text("abcxyz0123456789-_.%", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("0042", 42), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("9" * 5000, None), ("", None), ("²", None)]
    + [(text, None) for text in ("-1", "1.5", "٣", " 1", "1e3")],
)
def test_whole(text: str, expected: int | None) -> None:
    """A number of at most 18 digits of ASCII, or nothing: no text makes it raise."""
    assert whole(text) == expected


@given(st.text())
def test_any_text_is_a_number_or_none(text: str) -> None:
    """`whole` and `numbers` raise for nothing, and agree."""
    assert numbers(text) == (() if whole(text) is None else (whole(text),)) or "." in text


def test_children() -> None:
    """A mapping has them by key, a list by position, and nothing else has any: a text isn't a list of letters."""
    assert [*children({"a": 1, "b": [2]})] == [("a", 1), ("b", [2])]
    assert [*children(["a", {"b": 1}])] == [(0, "a"), (1, {"b": 1})]
    assert [*children("ab"), *children(None), *children(3)] == []


def test_numbers() -> None:
    """The parts of a version; nothing where one of them isn't a number."""
    assert numbers("595.71.05") == (595, 71, 5)
    assert numbers("595..05") == numbers(f"595.{'9' * 5000}") == ()


@given(user=PARTS, password=PARTS, scheme=st.sampled_from(["http", "https", "socks5"]), around=st.booleans())
def test_no_sentence_has_a_password(user: str, password: str, scheme: str, around: bool) -> None:
    """Whatever quotes an address, in a sentence or in a line of a file: user and password are left out of it."""
    address = f"{scheme}://{user}:{password}@proxy.example.com:3128/a"
    text = f'httpProxy: "{address}"' if around else address
    assert has_credentials(text)
    place = Location("a.yaml", 1, 1, text)
    found = Finding("GPU018", "error", text, "spec", place, text, text)
    for said in (place.text, found.what, found.why, found.remedy):
        assert said == text.replace(f"{user}:{password}", "***")
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own


@pytest.mark.parametrize(
    "text",
    [
        *("me:secret@proxy.example.com:3128", "me:secret@proxy:3128", "me:secret@example.com/a"),
        *("https://ghp_secret@example.com/a", f"https://{'secret' * 5}@example.com/a"),
    ],
)
def test_passwords_without_a_scheme_and_tokens(text: str) -> None:
    """A proxy may be written without http://, and a token stand where the user does: told, and shown to nobody."""
    assert has_credentials(text)
    for quoted in (text, f"'{text}' is none", f"    value: {text}", f"{{name: A, value: '{text}'}}"):
        assert "secret" not in Finding("GPU018", "error", quoted).what


def test_a_digest_is_no_host() -> None:
    """Before the digest of an artifact stands its address, with the registry's port; a password there is one."""
    digest = f"sha256:{'a' * 64}"
    address = f"oci://registry.example.com:5000/gpu/one@{digest}"
    assert Finding("GPU974", "warning", f"its policy reads {address}").what.endswith(address)
    assert "secret" not in Finding("GPU974", "warning", f"oci://me:secret@registry.example.com/gpu/one@{digest}").what


@pytest.mark.parametrize("text", ["http://me:p/w@proxy:1", "https://ghp_token@example.com/a", "http://me:a@b@proxy:1"])
def test_odd_passwords_are_left_out_too(text: str) -> None:
    """One with a '/' or '@' in it, which makes the address none; a token in the place of a user."""
    shown = Finding("GPU018", "error", f"{text!r} is no proxy").what
    assert "***@" in shown
    assert not re.search("p/w|ghp_|a@b", shown)


@pytest.mark.parametrize(
    "text",
    [
        *("http://proxy:3128", "ssh://git@example.com/a", "http://me:$(PASSWORD)@proxy:1", "http://me:${PW}@proxy:1"),
        *("nvcr.io/nvidia/driver@sha256:abc", "https://a.example/x?mail=a:b@c", "mailto:me@example.com"),
        *(f"driver:595.91.07@sha256:{'0' * 64}", "localhost:5000/a:1@sha256:abc", "me:$(PASSWORD)@proxy:3128"),
        *("me@example.com", "team: me@example.com", "1:2@3", "a:b@c"),
    ],
)
def test_addresses_without_a_password(text: str) -> None:
    """No user, a user alone, or a variable that the pod fills in; a digest of an image; no address at all."""
    assert not has_credentials(text)


def test_words_that_nobody_can_read_are_cut() -> None:
    """A number of thousands of digits takes the place of its first ones in a sentence."""
    found = Finding("GPU014", "error", f"there is no release v{'9' * 5000}", remedy="a" * 1000)
    assert found.what == f"there is no release v{'9' * 59}..."
    assert found.remedy == "a" * 1000
