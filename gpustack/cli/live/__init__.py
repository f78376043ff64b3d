"""What `gpustack rollout` and `gpustack reconciler` share: a cluster, or files that hold one, and what the reconciler
would make of it. Everything is decided by the program's own code (gpustack/reconciler)."""
