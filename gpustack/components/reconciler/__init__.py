"""The program in the cluster, and the NodePolicies that it carries out."""
