"""What verbs compare and guard: trees of Git, the folder of what is rendered, and policies, before and after."""
