"""`constructs`: sections that a team's own distributions bring (policy/loading/constructs.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from .forms import refuse

if TYPE_CHECKING:
    from ..loading.constructs import Constructs


def constructs_in(context: Any) -> Constructs | None:
    """The constructs of a validation's CONTEXT; None where it has none: the spec was valid before."""
    return context["constructs"] if isinstance(context, dict) else None


def checked(given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """GIVEN, each section held to its own model, with the place of all that is wrong."""
    known = constructs_in(info.context)
    wrong: list[InitErrorDetails] = []
    if known is None:
        return given
    for name, section in given.items():
        try:
            known.check(name, section)
        except PydanticCustomError as error:
            wrong.append(InitErrorDetails(type=error, loc=(name,), input=section))
        except ValidationError as error:
            wrong += (_within(name, each) for each in error.errors(include_url=False))
    if wrong:
        raise ValidationError.from_exception_data("constructs", wrong)
    return given


def _within(name: str, details: Mapping[str, Any]) -> InitErrorDetails:
    """What DETAILS say is wrong within the section NAME."""
    steps = tuple(details["loc"])
    said, remedy = str(details["msg"]), "see what the distribution's own documentation says"
    if details["type"] == "missing":
        said, steps, remedy = f"{steps[-1]} is missing", steps[:-1], f"add {steps[-1]}"
    elif details["type"] == "extra_forbidden":
        said, remedy = f"{steps[-1]} is not a field of the construct {name}", f"remove {steps[-1]}"
    return InitErrorDetails(type=refuse("construct", said, remedy), loc=(name, *steps), input=details["input"])
