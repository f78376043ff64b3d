"""DCGM, the exporters and the rules for Prometheus."""
