"""Rules about drivers: the nodes they serve, images, GPUs under them, CUDA above them, and how they are rolled."""
