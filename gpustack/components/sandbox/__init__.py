"""GPUs for virtual machines and Kata containers."""
