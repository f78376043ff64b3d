"""Rules about what is below the stack: platforms, node systems, mirrors, versions that go together."""
