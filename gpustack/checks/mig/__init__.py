"""Rules about MIG layouts and the MIG manager."""
