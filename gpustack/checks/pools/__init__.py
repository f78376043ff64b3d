"""Rules about node pools, their taints, and the program that labels their nodes."""
