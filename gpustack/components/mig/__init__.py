"""The MIG manager."""
