"""Rules about node feature discovery."""
