"""`gpustack verify` in the cluster."""
