"""What reads and writes for the core: requests, watches, the Lease, the loop, metrics and logs."""
