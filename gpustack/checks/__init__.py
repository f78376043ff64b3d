"""Rules: what can be said against a policy before anything is written.

A rule is a function with an id, a severity and a docstring, registered with `@rule` (rule.py says over what). It yields
hits and never raises: what can't be used at all is refused where it is read, with an id of errors.yaml. The docstring
is the title of the rule's page in docs/rules/; the page itself stands in a data file beside the module (pages.py).
"""

NEVER_KEPT = ("GPU814",)
"""Rules about objects with something in them that must not lie in a cache."""
