"""What the compiler and the program in the cluster share: NodePolicy, the objects around it, and keys on nodes."""
