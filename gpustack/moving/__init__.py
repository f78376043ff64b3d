"""Moving a cluster from the GPU operator to gpustack, and back."""
