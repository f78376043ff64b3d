"""The driver: one for all nodes, or several, each for nodes of its own."""
