"""WWW-Authenticate as RFC 9110 (11.6.1) writes it."""

from __future__ import annotations

import pytest

from gpustack.registry.client import challenges


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("", {}),
        ("Negotiate", {"negotiate": {}}),
        ("Negotiate, Basic", {"negotiate": {}, "basic": {}}),
        # The example of the RFC.
        (
            'Basic realm="simple", Newauth realm="apps", type=1, title="Login to \\"apps\\""',
            {"basic": {"realm": "simple"}, "newauth": {"realm": "apps", "type": "1", "title": 'Login to "apps"'}},
        ),
        ('Bearer realm = "https://a/b?c=d,e" ,service=x', {"bearer": {"realm": "https://a/b?c=d,e", "service": "x"}}),
        ('Bearer a="1", a="2"', {"bearer": {"a": "1"}}),
        ('Bearer realm="no end', {"bearer": {}}),
    ],
)
def test_read(header: str, found: dict[str, dict[str, str]]) -> None:
    """Every scheme with its parameters, quoted or not; what is none is passed over."""
    assert challenges(header) == found


@pytest.mark.parametrize("part", ['a"', 'a="', "a ", "=", '"\\', "a=\\"])
def test_long_headers(part: str) -> None:
    """The time grows as the header does, whatever is in it, and HTTP libraries let 100 kB through."""
    challenges(part * 50_000)
    challenges("a" * 100_000 + part)
