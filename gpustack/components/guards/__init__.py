"""What the API server refuses to the stack's own accounts, and who may reach its pods."""
