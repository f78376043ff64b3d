"""Rules about GPUs for virtual machines."""
