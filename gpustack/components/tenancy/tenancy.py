"""What tenants are given, and what their pods may not do."""

from ..component import Given


class Tenancy(Given):
    """Namespaces, quotas and limits of tenants, and the policy over their pods: there before the first pod."""

    stage = "base"
