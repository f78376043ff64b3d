"""Rules about rendered objects: what the API server refuses, and what is named and isn't there."""
