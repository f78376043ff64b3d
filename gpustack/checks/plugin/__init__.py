"""Rules about the device plugin: its configurations, sharing, and how it hands out devices."""
