"""Objects by which other programs make the stack's Secrets: External Secrets Operator, and Sealed Secrets."""

from ..component import Given


class Secrets(Given):
    """With the base: pods of every later stage name them."""

    stage = "base"
