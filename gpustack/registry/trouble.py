"""What can't be had of a registry, in words: for the person who asked, without passwords."""

from ..model import InputError, masked
from ..text.refusals import Texts
from .credentials import Login
from .reference import Reference

TEXTS = Texts(__file__)


def host_in(address: str) -> str:
    """The host of ADDRESS, which may not be one that can be taken apart, without a user."""
    return address.partition("://")[2].partition("/")[0].rpartition("@")[2]


def silent(image: Reference, address: str, trouble: str, why: str) -> InputError:
    """The error for a registry, or who it sends us to, that doesn't answer at ADDRESS. It is the same for all images
    from there, so it names none: whoever asks for many tells it once."""
    host, asked = host_in(address), f"the registry {image.host}"
    if host != image.host:  # a token service or a store
        asked = f"{host}, where {asked} sends us,"
    return InputError(TEXTS.finding("GPU960", asked=asked, trouble=trouble, why=why))


def misled(error: Exception) -> InputError:
    """The error for an environment by which no connection can be made. SOCKS needs a package that isn't here."""
    said = "a SOCKS proxy can't be used" if isinstance(error, ImportError) else masked(f"{error}")
    return InputError(TEXTS.finding("GPU972", said=said))


def missing(image: Reference, part: str) -> InputError:
    """The error for an IMAGE that isn't there, or a PART of it: a digest."""
    return InputError(TEXTS.finding("GPU962", "part" if part else "image", image=image, part=part))


def refused(image: Reference, login: Login | None) -> InputError:
    """The error for a registry that doesn't let us in."""
    who = "the login that is kept for it" if login else "who asks without a login"
    return InputError(TEXTS.finding("GPU961", image=image, host=image.host, who=who))


def unusable(image: Reference, what: str) -> InputError:
    """The error for an answer that can't be used."""
    return InputError(TEXTS.finding("GPU963", image=image, host=image.host, what=what))
