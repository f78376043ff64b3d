"""What offers GPUs to the kubelet: device plugin, MPS, GPU feature discovery, and their configurations."""
