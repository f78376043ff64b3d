"""The YAML readers that meet our output, for tests: Kubernetes' own (Go), PyYAML and ruamel."""
