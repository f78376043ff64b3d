"""DCGM, the exporters, alerts and other rules for Prometheus, and dashboards for Grafana."""
