"""The conformance suite: what the operator creates for a policy, and whether gpustack renders the same facts."""
