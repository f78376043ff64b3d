"""Hypothesis strategies for what a YAML writer may be handed: plain JSON values, strings that are traps among them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.readers.traps import ALPHABET, TRAPS

TEXT = st.one_of(
    st.sampled_from(TRAPS),
    st.text(ALPHABET, max_size=12),
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.lists(st.text(" \tab#:-", max_size=4), max_size=5).map("\n".join),
)
NUMBER = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from((1e16, -0.0, 1e-5)),
)
VALUE = st.recursive(
    st.one_of(TEXT, NUMBER, st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
