"""What each component needs of the effective spec: one module per component, named like the component's own.

`from_spec(spec)` in each returns the frozen inputs, or None where the component is off. Nothing here imports cdk8s: a
render whose components are all in the cache plans with these modules alone and never starts Node.
"""
