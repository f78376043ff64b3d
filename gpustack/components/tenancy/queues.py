"""Queues in front of the tenants' quotas."""

from ..component import Given


class Queues(Given):
    """After what nodes need: no driver waits because Kueue isn't there."""
