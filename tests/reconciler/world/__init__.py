"""What runs in the cluster in memory besides the program: nodes and their kubelets, the stack's pods, workloads."""
