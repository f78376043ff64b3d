"""What tenants are given, and what their pods may not do."""
