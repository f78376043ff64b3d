"""Rules about metrics and alerts."""
