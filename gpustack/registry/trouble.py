"""What can't be had of a registry, in words: for the person who asked, without passwords."""

from __future__ import annotations

import httpx2

from ..model import InputError, masked
from .credentials import Login
from .reference import Reference


def host_in(address: str) -> str:
    """The host of ADDRESS, which may not be one that can be taken apart, without a user."""
    return address.partition("://")[2].partition("/")[0].rpartition("@")[2]


def asked_for(address: str, image: Reference) -> str:
    """Who is asked at ADDRESS on behalf of IMAGE, in words: a token service or a store may be elsewhere."""
    host = host_in(address)
    return f"the registry {image.host}" if host == image.host else f"{host}, where the registry {image.host} sends us,"


def silent(image: Reference, address: str, trouble: str, why: str) -> InputError:
    """The error for a registry, or who it sends us to, that doesn't answer at ADDRESS. It is the same for all images
    from there, so it names none: whoever asks for many tells it once.
    """
    remedy = "try again later, or mend the way there (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE are looked at)"
    return InputError.of("GPU960", f"{asked_for(address, image)} can't be asked: {trouble}", why=why, remedy=remedy)


def misled(error: Exception) -> InputError:
    """The error for an environment by which no connection can be made. SOCKS needs a package that isn't here."""
    said = "a SOCKS proxy can't be used" if isinstance(error, ImportError) else masked(f"{error}")
    return InputError.of(
        "GPU972",
        f"the environment says how to connect, and that can't be: {said}",
        why="HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, SSL_CERT_FILE and SSL_CERT_DIR are looked at",
        remedy="correct or unset them: a proxy is http://host:port, SSL_CERT_FILE a file of certificates in PEM",
    )


def reason(error: httpx2.TransportError) -> str:
    """What went wrong on the way, without addresses of proxies, which may hold passwords."""
    return "no answer in time" if isinstance(error, httpx2.TimeoutException) else str(error) or type(error).__name__


def missing(image: Reference) -> InputError:
    """The error for an image that isn't there."""
    remedy = "correct its name and tag in the policy, or copy it there: gpustack images --format list"
    return InputError.of("GPU962", f"{image} is not in its registry", remedy=remedy)


def refused(image: Reference, login: Login | None) -> InputError:
    """The error for a registry that doesn't let us in."""
    who = "the login that is kept for it" if login else "who asks without a login"
    remedy = f"docker login {image.host}, with a user who may do it"
    return InputError.of(
        "GPU961",
        f"{image}: the registry {image.host} refuses {who}",
        why="registries say that also of an image that doesn't exist",
        remedy=remedy,
    )


def unusable(image: Reference, what: str) -> InputError:
    """The error for an answer that can't be used."""
    remedy = "see what answers at that address: a proxy, or a registry of an old kind?"
    return InputError.of("GPU963", f"{image}: the answer of {image.host} can't be used: {what}", remedy=remedy)
