"""Rules about what a policy says in vain, or against itself."""
