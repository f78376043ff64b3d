"""Rules about dynamic resource allocation."""
