"""What `gpustack rollout` and `gpustack reconciler` share: a cluster, or files that hold one, and what the reconciler
would make of it, which its own code decides (gpustack/reconciler). And a hand-over, carried out (handover.py)."""
