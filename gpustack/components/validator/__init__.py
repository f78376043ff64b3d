"""The operator validator."""
