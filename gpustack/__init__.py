"""gpustack: NVIDIA GPU stacks for Kubernetes, compiled before the merge instead of inside the cluster."""

__version__ = "0.1.0"
