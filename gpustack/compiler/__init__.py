"""From an effective spec to files under dist/. docs/architecture.md draws the way."""
