"""Workloads of others, held against what the cluster offers."""
