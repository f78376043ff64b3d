"""Rules: over the effective spec and the catalogue (policy.py), and over what was rendered (references.py).

A rule is a function with an id, a severity and a docstring, registered with `@rule`. It yields findings and never
raises: what can't be used at all is refused where it is read.
"""
